"""What a scan costs beside its work: scans that do nothing over many blocks on many workers.

    python pipelines/benchmarks/scheduler_load.py [--blocks 1000 10000] [--workers 8 64]

Client, scheduler and simulated workers are a process each, so that the processor time of each can
be told apart: that of the workers is shared by all of them in life, the others' is not.  Blocks are
either held by the workers (a task a thread walks over those of its worker) or read anew (some tasks
a thread).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np

from common import table, write
from dmkc import MultipleKernelClustering
from dmkc.data import Read
from dmkc.datasets import make_ringnorm
from dmkc.scan.base import Scan
from dmkc.scan.cluster import ClusterEngine
from dmkc.scan.engine import LARGE_BLOCK_BYTES, MAX_BLOCK_BYTES
from dmkc.scan.grid import Grid
from scheduler_load_processes import Cost, simulated

PAPER_ROWS, PAPER_WORKERS, PAPER_WIDTH = 10**9, 64, 500
"""The fit on paper: features are 500 numbers a row, as of five kernels of rank 100."""
SPEED_ROWS, SPEED_RANK = 60_000, 100
KINDS = {
    "making": "blocks are made and held",
    "held": "a scan of held blocks",
    "read": "a scan of blocks read anew",
}
MODES = {"held": "persist", "read": "recompute"}
EXPLAINED = """\
Scans that do nothing, in processor time. Other work on the machine raises it too (a scan waits
longer, and meanwhile workers report and are watched), so that these are upper bounds where the
machine was busy. Time beside the work is that of the client, that of the scheduler and the share of
one worker, one after the other; with a machine for each they partly overlap."""


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


def measure(workers: int, n_blocks: int, repeats: int) -> dict[str, Any]:
    """Costs of making blocks, and of an empty scan over blocks that are held and that are read."""
    with simulated(workers) as place:
        engine, grid = ClusterEngine(place.client), Grid(n_blocks, 1, 0)
        read = [Read(Row(), i, i + 1) for i in range(n_blocks)]
        held: list[Any] = []
        making = place.cost(lambda: held.extend(engine.hold(np.copy, read, "held")))

        def scan(blocks: list[Any]) -> None:
            found = engine.scan(Nothing(), blocks, grid)
            if found != (n_blocks,):
                raise RuntimeError(f"The scan counted {found[0]} of {n_blocks} blocks.")

        def cost(blocks: list[Any]) -> dict[str, float]:
            scan(blocks)  # which does not count
            return _median([place.cost(lambda: scan(blocks)) for _ in range(repeats)])

        costs = {"making": making.as_dict(), "held": cost(held), "read": cost(read)}
        tasks = {kind: len(engine._groups(b)) for kind, b in (("held", held), ("read", read))}
        if tasks["held"] != workers:
            raise RuntimeError("Workers were lost on the way.")
    return {"workers": workers, "blocks": n_blocks, "tasks": tasks, **costs}


def _median(costs: list[Cost]) -> dict[str, float]:
    every = [cost.as_dict() for cost in costs]
    return {name: float(np.median([each[name] for each in every])) for name in every[0]}


def rows_a_second(mode: str) -> float:
    """The speed of the fastest of a fit's scans in one thread."""
    X, _ = make_ringnorm(SPEED_ROWS, seed=0)
    with dask.config.set(scheduler="synchronous"):
        model = MultipleKernelClustering(
            random_state=0, rank=SPEED_RANK, dtype="float32", feature_mode=mode
        ).fit(X)
    speeds = [r["rows_per_second"] for r in model.history_ if r.get("on") == "all"]
    return float(max(speeds))


def beside(found: dict[str, Any], kind: str) -> float:
    """Seconds that a scan takes beside its work, if nothing goes on at the same time.

    Client and scheduler are one process each; the workers share their part.
    """
    cost = found[kind]
    return cost["client"] + cost["scheduler"] + cost["workers"] / found["workers"]


