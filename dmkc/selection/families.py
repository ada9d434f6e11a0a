"""Candidates of all families of methods, fitted to a sample."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from dmkc.clusterers.members import unheard
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.clusterers.sampled import MIXTURE_COLUMNS, leading_components
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.kernels import Linear, Neighbours
from dmkc.scan.engine import ThreadEngine, shared
from dmkc.selection.scores import standardised
from dmkc.selection.structure import telling_columns
from dmkc.typing import NamedValues, TableLike

SCALES = (None, "standard")
GRAPH_SIZES = (7, 12, 25)
"""Neighbours of the graphs of spectral candidates."""
MIXTURE_BANK = ["linear", "polynomial:2", "gaussian:0.5"]
GRAPH_BANK = ["linear", "neighbours:12"]
SOME_COLUMNS = "of some columns"
K_MEANS = "k-means"
FROM_A_MIXTURE = "margin from a mixture"
WITNESS = "mixture"
"""A family that is asked, and never chosen: nothing here could label new rows as it does."""
MANY_PAIRS = 0.1
"""Share of the columns of two values from which on candidates look at the others alone."""
MOST_WORK = 8.0
"""Seconds of an ordinary core that all candidates may take by their estimates, made before the
start: what is cut does not depend on the machine."""


@dataclass(frozen=True)
class Recipe:
    """A method and its parameters, in plain values."""

    method: str
    parameters: dict[str, Any]
    family: str
    costs: float = 1.0
    """How many times the work of k-means it is, about."""

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """What it may take of an ordinary core; from fits of 500 to 2000 rows, 5 to 784 columns."""
        widths = n_columns / 4 + 2 * self.parameters["n_clusters"] + 50
        mixture = 1e-8 * n_columns**2 if self.family == FROM_A_MIXTURE else 0.0
        return n_rows * (1e-7 * self.costs * widths + mixture)

    def estimator(self, **more: Any) -> Any:
        return ESTIMATORS[self.method](**self.parameters | more)

    def __str__(self) -> str:
        words = [f"{k}={v}" for k, v in self.parameters.items() if k != "n_clusters"]
        return f"{self.method} ({', '.join(words)})" if words else self.method


@dataclass(frozen=True)
class Candidate:
    """A clustering of the sample and how it was made; a witness has no recipe."""

    family: str
    recipe: Recipe | None
    labels: np.ndarray
    model: Any = None
    """What labels other rows as it does; a witness needs none."""
    start: str = ""
    """What its fit began from."""

    def described(self) -> NamedValues:
        """How it was made, in plain values."""
        return {"candidate": str(self.recipe), "family": self.family}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.described().items())
        return f"Candidate({said})"

    def witness(self) -> Candidate:
        """The same as one that is asked, and never chosen."""
        return replace(self, recipe=None, model=None)


@dataclass(frozen=True)
class Fitted:
    """Candidates that were fitted, and those that were cut: too much work, or out of time."""

    candidates: list[Candidate]
    cut: list[Recipe] = field(default_factory=list)


def recipes(n_clusters: int, few: Sequence[int] = ()) -> list[Recipe]:
    """What is tried, in order of promise.

    `few` are columns that some candidates see alone: those that are not of two values.
    """
    each: list[tuple[str, str, float, dict[str, Any]]] = [("kmeans", K_MEANS, 1, {"n_init": 10})]
    each += [("spectral", "graph", 10, {"neighbours": size}) for size in GRAPH_SIZES]
    each += [
        ("consensus", "consensus", 45, {}),
        ("mkc", "margin and graph", 15, {"kernels": GRAPH_BANK}),
        ("mkc", "margin", 8, {}),
        ("skmmc", "adaptive margin", 8, {}),
        ("kernel-kmeans", "kernel k-means", 3, {}),
        ("mkc", FROM_A_MIXTURE, 8, {"init": "mixture", "kernels": MIXTURE_BANK}),
    ]
    if len(few):
        line, graph = Linear(columns=tuple(few)), Neighbours(12, columns=tuple(few))
        each += [
            ("kernel-kmeans", f"k-means {SOME_COLUMNS}", 3, {"kernels": [line]}),
            ("kernel-kmeans", f"graph {SOME_COLUMNS}", 10, {"kernels": [graph]}),
            ("mkc", f"margin and graph {SOME_COLUMNS}", 15, {"kernels": [line, graph]}),
        ]
    found = [
        Recipe(method, {"n_clusters": n_clusters, "scale": scale, **more}, family, costs)
        for method, family, costs, more in each
        for scale in SCALES
    ]
    last = {"n_clusters": n_clusters, "scale": "standard"}
    return [*found, Recipe("odm", last, "margin distribution", 8)]


def affordable(
    wanted: Sequence[Recipe], n_rows: int, n_columns: int
) -> tuple[list[Recipe], list[Recipe]]:
    """The recipes that are tried, and those that would be too much work; never k-means."""
    tried: list[Recipe] = []
    cut: list[Recipe] = []
    left = MOST_WORK
    for recipe in wanted:
        needs = recipe.seconds(n_rows, n_columns)
        if needs <= left or recipe.family == K_MEANS:
            tried.append(recipe)
            left -= needs
        else:
            cut.append(recipe)
    return tried, cut


def as_it_is(rows: np.ndarray) -> TableLike:
    return rows


def _worth_a_look(values: np.ndarray) -> Sequence[int]:
    """Columns that some candidates look at alone; none where few others are of two values."""
    few = telling_columns(values)
    pairs = sum(np.unique(column).size == 2 for column in values.T)
    worth = len(few) < values.shape[1] and pairs >= MANY_PAIRS * values.shape[1]
    return few.tolist() if worth else ()


def fitted(
    values: np.ndarray,
    n_clusters: int,
    seed: int,
    form: Callable[[np.ndarray], TableLike] = as_it_is,
    max_seconds: float | None = None,
    without: Collection[str] = (),
) -> Fitted:
    """All candidates that can be fitted to these rows, and witnesses.

    `form` brings rows into the form that the fit of all rows will have; methods may be left out.
    Which candidates are too much work is known before the first; after `max_seconds` none is begun,
    but k-means always is.
    """
    found: list[Candidate] = []
    why: UserError | None = None
    every = recipes(n_clusters, _worth_a_look(values))
    wanted, cut = affordable([r for r in every if r.method not in without], *values.shape)
    began, rows = time.monotonic(), form(values)
    with stage(f"fitting {len(wanted)} candidates to a sample") as shown, _here_and_unheard():
        plain = within_bounds(values)
        for scaled in (plain, standardised(plain)):
            labels = _mixture(scaled, n_clusters, seed)
            if labels is not None:
                found.append(Candidate(WITNESS, None, labels))
        for number, recipe in enumerate(wanted):
            shown.advance(number, len(wanted), f"candidate {number + 1}: {recipe}")
            late = max_seconds is not None and time.monotonic() - began > max_seconds
            if late and number >= len(SCALES):
                return Fitted(found, [*cut, *wanted[number:]])
            try:
                model = recipe.estimator(random_state=seed).fit(rows)
            except UserError as problem:  # it is not made for such rows
                why = why or problem
                continue
            labels = np.asarray(model.labels_)
            found.append(Candidate(recipe.family, recipe, labels, model.model_, model.start_))
    if why is not None and all(candidate.recipe is None for candidate in found):
        raise why
    return Fitted(found, cut)


def within_bounds(values: np.ndarray) -> np.ndarray:
    """Rows around zero in a unit of which squares can be summed up; all columns have the same."""
    centred = values - values.mean(axis=0)
    size = float(np.abs(centred).max())
    return centred / size if size > 0 else centred


def _mixture(rows: np.ndarray, n_clusters: int, seed: int) -> np.ndarray | None:
    """What a mixture of normal distributions says, of leading components where columns are many."""
    if rows.shape[1] > MIXTURE_COLUMNS:
        _, axes = leading_components(rows, MIXTURE_COLUMNS, seed)
        rows = (rows - rows.mean(axis=0)) @ axes.T
    least = 1e-3 * float(rows.var()) + 1e-12
    mixture = GaussianMixture(n_clusters, random_state=seed % 2**32, reg_covar=least)
    try:
        return mixture.fit_predict(rows)
    except ValueError:  # rows that differ too much in size for it
        return None


@contextmanager
def _here_and_unheard() -> Iterator[None]:
    """Fits of a sample: in this process, of which nobody is told and no journal knows."""
    token = shared.set(ThreadEngine())
    try:
        with unheard():
            yield
    finally:
        shared.reset(token)
