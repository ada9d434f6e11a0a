"""The most typical row of every cluster, among the rows that were kept of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import BlockRows


def from_their_means(
    points: Any, labels: np.ndarray, weights: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Squared distances of points to the weighted mean of their cluster, less what all share."""
    members = (labels[:, None] == np.arange(n_clusters)) * weights[:, None]
    sizes = members.sum(axis=0)
    sums = np.asarray((points.T @ members).T)
    means = sums / np.where(sizes > 0, sizes, 1.0)[:, None]
    if sp.issparse(points):
        squares = np.asarray(points.multiply(points).sum(axis=1)).ravel()
    else:
        squares = np.einsum("ij,ij->i", points, points)
    nearness = np.asarray(points @ means.T)[np.arange(len(labels)), labels]
    return squares - 2.0 * nearness + np.einsum("ij,ij->i", means, means)[labels]


def standardised(rows: Any) -> Any:
    """Rows with columns of standard deviation 1; sparse ones are not centred, and stay sparse."""
    some: Any = rows.astype(np.float64)
    if not sp.issparse(some):
        spread = some.std(axis=0)
        return (some - some.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    mean = np.asarray(some.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray(some.multiply(some).mean(axis=0)).ravel() - mean**2, 0))
    return some.multiply(1.0 / np.where(spread > 0, spread, 1.0)).tocsr()


def most_typical(
    rows: BlockRows, numbers: np.ndarray, labels: np.ndarray, remote: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Number and values of the least remote row of every cluster; -1 and NaN where there is none.

    Of rows that are equally near the first is taken.
    """
    found = np.full(n_clusters, -1, dtype=np.int64)
    values = np.full((n_clusters, rows.shape[1]), np.nan)
    for cluster in range(n_clusters):
        inside = np.flatnonzero(labels == cluster)
        if len(inside):
            at = inside[np.argmin(remote[inside])]
            one: Any = rows[[at]]
            found[cluster] = numbers[at]
            values[cluster] = (one.toarray() if sp.issparse(one) else one).ravel()
    return found, values
