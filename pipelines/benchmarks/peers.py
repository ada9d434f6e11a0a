"""Whole fits beside other libraries, on the same rows in the same process set-up."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.cluster import KMeans

from common import table
from dmkc import MultipleKernelClustering
from dmkc.datasets import make_ringnorm
from dmkc.metrics import accuracy

Fit = Callable[[Any], Any]


def ours(X: Any) -> Any:
    return MultipleKernelClustering(random_state=0).fit(X)


def sklearn_kmeans(X: Any) -> Any:
    return KMeans(2, n_init=1, random_state=0).fit(X)


def dask_ml_kmeans(X: Any, k: int = 2) -> Any:
    from dask_ml.cluster import KMeans as DaskKMeans

    return DaskKMeans(k, random_state=0).fit(X)


def dask_ml_spectral(X: Any, k: int = 2) -> Any:
    from dask_ml.cluster import SpectralClustering

    gamma = 0.5 / X.shape[1]
    return SpectralClustering(k, n_components=100, gamma=gamma, random_state=0).fit(X)


class Run:
    """Times of several fits of one method, and how good its labels are."""

    def __init__(self, name: str, fit: Fit, X: Any, y: np.ndarray) -> None:
        self.name, self.fit, self.X, self.y = name, fit, X, y
        self.fits: list[float] = []
        self.labels: list[float] = []
        self.accuracy = 0.0

    def once(self, warm: bool = True) -> None:
        """Time one fit, right after an untimed one.

        On a virtual machine that gives idle memory back to its host the first touch of a gigabyte
        takes seconds, which would be charged to whoever happens to come first.
        """
        if warm:
            np.asarray(self.fit(self.X).labels_)
        began = time.perf_counter()
        model = self.fit(self.X)
        fitted = time.perf_counter()
        labels = np.asarray(model.labels_)
        self.fits.append(fitted - began)
        self.labels.append(time.perf_counter() - fitted)
        self.accuracy = accuracy(self.y, labels)

    @property
    def seconds(self) -> float:
        return float(np.median(self.fits))

    def row(self, ratio: str = "") -> tuple[str, ...]:
        labels = float(np.median(self.labels))
        n = len(self.y)
        return (
            f"{n:,}",
            self.name,
            f"{self.seconds:.2f}",
            f"{labels:.2f}",
            f"{100 * self.accuracy:.2f}",
            ratio,
        )


def quiet() -> None:
    """dask-ml's graphs make the scheduler log page after page."""
    for name in ("distributed.scheduler", "distributed.nanny", "distributed.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")


def fit_table(n: int, quick: bool) -> tuple[str, dict]:
    """Our whole fit (rows in memory to a model that has labels) against the peers'."""
    quiet()
    X, y = (np.asarray(a) for a in make_ringnorm(n, seed=0, chunks=None))
    threads = (
        Run("dmkc, threads", ours, X, y),
        Run("scikit-learn KMeans (n_init=1)", sklearn_kmeans, X, y),
    )
    for _ in range(2 if quick else 7):
        for run in threads:
            run.once()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        D = da.from_array(X, chunks=(max(1, n // 16), X.shape[1])).persist()
        workers = (
            Run("dmkc, 2 worker processes", ours, D, y),
            Run("dask-ml KMeans", dask_ml_kmeans, D, y),
        )
        for _ in range(1 if quick else 3):
            for run in workers:
                run.once()
        few = min(n, 20_000 if quick else 200_000)
        S = da.from_array(X[:few].copy(), chunks=(few // 8, X.shape[1])).persist()
        spectral = (
            Run("dmkc, 2 worker processes", ours, S, y[:few]),
            Run("dask-ml SpectralClustering", dask_ml_spectral, S, y[:few]),
        )
        spectral[0].once()
        spectral[1].once(warm=False)
    a, b, c_ = (pair[1].seconds / pair[0].seconds for pair in (threads, workers, spectral))
    rows = [
        threads[0].row(),
        threads[1].row(f"dmkc takes {1 / a:.2f}x (aim: at most 3)"),
        workers[0].row(),
        workers[1].row(f"dmkc is {b:.1f}x faster (aim: at least 7)"),
        spectral[0].row(),
        spectral[1].row(f"dmkc is {c_:.0f}x faster (aim: at least 30)"),
    ]
    text = "## Whole fits, rows in memory to a fitted model\n\n"
    text += table(("rows", "method", "fit, s", "labels, s", "accuracy, %", "ratio of fits"), rows)
    text += (
        "\n\nMedians of several runs, interleaved, each right after an untimed run of the same "
        "method; dask-ml's spectral clustering is run once. Labels of Dask input are lazy: their "
        "time is that of computing them from the rows."
    )
    runs = (*threads, *workers, *spectral)
    data = {f"{r.name} {len(r.y)}": [r.fits, r.labels, r.accuracy] for r in runs}
    return text, data
