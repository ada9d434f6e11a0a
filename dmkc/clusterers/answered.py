"""Labels that keep pairs of rows together or apart, whatever method has found the clusters.

Rows that pairs tie together are labelled together: as most of them and of their neighbours are, as
far as the pairs allow.  For two clusters that is the labeling of the constrained rows with the
fewest such votes against it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from dmkc.clusterers import labelling
from dmkc.clusterers.labelling import Known
from dmkc.clusterers.sampled import NEIGHBOURS
from dmkc.constraints.assign import assigner
from dmkc.constraints.linked import Constraints, read_constraints
from dmkc.data import Container, Rows, as_rows
from dmkc.data.rows import scan_width
from dmkc.errors import UserError
from dmkc.scan.engine import Engine, one_blas_thread, open_engine
from dmkc.scan.survey import TakeScan, sample_positions
from dmkc.typing import PerRow, TableLike

ROWS = 1000
"""Rows among which neighbours of constrained ones are looked for."""
SHOWN = 3
"""Pairs that a warning names."""
Answer = tuple[int, int, bool]
"""Two row numbers, and whether they belong together."""


@dataclass(frozen=True)
class Kept:
    """Labels of constrained rows, and what the model says of them."""

    known: Known
    against: np.ndarray
    """(pairs, 2) row numbers: the pairs that the model by itself would not keep."""

    def labels(self, rows: Rows, labels: PerRow, model: Any) -> PerRow:
        """Labels of all rows with these put in, in the form of the rows."""
        if rows.container.lazy:
            pipeline, kind = model.label_pipeline(), np.dtype(np.int32)
            return labelling.apply(rows, pipeline, kind, None, known=self.known)
        values = np.array(labels)
        values[self.known.rows] = self.known.labels
        return rows.container.wrap(values)

    def warn(self, container: Container, pairs: Constraints) -> None:
        """Name the pairs that the clusters would not keep by themselves."""
        if not len(self.against):
            return
        ends = container.row_labels(self.against[:SHOWN].ravel())
        names = ", ".join(f"{a} and {b}" for a, b in zip(ends[::2], ends[1::2], strict=True))
        more = ", ..." if len(self.against) > SHOWN else ""
        warnings.warn(
            f"{len(self.against)} of {pairs.n_pairs} pairs contradict the clusters that were found "
            f"(rows {names}{more}): labels_ keeps them, predict follows the clusters.",
            stacklevel=4,
        )


def checked_answers(answers: Iterable[Sequence[Any]]) -> tuple[Answer, ...]:
    """Answers as (row, row, bool), or a sentence about the first that is not one."""
    known: list[Answer] = []
    for answer in answers:
        if len(answer) != 3 or not all(isinstance(row, int | np.integer) for row in answer[:2]):
            raise UserError(
                "An answer is two row numbers and whether the rows belong together, such as "
                f"(3, 17, True), not {answer!r}."
            )
        i, j, together = answer
        if i == j or i < 0 or j < 0 or together not in (True, False):
            raise UserError(f"{answer!r} does not say whether two different rows belong together.")
        known.append((int(i), int(j), bool(together)))
    return tuple(known)


def links_of(answers: Iterable[Answer]) -> tuple[np.ndarray, np.ndarray]:
    """Answers about pairs of rows as must-links and cannot-links."""
    known = list(answers)
    parts = ([a[:2] for a in known if a[2] is same] for same in (True, False))
    must, cannot = (np.array(part, np.int64).reshape(-1, 2) for part in parts)
    return must, cannot


def check_answers(
    answers: Iterable[Answer], n_rows: int, n_clusters: int
) -> tuple[Constraints | None, Container]:
    """Answers as constraints on numbered rows; those that contradict each other are named."""
    container = Container("numpy", n_rows)
    # an answer may be given again
    must, cannot = (np.unique(np.sort(some, axis=1), axis=0) for some in links_of(answers))
    found = read_constraints(must, cannot, container)
    if found is not None:
        assigner(found, container, n_clusters, None)
    return found, container


def keep_answers(fitted: Any, X: TableLike, answers: Iterable[Answer]) -> None:
    """Bring the labels of a fitted estimator in line with answers."""
    rows = as_rows(X)
    pairs, _ = check_answers(answers, rows.n_rows, fitted.n_clusters_)
    if pairs is None:
        return
    engine = open_engine(fitted.client, fitted)
    with one_blas_thread():
        kept = keep_pairs(fitted.model_, rows, engine, pairs, fitted.n_clusters_, 0)
    fitted.labels_ = kept.labels(rows, fitted.labels_, fitted.model_)
    fitted.n_scans_ += 1
    kept.warn(rows.container, pairs)


def fewest_clusters(constraints: Constraints, container: Container, fewest: int, most: int) -> int:
    """The smallest number of a range with which all pairs can be kept."""
    for m in range(max(fewest, 2 if len(constraints.cannot) else 1), most):
        try:
            assigner(constraints, container, m, None)
        except UserError:
            continue
        return m
    assigner(constraints, container, most, None)
    return most


def keep_pairs(
    model: Any, rows: Rows, engine: Engine, constraints: Constraints, n_clusters: int, seed: int
) -> Kept:
    """Labels of the constrained rows that keep all pairs, near to what a model says of them."""
    some = sample_positions(rows.n_rows, min(ROWS, rows.n_rows), seed)
    positions = np.union1d(some, constraints.rows)
    grid = engine.grid(rows.n_rows, scan_width(rows))
    blocks = list(rows.blocks(grid.block_rows))
    values, _ = engine.scan(TakeScan(positions), blocks, grid)
    labels = model.label_pipeline()(values)
    places = np.searchsorted(positions, constraints.rows)
    keep = assigner(constraints, rows.container, n_clusters, None)
    gain = votes(model.feature_pipeline()(values), labels, places, n_clusters)
    chosen, own = keep.assign(gain, None), labels[places]
    apart = own[constraints.must[:, 0]] != own[constraints.must[:, 1]]
    same = own[constraints.cannot[:, 0]] == own[constraints.cannot[:, 1]]
    against = np.concatenate([constraints.must[apart], constraints.cannot[same]])
    return Kept(Known(constraints.rows, chosen.astype(np.int32)), constraints.rows[against])


def votes(rows: np.ndarray, labels: np.ndarray, places: np.ndarray, m: int) -> np.ndarray:
    """How many of a row and its nearest ones are in every cluster."""
    distances = euclidean_distances(rows[places], rows)
    distances[np.arange(len(places)), places] = -1.0
    count = min(NEIGHBOURS + 1, len(rows))
    nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
    return np.eye(m)[labels[nearest]].sum(axis=1)
