"""Train on a subset, label everything: rows in Zarr to labels in Zarr.

    python pipelines/subset_to_all.py --rows 100_000_000 --train-rows 100_000 --out work

Generates ringnorm rows into a Zarr store (replace that step by your own store), trains on a uniform
subset in memory, with --polish also for some rounds on all rows, labels all rows on two worker
processes and evaluates block by block.  Nothing of the size of the data is ever in one process.
Rows that an earlier run has generated in the folder are used again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
from distributed import Client, LocalCluster

from dmkc import MultipleKernelClustering
from dmkc.datasets import make_ringnorm
from dmkc.metrics import accuracy

CHUNK = 262_144


def peak(process: int | str = "self") -> int:
    """The most memory a process ever had, in bytes (Linux).

    `resource.getrusage` would count what the parent had when it started the process.
    """
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0  # the process has ended


def timed(name: str, times: dict[str, float], job: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    result = job()
    times[name] = time.perf_counter() - began
    print(f"{name}: {times[name]:.1f} s", flush=True)
    return result


def store(array: da.Array, path: Path) -> None:
    array.to_zarr(str(path), overwrite=True)


def run(n: int, train_rows: int, out: Path, memory: str, polish: int = 0) -> dict[str, Any]:
    """The whole pipeline; returns times in seconds, peaks in bytes and the accuracy."""
    out.mkdir(parents=True, exist_ok=True)
    rows, truth, labels = out / "rows.zarr", out / "truth.zarr", out / "labels.zarr"
    times: dict[str, float] = {}
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        if not truth.exists():
            X, y = make_ringnorm(n, seed=0, chunks=CHUNK)
            timed("generate", times, lambda: (store(X, rows), store(y, truth)))
        model = MultipleKernelClustering(random_state=0, train_rows=train_rows, polish=polish)
        timed("train", times, lambda: model.fit(str(rows)))
        timed("label", times, lambda: store(model.labels_, labels))
        pair = da.from_zarr(str(truth)), da.from_zarr(str(labels))
        quality = timed("evaluate", times, lambda: accuracy(*pair))
        peaks = sorted(client.run(peak).values())
    result = {"rows": n, "train rows": train_rows, "polish": polish}
    result |= {"times": times, "accuracy": quality, "scans": model.n_scans_}
    return result | {"worker peaks": peaks, "coordinator peak": peak()}


def whole(text: str) -> int:
    """A number like 20_000_000 or 2e7."""
    return int(float(text.replace("_", "")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=whole, default=20_000_000)
    parser.add_argument("--train-rows", type=whole, default=100_000)
    parser.add_argument("--polish", type=int, default=0, help="rounds on all rows")
    parser.add_argument("--memory", default="1GB", help="memory limit of each worker")
    parser.add_argument("--out", type=Path, default=Path("subset-to-all"))
    options = parser.parse_args()
    os.umask(0o077)
    result = run(options.rows, options.train_rows, options.out, options.memory, options.polish)
    (options.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
