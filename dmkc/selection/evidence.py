"""What criteria look at: a few thousand rows, their distances and their neighbours.

Nothing here knows kernels, starts or objectives, so that a candidate is judged by other means than
the ones that made it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.metrics import euclidean_distances
from sklearn.utils.extmath import randomized_svd

from dmkc.clusterers.prepare import mixed_units

MOST_ROWS = 2000
"""Distances of all pairs are kept, so a sample is cut down to this many rows."""
NEIGHBOURS = 10
MOST_COMPONENTS = 100


@dataclass(frozen=True)
class Evidence:
    """Distances and neighbours of some rows."""

    rows: np.ndarray
    """Standardised rows."""
    distances: np.ndarray
    """Between rows whose columns were replaced by ranks, which outliers do not stretch."""
    graph: sparse.csr_matrix
    """Which rows are among the nearest of each other (symmetric, 0 or 1)."""

    @classmethod
    def of(cls, rows: np.ndarray) -> Evidence:
        distances = euclidean_distances(rank_normalised(rows))
        return cls(rows, distances, neighbour_graph(distances))


def spread_out(weights: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """At most `most` row numbers, evenly spread; a row of weight 3 stands for three equal rows."""
    size = min(most, int(np.count_nonzero(weights > 0)))
    reach = np.cumsum(weights)
    return np.searchsorted(reach, (np.arange(size) + 0.5) * (reach[-1] / size))


def gaussian_cloud(rows: np.ndarray, seed: int) -> np.ndarray:
    """Normal rows with the covariance of these (of their leading components), free of clusters."""
    spread, axes = leading_components(rows, MOST_COMPONENTS, seed)
    return (np.random.default_rng([seed, 6]).normal(size=(len(rows), len(axes))) * spread) @ axes


def leading_components(rows: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations along at most `most` principal axes, and these axes."""
    rank = min(*rows.shape, most)
    centred = rows - rows.mean(axis=0)
    if rank < min(rows.shape):
        _, sizes, axes = randomized_svd(centred, rank, random_state=seed % 2**32)
    else:
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    return sizes / np.sqrt(len(rows)), axes


def standardised(rows: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1; constant ones are 0."""
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def in_units(rows: np.ndarray) -> np.ndarray:
    """Rows as they are where columns seem to share a unit, else standardised."""
    spread = rows.std(axis=0)
    return standardised(rows) if mixed_units(spread[spread > 0]) else rows - rows.mean(axis=0)


def rank_normalised(rows: np.ndarray) -> np.ndarray:
    """Every column as its ranks, centred, with the variance of a standardised column."""
    ranks = rankdata(rows, axis=0) / (len(rows) + 1.0) - 0.5
    spread = ranks.std(axis=0)
    return ranks / np.where(spread > 0, spread, 1.0)


def neighbour_graph(distances: np.ndarray, neighbours: int = NEIGHBOURS) -> sparse.csr_matrix:
    """Edges between rows one of which is among the other's nearest; ties go to the first row."""
    n = len(distances)
    k = min(neighbours, n - 1)
    without_self = distances.copy()
    np.fill_diagonal(without_self, np.inf)
    nearest = np.argsort(without_self, axis=1, kind="stable")[:, :k]
    at = (np.repeat(np.arange(n), k), nearest.ravel())
    directed = sparse.csr_matrix((np.ones(n * k), at), shape=(n, n))
    return directed.maximum(directed.T).tocsr()
