"""From any input to a selection: take a sample, settle the number of clusters, fill the pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from dmkc.clusterers.answered import Answer, checked_answers
from dmkc.clusterers.base import seed_of
from dmkc.clusterers.margin.mkc import MultipleKernelClustering
from dmkc.clusterers.parameters import Integer
from dmkc.clusterers.prepare import SAMPLE_BYTES
from dmkc.clusterers.sampled import spread_out
from dmkc.data import Rows, as_rows, check_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.kernels import as_bank
from dmkc.scan.engine import Engine, one_blas_thread, open_engine
from dmkc.scan.survey import TakeScan, sample_positions
from dmkc.selection.choose import Gathered, Selection
from dmkc.selection.pool import BALANCES, Ingredients, make_pool
from dmkc.typing import PerRow, TableLike

ROWS = 1000
"""Rows that candidates are compared on."""


def select(
    X: TableLike,
    estimator: MultipleKernelClustering | None = None,
    *,
    answers: Iterable[Sequence[Any]] = (),
    sample_rows: int = ROWS,
    sample_weight: PerRow = None,
) -> Selection:
    """Choose parameters and start of multiple kernel clustering without labels.

    Some 50 candidates (starts x kernel banks x scalings) are fitted to a sample of the rows and
    judged by six criteria that use no labels.

    Parameters
    ----------
    X : rows, in any form that `fit` takes.
    estimator : MultipleKernelClustering or None, default=None
        Its parameters that are "auto" (`scale`, `kernels`, `C`, `balance`, `n_clusters`) are open;
        the others are kept.  None leaves all open but `n_clusters=2`.
    answers : list of (row, row, bool), default=()
        Pairs of rows and whether they belong together.
    sample_rows : int, default=1000
        Rows that candidates are compared on.
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
    >>> labels = found.estimator().fit_predict(X)
    """
    known = checked_answers(answers)
    return Selection.of(gather(X, estimator, known, sample_rows, sample_weight)).answered(known)


def gather(
    X: TableLike,
    estimator: MultipleKernelClustering | None,
    answers: Sequence[Answer],
    sample_rows: int,
    sample_weight: PerRow,
) -> Gathered:
    """The sample and the candidates that were fitted to it, not judged yet."""
    if estimator is None:
        estimator = MultipleKernelClustering(
            scale="auto", kernels="auto", C="auto", balance="auto", random_state=0
        )
    if not is_open(estimator.init):
        raise UserError("The start is chosen with the other parameters: leave `init` out.")
    if estimator.threshold != "unit":
        raise UserError("Candidates have a unit threshold: leave `threshold` out, or give `C`.")
    seed = seed_of(estimator.random_state)
    rows, engine = as_rows(X), open_engine(estimator.client, estimator)
    with one_blas_thread():
        wanted = Integer(least=20).check("sample_rows", sample_rows)
        positions, values = _take(rows, engine, wanted, answers, sample_weight, seed)
        template = clone(estimator).set_params(random_state=seed, client=estimator.client)
        m = _settled_number(template, values)
        template.set_params(n_clusters=m)
        if m < 2:
            raise UserError("There is nothing to choose with a single cluster.")
        names = None if rows.column_names is None else list(rows.column_names)
        with stage(f"fitting candidates to {len(values)} rows"):
            pool = make_pool(values, m, _ingredients(template), seed, names)
        called = rows.container.row_labels(positions)
        return Gathered(pool, values, names, positions, template, seed, called)


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


def _settled_number(template: MultipleKernelClustering, values: np.ndarray) -> int:
    """The number of clusters; where it is open, the one that the library's defaults choose."""
    if isinstance(template.n_clusters, int | np.integer):
        return int(template.n_clusters)
    plain = MultipleKernelClustering(template.n_clusters, random_state=template.random_state)
    return plain.fit(values).n_clusters_


def _take(
    rows: Rows, engine: Engine, wanted: int, answers: Any, sample_weight: PerRow, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and dense values of a sample that holds the rows of all answers."""
    n, d = rows.n_rows, rows.n_columns
    asked = np.array([row for answer in answers for row in answer[:2]], dtype=np.int64)
    if len(asked) and asked.max() >= n:
        raise UserError(f"An answer names row {asked.max()}, but `X` has {n} rows.")
    size = min(wanted, max(SAMPLE_BYTES // (8 * d), 64), n)
    positions = np.union1d(sample_positions(n, size, seed), asked)
    grid = engine.grid(n, scan_width(rows))
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, n))
    values, weights = engine.scan(TakeScan(positions), blocks, grid)
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise UserError(
            "Input `X` contains NaN or infinite (inf) value(s): fill in or drop these rows before "
            "clustering."
        )
    if sample_weight is not None:
        which = np.union1d(spread_out(weights), np.searchsorted(positions, asked))
        positions, values = positions[which], values[which]
    return positions, values
