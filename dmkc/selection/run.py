"""From any input to a selection: take a sample, settle the number of clusters, fit candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from dmkc.clusterers.answered import Answer, check_answers, checked_answers, fewest_clusters
from dmkc.clusterers.auto import AutoClustering
from dmkc.clusterers.base import seed_of
from dmkc.clusterers.margin.mkc import MultipleKernelClustering
from dmkc.clusterers.parameters import Integer, shared
from dmkc.data import as_rows
from dmkc.display import stage
from dmkc.errors import UserError, UserTypeError
from dmkc.kernels import as_bank
from dmkc.scan.engine import one_blas_thread, open_engine
from dmkc.selection.auto import seen_in
from dmkc.selection.choose import Gathered, Selection
from dmkc.selection.families import fitted
from dmkc.selection.pool import BALANCES, Ingredients, margin_candidates
from dmkc.selection.sampling import take_sample
from dmkc.selection.structure import check_enough_for_range
from dmkc.typing import PerRow, TableLike

FEWEST_ROWS = 20
"""Rows of a sample, at least, where there are as many."""
SAMPLE_ROWS = 1000
"""Rows on which settings of a single method are compared, unless another number is given."""


def select(
    X: TableLike,
    estimator: AutoClustering | MultipleKernelClustering | None = None,
    *,
    answers: Iterable[Sequence[Any]] = (),
    sample_rows: int | None = None,
    sample_weight: PerRow = None,
) -> Selection:
    """Choose a method and its parameters without labels, and see what else fits.

    Candidates are fitted to a sample of the rows and judged by criteria that use no labels: those
    of all methods, as `AutoClustering` tries them, or settings and starts of multiple kernel
    clustering alone, of which the other methods are witnesses then.

    Parameters
    ----------
    X : rows, in any form that `fit` takes.
    estimator : AutoClustering, MultipleKernelClustering or None, default=None
        None is ``AutoClustering(random_state=0)``: all methods, and any number of clusters.  Of a
        MultipleKernelClustering the parameters that are "auto" (`scale`, `kernels`, `C`,
        `balance`, `n_clusters`) are open, and the others are kept.
    answers : list of (row, row, bool), default=()
        Pairs of rows and whether they belong together.  An open number of clusters is at least as
        many as they ask for.
    sample_rows : int or None, default=None
        Rows that candidates are compared on.  None takes `sample_rows` of an AutoClustering, and
        1000 for a MultipleKernelClustering, where that parameter is about the fit of all rows.
    sample_weight : array or None, default=None
        One weight per row.

    Returns
    -------
    Selection
        With `best`, `confidence`, `alternatives`, `asking()`, `answered(...)`, `table()` and
        `estimator()`, which gives the estimator to fit to all rows.

    Examples
    --------
    >>> import dmkc
    >>> from dmkc.datasets import make_blobs
    >>> X, y = make_blobs(120, centers=2, seed=0)
    >>> found = dmkc.select(X)
    >>> found.verdict
    'clear clusters'
    >>> labels = found.estimator().fit_predict(X)
    """
    known = checked_answers(answers)
    return Selection.of(gather(X, estimator, known, sample_rows, sample_weight)).answered(known)


def gather(
    X: TableLike,
    estimator: Any,
    answers: Sequence[Answer],
    sample_rows: int | None,
    sample_weight: PerRow,
) -> Gathered:
    """The sample and the candidates that were fitted to it, not judged yet."""
    if estimator is None:
        estimator = AutoClustering(random_state=0)
    _check_template(estimator)
    seed = seed_of(estimator.random_state)
    rows, engine = as_rows(X), open_engine(estimator.client, estimator)
    wanted = _sample_size(estimator, sample_rows)
    asked = np.unique(np.array([row for answer in answers for row in answer[:2]], dtype=np.int64))
    if len(asked) and asked[-1] >= rows.n_rows:
        raise UserError(f"An answer names row {asked[-1]}, but `X` has {rows.n_rows} rows.")
    fewest, most = shared.cluster_range(estimator.n_clusters, rows.n_rows)
    if most < 2:
        raise UserError("There is nothing to choose with a single cluster.")
    if fewest < most and estimator.selectable and not is_open(estimator.n_clusters):
        check_enough_for_range(most, rows.n_rows)
    pairs, container = check_answers(answers, rows.n_rows, most)
    if pairs is not None and fewest < most:
        fewest = fewest_clusters(pairs, container, fewest, most)
    with one_blas_thread():
        sample = take_sample(rows, engine, wanted, fewest, sample_weight, asked, seed)
        seen = seen_in(sample.values, fewest, most, seed)
        m = seen.best if fewest < most else fewest
        template = clone(estimator).set_params(
            random_state=seed, client=estimator.client, n_clusters=m
        )
        found = Gathered([], sample, template, seed, seen, [])
        return (_of_settings if template.selectable else _of_methods)(found)


def _check_template(estimator: Any) -> None:
    """Refuse what nothing can be chosen for."""
    if isinstance(estimator, AutoClustering):
        if estimator.must_link is not None or estimator.cannot_link is not None:
            raise UserError(
                "Pairs of rows are given as `answers`: leave `must_link` and `cannot_link` out."
            )
        return
    if not isinstance(estimator, MultipleKernelClustering):
        raise UserTypeError(
            "There are candidates for an AutoClustering or a MultipleKernelClustering, not for a "
            f"{type(estimator).__name__}."
        )
    if not is_open(estimator.init):
        raise UserError("The start is chosen with the other parameters: leave `init` out.")
    if estimator.threshold != "unit":
        raise UserError("Candidates have a unit threshold: leave `threshold` out, or give `C`.")


def _sample_size(estimator: Any, given: int | None) -> int:
    """Rows of the sample; that of an AutoClustering is also what its own fit would take."""
    if given is not None:
        return int(Integer(least=FEWEST_ROWS).check("sample_rows", given))
    own = isinstance(estimator, AutoClustering)
    return int(estimator._checked()["sample_rows"]) if own else SAMPLE_ROWS


def _of_methods(found: Gathered) -> Gathered:
    """Candidates of all methods."""
    sample, limit = found.sample, found.template.max_seconds
    tried = fitted(sample.values, found.n_clusters, found.seed, sample.form, limit)
    return replace(found, candidates=tried.candidates, cut=[str(recipe) for recipe in tried.cut])


def _of_settings(found: Gathered) -> Gathered:
    """Settings of multiple kernel clustering, and what other methods say of the same rows."""
    sample, m, seed = found.sample, found.n_clusters, found.seed
    with stage(f"fitting candidates to {len(sample.values)} rows"):
        ours = margin_candidates(sample, m, _ingredients(found.template), seed)
    others = fitted(sample.values, m, seed, sample.form, without=("mkc",)).candidates
    return replace(found, candidates=[*ours, *(other.witness() for other in others)])


def is_open(value: Any) -> bool:
    """Whether a parameter is left to be chosen."""
    return isinstance(value, str) and value == "auto"


def _ingredients(template: MultipleKernelClustering) -> Ingredients:
    t, own, two = template, template._checked(), template.n_clusters == 2
    balance = None if is_open(t.balance) else t._balance(own["balance"], t.n_clusters, None)
    return Ingredients(
        scales=("standard", None) if is_open(t.scale) else (t.scale,),
        bank=None if is_open(t.kernels) else as_bank(t.kernels),
        C=None if is_open(t.C) else own["C"],
        balances=BALANCES if is_open(t.balance) and two else (balance,),
        norm=own["norm"],
        rank=own["rank"],
        solver=t.solver,
    )
