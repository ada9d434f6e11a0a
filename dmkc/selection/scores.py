"""Criteria that judge a labeling without knowing the right one; larger is better in all.

They look at a few thousand rows, their distances and neighbours.  Nothing here knows kernels,
starts or objectives, so that a candidate is judged by other means than the ones that made it.

The first group compares labelings with different numbers of clusters as well: each is corrected
for what more clusters would give by themselves.  Objectives are never compared across numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.metrics import adjusted_rand_score, euclidean_distances, silhouette_score

from dmkc.clusterers.sampled import leading_components, neighbour_graph
from dmkc.kernels.tiles import mixed_units

MOST_COMPONENTS = 100
SURE = 0.8
"""Confidence from which on a choice stands alone."""
DIFFERENT = 0.5
"""Clusterings that are offered agree with each other less than this (adjusted Rand index)."""
MOST_OFFERED = 3


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


def clearly_different(
    order: Iterable[int], together: np.ndarray, most: int = MOST_OFFERED
) -> list[int]:
    """The first of some candidates, and those after it that differ from all that are kept."""
    kept: list[int] = []
    for i in order:
        if len(kept) < most and np.all(together[i, kept] < DIFFERENT):
            kept.append(int(i))
    return kept


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


def rescaled(values: np.ndarray) -> np.ndarray:
    """Values moved to 0 (lowest) .. 1 (highest); a NaN is as good as the lowest."""
    values = np.asarray(values, dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known) or known.max() == known.min():
        return np.where(np.isnan(values), 0.0, 1.0)
    scaled = (values - known.min()) / (known.max() - known.min())
    return np.where(np.isnan(scaled), 0.0, scaled)


def mean_rescaled(criteria: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mean of the rescaled criteria (larger is better) of every candidate."""
    return np.mean([rescaled(values) for values in criteria.values()], axis=0)


def percentile_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks between 0 (lowest) and 1 (highest); equal values share theirs, a NaN is lowest."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return np.ones(len(values))
    return (rankdata(np.where(np.isnan(values), -np.inf, values)) - 1.0) / (len(values) - 1.0)


def mean_ranks(criteria: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mean percentile rank of every candidate over all criteria (larger is better)."""
    return np.mean([percentile_ranks(values) for values in criteria.values()], axis=0)


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
