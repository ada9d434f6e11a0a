"""What starts and criteria look at in a sample of rows: principal axes and neighbours."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

MOST_ROWS = 2000
"""Distances of all pairs are kept, so a sample is cut down to this many rows."""
NEIGHBOURS = 10


def spread_out(weights: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """At most `most` row numbers, evenly spread; a row of weight 3 stands for three equal rows."""
    size = min(most, int(np.count_nonzero(weights > 0)))
    reach = np.cumsum(weights)
    return np.searchsorted(reach, (np.arange(size) + 0.5) * (reach[-1] / size))


def leading_components(rows: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations along at most `most` principal axes, and these axes."""
    rank = min(*rows.shape, most)
    centred = rows - rows.mean(axis=0)
    if rank < min(rows.shape):
        _, sizes, axes = randomized_svd(centred, rank, random_state=seed % 2**32)
    else:
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    return sizes / np.sqrt(len(rows)), axes


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
