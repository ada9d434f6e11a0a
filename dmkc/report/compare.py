"""Comparisons: the labels with the truth and with k-means, and the clusters with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dmkc.metrics import Contingency, all_metrics, contingency
from dmkc.plot import sample, take
from dmkc.typing import PerRow, TableLike

K_MEANS_ROWS = 100_000
"""k-means runs in this process, so larger data are sampled down to this many rows for it."""


@dataclass(frozen=True)
class Comparison:
    """How well labels and k-means agree with the truth."""

    ours: dict[str, float]
    k_means: dict[str, float]
    table: Contingency
    """Rows of every class in every cluster."""
    k_means_rows: int
    """Rows that k-means was fitted to and measured on."""


def with_truth(X: TableLike, truth: PerRow, labels: PerRow, n_clusters: int) -> Comparison:
    """Metrics of `labels` for all rows, and of k-means on standardised columns."""
    positions, rows = sample(X, K_MEANS_ROWS)
    table = contingency(truth, labels)
    theirs = k_means_labels(rows, n_clusters)
    return Comparison(
        all_metrics(table), all_metrics(take(truth, positions), theirs), table, len(positions)
    )


def k_means_labels(rows: Any, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Ten k-means runs on standardised columns, the best kept."""
    values = plain(rows)
    # Centring would make sparse rows dense, and k-means does not need it.
    scaled = StandardScaler(with_mean=not sp.issparse(values)).fit_transform(values)
    # One thread gives the same labels whatever the number of processors.
    with threadpool_limits(1):
        return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(scaled)


@dataclass(frozen=True)
class Contrast:
    """One column inside and outside a cluster."""

    column: str
    inside: float
    outside: float
    difference: float
    """Difference of the means in standard deviations of the column."""
    spread: float
    """Standard deviation inside divided by that outside."""


def contrasts(
    rows: Any, labels: np.ndarray, cluster: int, names: list[str], count: int
) -> list[Contrast]:
    """The columns whose means inside and outside a cluster differ most."""
    values = plain(rows)
    here = labels == cluster
    if not here.any() or here.all():
        return []
    _, spread = _moments(values)
    mean_in, spread_in = _moments(values[np.flatnonzero(here)])
    mean_out, spread_out = _moments(values[np.flatnonzero(~here)])
    difference = np.divide(mean_in - mean_out, spread, out=np.zeros_like(spread), where=spread > 0)
    ratio = np.divide(spread_in, spread_out, out=np.full_like(spread, np.nan), where=spread_out > 0)
    order = np.argsort(-np.abs(difference), kind="stable")[:count]
    return [
        Contrast(
            names[j],
            float(mean_in[j]),
            float(mean_out[j]),
            float(difference[j]),
            float(ratio[j]),
        )
        for j in order
    ]


def plain(rows: Any) -> Any:
    """Sampled rows as an array or a sparse matrix, without column names."""
    if isinstance(rows, pd.DataFrame):
        if all(isinstance(kind, pd.SparseDtype) for kind in rows.dtypes):
            return rows.sparse.to_coo().tocsr()
        return rows.to_numpy()
    return rows


def _moments(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns."""
    if not sp.issparse(values):
        values = np.asarray(values, dtype=np.float64)
        return values.mean(axis=0), values.std(axis=0)
    values = values.astype(np.float64)
    mean = np.asarray(values.mean(axis=0)).ravel()
    square = np.asarray(values.multiply(values).mean(axis=0)).ravel()
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
