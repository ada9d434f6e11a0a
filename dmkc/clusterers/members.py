"""Several models of the same rows at once, and how far they agree.

`MemberClusters` labels rows by all of them; refits of one method on other samples say how sure its
labels are; and anchors or landmarks of a model say how far a row is from where rows were.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.neighbors import LocalOutlierFactor

from dmkc.clusterers.labelling import Pipeline, RawColumns
from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.display import hidden
from dmkc.kernels import KernelPlan, View
from dmkc.kernels.anchors import combine
from dmkc.progress import listening
from dmkc.scan.engine import recorder
from dmkc.typing import TableLike

REFITS = 8
"""Fits on other samples, from which the chance of a label is counted."""
MOST_ROWS = 2048
"""Rows that are kept of a fit for them; each is of half as many."""
FEWEST_ROWS = 64
"""Rows from which on a half of them says something."""
OUTLIER_NEIGHBOURS = 20


class Labeller(Protocol):
    """A fitted model of any method."""

    @property
    def n_clusters(self) -> int: ...

    def label_pipeline(self) -> Pipeline: ...


@dataclass(frozen=True, eq=False)
class MemberClusters:
    """The clusters that a row is in, as what is stored of it: their numbers among all clusters."""

    models: tuple[Any, ...]
    """Fitted models; those with the same plan share what is made of a row."""

    @cached_property
    def _pipelines(self) -> tuple[Pipeline, ...]:
        return tuple(model.label_pipeline() for model in self.models)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the clusters of every clustering begin; the last entry is the number of all."""
        return (0, *itertools.accumulate(model.n_clusters for model in self.models))

    @property
    def n_clusters(self) -> int:
        return self.offsets[-1]

    @property
    def width(self) -> int:
        return len(self.models)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.uint16 if self.n_clusters <= 1 << 16 else np.int32)

    @property
    def leaf_rows(self) -> int:
        """Whole leaves of every plan: all are powers of two."""
        return max(pipeline.plan.leaf_rows for pipeline in self._pipelines)

    def room(self, n_rows: int) -> None:
        return None

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> RowRecord:
        record = as_record(rows)
        codes = np.empty((len(record), self.width), self.dtype)
        waiting, offsets = dict(enumerate(self._pipelines)), self.offsets
        while waiting:
            plan = next(iter(waiting.values())).plan
            here = {t: p for t, p in waiting.items() if p.plan is plan}
            step = len(record) if sp.issparse(record.rows) else plan.leaf_rows
            room = plan.room(min(step, len(record)))
            for start in range(0, len(record), step):
                stored = plan(record.rows[start : start + step], room)
                for t, pipeline in here.items():
                    codes[start : start + step, t] = pipeline.answer(stored) + offsets[t]
            waiting = {t: p for t, p in waiting.items() if t not in here}
        return RowRecord(codes, record.weights)


@dataclass(frozen=True, eq=False)
class Agreement:
    """From a row's clusters to the share of every joint cluster in them."""

    shares: np.ndarray
    """Clusters of all clusterings x joint clusters; rows sum to 1."""

    def __call__(self, stored: RowRecord) -> np.ndarray:
        codes = stored.rows
        out = np.empty((len(codes), self.shares.shape[1]))
        combine(codes, np.ones(codes.shape), self.shares, np.zeros(out.shape[1]), out, 0)
        return out / codes.shape[1]  # at the end, so that full agreement is 1 and not nearly so


