"""Lloyd's algorithm on scans, for a batch of starts at once.

Stops as scikit-learn does: when no label changes, or when the centroids move by no more than the
tolerance.  Labels are not stored: equal labels give equal sums, bit for bit, so that "no label
changes" is "no centroid changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from dmkc.clusterers.starts import distinct_rows
from dmkc.data import Weighted
from dmkc.scan.assign import PLAIN, Centroids, CostScan, FarScan, Frame, KMeansScan
from dmkc.scan.base import Scan, Through
from dmkc.scan.engine import Block, Engine, Held, load
from dmkc.scan.grid import Grid, Node, leaf_rows_for
from dmkc.scan.limits import one_blas_thread

ROUNDS = 5
"""Rounds of oversampling of k-means||, each of twice as many rows as there are clusters."""


@dataclass
class Points:
    """Rows in blocks, on which scans of k-means run."""

    engine: Engine | None
    """None: there is one block, in this process's memory."""
    blocks: Sequence[Block]
    grid: Grid
    make: Callable[[Any], Any] | None = None
    """Makes the rows on every scan; None when the blocks are the rows already."""
    mean_square: float = 0.0
    """Mean of the squared rows, in the frame that k-means sees them in."""
    n_scans: int = 0

    def run(self, scan: Scan) -> Node:
        self.n_scans += 1
        whole = scan if self.make is None else Through(self.make, scan)
        if self.engine is None:
            with one_blas_thread():
                return whole.block(load(self.blocks[0]), 0, self.grid.leaf_rows)
        return self.engine.scan(whole, self.blocks, self.grid)

    @classmethod
    def here(cls, rows: np.ndarray, weights: np.ndarray) -> Points:
        """Rows in this process's memory, in the frame already."""
        grid = Grid(len(rows), leaf_rows_for(rows.shape[1]), 0)
        held = [Held(Weighted(rows, weights), 0, len(rows))]
        squares = float(weights @ np.einsum("ij,ij->i", rows, rows))
        return cls(None, held, grid, None, squares / float(weights.sum()))


@dataclass(frozen=True)
class Run:
    """One start as far as it has come."""

    name: str
    centres: np.ndarray
    """Clusters x columns, in the frame."""
    n_iter: int = 0
    moved: float = np.inf
    """Sum of the squared moves of the centroids in the last step."""
    inertia: float = np.inf
    """Inertia before the last step, from scores; exact only once it has been measured."""
    converged: bool = False


Report = Callable[[Run], Any]


def lloyd(
    points: Points,
    frame: Frame,
    runs: Sequence[Run],
    tol: float,
    max_iter: int,
    report: Report,
) -> list[Run]:
    """Carry all runs on until each has settled; those that have leave the batch.

    `tol` is an absolute bound on the sum of the squared moves of a run's centroids.
    """
    runs = list(runs)
    for _ in range(max_iter):
        active = [r for r, run in enumerate(runs) if not run.converged]
        if not active:
            break
        centres = np.stack([runs[r].centres for r in active])
        sums, totals, scored = points.run(KMeansScan(Centroids(frame, centres)))
        for r, own_sums, weights, score in zip(active, sums, totals, scored, strict=True):
            old = runs[r]
            new = _next_centres(points, frame, old.centres, own_sums, weights)
            moved = float(np.sum((new - old.centres) ** 2))
            runs[r] = Run(
                old.name,
                new,
                old.n_iter + 1,
                moved,
                max(points.mean_square * float(weights.sum()) + float(score), 0.0),
                np.array_equal(new, old.centres) or moved <= tol,
            )
            report(runs[r])
    return runs


def _next_centres(
    points: Points, frame: Frame, centres: np.ndarray, sums: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Means of the clusters; an empty one takes the row that is farthest from its centroid."""
    empty = np.flatnonzero(weights == 0)
    if len(empty):
        scan = FarScan(Centroids(frame, centres[None]), len(empty))
        _, _, rows, heavy, labels, distances = points.run(scan)
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


def measured(points: Points, frame: Frame, run: Run) -> tuple[Run, np.ndarray]:
    """A run with its exact inertia, and the weights of its clusters."""
    sizes, inertia = points.run(CostScan(Centroids(frame, run.centres[None])))
    return replace(run, inertia=float(inertia[0])), sizes


def settled(
    rows: np.ndarray,
    weights: np.ndarray,
    runs: Sequence[Run],
    tol: float,
    max_iter: int,
    report: Report,
) -> list[Run]:
    """The runs after k-means on some rows in memory, ready to begin on all rows."""
    points = Points.here(rows, weights)
    found = lloyd(points, PLAIN, runs, tol, max_iter, report)
    return [replace(run, n_iter=0, converged=False) for run in found]


def seeded(rows: np.ndarray, weights: np.ndarray, k: int, seed: int) -> np.ndarray:
    """k rows by k-means++ (greedy, as in scikit-learn) from rows in memory."""
    rows, weights, *_ = distinct_rows(rows, weights)
    rows, weights = rows[weights > 0], weights[weights > 0]
    if len(rows) < k:
        return rows[np.arange(k) % len(rows)]
    centres, _ = kmeans_plusplus(rows, k, sample_weight=weights, random_state=seed % 2**32)
    return centres


def oversampled(points: Points, frame: Frame, first: np.ndarray, k: int, seed: int) -> np.ndarray:
    """k rows by k-means|| (Bahmani et al., 2012): rounds of far rows, weighted, then k-means++.

    Every round draws exactly 2 k rows, so that it needs no scan for the cost before it.
    """
    candidates = first[None]
    for step in range(ROUNDS):
        scan = FarScan(Centroids(frame, candidates[None]), 2 * k, seed + step)
        keys, _, rows, *_ = points.run(scan)
        candidates = np.concatenate([candidates, rows[np.isfinite(keys)]])
    candidates = np.unique(candidates, axis=0)
    weights, _ = points.run(CostScan(Centroids(frame, candidates[None])))
    return seeded(candidates, weights, k, seed)
