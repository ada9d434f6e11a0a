"""Starts for clusters that k-means does not see: winding, of unequal spread, one around another."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.mixture import GaussianMixture

from dmkc.clusterers.sampled import leading_components, neighbour_graph, spread_out

SHAPES = ("spectral", "mixture", "radius")
SPECTRAL_ROWS = 1500
"""Eigenvectors are found for at most this many rows; others go with the nearest of these."""
MIXTURE_COLUMNS = 20
"""Mixtures of rows with more columns are fitted to this many leading components."""


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
