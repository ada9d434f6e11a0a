"""How fast scans, features and whole fits are, as ratios within one run.

    python pipelines/benchmarks/speed.py [--quick] [--parts scan columns fit batch master]

Ringnorm rows with 20 columns; linear, polynomial and Gaussian kernel at rank 100.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from distributed import Client, LocalCluster

from common import interleaved, table, write
from dmkc.clusterers.fits import run_together
from dmkc.clusterers.margin.bundle import MarginSettings
from dmkc.clusterers.margin.cccp import margin_fit
from dmkc.clusterers.margin.geometry import BinaryMargin
from dmkc.clusterers.prepare import FeatureSettings, Prepared, prepare
from dmkc.data import RowRecord, as_rows
from dmkc.datasets import make_ringnorm
from dmkc.kernels import Gaussian, Linear, Polynomial
from dmkc.master import Cuts, MasterProblem, solve
from dmkc.scan.cuts import Affine, CutRequest, CutScan
from dmkc.scan.engine import one_blas_thread, open_engine
from peers import fit_table

BANK = (Linear(), Polynomial(2), Gaussian(0.5))
THREADS = 2


def prepared(X: np.ndarray, client: Client | None = None) -> Prepared:
    settings = FeatureSettings(
        BANK, "standard", 100, "uniform", "float32", "persist", None, 8192, 0
    )
    return prepare(as_rows(X), open_engine(client), settings, 2)


def one_scan(p: Prepared, n_models: int = 1) -> CutScan:
    """Cuts of as many fits as models, at random models of a typical size."""
    rng = np.random.default_rng(1)
    size = p.features.offsets[-1]

    def model() -> Affine:
        return p.features.to_stored(rng.normal(size=size) / np.sqrt(size), 0.0)

    requests = [CutRequest(model(), (model(),)) for _ in range(n_models)]
    return CutScan.of(requests, p.all_rows.dtype)


def scan_part(sizes: list[int], repeats: int) -> tuple[str, dict]:
    rows, data, seconds = [], {}, {"threads": {}, "processes": {}}
    limits = {100_000: ("10 ms", "25 ms"), 1_000_000: ("2x", "3x"), 4_000_000: ("1.5x", "2x")}
    pool = ThreadPoolExecutor(THREADS)
    for n in sizes:
        X, _ = make_ringnorm(n, seed=0, chunks=None)
        X = np.asarray(X)
        for where in ("threads", "processes"):
            if where == "threads":
                p = prepared(X)
                blocks = [b.value.rows for b in p.all_rows.blocks]
                read = partial(lambda pool, blocks: list(pool.map(np.sum, blocks)), pool, blocks)
                scan = one_scan(p)
                times = interleaved(
                    {"scan": lambda p=p, s=scan: p.all_rows.run(s), "read": read}, repeats
                )
                del blocks, read
            else:
                with (
                    LocalCluster(
                        n_workers=THREADS, threads_per_worker=1, dashboard_address=None
                    ) as c,
                    Client(c) as client,
                ):
                    p = prepared(X, client)
                    scan = one_scan(p)
                    times = processes_times(p, scan, client, repeats)
                    p.all_rows.blocks = []
            del p
            seconds[where][n] = times["scan"]
            ratio = times["scan"] / times["read"]
            limit = limits.get(n, ("", ""))[0 if where == "threads" else 1]
            rows.append(
                (
                    f"{n:,}",
                    where,
                    f"{1e3 * times['scan']:.1f}",
                    f"{1e3 * times['read']:.1f}",
                    f"{ratio:.2f}",
                    limit,
                )
            )
            data[f"{where} {n}"] = times
            print(rows[-1], flush=True)
    text = "## One scan of one model against reading the same features once (`sum`)\n\n"
    text += table(("rows", "on", "scan, ms", "read, ms", "ratio", "aim at most"), rows)
    lines = []
    for where, found in seconds.items():
        ns = sorted(found)
        slope = growth(ns, [found[n] for n in ns])
        lines.append(f"{where}: {slope:.3f}")
        data[f"growth {where}"] = slope
    text += (
        "\n\nTime of a scan grows as n^s between the two largest sizes, less the latency of the "
    )
    text += f"smallest: s = {', '.join(lines)} (aim: at most 1.05)."
    return text, data


def growth(ns: list[int], seconds: list[float]) -> float:
    """Exponent between the last two sizes after taking off a latency that fits the first two."""
    if len(ns) < 3:
        return float("nan")
    rate = (seconds[-1] - seconds[0]) / (ns[-1] - ns[0])
    latency = max(seconds[0] - rate * ns[0], 0.0)
    a, b = seconds[-2] - latency, seconds[-1] - latency
    return float(np.log(b / a) / np.log(ns[-1] / ns[-2]))


def processes_times(p: Prepared, scan: CutScan, client: Client, repeats: int) -> dict[str, float]:
    """The scan's wall time, and the longest time a worker takes to sum its own blocks."""
    homes: dict[str, list] = {}
    for block in p.all_rows.blocks:
        homes.setdefault(block.home, []).append(block.future)
    counter = iter(range(10**6))

    def read() -> float:
        parts = [
            client.submit(timed_sum, futures, key=f"read-{next(counter)}", workers=[home])
            for home, futures in homes.items()
        ]
        return max(client.gather(parts))

    p.all_rows.run(scan), read()
    scans, reads = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        p.all_rows.run(scan)
        scans.append(time.perf_counter() - began)
        reads.append(read())
    return {"scan": float(np.median(scans)), "read": float(np.median(reads))}


