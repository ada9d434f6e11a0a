"""k-means on rows of an embedding, and the model that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.fits import Named, Stage, race
from dmkc.clusterers.kmeans.lloyd import (
    Lloyd,
    Report,
    Run,
    centroids_of,
    held_points,
    inertia_of,
    on_sample,
    reporter,
    seeded,
)
from dmkc.clusterers.kmeans.lloyd import mean_square as mean_square_of
from dmkc.clusterers.kmeans.nearest import (
    DistanceEmbedded,
    Embedded,
    NearestEmbedded,
    RowEmbedding,
)
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.model import shown_model
from dmkc.clusterers.rowset import Composed, RowSet, SampleRows, SpreadRows
from dmkc.clusterers.starts import GIVEN_MODEL
from dmkc.kernels.unit import Embedding
from dmkc.progress import Progress
from dmkc.scan.assign import PLAIN
from dmkc.scan.base import LeafMap, MappedAnswer

KMEANS_STEPS = 300
TOLERANCE = 1e-6
"""Squared moves of the centroids at which k-means stops, as a part of the rows' mean square."""


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
        return Pipeline(self.embedding.plan, NearestEmbedded(self.embedding, self.centres))

    def distance_pipeline(self) -> Pipeline:
        nearest = NearestEmbedded(self.embedding, self.centres)
        return Pipeline(self.embedding.plan, DistanceEmbedded(nearest))

    def feature_pipeline(self) -> Pipeline:
        return Pipeline(self.embedding.plan, self.embedding)

    def __repr__(self) -> str:
        return shown_model(self, f"{self.n_features} dimension", self.n_features)


def embedded_points(
    rows: RowSet, embedding: RowEmbedding, mean_square: float
) -> tuple[RowSet, float]:
    """All rows of an embedding, and their mean square.

    They are held where they are if they fit in memory, else made anew on every scan.
    """
    embedded = Embedded(embedding)
    if isinstance(rows, SampleRows):
        rows.n_scans += 2
        few, weights = embedding(rows.record), rows.weights
        return held_points(few, weights), mean_square_of(few, weights)
    assert isinstance(rows, SpreadRows)
    first, leaf_rows = rows.make, rows.grid.leaf_rows
    width, double = embedding.n_dimensions, np.dtype(np.float64)
    held = 0 if first is not None else rows.width * rows.dtype.itemsize
    if rows.n_rows * (8 * width + held) <= rows.engine.memory:
        rows.n_scans += 1
        whole = embedded if first is None else MappedAnswer(first, embedded, leaf_rows)
        blocks = rows.engine.hold(whole, rows.blocks, "embedding")
        return SpreadRows(rows.engine, rows.grid, blocks, width, double, None), mean_square
    make: LeafMap = embedded if first is None else Composed(first, embedded)
    return SpreadRows(rows.engine, rows.grid, rows.blocks, width, double, make), mean_square


def cluster_embedded(
    embedding: RowEmbedding,
    sample: SampleRows,
    rows: RowSet,
    mean_square: float,
    n_clusters: int,
    n_init: int,
    seed: int,
    progress: Progress,
    given: np.ndarray | None = None,
) -> tuple[Named[Run], float]:
    """k-means of embedded rows: starts race on a sample, and the best goes on with all rows.

    `given` is a labeling of the sample to begin from instead.
    """
    few = embedding(sample.record)
    if given is None:
        starts = starts_on(few, sample.weights, n_clusters, n_init, seed)
    else:
        centres = centroids_of(few, sample.weights, given, n_clusters, seed)
        starts = [Named(GIVEN_MODEL, Run(centres=centres))]
    points, mean_square = embedded_points(rows, embedding, mean_square)
    found = race(
        starts,
        on_embedded_sample(few, sample.weights, KMEANS_STEPS),
        from_runs(points, mean_square, KMEANS_STEPS, reporter(progress, "all")),
        inertia_of,
    )
    rows.n_scans += points.n_scans
    return found, mean_square


def starts_on(
    sample: np.ndarray, weights: np.ndarray, k: int, n_init: int, seed: int
) -> list[Named[Run]]:
    """Starts by k-means++ on a sample."""
    centres = [seeded(sample, weights, k, seed + i) for i in range(n_init)]
    return [Named(f"k-means++ {i + 1}", Run(centres=some)) for i, some in enumerate(centres)]


def on_embedded_sample(
    rows: np.ndarray, weights: np.ndarray, max_iter: int
) -> Stage[Run, Any, Run]:
    """k-means of the embedded rows of a sample."""
    tol = TOLERANCE * mean_square_of(rows, weights)
    return on_sample(rows, weights, tol, max_iter, _silent)


def from_runs(
    points: RowSet, mean_square: float, max_iter: int, report: Report
) -> Stage[Run, Any, Run]:
    """k-means of all embedded rows, from the centroids found so far."""
    lloyd = Lloyd(PLAIN, mean_square, TOLERANCE * mean_square, max_iter, report)
    return Stage(points, lloyd.measured)


def _silent(name: str, run: Run) -> None:
    """Nobody is told of steps on the sample."""
