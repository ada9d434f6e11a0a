"""What workers do with rows of an embedding; it stands alone, so that they import little for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dmkc.clusterers.labelling import RowMap
from dmkc.data import RowRecord
from dmkc.scan.assign import PLAIN, Centroids

SMALL_ROWS = 256
"""Rows that are labelled at once: their coordinates stay below the size from which on every
allocation is new memory, whose first use takes longer than the arithmetic."""


class RowEmbedding(Protocol):
    """From what is stored of rows to a few coordinates."""

    @property
    def plan(self) -> RowMap: ...

    @property
    def n_dimensions(self) -> int: ...

    def __call__(self, stored: RowRecord) -> np.ndarray: ...


@dataclass(frozen=True)
class Embedded:
    """From what is stored of rows to embedded rows with their weights."""

    embedding: RowEmbedding

    def room(self, n_rows: int) -> None:
        return None

    def __call__(self, stored: RowRecord, out: np.ndarray | None = None) -> RowRecord:
        return RowRecord(self.embedding(stored), stored.weights_in(np.dtype(np.float64)))


@dataclass(frozen=True)
class NearestEmbedded:
    """The nearest centroid of every row, in an embedding of its columns."""

    embedding: RowEmbedding
    centres: np.ndarray

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return self.found(stored)[0]

    def found(self, stored: RowRecord) -> tuple[np.ndarray, np.ndarray]:
        """The nearest centroids, and squared distances to them."""
        centroids, labels = Centroids(PLAIN, self.centres[None]), np.empty(len(stored), np.int32)
        squares = np.empty(len(stored))
        for start in range(0, len(stored), SMALL_ROWS):
            piece = slice(start, start + SMALL_ROWS)
            labels[piece], squares[piece] = centroids.nearest(self.embedding(stored[piece]))
        return labels, squares


@dataclass(frozen=True)
class DistanceEmbedded:
    """The squared distance of every row to the nearest centroid, in an embedding."""

    nearest: NearestEmbedded

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return self.nearest.found(stored)[1]
