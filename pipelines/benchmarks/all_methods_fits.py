"""Every method of the table: how it is fitted, and the few settings among which labels choose.

The first setting is what the table shows as the method's own; the others exist only for "oracle".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn import cluster
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import dmkc
from peers import dask_ml_kmeans, dask_ml_spectral

Setting = dict[str, Any]
Labels = Callable[..., np.ndarray]

MOST_COLUMNS = 500
"""Of rows to which a mixture with whole covariance matrices is fitted: it takes their cube."""


def own(method: Any, X: np.ndarray, k: int, **setting: Any) -> np.ndarray:
    """Labels of one of the library's estimators."""
    return np.asarray(method(k, random_state=0, **setting).fit(X).labels_)


def selected(X: np.ndarray, k: int) -> np.ndarray:
    """Labels of `dmkc.select`, everything open but the number of clusters."""
    opened = {"scale": "auto", "kernels": "auto", "C": "auto"}
    opened["balance"] = "auto" if k == 2 else "default"
    model = dmkc.MultipleKernelClustering(k, random_state=0, **opened)
    return np.asarray(dmkc.select(X, model).estimator().fit(X).labels_)


def standard(X: np.ndarray) -> np.ndarray:
    return StandardScaler().fit_transform(X)


def k_means(X: np.ndarray, k: int) -> np.ndarray:
    """k-means on raw or standardised columns, whichever has the larger silhouette.

    The silhouette is that of the ranks of every column, so that it does not itself depend on the
    scaling; no labels are used.
    """
    ranks = rankdata(X, axis=0)
    tries = [
        cluster.KMeans(k, n_init=10, random_state=0).fit(rows).labels_ for rows in (X, standard(X))
    ]
    return max(tries, key=lambda labels: float(silhouette_score(ranks, labels)))


def mixture(X: np.ndarray, k: int, **setting: Any) -> np.ndarray:
    """Labels of a mixture of normal distributions, of standardised columns."""
    if X.shape[1] > MOST_COLUMNS and setting.get("covariance_type") != "diag":
        raise ValueError(f"whole covariances of more than {MOST_COLUMNS} columns are not tried")
    return GaussianMixture(k, random_state=0, **setting).fit_predict(standard(X))


def peer(method: Any, X: np.ndarray, k: int, scale: bool = True, **setting: Any) -> np.ndarray:
    """Labels of a class of scikit-learn; HDBSCAN is not told the number of clusters."""
    rows = standard(X) if scale else X
    if method is cluster.HDBSCAN:
        return method(copy=True, **setting).fit_predict(rows)
    if method is cluster.AgglomerativeClustering:
        return method(k, **setting).fit_predict(rows)
    return method(k, random_state=0, **setting).fit_predict(rows)


def dask_peer(fit: Any, X: np.ndarray, k: int) -> np.ndarray:
    """Labels of dask-ml on two chunks of standardised rows."""
    import dask.array as da

    rows = da.from_array(standard(X), chunks=(-(-len(X) // 2), X.shape[1]))
    return np.asarray(fit(rows, k).labels_)


NARROW, WIDE = "gaussian:0.15", "gaussian:2"
BANK = ["linear", "polynomial"]
METHODS: dict[str, tuple[Labels, list[Setting]]] = {
    "mkc": (
        partial(own, dmkc.MultipleKernelClustering),
        [
            {},
            {"scale": None},
            {"kernels": [*BANK, NARROW]},
            {"kernels": [*BANK, NARROW], "scale": None},
            {"kernels": [NARROW], "init": "spectral"},
            {"kernels": [*BANK, "gaussian:0.5"], "init": "pca"},
        ],
    ),
    "skmmc": (
        partial(own, dmkc.SparseKernelMMC),
        [
            {},
            {"scale": None},
            {"kernels": NARROW},
            {"kernels": NARROW, "init": "spectral"},
            {"kernels": WIDE},
            {"init": "pca"},
            {"scale": "standard"},
        ],
    ),
    "odm": (
        partial(own, dmkc.MarginDistributionClustering),
        [
            {},
            {"scale": "minmax"},
            {"scale": None},
            {"kernels": NARROW},
            {"kernels": NARROW, "init": "spectral"},
        ],
    ),
    "planes": (
        partial(own, dmkc.NonparallelPlaneClustering),
        [
            {},
            {"c1": 0.5},
            {"scale": "standard"},
            {"kernels": "gaussian:0.3", "rank": 60},
            {"kernels": "gaussian", "rank": 60},
        ],
    ),
    "kmeans": (
        partial(own, dmkc.KMeans),
        [{}, {"n_init": 10}, {"n_init": 10, "scale": "standard"}],
    ),
    "kernel-kmeans": (
        partial(own, dmkc.KernelKMeans),
        [
            {},
            {"scale": None},
            {"kernels": "twelve"},
            {"kernels": NARROW},
            {"kernels": WIDE},
            {"scale": "standard"},
        ],
    ),
    "mkkm": (
        partial(own, dmkc.MultipleKernelKMeans),
        [{}, {"scale": None}, {"weights": "simple"}, {"weights": "mkkm-mr"}],
    ),
    "hmkkm": (
        partial(own, dmkc.HierarchicalKernelKMeans),
        [{}, {"scale": None}, {"sparsity": 0.0}, {"connections": "chain"}],
    ),
    "select": (selected, [{}]),
    "k-means": (k_means, [{}]),
    "spectral": (
        partial(peer, cluster.SpectralClustering),
        [
            {"affinity": "nearest_neighbors"},
            {"affinity": "nearest_neighbors", "scale": False},
            {"affinity": "nearest_neighbors", "n_neighbors": 30},
        ],
    ),
    "mixture": (
        mixture,
        [{"reg_covar": 1e-3}, {"covariance_type": "diag"}, {"covariance_type": "tied"}],
    ),
    "ward": (
        partial(peer, cluster.AgglomerativeClustering),
        [{}, {"scale": False}, {"linkage": "average"}],
    ),
    "hdbscan": (
        partial(peer, cluster.HDBSCAN),
        [{}, {"min_cluster_size": 25}, {"min_cluster_size": 25, "scale": False}],
    ),
    "dask-ml KMeans": (partial(dask_peer, dask_ml_kmeans), [{}]),
    "dask-ml Spectral": (partial(dask_peer, dask_ml_spectral), [{}]),
}
OURS = tuple(METHODS)[:8]
"""The library's own estimators."""


def warm_up() -> None:
    """Fit everything once to a few rows, so that no method is charged for being compiled."""
    rng = np.random.default_rng(0)
    for k in (2, 3):
        X = np.concatenate([rng.normal(3.0 * i, 1.0, (40, 4)) for i in range(k)])
        for method in OURS:
            METHODS[method][0](X, k)