@dataclass(eq=False)
class Refits:
    """Rows that were kept of a fit, and the fits of some of them once these have been asked for."""

    rows: BlockRows
    """As they came; none of weight 0."""
    numbers: np.ndarray
    """Their row numbers."""
    weights: np.ndarray | None
    made: tuple[MemberClusters, Agreement] | None = None

    @classmethod
    def of(cls, rows: BlockRows, weights: np.ndarray, numbers: np.ndarray) -> Refits:
        """At most `MOST_ROWS` of some sampled rows."""
        heavy = np.flatnonzero(weights > 0)
        if len(heavy) > MOST_ROWS:
            heavy = heavy[np.linspace(0, len(heavy) - 1, MOST_ROWS).astype(int)]
        some = weights[heavy]
        return cls(rows[heavy], numbers[heavy], None if (some == 1).all() else some)

    def make(
        self, estimator: Any, model: Labeller, form: Callable[[BlockRows], TableLike]
    ) -> tuple[MemberClusters, Agreement]:
        """Fits of halves of the rows, and their clusters as those of a model of all of them.

        Where rows are few, the fits are of all of them with other seeds.  Equal rows are in one
        half, so that a row of weight 3 is the same as three equal rows.
        """
        if self.made is None:
            rng, rows, numbers = np.random.default_rng(17), self.rows, _distinct(self.rows)
            count = int(numbers.max()) + 1
            size = count // 2 if count >= FEWEST_ROWS else count
            models: list[Any] = []
            for _ in range(REFITS):
                half = np.flatnonzero(np.isin(numbers, rng.permutation(count)[:size]))
                again = clone(estimator).set_params(random_state=int(rng.integers(2**31)))
                weights = None if self.weights is None else self.weights[half]
                with unheard():
                    models.append(again.fit(form(rows[half]), None, weights).model_)
            labelings = [each.label_pipeline()(rows) for each in models]
            reference = model.label_pipeline()(rows)
            agreement = agreement_of(reference, labelings, model.n_clusters)
            self.made = MemberClusters(tuple(models)), agreement
        return self.made


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Fits that nobody has asked for: nobody is told of them, and no journal records them."""
    token = recorder.set(None)
    try:
        with warnings.catch_warnings(), listening(lambda known: None), hidden():
            warnings.simplefilter("ignore")
            yield
    finally:
        recorder.reset(token)


def _distinct(rows: Any) -> np.ndarray:
    """A number for every row, the same for equal ones, whatever the order of the rows."""
    if sp.issparse(rows):
        ends = itertools.pairwise(rows.indptr)
        keys = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [row.tobytes() for row in np.ascontiguousarray(rows)]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys])


def agreement_of(reference: np.ndarray, labelings: list[np.ndarray], n_clusters: int) -> Agreement:
    """Clusters of refits as those of a reference that they share most rows with, one to one."""
    parts = []
    for labels in labelings:
        shared = np.zeros((n_clusters, n_clusters))
        np.add.at(shared, (labels, reference), 1.0)
        rows, columns = linear_sum_assignment(-shared)
        matched = np.zeros_like(shared)
        matched[rows, columns] = 1.0
        parts.append(matched)
    return Agreement(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class LocalOutliers:
    """How much thinner it is around a row than around its nearest points: 1, or more if it is far.

    The points are anchors or landmarks, which cover the rows of the fit (Breunig et al., 2000).
    """

    view: View
    points: np.ndarray
    """Standardised."""

    @cached_property
    def _fitted(self) -> LocalOutlierFactor:
        count = min(OUTLIER_NEIGHBOURS, len(self.points) - 1)
        return LocalOutlierFactor(n_neighbors=count, novelty=True).fit(self.points)

    def __call__(self, rows: Any) -> np.ndarray:
        values = self.view(as_record(rows).rows)
        return -self._fitted.score_samples(self.view.scaling.apply(values))


def outlier_pipeline(plan: KernelPlan) -> Pipeline | None:
    """Scores from the largest set of points that the kernels of a plan compare rows with."""
    best: LocalOutliers | None = None
    for fitted, view in zip(plan.fitted, plan.view_of, strict=True):
        state = fitted.state()
        points = state.get("anchors", state.get("landmarks"))
        size = 2 if best is None else len(best.points)
        if points is not None and len(points) > size:
            best = LocalOutliers(plan.views[view], points)
    if best is None:
        return None
    return Pipeline(RawColumns(plan.n_columns, plan.leaf_rows, np.dtype(np.float64)), best)


def as_given(rows: BlockRows, views: dict[str, tuple[int, int]], names: Any) -> TableLike:
    """Rows in a form that has the views or the column names that a fit had."""
    if views:
        return {name: rows[:, first:last] for name, (first, last) in views.items()}
    return rows if names is None else pd.DataFrame(rows, columns=names)
