"""k-means beside scikit-learn and dask-ml: the same rows, the same start, the same steps.

    python pipelines/benchmarks/kmeans_speed.py [--rows 1e6 1e7] [--quick]

Every method takes a fixed number of steps of Lloyd's algorithm (tol=0) from the same centroids.
Time per step is the difference between a long and a short fit, divided by the difference in steps,
so that it holds neither set-up nor labels; whole fits are given as well.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.cluster import KMeans as SklearnKMeans

from common import table, write
from dmkc import KMeans
from dmkc.datasets import make_ringnorm
from peers import quiet

CLUSTERS = 8
COLUMNS = 20
Fit = Callable[[Any, np.ndarray, int], Any]


def ours(X: Any, init: np.ndarray, steps: int) -> Any:
    return KMeans(len(init), init=init, max_iter=steps, tol=0.0).fit(X)


def sklearn_kmeans(X: Any, init: np.ndarray, steps: int) -> Any:
    model = SklearnKMeans(len(init), init=init, n_init=1, max_iter=steps, tol=0.0)
    return model.fit(X)


def dask_ml_kmeans(X: Any, init: np.ndarray, steps: int) -> Any:
    from dask_ml.cluster import KMeans as DaskKMeans

    return DaskKMeans(len(init), init=init, max_iter=steps, tol=0.0).fit(X)


class Timed:
    """Long and short fits of one method."""

    def __init__(self, name: str, fit: Fit, X: Any, init: np.ndarray, steps: tuple[int, int]):
        self.name, self.fit, self.X, self.init, self.steps = name, fit, X, init, steps
        self.long: list[float] = []
        self.short: list[float] = []

    def once(self) -> None:
        self.fit(self.X, self.init, 1)  # memory that the system took back is paid for here
        for steps, into in zip(self.steps, (self.short, self.long), strict=True):
            began = time.perf_counter()
            self.fit(self.X, self.init, steps)
            into.append(time.perf_counter() - began)

    @property
    def per_step(self) -> float:
        few, many = self.steps
        return (float(np.median(self.long)) - float(np.median(self.short))) / (many - few)

    @property
    def whole(self) -> float:
        return float(np.median(self.long))


def interleaved(runs: tuple[Timed, ...], repeats: int) -> None:
    for _ in range(repeats):
        for run in runs:
            run.once()


def measure(n: int, quick: bool) -> tuple[list[tuple], dict]:
    X = np.ascontiguousarray(make_ringnorm(n, seed=0, chunks=None)[0], dtype=np.float32)
    rng = np.random.default_rng(0)
    init = X[np.sort(rng.choice(n, CLUSTERS, replace=False))]
    steps, repeats = (2, 22), 2 if quick else 5
    threads = (
        Timed("dmkc, threads", ours, X, init, steps),
        Timed("scikit-learn", sklearn_kmeans, X, init, steps),
    )
    interleaved(threads, repeats)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        D = da.from_array(X, chunks=(n // 16, COLUMNS)).persist()
        slow = (1, 3) if n > 2_000_000 else (1, 5)
        workers = (
            Timed("dmkc, 2 worker processes", ours, D, init, steps),
            Timed("dask-ml, 2 worker processes", dask_ml_kmeans, D, init, slow),
        )
        interleaved(workers, 1)
        interleaved(workers[:1], repeats - 1)
    base = threads[1]
    rows = []
    for run in (*threads, *workers):
        share = run.per_step / base.per_step
        _, many = run.steps
        rows.append(
            (
                f"{n:,}",
                run.name,
                f"{1e3 * run.per_step:.1f}",
                f"{share:.2f}",
                f"{run.whole:.2f} ({many} steps)",
            )
        )
    factor = workers[1].per_step / workers[0].per_step
    rows.append((f"{n:,}", "dask-ml / dmkc, both in 2 processes", "", f"{factor:.0f}x", ""))
    data = {
        run.name: {"steps": run.steps, "short": run.short, "long": run.long}
        for run in (*threads, *workers)
    }
    return rows, data


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 1e7])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    quiet()
    warnings.simplefilter("ignore")
    rows, data = [], {}
    for n in map(int, options.rows):
        found, data[str(n)] = measure(n, options.quick)
        rows += found
    text = (
        f"{COLUMNS} float32 columns, {CLUSTERS} clusters, the same start, tol=0.\n\n"
        + table(
            ("rows", "method", "a step, ms", "step / scikit-learn's", "whole fit, s"),
            rows,
        )
        + "\n\nAims: at most 1.5 times scikit-learn's step (in memory, all threads), threads and 2 "
        "worker processes; at least 10 times faster than dask-ml. A step's time is the difference "
        "of a long and a short fit; medians of interleaved runs, dask-ml once."
    )
    command = "python pipelines/benchmarks/kmeans_speed.py"
    write("kmeans-speed", "Speed of k-means", command, [text], data)


if __name__ == "__main__":
    main()
