"""What starts and criteria look at in a sample: axes, neighbours, how far clusters lie apart.

And starts for clusters that k-means does not see: winding, of unequal spread, one around another,
or in few of many columns.  k-means of all columns drowns in the others.  Columns that look like a
mixture come first: their distribution is flat or two-humped, or leans to one side.  Where there are
more columns than rows, another start begins with columns that are correlated: each of them may hide
its clusters, but they move together (covariance thresholding; Deshpande and Montanari 2016).  Then
k-means of a few columns and the choice of the columns that its clusters differ in take turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.mixture import GaussianMixture
from sklearn.utils.extmath import randomized_svd

MOST_ROWS = 2000
"""Pairs of rows are looked at, so a sample is cut down to this many."""
NEIGHBOURS = 10
SHAPES = ("spectral", "mixture", "radius")
SPECTRAL_ROWS = 1500
"""Eigenvectors are found for at most this many rows; others go with the nearest of these."""
MIXTURE_COLUMNS = 20
"""Mixtures of rows with more columns are fitted to this many leading components."""
FEW_COLUMNS = (8, 32)
"""How many columns are looked at, one start for each."""
WIDE_ROWS = 50
"""Rows with fewer columns have no use for such starts."""
MOST_TURNS = 10
MOST_PRODUCTS = 1e10
"""Products that the search for correlated columns may take, some seconds at most."""
SEEDS_AT_ONCE = 256
COLUMNS_AT_ONCE = 512
"""Columns whose powers are held at once: few enough to stay in the cache."""
Grouping = Callable[[np.ndarray], np.ndarray]
"""From rows to the cluster of each."""
Beginning = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""From rows, their shares and a number to so many columns."""


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
    # Squares of rows with a huge value lose the variances of the others in rounding.
    least = max(1e-2, 1e-6 * float(rows[some].var(axis=0).max()))
    model = GaussianMixture(
        m, covariance_type="diag", reg_covar=least, n_init=2, random_state=seed % 2**32
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


def mixed(rows: np.ndarray, shares: np.ndarray, count: int) -> np.ndarray:
    """The columns that look most like a mixture."""
    return _largest(_mixedness(rows, shares), count)


def correlated(rows: np.ndarray, shares: np.ndarray, count: int) -> np.ndarray:
    """A column and those that correlate with it: the group whose squared correlations are largest.

    Where all pairs would be too many, groups are sought around the columns that look most like a
    mixture.
    """
    n, d = rows.shape
    count = min(count, d)
    if count < 2:
        return mixed(rows, shares, count)
    centred = rows - shares @ rows
    spread = shares @ centred**2
    usable = np.where(spread > 0, spread, np.inf)
    unit = (centred * np.sqrt(shares[:, None] / usable)).astype(np.float32)
    seeds = mixed(rows, shares, max(count, int(MOST_PRODUCTS / (n * d))))
    best, found = -1.0, seeds[:count]
    for first in range(0, len(seeds), SEEDS_AT_ONCE):
        some = seeds[first : first + SEEDS_AT_ONCE]
        square = (unit[:, some].T @ unit) ** 2
        square[np.arange(len(some)), some] = 2.0  # a column belongs to its own group
        scores = np.partition(square, -count, axis=1)[:, -count:].sum(axis=1)
        at = int(scores.argmax())
        if scores[at] > best:
            best, found = float(scores[at]), _largest(square[at], count)
    return found


def few_columns(
    rows: np.ndarray,
    weights: np.ndarray,
    count: int,
    grouping: Grouping,
    beginning: Beginning = mixed,
) -> np.ndarray:
    """The clusters of standardised rows by a few of their columns."""
    shares = weights / weights.sum()
    chosen = beginning(rows, shares, count)
    labels = grouping(rows[:, chosen])
    for _ in range(MOST_TURNS):
        best = _largest(between_shares(rows, shares, labels)[0], count)
        if np.array_equal(best, chosen):
            break
        chosen = best
        labels = grouping(rows[:, chosen])
    return labels


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the largest values are, in ascending order; the first of those that are equal."""
    return np.sort(np.argsort(-values, kind="stable")[:count])


def _mixedness(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Sarle's coefficient of bimodality of every column: 5/9 if uniform, 1/3 if normal."""
    parts = range(0, rows.shape[1], COLUMNS_AT_ONCE)
    each = [_mixedness_of(rows[:, a : a + COLUMNS_AT_ONCE], shares) for a in parts]
    return np.concatenate(each)


def _mixedness_of(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    centred = rows - shares @ rows
    square = centred**2
    spread = shares @ square
    lean, tails = shares @ (centred * square), shares @ square**2
    safe = np.where(spread > 0, spread, 1.0)
    found = (lean**2 / safe**3 + 1.0) / np.maximum(tails / safe**2, 1.0)
    return np.where(spread > 0, found, 0.0)
