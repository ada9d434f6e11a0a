"""A fit whose features are at least eight times the memory of all workers.

    python pipelines/benchmarks/larger_than_memory.py [--memory 700MB] [--times 8] [--folder DIR]

Rows are generated into a Zarr store; the fit runs on two worker processes with small memory limits
in `recompute` and in `store` mode.  Peak memory is what the operating system counted for each
worker process; a worker that was killed or restarted would have another process number.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from dask.utils import parse_bytes
from distributed import Client, LocalCluster

from common import peak, table, write
from dmkc import MultipleKernelClustering
from dmkc.datasets import make_ringnorm
from dmkc.metrics import accuracy

WIDTH, CHUNK = 224, 262_144


def process_and_peak() -> tuple[int, int]:
    return os.getpid(), peak()


def generate(n: int, folder: Path) -> tuple[str, str]:
    X, y = make_ringnorm(n, seed=0, chunks=CHUNK)
    paths = str(folder / "rows.zarr"), str(folder / "truth.zarr")
    X.to_zarr(paths[0])
    y.to_zarr(paths[1])
    return paths


def run(mode: str, rows: str, truth: str, memory: str, folder: Path) -> dict[str, Any]:
    with (
        LocalCluster(
            2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        before = {address: pid for address, (pid, _) in client.run(process_and_peak).items()}
        model = MultipleKernelClustering(
            random_state=0, feature_mode=mode, dtype="float32", store_path=str(folder)
        )
        began = time.perf_counter()
        model.fit(rows)
        fitted = time.perf_counter() - began
        labels = str(folder / f"labels-{mode}.zarr")
        model.labels_.to_zarr(labels)
        labelled = time.perf_counter() - began - fitted
        after = client.run(process_and_peak)
    same = {address: pid for address, (pid, _) in after.items()} == before
    quality = accuracy(np.asarray(zarr.open_array(truth)), np.asarray(zarr.open_array(labels)))
    return {
        "mode": mode,
        "fit": fitted,
        "labels": labelled,
        "scans": model.n_scans_,
        "peaks": [p for _, p in after.values()],
        "same processes": same,
        "accuracy": quality,
        "objective": model.objective_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", default="700MB", help="limit of each of the two workers")
    parser.add_argument("--times", type=float, default=8.0, help="features against all workers")
    parser.add_argument("--folder", default=None, help="where to put the stores")
    options = parser.parse_args()
    limit = parse_bytes(options.memory)
    n = int(np.ceil(options.times * 2 * limit / (WIDTH * 4)))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows, truth = generate(n, folder)
        found = [run(mode, rows, truth, options.memory, folder) for mode in ("recompute", "store")]
    lines = [
        (
            r["mode"],
            f"{n:,}",
            f"{n * WIDTH * 4 / 1e9:.2f} GB",
            f"{2 * limit / 1e9:.2f} GB",
            f"{r['fit']:.0f} + {r['labels']:.0f}",
            r["scans"],
            ", ".join(f"{p / 1e6:.0f} MB" for p in r["peaks"]),
            "yes" if r["same processes"] else "NO",
            f"{100 * r['accuracy']:.2f}",
        )
        for r in found
    ]
    header = ("mode", "rows", "features", "limit of both workers", "fit + labels, s", "scans")
    header += ("peak of each worker", "no worker restarted", "accuracy, %")
    text = table(header, lines)
    command = "python pipelines/benchmarks/larger_than_memory.py"
    write("larger-than-memory", "Fits larger than memory", command, [text], found)


if __name__ == "__main__":
    main()