def timed_sum(blocks: list[RowRecord]) -> float:
    began = time.perf_counter()
    for block in blocks:
        block.rows.sum()
    return time.perf_counter() - began


def columns_part(n: int, repeats: int) -> tuple[str, dict]:
    X, _ = make_ringnorm(n, seed=0, chunks=None)
    X = np.asarray(X)
    p = prepared(X)
    maker, grid, engine = p.features.plan, p.all_rows.grid, p.engine
    blocks = as_rows(X).blocks(grid.block_rows)
    pool = ThreadPoolExecutor(THREADS)
    del p

    def bare() -> None:
        with one_blas_thread():
            list(pool.map(lambda b: maker(b.load()), blocks))

    times = interleaved(
        {"hold": lambda: engine.hold(maker, blocks, "columns"), "bare": bare}, repeats
    )
    ratio = times["hold"] / times["bare"]
    text = f"## Raw kernel columns of {n:,} rows against the bare function\n\n" + table(
        ("through the engine, s", "bare, two threads, s", "ratio", "aim at most"),
        [(f"{times['hold']:.3f}", f"{times['bare']:.3f}", f"{ratio:.2f}", "1.5")],
    )
    return text, times


def batch_part(n: int, repeats: int) -> tuple[str, dict]:
    X, _ = make_ringnorm(n, seed=0, chunks=None)
    p = prepared(np.asarray(X))
    scans = {f"{b} models": one_scan(p, b) for b in (1, 2, 4, 8, 16)}
    jobs = {name: (lambda s=s: p.all_rows.run(s)) for name, s in scans.items()}
    times = interleaved(jobs, repeats)
    ratios = [(name, f"{1e3 * t:.1f}", f"{t / times['1 models']:.2f}") for name, t in times.items()]
    text = f"## A batch of models in one scan of {n:,} rows\n\n"
    text += table(("batch", "ms", "against one"), ratios) + "\n\nAim: sixteen cost at most 5x one."
    together, alone = (_fits(p, batch) for batch in (True, False))
    text += (
        f"\n\nSixteen fits from random labelings on all rows, features held, as one batch: "
        f"{together:.2f} s; one after the other: {alone:.2f} s; ratio {alone / together:.2f} "
        "(aim: at least 3)."
    )
    return text, {**times, "16 fits together": together, "16 fits alone": alone}


def _fits(p: Prepared, batch: bool) -> float:
    """Seconds of sixteen fits on all rows that start from random models."""
    rng = np.random.default_rng(2)
    size = p.features.offsets[-1]
    geometry = BinaryMargin(p.features, np.zeros(size))
    settings = MarginSettings(75.0, 0.3, 2.0, 1e-3, 1e-3, 20, "clarabel")
    points = [(rng.normal(size=size) / np.sqrt(size), 0.0) for _ in range(16)]
    fits = [
        margin_fit(geometry, geometry.label(point, np.ones(2) / 2), settings, lambda step: None)
        for point in points
    ]
    began = time.perf_counter()
    if batch:
        run_together(fits, p.all_rows)
    else:
        for fit in fits:
            run_together([fit], p.all_rows)
    return time.perf_counter() - began


def master_part(repeats: int) -> tuple[str, dict]:
    rows, data = [], {}
    for n_cuts in (5, 10, 20):
        rng = np.random.default_rng(n_cuts)
        cuts = Cuts(
            rng.uniform(0.3, 1, n_cuts),
            rng.normal(size=n_cuts) * 0.1,
            rng.normal(size=(n_cuts, 300)) * 0.05,
        )
        problem = MasterProblem(cuts, (0, 100, 200, 300), np.zeros(300), 30.0, 0.3, 2.0)
        times = interleaved({s: partial(solve, problem, s) for s in ("clarabel", "cvxpy")}, repeats)
        data[str(n_cuts)] = times
        rows.append(
            (
                n_cuts,
                f"{1e3 * times['clarabel']:.2f}",
                f"{1e3 * times['cvxpy']:.1f}",
                f"{times['cvxpy'] / times['clarabel']:.1f}",
            )
        )
    text = (
        "## The master problem: dual solved directly against the paper's cone program in cvxpy\n\n"
    )
    text += table(
        ("cuts, 3 kernels x 100", "direct, ms", "cvxpy, ms", "ratio (aim: at least 10)"), rows
    )
    return text, data


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--parts", nargs="+", default=["scan", "columns", "fit", "batch", "master"])
    options = parser.parse_args()
    large = 200_000 if options.quick else 1_000_000
    sizes = [100_000, 200_000, 400_000] if options.quick else [100_000, 1_000_000, 4_000_000]
    repeats = 5 if options.quick else 15
    made = {
        "scan": lambda: scan_part(sizes, repeats),
        "columns": lambda: columns_part(large, max(5, repeats // 2)),
        "fit": lambda: fit_table(large, options.quick),
        "batch": lambda: batch_part(large, max(5, repeats // 2)),
        "master": lambda: master_part(31),
    }
    parts, data = [], {}
    for name in options.parts:
        text, data[name] = made[name]()
        print(text, flush=True)
        parts.append(text)
    command = "python pipelines/benchmarks/speed.py" + (" --quick" if options.quick else "")
    if options.parts != parser.get_default("parts"):
        command += " --parts " + " ".join(options.parts)
    if not options.quick:
        write(
            "speed"
            if options.parts == parser.get_default("parts")
            else "speed-" + "-".join(options.parts),
            "Speed",
            command,
            parts,
            data,
        )


if __name__ == "__main__":
    main()