def fitted(found: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Seconds beside the work as a line through the two largest numbers of blocks."""
    small, large = sorted(found, key=lambda f: f["blocks"])[-2:]
    low, high = beside(small, kind), beside(large, kind)
    each = (high - low) / (large["blocks"] - small["blocks"])
    return {
        "block": each,
        "scan": low - each * small["blocks"],
        "growth": float(np.log(high / low) / np.log(large["blocks"] / small["blocks"])),
    }


def on_paper(line: dict[str, float], speed: float) -> dict[str, float]:
    """A scan of very many rows: blocks, seconds of work of each worker, and seconds beside it."""
    grid = Grid.plan(
        PAPER_ROWS,
        PAPER_WIDTH,
        MAX_BLOCK_BYTES,
        PAPER_WORKERS,
        most_bytes=LARGE_BLOCK_BYTES,
    )
    work = PAPER_ROWS / PAPER_WORKERS / speed
    more = line["scan"] + line["block"] * grid.n_blocks
    return {"blocks": grid.n_blocks, "work": work, "beside": more, "share": more / work}


def measured(found: list[dict[str, Any]]) -> str:
    """The table of what was measured."""
    header = ("workers", "blocks", "what", "tasks", "client, ms")
    header += ("scheduler, ms", "all workers, ms", "beside the work, ms")
    rows = []
    for f in found:
        for kind in KINDS:
            tasks = f["blocks"] if kind == "making" else f["tasks"][kind]
            times = (f[kind][name] for name in ("client", "scheduler", "workers"))
            cells = (f"{1e3 * seconds:,.0f}" for seconds in (*times, beside(f, kind)))
            rows.append((f["workers"], f"{f['blocks']:,}", KINDS[kind], f"{tasks:,}", *cells))
    return table(header, rows)


def pages(
    found: list[dict[str, Any]], speeds: dict[str, float]
) -> tuple[list[str], list[dict[str, Any]]]:
    lines = [
        {"workers": workers, "kind": kind, **fitted(group, kind)}
        for workers in sorted({f["workers"] for f in found})
        for group in [[f for f in found if f["workers"] == workers]]
        for kind in MODES
    ]
    growth = table(
        ("workers", "what", "ms a scan", "µs a block", "grows as"),
        [
            (
                line["workers"],
                KINDS[line["kind"]],
                f"{1e3 * line['scan']:.0f}",
                f"{1e6 * line['block']:.0f}",
                f"blocks^{line['growth']:.2f}",
            )
            for line in lines
        ],
    )
    largest = [line for line in lines if line["workers"] == lines[-1]["workers"]]
    papers = [
        {"kind": line["kind"], **on_paper(line, speeds[MODES[line["kind"]]])} for line in largest
    ]
    paper = table(
        (
            "what",
            "blocks",
            "rows/s of a worker",
            "work, s a scan",
            "beside it, s a scan",
            "share",
        ),
        [
            (
                KINDS[p["kind"]],
                f"{p['blocks']:,}",
                f"{speeds[MODES[p['kind']]]:,.0f}",
                f"{p['work']:.1f}",
                f"{p['beside']:.2f}",
                f"{100 * p['share']:.1f} %",
            )
            for p in papers
        ],
    )
    said = (
        f"Not measured: the line for {largest[0]['workers']} workers at the number of blocks that "
        f"the library plans for {PAPER_WIDTH} numbers a row, beside the work of a worker at the "
        f"speed of the fastest scan of one thread in a fit of {SPEED_ROWS:,} rows here."
    )
    title = f"{PAPER_ROWS:,} rows on {PAPER_WORKERS} workers, on paper"
    parts = [
        f"{EXPLAINED}\n\n{measured(found)}",
        f"## Growth\n\nTime beside the work: a line through two numbers of blocks.\n\n{growth}",
        f"## {title}\n\n{said}\n\n{paper}",
    ]
    return parts, [*lines, *papers]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", nargs="+", type=int, default=[1_000, 10_000])
    parser.add_argument("--workers", nargs="+", type=int, default=[8, 64])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if len(set(options.blocks)) < 2:
        parser.error("--blocks needs two numbers or more, to see a growth.")
    speeds = {mode: rows_a_second(mode) for mode in MODES.values()}
    found = []
    for workers in sorted(set(options.workers)):
        for n_blocks in sorted(set(options.blocks)):
            found.append(measure(workers, n_blocks, options.repeats))
            print(found[-1], flush=True)
    parts, derived = pages(found, speeds)
    paper = {"rows": PAPER_ROWS, "workers": PAPER_WORKERS, "width": PAPER_WIDTH}
    data = {"measured": found, "speeds": speeds, "derived": derived, "paper": paper}
    given = {"blocks": options.blocks, "workers": options.workers, "repeats": [options.repeats]}
    words = (f"--{name} {' '.join(map(str, numbers))}" for name, numbers in given.items())
    command = f"python pipelines/benchmarks/scheduler_load.py {' '.join(words)}"
    write("scheduler-load", "What a scan costs beside its work", command, parts, data)


if __name__ == "__main__":
    main()
