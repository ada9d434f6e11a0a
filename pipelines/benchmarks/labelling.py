"""How fast rows are labelled, and a whole subset-train / full-predict run at several sizes.

    python pipelines/benchmarks/labelling.py [--sizes 1e6 1e7 1e8] [--folder DIR]

`predict` on two worker processes against the same function in a bare loop in two processes, from
memory and from Zarr; then `pipelines/subset_to_all.py` from 1e6 to 1e8 rows, which take 8 GB on
disk and some minutes, trained on a subset alone and with rounds on all rows.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, futures_of, wait

from common import table, write
from dmkc import MultipleKernelClustering
from dmkc.data import as_rows
from dmkc.datasets import make_ringnorm
from subset_to_all import run

CHUNK = 65_536
POLISH = 1
"""Rounds on all rows."""


def bare(blocks: list[np.ndarray], pipeline: Any) -> float:
    """Seconds of a plain loop over blocks in memory."""
    began = time.perf_counter()
    for block in blocks:
        pipeline(block)
    return time.perf_counter() - began


def read(path: str, start: int, stop: int) -> float:
    """Seconds of reading some rows of a store, block by block."""
    blocks = [b for b in as_rows(path).blocks(CHUNK) if start <= b.start < stop]
    began = time.perf_counter()
    for block in blocks:
        block.load()
    return time.perf_counter() - began


def read_and_label(path: str, start: int, stop: int, pipeline: Any) -> float:
    """Seconds of a plain loop that reads blocks of a store and labels them."""
    blocks = [b for b in as_rows(path).blocks(CHUNK) if start <= b.start < stop]
    began = time.perf_counter()
    for block in blocks:
        pipeline(block.load())
    return time.perf_counter() - began


def throughput(n: int, folder: Path, repeats: int = 5) -> tuple[str, dict]:
    X, _ = make_ringnorm(n, seed=0, chunks=CHUNK)
    path = str(folder / "rows.zarr")
    X.to_zarr(path)
    names = ("bare", "memory", "read", "both", "zarr")
    times: dict[str, list[float]] = {name: [] for name in names}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as client,
    ):
        train = np.asarray(X[:20_000])
        model = MultipleKernelClustering(random_state=0, dtype="float32").fit(train)
        pipeline = model.model_.label_pipeline()
        held = da.from_zarr(path).rechunk((CHUNK, -1)).persist()
        wait(held)
        homes = list(client.scheduler_info()["workers"])
        parts = futures_of(held)
        client.rebalance(parts)  # half of the rows in each process, as for the bare loop
        half = len(parts) // 2
        for turn in range(repeats + 1):
            found = {}
            jobs = [
                client.submit(bare, group, pipeline, key=f"bare-{turn}-{i}", workers=[homes[i]])
                for i, group in enumerate((parts[:half], parts[half:]))
            ]
            found["bare"] = max(client.gather(jobs))
            began = time.perf_counter()
            dask.compute(model.predict(held))
            found["memory"] = time.perf_counter() - began
            edges = (0, n // 2, n)
            for name, job, more in (("read", read, ()), ("both", read_and_label, (pipeline,))):
                jobs = [
                    client.submit(
                        job,
                        path,
                        edges[i],
                        edges[i + 1],
                        *more,
                        key=f"{name}-{turn}-{i}",
                        workers=[homes[i]],
                    )
                    for i in range(2)
                ]
                found[name] = max(client.gather(jobs))
            began = time.perf_counter()
            dask.compute(model.predict(path))
            found["zarr"] = time.perf_counter() - began
            if turn:
                for key, value in found.items():
                    times[key].append(value)
    median = {k: float(np.median(v)) for k, v in times.items()}
    slower = max(median["bare"], median["read"])
    rows = [
        ("bare loop, two processes, rows in memory", f"{n / median['bare']:,.0f}", ""),
        (
            "predict, two worker processes, rows in memory",
            f"{n / median['memory']:,.0f}",
            f"{median['memory'] / median['bare']:.2f}x the bare loop (aim: at most 1.3)",
        ),
        ("reading the Zarr store alone, two processes", f"{n / median['read']:,.0f}", ""),
        (
            "bare loop that reads and labels, two processes",
            f"{n / median['both']:,.0f}",
            f"{median['both'] / slower:.2f}x the slower of the two",
        ),
        (
            "predict from Zarr",
            f"{n / median['zarr']:,.0f}",
            f"{median['zarr'] / slower:.2f}x the slower of the two (aim: at most 1.5), "
            f"{median['zarr'] / median['both']:.2f}x the bare loop that reads and labels",
        ),
    ]
    text = f"## Labelling {n:,} rows\n\n" + table(("what", "rows a second", "ratio"), rows)
    text += (
        "\n\nMedian of "
        f"{repeats} turns. Rows in memory are spread evenly over the two workers. Scheduler and "
        "client share the two cores with the workers, and `predict` brings the labels back."
    )
    return text, times


def reading(path: str, n: int) -> float:
    """Seconds of reading a store in two processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        halves = [client.submit(read, path, *ends) for ends in ((0, n // 2), (n // 2, n))]
        return max(client.gather(halves))


def growth(sizes: list[int], folder: Path) -> tuple[str, list]:
    found = []
    for n in sizes:
        out = folder / f"run-{n}"
        for polish in (0, POLISH):
            found.append(run(n, min(100_000, n), out, "1GB", polish))
        found[-2]["times"]["read"] = reading(str(out / "rows.zarr"), n)
        shutil.rmtree(out)
    steps = ("generate", "read", "train", "label", "evaluate")
    rows = [
        (
            f"{r['rows']:,}",
            "the subset" if not r["polish"] else "the subset, then all rows",
            r["scans"],
            *(f"{r['times'][k]:.1f}" if k in r["times"] else "" for k in steps),
            f"{100 * r['accuracy']:.2f}",
            ", ".join(f"{p / 1e6:.0f}" for p in r["worker peaks"]),
            f"{r['coordinator peak'] / 1e6:.0f}",
        )
        for r in found
    ]
    header = ("rows", "trained on", "passes", "generate, s", "read alone, s", "train, s")
    header += ("label, s", "evaluate, s", "accuracy, %", "peak of workers, MB")
    header += ("peak of coordinator so far, MB",)
    text = "## Subset-train, full-predict, Zarr to Zarr\n\n"
    text += (
        "Trained on 100,000 rows in memory; where all rows follow, for at most "
        f"{POLISH} rounds. Workers have 1 GB each. Reading alone is two processes that load every "
        "chunk and do nothing with it.\n\n"
    )
    text += table(header, rows) + "\n"
    for polish, name in ((0, "trained on the subset"), (POLISH, "with rounds on all rows")):
        some = [r["times"] for r in found if r["polish"] == polish]
        totals = [t["train"] + t["label"] + t["evaluate"] for t in some]
        slopes = np.diff(np.log(totals)) / np.diff(np.log(sizes))
        text += (
            f"\nTrain, label and evaluate, {name}, grow as n^{slopes[-1]:.2f} between the two "
            f"largest sizes; growth from size to size is {', '.join(f'{s:.2f}' for s in slopes)}.\n"
        )
    return text, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e6, 1e7, 1e8])
    parser.add_argument("--rows", type=float, default=8e6, help="rows of the throughput part")
    parser.add_argument("--folder", default=None, help="where to put the stores")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        first = throughput(int(options.rows), Path(name))
        second = growth([int(s) for s in options.sizes], Path(name))
    command = "python pipelines/benchmarks/labelling.py"
    data = {"throughput": first[1], "growth": second[1]}
    write("labelling", "Labelling many rows", command, [first[0], second[0]], data)


if __name__ == "__main__":
    main()
