"""k-means on rows of an embedding, and the model that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.lloyd import (
    Points,
    Report,
    Run,
    lloyd,
    measured,
    seeded,
    settled,
)
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.rowset import After, RowSet, SpreadRows
from dmkc.data import Weighted
from dmkc.kernels.unit import Embedding
from dmkc.scan.assign import PLAIN, Centroids

TOLERANCE = 1e-6
"""Squared moves of the centroids at which k-means stops, as a part of the rows' mean square."""


@dataclass(frozen=True)
class Embedded:
    """From raw columns to embedded rows with their weights."""

    embedding: Embedding
    weight_at: int

    def __call__(self, columns: np.ndarray) -> Weighted:
        weights = np.ones(len(columns))
        if self.weight_at >= 0:
            weights = columns[:, self.weight_at].astype(np.float64)
        return Weighted(self.embedding(columns), weights)


@dataclass(frozen=True)
class NearestEmbedded:
    """The nearest centroid of every row, in an embedding of its columns."""

    embedding: Embedding
    centres: np.ndarray

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        labels, _ = Centroids(PLAIN, self.centres[None]).nearest(self.embedding(columns))
        return labels


@dataclass(frozen=True)
class PartitionModel:
    """Centroids in an embedding of kernel columns."""

    embedding: Embedding
    centres: np.ndarray
    """Clusters x dimensions."""

    @property
    def n_clusters(self) -> int:
        return len(self.centres)

    @property
    def n_features(self) -> int:
        return self.embedding.n_dimensions

    def in_order(self, order: np.ndarray) -> PartitionModel:
        """The same clusters in another order."""
        return replace(self, centres=self.centres[order])

    def label_pipeline(self) -> Pipeline:
        return Pipeline(self.embedding.columns, NearestEmbedded(self.embedding, self.centres))

    def feature_pipeline(self) -> Pipeline:
        return Pipeline(self.embedding.columns, self.embedding)


def embedded_points(rows: RowSet, embedding: Embedding, mean_square: float) -> Points:
    """All rows of an embedding: held where they are if they fit in memory, else made anew."""
    make: Callable[[Any], Any] = Embedded(embedding, rows.weight_at)
    if not isinstance(rows, SpreadRows):
        rows.n_scans += 1
        few = Embedded(embedding, rows.weight_at)(rows.collect(_as_they_are, "columns"))
        weights = np.ones(len(few.rows)) if few.weights is None else few.weights
        return Points.here(few.rows, weights)
    if rows.make is not None:
        make = After(rows.make, make)
    if 8 * rows.n_rows * embedding.n_dimensions <= rows.engine.memory:
        rows.n_scans += 1
        held = rows.engine.hold(make, rows.blocks, "embedding")
        return Points(rows.engine, held, rows.grid, None, mean_square)
    return Points(rows.engine, rows.blocks, rows.grid, make, mean_square)


def starts_on(
    sample: np.ndarray, weights: np.ndarray, k: int, n_init: int, max_iter: int, seed: int
) -> Run:
    """The best of several starts after k-means on a sample."""
    runs = [Run(f"k-means++ {i + 1}", seeded(sample, weights, k, seed + i)) for i in range(n_init)]
    tol = TOLERANCE * float(weights @ np.einsum("ij,ij->i", sample, sample)) / weights.sum()
    found = settled(sample, weights, runs, tol, max_iter, lambda run: None)
    return min(found, key=lambda run: run.inertia)


def carry_on(points: Points, run: Run, max_iter: int, report: Report) -> tuple[Run, np.ndarray]:
    """Go on from a run's centroids; the run with its inertia, and the sizes of its clusters."""
    tol = TOLERANCE * points.mean_square
    (run,) = lloyd(points, PLAIN, [replace(run, converged=False)], tol, max_iter, report)
    return measured(points, PLAIN, run)


def _as_they_are(columns: np.ndarray) -> np.ndarray:
    return columns
