"""Fits to rows in a file: labels go to another file, seconds and peak memory to a JSON line.

    python graphs_fit.py METHOD ROWS.npy CLUSTERS SEED,SEED LABELS.npy

graphs.py and graphs_scale.py run it as a process, if need be of another virtual environment: a fit
can be stopped, its memory is its own, and peers need not be installed beside dmkc. So it imports
NumPy, and what the method needs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Labels = Callable[[np.ndarray, int, int], np.ndarray]

DASK_ROWS = 262_144
"""Rows of a chunk for dask-ml, or half of them all."""


def k_means(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit(X).labels_


def spectral(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import SpectralClustering

    method = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
    return method.fit(X).labels_


def secuer(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from secuer import secuer

    return secuer(X, Ks=k, seed=seed)


def genie(X: np.ndarray, k: int, _: int) -> np.ndarray:
    from genieclust import Genie

    return Genie(n_clusters=k, gini_threshold=0.3).fit_predict(X)


def dask_ml(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Spectral clustering; its default gamma of 1 suits no number of columns but one."""
    import dask.array as da
    from dask_ml.cluster import SpectralClustering

    rows = da.from_array(X, chunks=(min(DASK_ROWS, -(-len(X) // 2)), X.shape[1]))
    gamma = 0.5 / float(X.var(axis=0).sum())
    parts = min(100, len(X) // 2)
    method = SpectralClustering(k, n_components=parts, gamma=gamma, random_state=seed)
    return np.asarray(method.fit(rows).labels_)


def our_spectral(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from dmkc import SpectralClustering

    return np.asarray(SpectralClustering(k, random_state=seed).fit(X).labels_)


def our_consensus(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from dmkc import ConsensusClustering

    return np.asarray(ConsensusClustering(k, random_state=seed).fit(X).labels_)


METHODS: dict[str, Labels] = {
    "k-means": k_means,
    "spectral": spectral,
    "secuer": secuer,
    "genie": genie,
    "dask-ml": dask_ml,
    "dmkc spectral": our_spectral,
    "dmkc consensus": our_consensus,
}


def peak() -> int:
    """The most memory this process ever had, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    method, rows, clusters, seeds, out = sys.argv[1:]
    fit, X = METHODS[method], np.load(rows)
    # Nobody is charged for being imported and compiled.
    warm = np.random.default_rng(0).normal(size=(300, 3)).astype(X.dtype)
    fit(warm + 4 * np.sign(warm[:, :1]), 2, 0)
    labels, said = [], []
    for seed in seeds.split(","):
        began = time.perf_counter()
        labels.append(np.asarray(fit(X, int(clusters), int(seed))))
        said.append({"seconds": time.perf_counter() - began, "peak": peak()})
    np.save(out, np.stack(labels))
    print("\n" + json.dumps(said))


if __name__ == "__main__":
    main()
