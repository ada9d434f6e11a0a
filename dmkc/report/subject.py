"""What a report is about: a fitted estimator or a Pipeline that ends in one, and sampled rows.

Of all rows nothing but the sizes of the clusters is asked; everything else is seen on a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dmkc import plot
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.members import unheard
from dmkc.data import as_rows
from dmkc.errors import UserError, UserTypeError
from dmkc.plot.rows import rows_at, sizes_and_noise
from dmkc.report import columns
from dmkc.report.columns import Column
from dmkc.report.profiles import told
from dmkc.scan.survey import sample_positions
from dmkc.showing import printable
from dmkc.tables import TableColumns, as_frame, is_lazy
from dmkc.tables.columns import numbers_of
from dmkc.tables.frames import is_table, of_parts
from dmkc.typing import PerRow, TableLike

SAMPLE = 4000
"""Rows that are looked at."""
MOST_COLUMNS = 300
"""Columns that are, of more those whose means or spreads differ most between clusters."""


MOST_CELLS, CELLS_AT_ONCE, FEWEST_ROWS = 40_000_000, 4_000_000, 50
"""Cells of shuffled rows, of all copies and of those that are labelled at once; rows at least."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A clustering, and some of its rows as they were given, as numbers and as columns."""

    model: Any
    """What predicts the rows as they were given."""
    estimator: Any
    """The same, or the last step of the Pipeline."""
    labels: PerRow
    """Of all rows."""
    n_rows: int
    n_columns: int
    positions: np.ndarray
    ids: list[str]
    """What the sampled rows are called."""
    given: Any
    """Sampled rows as they were given, in memory."""
    numbers: Any
    """The same as the estimator takes them."""
    sampled: np.ndarray
    """Their labels."""
    columns: list[Column]
    """Of the user's table, those that tell most of the clusters first."""
    tells: list[float]
    """How much of the cluster each of them tells by itself."""

    @cached_property
    def medoids(self) -> dict[int, int]:
        """Places of the model's medoids among the sampled rows, where these are rows of the fit."""
        rows, found = self.estimator._fitted("medoids_"), _medoid_positions(self.estimator)
        places = np.searchsorted(self.positions, found)
        there: dict[int, int] = {}
        for k, (place, position) in enumerate(zip(places, found, strict=True)):
            if place < len(self.positions) and self.positions[place] == position:
                own = self.values[[place]]
                own = np.asarray(own.toarray() if sp.issparse(own) else own, dtype=np.float64)
                if self.sampled[place] == k and np.allclose(own, rows[k], rtol=1e-5):
                    there[k] = int(place)
        return there

    @property
    def n_clusters(self) -> int:
        return self.estimator.n_clusters_

    @property
    def is_pipeline(self) -> bool:
        return self.model is not self.estimator

    @cached_property
    def sizes(self) -> np.ndarray:
        return self._counted[0]

    @cached_property
    def noise(self) -> int:
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[np.ndarray, int]:
        return sizes_and_noise(self.labels, self.n_clusters)

    @cached_property
    def values(self) -> Any:
        """The numbers as an array or a sparse matrix."""
        return plain(self.numbers)


