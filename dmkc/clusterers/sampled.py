"""What starts and criteria look at in a sample: axes, neighbours, how far clusters lie apart.

And starts for clusters that k-means does not see: winding, of unequal spread, one around another.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.mixture import GaussianMixture
from sklearn.utils.extmath import randomized_svd

MOST_ROWS = 2000
"""Distances of all pairs are kept, so a sample is cut down to this many rows."""
NEIGHBOURS = 10
SHAPES = ("spectral", "mixture", "radius")
SPECTRAL_ROWS = 1500
"""Eigenvectors are found for at most this many rows; others go with the nearest of these."""
MIXTURE_COLUMNS = 20
"""Mixtures of rows with more columns are fitted to this many leading components."""


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


def between_shares(
    rows: np.ndarray, shares: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The part of every column's spread that lies between the clusters, and that spread."""
    whole = shares @ rows
    spread = np.maximum(np.einsum("i,ij,ij->j", shares, rows, rows) - whole**2, 0.0)
    spread[spread <= 1e-12 * whole**2] = 0.0
    between = np.zeros(rows.shape[1])
    for label in np.unique(labels):
        inside = np.where(labels == label, shares, 0.0)
        share = inside.sum()
        if share > 0:
            between += share * (inside @ rows / share - whole) ** 2
    return np.where(spread > 0, between / np.where(spread > 0, spread, 1.0), 0.0), spread


def separation(rows: np.ndarray, shares: np.ndarray, labels: np.ndarray) -> float:
    """The share of all columns' spread that lies between the clusters, beyond chance.

    Where there are more columns than rows, a column counts with what exceeds the largest share
    that as many columns of pure noise would have (the criterion of sparse k-means; Witten and
    Tibshirani 2010).
    """
    n, d = rows.shape
    found, spread = between_shares(rows, shares, labels)
    chance = 2.0 * np.log(d) / n if d > n else 0.0
    total = spread.sum()
    return float(spread @ np.maximum(found - chance, 0.0) / total) if total > 0 else 0.0


def shaped(kind: str, rows: np.ndarray, weights: np.ndarray, m: int, seed: int) -> np.ndarray:
    """The labeling that a start of this kind gives to standardised rows."""
    if kind == "radius":
        return _radius(rows, weights, m)
    if kind == "mixture":
        return _mixture(rows, weights, m, seed)
    return _spectral(rows, weights, m, seed)


def _radius(rows: np.ndarray, weights: np.ndarray, m: int) -> np.ndarray:
    """Shells of equal weight around the mean."""
    centre = np.average(rows, axis=0, weights=weights)
    away = np.linalg.norm(rows - centre, axis=1)
    chosen = np.sort(away[spread_out(weights)])
    edges = [chosen[len(chosen) * r // m] for r in range(1, m)]
    return np.searchsorted(edges, away, side="right")


def _mixture(rows: np.ndarray, weights: np.ndarray, m: int, seed: int) -> np.ndarray:
    """A mixture of normal distributions with diagonal covariances."""
    some = spread_out(weights)
    if rows.shape[1] > MIXTURE_COLUMNS:
        _, axes = leading_components(rows[some], MIXTURE_COLUMNS, seed)
        rows = rows @ axes.T
    if len(some) < m:
        return np.zeros(len(rows), np.int64)
    model = GaussianMixture(
        m, covariance_type="diag", reg_covar=1e-2, n_init=2, random_state=seed % 2**32
    )
    return model.fit(rows[some]).predict(rows)


def _spectral(rows: np.ndarray, weights: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Normalised cut of the neighbour graph (Ng, Jordan and Weiss 2001)."""
    some = spread_out(weights, SPECTRAL_ROWS)
    n = len(some)
    if n <= m:
        return np.zeros(len(rows), np.int64)
    graph = neighbour_graph(euclidean_distances(rows[some]))
    root = 1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    similarity = root[:, None] * graph.toarray() * root[None, :]
    _, vectors = eigh(similarity, subset_by_index=(n - m, n - 1))
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(size > 0, size, 1.0)
    labels = KMeans(m, n_init=10, random_state=seed % 2**32).fit(directions).labels_
    return labels[pairwise_distances_argmin(rows, rows[some])]
