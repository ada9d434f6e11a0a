"""What speaks for each candidate: independent criteria, and their combination.

Four criteria are combined by percentile ranks, for they have no unit in common:

- corroboration: agreement with simple methods (k-means, mixture, spectral) that know no margin;
- persistence: agreement with the candidate's own start, which the margin has then confirmed;
- views: whether either half of the columns, at random, tells the same story;
- margin: the objective divided by C, negative.

The fifth, connection, has a natural unit: how far the worst cluster's conductance on the neighbour
graph lies below that of a Gaussian cloud with the rows' covariance.  It is 0 where the rows have no
valleys, so that it speaks only where it knows something.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances

from dmkc.selection.combine import mean_ranks
from dmkc.selection.evidence import NEIGHBOURS, Evidence, gaussian_cloud, rank_normalised
from dmkc.selection.pool import Pool
from dmkc.selection.scores import agreements, tightness, worst_tightness

VIEW_SPLITS = 4
RANKED = ("corroboration", "persistence", "views", "margin")


def judge(pool: Pool, rows: np.ndarray, n_clusters: int, seed: int) -> dict[str, np.ndarray]:
    """The criteria of all candidates, on standardised rows; larger is better."""
    labelings = np.array([c.labels for c in pool.candidates])
    n = len(labelings)
    witnesses = agreements(np.concatenate([labelings, np.array(pool.witnesses)]))[:n, n:]
    evidence = Evidence.of(rows)
    conductance = np.array([1.0 - worst_tightness(evidence.graph, z) for z in labelings])
    return {
        "corroboration": witnesses.mean(axis=1),
        "persistence": np.array(
            [agreements(np.stack([c.labels, c.start_labels]))[0, 1] for c in pool.candidates]
        ),
        "views": two_views(rows, labelings, seed),
        "margin": np.array([-c.loss for c in pool.candidates]),
        "connection": np.clip(1.0 - conductance / without_valleys(rows, n_clusters, seed), 0, 1),
    }


def total(criteria: dict[str, np.ndarray]) -> np.ndarray:
    """The score: mean rank of the ranked criteria plus connection."""
    return mean_ranks({name: criteria[name] for name in RANKED}) + criteria["connection"]


def confidence_of(criteria: dict[str, np.ndarray], agreement: np.ndarray) -> float:
    """Mean agreement between the candidates that the single criteria would pick."""
    names = [n for n in criteria if n != "connection" or np.any(criteria[n] > 0)]
    picks = [int(np.argmax(criteria[name])) for name in names]
    chosen = agreement[np.ix_(picks, picks)]
    return float(np.mean(chosen[np.triu_indices(len(picks), 1)]))


def without_valleys(rows: np.ndarray, n_clusters: int, seed: int) -> float:
    """The conductance that k-means clusters of a Gaussian cloud have."""
    cloud = Evidence.of(gaussian_cloud(rows, seed % 2**32))
    pieces = KMeans(n_clusters, n_init=3, random_state=seed % 2**32).fit(cloud.rows)
    return max(1.0 - tightness(cloud.graph, pieces.labels_), 1e-3)


def two_views(rows: np.ndarray, labelings: np.ndarray, seed: int) -> np.ndarray:
    """Agreement of the labels that neighbours suggest in two halves of the columns."""
    n, d = rows.shape
    if d < 2:
        return np.zeros(len(labelings))
    ranked, rng = rank_normalised(rows), np.random.default_rng([seed, 7])
    found = np.zeros(len(labelings))
    for _ in range(VIEW_SPLITS):
        columns = rng.permutation(d)
        nearest = [_nearest(ranked[:, half]) for half in (columns[: d // 2], columns[d // 2 :])]
        for i, labels in enumerate(labelings):
            members = np.eye(labels.max() + 1)[labels]
            size = np.sqrt(np.maximum(members.mean(axis=0), 1.0 / n))
            told = np.stack([(members[at].mean(axis=1) / size).argmax(axis=1) for at in nearest])
            found[i] += agreements(told)[0, 1] / VIEW_SPLITS
    return found


def _nearest(rows: np.ndarray) -> np.ndarray:
    distances = euclidean_distances(rows)
    np.fill_diagonal(distances, np.inf)
    k = min(NEIGHBOURS, len(rows) - 1)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]