def subject_of(model: Any, X: TableLike) -> Subject:
    """What there is to report of a fitted estimator, or a Pipeline that ends in one, and rows."""
    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(estimator, RowClusterer):
        raise UserTypeError(
            f"A report is of a fitted clusterer of dmkc, or of a Pipeline that ends in one, and "
            f"not of a {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    return _of_pipeline(model, X) if model is not estimator else _of_estimator(model, X)


def _of_estimator(model: Any, X: TableLike) -> Subject:
    recipe = model._recipe()
    if recipe is not None and is_table(X) and recipe.wants(list(X.columns)):
        X = numbers_of(X, recipe)
    rows = as_rows(X)
    positions = _positions(model, rows.n_rows)
    drawn = rows_at(rows, positions)
    labels = _labels(model, model, X, rows.n_rows)
    found = _sampled_labels(model, labels, rows.n_rows, positions, drawn)
    values, chosen = plain(drawn), None
    if recipe is not None and len(recipe.made) != rows.n_columns:
        recipe = None  # of other rows than those of the fit
    chosen = _telling(values, found)
    names = [*map(printable, rows.column_names or ())]
    names = names or [f"column {j}" for j in range(rows.n_columns)]
    if recipe is None:
        seen = columns.of_numbers(values, names, chosen)
    else:
        seen = columns.of_recipe(values, recipe, chosen)
    ids = [*map(printable, rows.container.row_labels(positions))]
    n_columns = rows.n_columns if recipe is None else len(recipe.used)
    ranked, tells = _ranked(seen, found)
    return Subject(
        model, model, labels, rows.n_rows, n_columns, positions, ids, drawn, drawn, found, ranked,
        tells,
    )  # fmt: skip


def _of_pipeline(model: Any, X: TableLike) -> Subject:
    estimator, first = model.steps[-1][1], model.steps[0][1]
    n_rows, positions, given, ids = _some_rows(X, estimator)
    before = model[:-1]
    numbers = before.transform(given) if len(before) else given
    if numbers.shape[0] != len(ids):
        kept = _kept(first, given)
        if kept is None or int(kept.sum()) != numbers.shape[0]:
            raise UserError(
                "A step of the Pipeline drops rows, so that nobody knows which of them the labels "
                "are of; write the report of its last step and what the others make of the rows."
            )
        positions, given = positions[kept], given[kept]
        ids = [name for name, stays in zip(ids, kept, strict=True) if stays]
    labels = _labels(model, estimator, X, n_rows)
    found = _sampled_labels(model, labels, n_rows, positions, given)
    if isinstance(given, pd.DataFrame):
        recipe = first.recipe_ if isinstance(first, TableColumns) else None
        seen = columns.of_frame(given, recipe)
        n_columns = len(seen)
    else:
        names = [f"column {j}" for j in range(given.shape[1])]
        seen = columns.of_numbers(given, names, _telling(given, found))
        n_columns = given.shape[1]
    ranked, tells = _ranked(seen, found)
    return Subject(
        model, estimator, labels, _length(labels, n_rows), n_columns, positions, ids, given,
        numbers, found, ranked, tells,
    )  # fmt: skip


def shuffled(subject: Subject, count: int, rows: int, repeats: int) -> list[float]:
    """The share of rows whose label changes when a column's values go to other rows.

    Of the first `count` columns, each by itself; many copies of the rows are labelled at once, and
    of wide rows fewer are looked at.
    """
    rng, shown = np.random.default_rng(0), subject.columns[:count]
    n_rows, width = subject.given.shape
    rows = max(min(rows, MOST_CELLS // max(width * len(shown) * repeats, 1)), FEWEST_ROWS)
    some = np.sort(rng.permutation(n_rows)[:rows])
    base = _taken(subject.given, some)
    before = np.asarray(subject.model.predict(base))
    if len(before) != len(some):  # a step drops rows
        return [float("nan")] * len(shown)
    order = [column.places for column in shown for _ in range(repeats)]
    step = max(CELLS_AT_ONCE // (len(some) * width), 1)
    changed: list[np.ndarray] = []
    for start in range(0, len(order), step):
        copies = [
            _exchanged(base, places, rng.permutation(len(some)))
            for places in order[start : start + step]
        ]
        with unheard():  # such rows are like none of the fit, as they should be
            labels = np.asarray(subject.model.predict(_stacked(copies))).reshape(len(copies), -1)
        changed.append((labels != before).mean(axis=1))
    return np.concatenate(changed).reshape(len(shown), repeats).mean(axis=1).tolist()


def plain(rows: Any) -> Any:
    """Sampled rows as an array or a sparse matrix, without column names."""
    if isinstance(rows, pd.DataFrame):
        if all(isinstance(kind, pd.SparseDtype) for kind in rows.dtypes):
            return rows.sparse.to_coo().tocsr()
        return rows.to_numpy()
    return rows


def moments(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns."""
    if not sp.issparse(values):
        values = np.asarray(values, dtype=np.float64)
        return values.mean(axis=0), values.std(axis=0)
    values = values.astype(np.float64)
    mean = np.asarray(values.mean(axis=0)).ravel()
    square = np.asarray(values.multiply(values).mean(axis=0)).ravel()
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _positions(estimator: Any, n_rows: int) -> np.ndarray:
    """Numbers of the rows to look at: a sample, and the medoids."""
    medoids = _medoid_positions(estimator)
    some = sample_positions(n_rows, SAMPLE, 0)
    return np.union1d(some, medoids[(medoids >= 0) & (medoids < n_rows)])


def _medoid_positions(estimator: Any) -> np.ndarray:
    found = estimator._fitted("medoid_indices_")
    return np.empty(0, dtype=int) if found is None else np.asarray(found, dtype=int)


def _some_rows(X: TableLike, estimator: Any) -> tuple[int, np.ndarray, Any, list[str]]:
    """Of rows in any form: how many there are, and numbers, values and names of some."""
    if isinstance(X, np.ndarray) and X.dtype == object:
        X = pd.DataFrame(X)
    if not is_table(X):
        rows = as_rows(X)
        positions = _positions(estimator, rows.n_rows)
        drawn = rows_at(rows, positions)
        ids = [*map(printable, rows.container.row_labels(positions))]
        return rows.n_rows, positions, drawn, ids
    frame = as_frame(X)
    if not is_lazy(frame):
        positions = _positions(estimator, len(frame))
        some = frame.iloc[positions]
        return len(frame), positions, some, [*map(printable, some.index)]
    ends = np.cumsum(of_parts(frame, len))
    positions = _positions(estimator, int(ends[-1]))
    parts = [
        part.iloc[positions[(positions >= end - size) & (positions < end)] - (end - size)]
        for part, end, size in zip(frame.to_delayed(), ends, np.diff(ends, prepend=0), strict=True)
    ]
    drawn = pd.concat(dask.compute(*parts))
    return int(ends[-1]), positions, drawn, [str(position) for position in positions]


def _kept(step: Any, given: Any) -> np.ndarray | None:
    """Which rows a step that makes columns of a table keeps."""
    return step.recipe_.kept(given) if isinstance(step, TableColumns) else None


def _labels(model: Any, estimator: Any, X: TableLike, n_rows: int) -> PerRow:
    """The labels of the fit, or, of a model from a file or other rows, those it predicts."""
    labels = estimator._fitted("labels_")
    in_memory = isinstance(labels, np.ndarray | pd.Series)
    if labels is None or (in_memory and len(labels) > n_rows):
        return model.predict(X)
    dropped = isinstance(getattr(model, "steps", [[None, None]])[0][1], TableColumns)
    if in_memory and len(labels) != n_rows and not dropped:
        return model.predict(X)
    return labels


def _length(labels: PerRow, n_rows: int) -> int:
    return len(labels) if isinstance(labels, np.ndarray | pd.Series) else n_rows


def _sampled_labels(
    model: Any, labels: PerRow, n_rows: int, positions: np.ndarray, drawn: Any
) -> np.ndarray:
    """Labels of sampled rows: those of the fit, which keep constraints, where rows are the same."""
    if _length(labels, n_rows) == n_rows:
        return plot.take(labels, positions).astype(int)
    return np.asarray(model.predict(drawn)).astype(int)


def _telling(values: Any, labels: np.ndarray) -> list[int]:
    """Numbers of the columns whose means or spreads differ most between clusters, in order."""
    if values.shape[1] <= MOST_COLUMNS:
        return list(range(values.shape[1]))
    _, spread = moments(values)
    spread = np.where(spread > 0, spread, 1.0)
    differs = np.zeros(values.shape[1])
    for cluster in np.unique(labels):
        mean, own = moments(values[np.flatnonzero(labels == cluster)])
        other, others = (
            moments(values[np.flatnonzero(labels != cluster)])
            if (labels != cluster).any()
            else (mean, own)
        )
        differs = np.maximum(differs, np.abs(mean - other) / spread + np.abs(own - others) / spread)
    return sorted(np.argsort(-differs, kind="stable")[:MOST_COLUMNS].tolist())


def _ranked(seen: Sequence[Column], labels: np.ndarray) -> tuple[list[Column], list[float]]:
    """Columns in the order of what they tell of the clusters, and how much that is."""
    tells = [told(column, labels) for column in seen]
    order = np.argsort(-np.array(tells), kind="stable")
    return [seen[j] for j in order], [tells[j] for j in order]


def _taken(rows: Any, some: np.ndarray) -> Any:
    return rows.iloc[some] if isinstance(rows, pd.DataFrame) else rows[some]


def _exchanged(rows: Any, places: Sequence[int], order: np.ndarray) -> Any:
    """Rows with the values of some columns in another order."""
    if isinstance(rows, pd.DataFrame):
        out = rows.copy()
        for j in places:
            out.isetitem(j, rows.iloc[order, j].array)
        return out
    out = rows.tolil(copy=True) if sp.issparse(rows) else rows.copy()
    out[:, list(places)] = rows[order][:, list(places)]
    return sp.csr_array(out) if sp.issparse(rows) else out


def _stacked(copies: list[Any]) -> Any:
    if isinstance(copies[0], pd.DataFrame):
        return pd.concat(copies, ignore_index=True)
    if sp.issparse(copies[0]):
        return sp.vstack(copies, format="csr")
    return np.concatenate(copies)
