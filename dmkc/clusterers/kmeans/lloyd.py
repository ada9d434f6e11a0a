"""Lloyd's algorithm on scans, as a fit that shares them with other starts.

Stops as scikit-learn does: when no label changes, or when the centroids move by no more than the
tolerance.  Labels are not stored: equal labels give equal sums, bit for bit, so that "no label
changes" is "no centroid changes".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from dmkc.clusterers.fits import MAX_ITER_REACHED, SETTLED, Fit, FitEnd, Stage
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.starts import distinct_rows
from dmkc.data import RowRecord
from dmkc.progress import Progress
from dmkc.scan.assign import (
    PLAIN,
    CentroidRequest,
    Centroids,
    CentroidSums,
    CostScan,
    FarScan,
    Frame,
)
from dmkc.scan.grid import leaf_rows_for
from dmkc.scan.requests import ScanRequest

ROUNDS = 5
"""Rounds of oversampling of k-means||, each of twice as many rows as there are clusters."""
SEED_ROWS, SEED_BYTES = 30, 8 << 20
"""k-means++ looks at this many rows a cluster at least, and at as many as have these bytes."""


def held_points(rows: np.ndarray, weights: np.ndarray) -> SampleRows:
    """Rows in this process's memory with their weights, as k-means sees them."""
    return SampleRows(RowRecord(rows, weights), leaf_rows_for(rows.shape[1]))


def mean_square(rows: np.ndarray, weights: np.ndarray) -> float:
    """Mean of the squared rows."""
    return float(weights @ np.einsum("ij,ij->i", rows, rows)) / float(weights.sum())


@dataclass(frozen=True, kw_only=True)
class Run(FitEnd):
    """One start as far as it has come."""

    centres: np.ndarray
    """Clusters x columns, in the frame."""
    moved: float = np.inf
    """Sum of the squared moves of the centroids in the last step."""
    inertia: float = np.inf
    """Inertia before the last step, from scores; exact only once it has been measured."""
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Weights of the clusters; as of the last step until they have been measured."""
    first_rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """Number of the first row of every cluster, once they have been measured."""
    n_iter: int = 0
    converged: bool = False
    reason: str = MAX_ITER_REACHED


Report = Callable[[str, Run], None]
"""Told of every step, with the name of the start."""


def reporter(progress: Progress, on: str) -> Report:
    """Tells the progress display of every step, on "sample" or "all" rows."""

    def report(name: str, run: Run) -> None:
        progress.note(
            f"{on} rows, {name}, step {run.n_iter}: inertia {run.inertia:.6g}",
            start=name,
            on=on,
            round=run.n_iter,
            objective=run.inertia,
            moved=run.moved,
        )

    return report


@dataclass(frozen=True)
class Lloyd:
    """k-means of some rows."""

    frame: Frame
    mean_square: float
    """Mean of the squared rows, in the frame."""
    tol: float
    """Absolute bound on the sum of the squared moves of the centroids."""
    max_iter: int
    report: Report

    def fit(self, name: str, run: Run) -> Fit[Any, Run]:
        """Go on from a run's centroids until they settle."""
        for _ in range(self.max_iter):
            found: CentroidSums = yield CentroidRequest(self.frame, run.centres)
            centres = yield from self._next_centres(run.centres, found.sums, found.weights)
            moved = float(np.sum((centres - run.centres) ** 2))
            done = np.array_equal(centres, run.centres) or moved <= self.tol
            inertia = self.mean_square * float(found.weights.sum()) + found.score
            run = Run(
                centres=centres,
                moved=moved,
                inertia=max(inertia, 0.0),
                shares=found.weights,
                n_iter=run.n_iter + 1,
                converged=done,
                reason=SETTLED if done else MAX_ITER_REACHED,
            )
            self.report(name, run)
            if done:
                break
        return run

    def measured(self, name: str, run: Run) -> Fit[Any, Run]:
        """The same, ending with the exact inertia and weights of the clusters."""
        run = yield from self.fit(name, run)
        scan = CostScan(Centroids(self.frame, run.centres[None]))
        sizes, inertia, first = yield ScanRequest(scan)
        return replace(run, inertia=float(inertia[0]), shares=sizes, first_rows=first)

    def _next_centres(
        self, centres: np.ndarray, sums: np.ndarray, weights: np.ndarray
    ) -> Fit[Any, np.ndarray]:
        """Means of the clusters; an empty one takes the row that is farthest from its centroid."""
        empty = np.flatnonzero(weights == 0)
        if len(empty):
            scan = FarScan(Centroids(self.frame, centres[None]), len(empty))
            _, _, rows, heavy, labels, distances = yield ScanRequest(scan)
            sums, weights = sums.copy(), weights.copy()
            for cluster, row, weight, label, distance in zip(
                empty, rows, heavy, labels, distances, strict=False
            ):
                if distance > 0 and weight > 0:
                    sums[label] -= weight * row
                    weights[label] -= weight
                    sums[cluster], weights[cluster] = weight * row, weight
        share = np.where(weights > 0, weights, 1.0)[:, None]
        return np.where(weights[:, None] > 0, sums / share, centres)


