"""Fits of many short rounds on two worker processes: as tasks, and asked of the workers directly.

    python pipelines/benchmarks/rounds.py [--rows 1e6] [--repeats N] [--peers PYTHON]

The same fits take turns: with every scan as tasks, with short scans asked for directly, and beside
them scikit-learn's k-means of the rows in memory and dask-ml's of the rows on the workers.  Labels
are computed.  Results are compared to the bit.  --peers names a Python that has dask-ml, which is
left out where it is not installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.cluster import KMeans as SklearnKMeans

from common import table, write
from dmkc import KMeans, MultipleKernelClustering
from dmkc.datasets import make_ringnorm
from dmkc.scan import cluster, rounds
from dmkc.scan.base import Scan
from dmkc.scan.cluster import ClusterEngine
from dmkc.scan.grid import Grid
from graphs_cells import in_process
from peers import quiet

CHUNKS, CLUSTERS = 16, 8
WAYS = {"as tasks": 0.0, "directly": rounds.SHORT_SECONDS}


class Nothing(Scan):
    """A scan without work."""

    name = "nothing"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Any:
        return (0,)


def seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = job()
    return time.perf_counter() - began, found


def bare_rounds(client: Client, repeats: int) -> dict[str, float]:
    """Median milliseconds of a scan that does nothing."""
    engine, grid = ClusterEngine(client), Grid(2, 1, 0)
    blocks = engine.hold(np.asarray, da_blocks(), "nothing")
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(20 * repeats + 2):
        for way, limit in WAYS.items():
            cluster.SHORT_SECONDS = limit
            times[way].append(seconds(lambda: engine.scan(Nothing(), blocks, grid))[0])
    return {way: 1e3 * float(np.median(found[2:])) for way, found in times.items()}


def da_blocks() -> Any:
    from dmkc.data import as_rows

    return as_rows(da.zeros((2, 1), chunks=(1, 1))).blocks(1)


def dask_ml(X: np.ndarray, python: str) -> dict[str, Any]:
    """One fit of dask-ml in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        script = Path(__file__).with_name("kmeans_whole_fit.py")
        return in_process([python, script, "dask-ml", path, 2, 300], 600.0)


def labelled(model: Any) -> Any:
    model.labels_ = np.asarray(model.labels_)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args()
    quiet()
    warnings.simplefilter("ignore")
    X = np.ascontiguousarray(make_ringnorm(int(options.rows), seed=0, chunks=None)[0], np.float32)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as d,
    ):
        bare = bare_rounds(d, options.repeats)
        D = da.from_array(X, chunks=(len(X) // CHUNKS, X.shape[1])).persist()
        fits: dict[str, Callable[[], Any]] = {
            f"KMeans, {CLUSTERS} clusters": lambda: KMeans(CLUSTERS, n_init=1, random_state=0).fit(
                D
            ),
            "MultipleKernelClustering": lambda: MultipleKernelClustering(random_state=0).fit(D),
        }
        found: dict[tuple[str, str], list[float]] = {}
        ends: dict[tuple[str, str], Any] = {}
        first: dict[str, float] = {}
        for turn in range(options.repeats + 1):
            for name, fit in fits.items():
                for way, limit in WAYS.items():
                    cluster.SHORT_SECONDS = limit
                    took, ends[name, way] = seconds(lambda fit=fit: labelled(fit()))
                    if turn == 0:
                        first.setdefault(name, took)
                    else:
                        found.setdefault((name, way), []).append(took)
            for k in (2, CLUSTERS):
                took, _ = seconds(lambda k=k: SklearnKMeans(k, n_init=1, random_state=0).fit(X))
                if turn > 0:
                    found.setdefault((f"scikit-learn, {k} clusters", ""), []).append(took)
        cluster.SHORT_SECONDS = rounds.SHORT_SECONDS
    peer = dask_ml(X, options.peers)
    if "failed" not in peer:
        found["dask-ml KMeans, 2 clusters, rows sent to two workers", ""] = [peer["clock"]]
    lines = []
    for name in fits:
        tasks, direct = (float(np.median(found[name, way])) for way in WAYS)
        one, other = (ends[name, way] for way in WAYS)
        same = np.array_equal(one.labels_, other.labels_) and one.objective_ == other.objective_
        lines.append(
            (name, one.n_scans_, f"{first[name]:.2f}", f"{tasks:.2f}", f"{direct:.2f}",
             f"{direct / tasks:.2f}", "yes" if same else "NO")
        )  # fmt: skip
    beside = [(name, f"{np.median(t):.2f}") for (name, way), t in found.items() if not way]
    text = (
        f"{len(X):,} x {X.shape[1]} float32 rows held by two worker processes, {CHUNKS} chunks; "
        f"medians of {options.repeats} fits in turns, labels computed, dask-ml once. A round that "
        f"does nothing takes {bare['as tasks']:.1f} ms as tasks and {bare['directly']:.1f} ms "
        "directly. The first fit of the cluster is given apart."
    )
    header = ("fit", "passes", "first, s", "as tasks, s", "directly, s", "ratio", "same bits")
    command = "python pipelines/benchmarks/rounds.py"
    if options.repeats != parser.get_default("repeats"):
        command += f" --repeats {options.repeats}"
    if options.peers != sys.executable:
        command += " --peers PYTHON"
    parts = [text, table(header, lines), "Beside them:", table(("fit", "s"), beside)]
    data = {"bare, ms": bare, "fits": {f"{n}, {w}": t for (n, w), t in found.items()}}
    write("rounds", "Short rounds on a cluster", command, parts, data)


if __name__ == "__main__":
    main()
