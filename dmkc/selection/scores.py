"""Criteria that judge a labeling without knowing the right one; larger is better in all.

The first group compares labelings with different numbers of clusters as well: each is corrected
for what more clusters would give by themselves.  Objectives are never compared across numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, silhouette_score


def silhouette(distances: np.ndarray, labels: np.ndarray) -> float:
    """How much nearer rows are to their own cluster than to the next one, on average."""
    if not 1 < len(np.unique(labels)) < len(labels):
        return -1.0
    return float(silhouette_score(distances, labels, metric="precomputed"))


def modularity(graph: sparse.csr_matrix, labels: np.ndarray) -> float:
    """Share of the edges inside clusters, less what rewiring at random would leave inside."""
    within, volume = _within(graph, labels)
    total = volume.sum()
    return float(within.sum() / total - np.sum((volume / total) ** 2))


def stability(labelings: Sequence[np.ndarray], parts: Sequence[np.ndarray]) -> float:
    """Agreement, on rows that neither has seen, of models fitted to different parts of the rows.

    `labelings[i]` is what the model of `parts[i]` says of all rows; three parts make three pairs,
    each compared on the third part.
    """
    found = []
    for i, rows in enumerate(parts):
        first, second = (labelings[j][rows] for j in range(len(parts)) if j != i)
        found.append(adjusted_rand_score(first, second))
    return float(np.mean(found))


def tightness(graph: sparse.csr_matrix, labels: np.ndarray) -> float:
    """One less the mean conductance of the clusters: the share of a cluster's edges inside it."""
    within, volume = _within(graph, labels)
    return float(np.mean(within / np.where(volume > 0, volume, 1.0)))


def worst_tightness(graph: sparse.csr_matrix, labels: np.ndarray) -> float:
    """The same of the cluster with the smallest share."""
    within, volume = _within(graph, labels)
    return float(np.min(within / np.where(volume > 0, volume, 1.0)))


def agreements(labelings: np.ndarray) -> np.ndarray:
    """Adjusted Rand index of every pair of labelings (one a row), all from one matrix product."""
    parts = [_members(labels) for labels in labelings]
    n = labelings.shape[1]
    edges = np.cumsum([0, *(part.shape[1] for part in parts)])[:-1]
    together = np.concatenate(parts, axis=1)
    tables = together.T @ together
    squares = np.add.reduceat(np.add.reduceat(tables**2, edges, axis=0), edges, axis=1)
    pairs = (squares - n) / 2.0
    own = (np.array([np.sum(part.sum(axis=0) ** 2) for part in parts]) - n) / 2.0
    expected = np.outer(own, own) / max(n * (n - 1) / 2.0, 1.0)
    room = (own[:, None] + own[None, :]) / 2.0 - expected
    return np.where(room > 1e-9, (pairs - expected) / np.where(room > 1e-9, room, 1.0), 1.0)


def _members(labels: np.ndarray) -> np.ndarray:
    _, numbers = np.unique(labels, return_inverse=True)
    return np.eye(numbers.max() + 1)[numbers]


def _within(graph: sparse.csr_matrix, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges inside every cluster, and edge ends in it."""
    _, numbers = np.unique(labels, return_inverse=True)
    n = len(numbers)
    member = sparse.csr_matrix((np.ones(n), (numbers, np.arange(n))))
    within = member.multiply(member @ graph).sum(axis=1)
    return np.asarray(within).ravel(), member @ np.asarray(graph.sum(axis=1)).ravel()
