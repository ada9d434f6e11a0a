"""What speaks for each candidate: independent criteria, and their combination.

Five criteria are combined by percentile ranks, for they have no unit in common:

- corroboration: agreement with simple methods (k-means, mixture, spectral) that know no margin;
- persistence: agreement with the candidate's own start, which the margin has then confirmed;
- views: whether either half of the columns, at random, tells the same story;
- margin: the objective divided by C, negative;
- likelihood: of the rows if every cluster were normal, in 2, 5 and 10 leading components.

The sixth, connection, has a natural unit: how far the worst cluster's conductance on the neighbour
graph lies below that of a Gaussian cloud with the rows' covariance.  It is 0 where the rows have no
valleys, so that it speaks only where it knows something.  Neighbours are looked for by the ranks of
columns, which outliers do not stretch, and by the columns as they are, whose rings and moons ranks
would bend; the lower of both counts, for a valley is there however one looks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances

from dmkc.clusterers.sampled import NEIGHBOURS, leading_components, neighbour_graph
from dmkc.selection.pool import Pool
from dmkc.selection.scores import (
    agreements,
    gaussian_cloud,
    in_units,
    mean_ranks,
    rank_normalised,
    standardised,
    tightness,
    worst_tightness,
)

VIEW_SPLITS = 4
COMPONENTS = (2, 5, 10)
LEAST_VARIANCE = 1e-3
"""Part of the mean variance that is added to every one, so that no cluster is flat."""
LEAST_CONDUCTANCE = 1e-3
"""What pieces of a cloud have at least, so that it can be divided by."""
CONNECTION = 2.0
"""What connection counts for, beside the mean rank of the others."""
RANKED = ("corroboration", "persistence", "views", "margin", "likelihood")


def judge(pool: Pool, values: np.ndarray, n_clusters: int, seed: int) -> dict[str, np.ndarray]:
    """The criteria of all candidates; larger is better."""
    labelings, rows = np.array([c.labels for c in pool.candidates]), standardised(values)
    n = len(labelings)
    witnesses = np.array([w.labels for w in pool.witnesses])
    agreed = agreements(np.concatenate([labelings, witnesses]))[:n, n:]
    by_ranks = connection(rank_normalised, rows, labelings, n_clusters, seed)
    as_they_are = connection(np.asarray, in_units(values), labelings, n_clusters, seed)
    return {
        "corroboration": agreed.mean(axis=1),
        "persistence": np.array(
            [agreements(np.stack([c.labels, c.start_labels]))[0, 1] for c in pool.candidates]
        ),
        "views": two_views(rows, labelings, seed),
        "margin": np.array([-c.loss for c in pool.candidates]),
        "likelihood": likelihood(rows, labelings, seed),
        "connection": np.minimum(by_ranks, as_they_are),
    }


def total(criteria: dict[str, np.ndarray]) -> np.ndarray:
    """The score, between 0 and 3: mean rank of the ranked criteria plus twice the connection."""
    ranked = mean_ranks({name: criteria[name] for name in RANKED})
    return ranked + CONNECTION * criteria["connection"]


def confidence_of(
    best: int, criteria: dict[str, np.ndarray], agreement: np.ndarray, with_k_means: np.ndarray
) -> float:
    """How far a candidate is what the single criteria would pick, and what k-means finds.

    The lowest of its mean agreement with their picks and of those with k-means: where even k-means
    sees the same clusters, whatever the columns are divided by, there is little to choose.
    """
    names = [n for n in criteria if n != "connection" or np.any(criteria[n] > 0)]
    picks = [int(np.argmax(criteria[name])) for name in names]
    plain = np.min(with_k_means) if len(with_k_means) else 1.0
    return float(max(0.0, min(np.mean(agreement[best, picks]), plain)))


def connection(
    seen: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    labelings: np.ndarray,
    n_clusters: int,
    seed: int,
) -> np.ndarray:
    """How far conductance lies below that of pieces of a cloud without valleys, between 0 and 1.

    `seen` makes the rows between which distances are taken.
    """
    seed %= 2**32
    graph = neighbour_graph(euclidean_distances(seen(rows)))
    cloud = seen(gaussian_cloud(rows, seed))
    pieces = KMeans(n_clusters, n_init=3, random_state=seed).fit(cloud).labels_
    reference = 1.0 - tightness(neighbour_graph(euclidean_distances(cloud)), pieces)
    conductance = np.array([1.0 - worst_tightness(graph, labels) for labels in labelings])
    return np.clip(1.0 - conductance / max(reference, LEAST_CONDUCTANCE), 0.0, 1.0)


def likelihood(rows: np.ndarray, labelings: np.ndarray, seed: int) -> np.ndarray:
    """Mean rank, over numbers of leading components, of the likelihood under normal clusters."""
    _, axes = leading_components(rows, max(COMPONENTS), seed % 2**32)
    along = (rows - rows.mean(axis=0)) @ axes.T
    numbers = sorted({min(q, along.shape[1]) for q in COMPONENTS})
    found = {str(q): np.array([_normal(along[:, :q], z) for z in labelings]) for q in numbers}
    return mean_ranks(found)


def _normal(rows: np.ndarray, labels: np.ndarray) -> float:
    """Log-likelihood a row, up to a constant; small clusters borrow the variances of all rows."""
    n, q = rows.shape
    spread = rows.var(axis=0)
    least = LEAST_VARIANCE * max(float(spread.mean()), 1e-12) * np.eye(q)
    total = 0.0
    for inside in (labels == r for r in np.unique(labels)):
        size = int(inside.sum())
        own = np.atleast_2d(np.cov(rows[inside].T, bias=True)) if size > 1 else np.zeros((q, q))
        borrowed = q / (q + size)
        mixed = (1 - borrowed) * own + borrowed * np.diag(spread) + least
        total += size * (np.log(size / n) - 0.5 * np.linalg.slogdet(mixed)[1])
    return total / n


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
