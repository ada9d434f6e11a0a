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

from dmkc.clusterers.sampled import leading_components, neighbour_graph
from dmkc.kernels.tiles import mixed_units

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


def gaussian_cloud(rows: np.ndarray, seed: int) -> np.ndarray:
    """Normal rows with the covariance of these (of their leading components), free of clusters."""
    spread, axes = leading_components(rows, MOST_COMPONENTS, seed)
    return (np.random.default_rng([seed, 6]).normal(size=(len(rows), len(axes))) * spread) @ axes


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