def on_sample(
    rows: np.ndarray, weights: np.ndarray, tol: float, max_iter: int, report: Report
) -> Stage[Run, Any, Run]:
    """k-means of some rows in memory, in the frame already, ready to begin on all rows."""
    points = held_points(rows, weights)
    lloyd = Lloyd(PLAIN, mean_square(rows, weights), tol, max_iter, report)

    def begin(name: str, run: Run) -> Fit[Any, Run]:
        found = yield from lloyd.fit(name, run)
        return replace(found, n_iter=0)

    return Stage(points, begin)


def inertia_of(run: Run) -> float:
    """What a start is judged by."""
    return run.inertia


def seeded(rows: np.ndarray, weights: np.ndarray, k: int, seed: int) -> np.ndarray:
    """k rows by k-means++ (greedy, as in scikit-learn) from rows in memory.

    Of wide rows it looks at fewer: it goes over all of them k times, which is slow outside caches.
    """
    rows, weights, *_ = distinct_rows(rows, weights)
    rows, weights = rows[weights > 0], weights[weights > 0]
    few = max(SEED_ROWS * k, SEED_BYTES // (8 * rows.shape[1]))
    if len(rows) > few:
        some = np.linspace(0, len(rows) - 1, few).astype(int)
        rows, weights = rows[some], weights[some]
    if len(rows) < k:
        return rows[np.arange(k) % len(rows)]
    centres, _ = kmeans_plusplus(rows, k, sample_weight=weights, random_state=seed % 2**32)
    return centres


def centroids_of(
    rows: np.ndarray, weights: np.ndarray, labels: np.ndarray, k: int, seed: int
) -> np.ndarray:
    """Means of given clusters of rows in memory; an empty one begins as k-means++ does."""
    sizes = np.bincount(labels, weights, minlength=k)
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows * weights[:, None])
    means = sums / np.where(sizes > 0, sizes, 1.0)[:, None]
    if sizes.all():
        return means
    return np.where(sizes[:, None] > 0, means, seeded(rows, weights, k, seed))


def oversampled(rows: RowSet, frame: Frame, first: np.ndarray, k: int, seed: int) -> np.ndarray:
    """k rows by k-means|| (Bahmani et al., 2012): rounds of far rows, weighted, then k-means++.

    Every round draws exactly 2 k rows, so that it needs no scan for the cost before it.
    """
    candidates = first[None]
    for step in range(ROUNDS):
        scan = FarScan(Centroids(frame, candidates[None]), 2 * k, seed + step)
        keys, _, far, *_ = rows.run(scan)
        candidates = np.concatenate([candidates, far[np.isfinite(keys)]])
    candidates = np.unique(candidates, axis=0)
    weights, *_ = rows.run(CostScan(Centroids(frame, candidates[None])))
    return seeded(candidates, weights, k, seed)
