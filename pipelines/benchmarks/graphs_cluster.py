"""One fit on two worker processes, Zarr in and labels out; what it took is a JSON line.

    python graphs_cluster.py METHOD ROWS.zarr CLUSTERS SEED LABELS.zarr MEMORY

graphs_scale.py runs it as a process, so that a fit that takes too long can be stopped.  MEMORY is
the limit of each worker.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import dask.array as da
from distributed import Client, LocalCluster

from common import peak
from dmkc.datasets import make_two_bananas


def spectral(k: int, seed: int) -> Any:
    from dmkc import SpectralClustering

    return SpectralClustering(k, random_state=seed)


def consensus(k: int, seed: int) -> Any:
    from dmkc import ConsensusClustering

    return ConsensusClustering(k, random_state=seed)


def k_means(k: int, seed: int) -> Any:
    from dmkc import KMeans

    return KMeans(k, n_init=10, random_state=seed)


ESTIMATORS: dict[str, Callable[[int, int], Any]] = {
    "dmkc spectral": spectral,
    "dmkc consensus": consensus,
    "dmkc k-means": k_means,
}


def process_and_peak() -> tuple[int, int]:
    return os.getpid(), peak()


def main() -> None:
    method, rows, clusters, seed, out, memory = sys.argv[1:]
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        warm, _ = make_two_bananas(5000, chunks=2500)  # nobody is charged for being compiled
        da.compute(ESTIMATORS[method](2, 0).fit(warm).labels_)
        before = {pid for pid, _ in client.run(process_and_peak).values()}
        model = ESTIMATORS[method](int(clusters), int(seed))
        began = time.perf_counter()
        model.fit(rows)
        fitted = time.perf_counter()
        model.labels_.to_zarr(out, overwrite=True)
        ended = time.perf_counter()
        after = dict(client.run(process_and_peak).values())
    found = {
        "seconds": ended - began,
        "fit": fitted - began,
        "peak": max(after.values()),
        "coordinator": peak(),
        "scans": model.n_scans_,
        "same processes": before == set(after),
    }
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
