"""One whole fit of k-means to the rows of a file: seconds and inertia as a JSON line.

    python kmeans_whole_fit.py METHOD ROWS.npy CLUSTERS STEPS

kmeans_whole.py runs it as a process, for faiss of another virtual environment, so it imports NumPy
and what the method needs.  A short fit comes first, which loads and compiles what there is.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

THREADS = 2
Fit = Callable[[np.ndarray, int, int], float]


def ours(X: np.ndarray, k: int, steps: int) -> float:
    from dmkc import KMeans

    return float(KMeans(k, n_init=1, max_iter=steps, tol=0.0, random_state=0).fit(X).inertia_)


def scikit_learn(X: np.ndarray, k: int, steps: int) -> float:
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=1, max_iter=steps, tol=0.0, random_state=0).fit(X)
    return float(model.inertia_)


def faiss(X: np.ndarray, k: int, steps: int) -> float:
    """All rows are trained on (faiss takes 256 a cluster unless told), and labelled at the end."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    model = faiss.Kmeans(X.shape[1], k, niter=steps, seed=1, max_points_per_centroid=len(X))
    model.train(X)
    distances, _ = model.index.search(X, 1)
    return float(distances.astype(np.float64).sum())


def dask_ml(X: np.ndarray, k: int, steps: int) -> float:
    """Until it settles, on two worker processes that the rows are sent to."""
    import dask.array as da
    from dask_ml.cluster import KMeans

    client = workers()
    rows = da.from_array(X, chunks=(-(-len(X) // 16), X.shape[1])).persist()
    with client.as_current():
        model = KMeans(k, max_iter=steps, random_state=0).fit(rows)
        np.asarray(model.labels_)
    return float(model.inertia_)


@cache
def workers() -> Any:
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=THREADS, threads_per_worker=1, dashboard_address=None))


METHODS: dict[str, Fit] = {"dmkc": ours, "scikit-learn": scikit_learn, "faiss": faiss}
MORE = {"dask-ml": dask_ml}


def main() -> None:
    method, path, k, steps = sys.argv[1:]
    X = np.load(path)
    fit = (METHODS | MORE)[method]
    fit(X[: 40 * int(k)], int(k), 1)
    began, used = time.perf_counter(), time.process_time()
    inertia = fit(X, int(k), int(steps))
    clock, processor = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"clock": clock, "processor": processor, "inertia": inertia}))


if __name__ == "__main__":
    main()
