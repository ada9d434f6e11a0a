"""What a scan costs beside its work: scans that do nothing over many blocks on many workers.

    python pipelines/benchmarks/scheduler_load.py [--blocks 100 1000 10000] [--workers 8 64]

All workers live in one process with the scheduler and the client, where they share one Python
interpreter; they talk over sockets, as real ones do.  Blocks are either held by the workers (a task
a thread walks over those of its worker) or read anew (a task a block).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from common import table, write
from dmkc import MultipleKernelClustering
from dmkc.data import Read
from dmkc.datasets import make_ringnorm
from dmkc.scan.base import Scan
from dmkc.scan.cluster import ClusterEngine
from dmkc.scan.engine import MAX_BLOCK_BYTES
from dmkc.scan.grid import Grid

PAPER_ROWS, PAPER_WORKERS, PAPER_WIDTH = 10**9, 64, 500
"""The fit on paper: features are 500 numbers a row, as of five kernels of rank 100."""
SPEED_ROWS, SPEED_RANK = 60_000, 100


@dataclass(frozen=True)
class Nothing(Scan):
    """A scan that counts blocks and looks at no row."""

    name = "nothing"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> tuple[int]:
        return (1,)


@dataclass(frozen=True)
class Row:
    """A reader of blocks of one row."""

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.zeros((stop - start, 1))


def seconds_of(job: Callable[[], Any], repeats: int) -> float:
    """The median time of a job, after one that does not count."""
    job()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def measure(workers: int, n_blocks: int, repeats: int) -> dict[str, Any]:
    """Seconds of an empty scan over blocks that are held and that are read."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            dashboard_address=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers)
        engine, grid = ClusterEngine(client), Grid(n_blocks, 1, 0)
        read = [Read(Row(), i, i + 1) for i in range(n_blocks)]
        held = engine.hold(np.copy, read, "held")

        def scan(blocks: list[Any]) -> None:
            found = engine.scan(Nothing(), blocks, grid)
            if found != (n_blocks,):
                raise RuntimeError(f"The scan counted {found[0]} of {n_blocks} blocks.")

        return {
            "workers": workers,
            "blocks": n_blocks,
            "held": seconds_of(lambda: scan(held), repeats),
            "read": seconds_of(lambda: scan(read), repeats),
        }


def rows_a_second(mode: str) -> float:
    """The speed of a fit's scans in one thread."""
    X, _ = make_ringnorm(SPEED_ROWS, seed=0)
    with dask.config.set(scheduler="synchronous"):
        model = MultipleKernelClustering(
            random_state=0, rank=SPEED_RANK, dtype="float32", feature_mode=mode
        ).fit(X)
    speeds = [r["rows_per_second"] for r in model.history_ if r.get("on") == "all"]
    return float(np.median(speeds))


def fitted(found: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Time as a line through the two largest numbers of blocks, and its growth between them."""
    small, large = sorted(found, key=lambda f: f["blocks"])[-2:]
    each = (large[kind] - small[kind]) / (large["blocks"] - small["blocks"])
    return {
        "block": each,
        "scan": small[kind] - each * small["blocks"],
        "growth": float(
            np.log(large[kind] / small[kind]) / np.log(large["blocks"] / small["blocks"])
        ),
    }


def on_paper(line: dict[str, float], speed: float) -> dict[str, float]:
    """A scan of very many rows: blocks, seconds of work of each worker, and seconds beside it."""
    grid = Grid.plan(PAPER_ROWS, PAPER_WIDTH, MAX_BLOCK_BYTES, PAPER_WORKERS)
    work = PAPER_ROWS / PAPER_WORKERS / speed
    beside = line["scan"] + line["block"] * grid.n_blocks
    return {"blocks": grid.n_blocks, "work": work, "beside": beside, "share": beside / work}


def pages(found: list[dict[str, Any]], speeds: dict[str, float]) -> tuple[list[str], list[dict]]:
    measured = table(
        ("workers", "blocks", "held blocks, ms a scan", "blocks read anew, ms a scan"),
        [
            (f["workers"], f"{f['blocks']:,}", f"{1e3 * f['held']:.1f}", f"{1e3 * f['read']:.1f}")
            for f in found
        ],
    )
    lines = [
        {"workers": workers, "kind": kind, **fitted(group, kind)}
        for workers in sorted({f["workers"] for f in found})
        for group in [[f for f in found if f["workers"] == workers]]
        for kind in ("held", "read")
    ]
    growth = table(
        ("workers", "blocks are", "ms a scan", "µs a block", "grows as"),
        [
            (
                line["workers"],
                line["kind"],
                f"{1e3 * line['scan']:.1f}",
                f"{1e6 * line['block']:.1f}",
                f"blocks^{line['growth']:.2f}",
            )
            for line in lines
        ],
    )
    modes = {"held": "persist", "read": "recompute"}
    largest = [line for line in lines if line["workers"] == lines[-1]["workers"]]
    papers = [on_paper(line, speeds[modes[line["kind"]]]) for line in largest]
    paper = table(
        (
            "blocks are",
            "blocks",
            "rows/s of a worker",
            "work, s a scan",
            "beside it, s a scan",
            "share",
        ),
        [
            (
                line["kind"],
                f"{p['blocks']:,}",
                f"{speeds[modes[line['kind']]]:,.0f}",
                f"{p['work']:.1f}",
                f"{p['beside']:.2f}",
                f"{100 * p['share']:.1f} %",
            )
            for line, p in zip(largest, papers, strict=True)
        ],
    )
    said = (
        f"Not measured: the line for {largest[0]['workers']} workers at the number of blocks that "
        f"the library plans for {PAPER_WIDTH} numbers a row, beside the work of a worker at the "
        f"speed that one thread had in a fit of {SPEED_ROWS:,} rows here."
    )
    title = f"{PAPER_ROWS:,} rows on {PAPER_WORKERS} workers, on paper"
    parts = [
        f"Scans that do nothing, all workers in one process.\n\n{measured}",
        f"## Growth\n\nA line through the two largest numbers of blocks.\n\n{growth}",
        f"## {title}\n\n{said}\n\n{paper}",
    ]
    return parts, [*lines, *papers]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", nargs="+", type=int, default=[100, 1_000, 10_000])
    parser.add_argument("--workers", nargs="+", type=int, default=[8, 64])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if len(set(options.blocks)) < 2:
        parser.error("--blocks needs two numbers or more, to see a growth.")
    speeds = {mode: rows_a_second(mode) for mode in ("persist", "recompute")}
    found = [
        measure(workers, n_blocks, options.repeats)
        for workers in sorted(set(options.workers))
        for n_blocks in sorted(set(options.blocks))
    ]
    parts, derived = pages(found, speeds)
    data = {"measured": found, "speeds": speeds, "derived": derived}
    given = {"blocks": options.blocks, "workers": options.workers, "repeats": [options.repeats]}
    words = (f"--{name} {' '.join(map(str, numbers))}" for name, numbers in given.items())
    command = f"python pipelines/benchmarks/scheduler_load.py {' '.join(words)}"
    write("scheduler-load", "What a scan costs beside its work", command, parts, data)


if __name__ == "__main__":
    main()
