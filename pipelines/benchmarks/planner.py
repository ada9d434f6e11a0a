"""What `dmkc.plan` says of a fit, beside what the fit then takes.

    python pipelines/benchmarks/planner.py [--rows 200_000 500_000] [--methods mkc kmeans ...]

Every method, number of rows and generated data set is planned and then fitted with the same
parameters in the same process, labels included.  A fit that its plan expects to take longer than
--most seconds is not run; the page says which.  What is done is kept in --keep FILE, so that a run
that was ended goes on where it was.

A virtual machine may take long to get memory from its host.  This is no part of a plan, and so the
process takes memory once and keeps it (through settings of the C library, which are in the
environment of a process that this one turns into).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from common import table, write
from dmkc import plan
from dmkc.datasets import make_blobs, make_ringnorm
from dmkc.modelfile import ESTIMATORS
from subset_to_all import whole

METHODS = ("mkc", "kmeans", "mkkm", "skmmc", "odm", "planes")
SETS: dict[str, tuple[int, Any]] = {
    "ringnorm": (2, lambda n: make_ringnorm(n, seed=1)[0]),
    "blobs": (4, lambda n: make_blobs(n, 20, 4, seed=1)[0]),
}
KEEPING = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
"""Settings with which the GNU C library never gives memory back to the system."""
PIECE, PAGE = 256 << 20, 4096
AIM = 0.3
"""Relative error of the expected time that is aimed at."""


def take(n_bytes: int) -> float:
    """Seconds a GiB of taking memory, every page of it, and giving it back."""
    began = time.perf_counter()
    pieces = []
    for _ in range(-(-n_bytes // PIECE)):
        pieces.append(np.empty(PIECE, np.uint8))
        pieces[-1][::PAGE] = 1
    return (time.perf_counter() - began) / (len(pieces) * PIECE / 2**30)


@contextlib.contextmanager
def place(workers: int) -> Iterator[Client | None]:
    """Threads of this process, or a cluster of so many processes of one thread."""
    if not workers:
        yield None
        return
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def measure(method: str, k: int, X: np.ndarray, client: Any, most: float) -> dict[str, Any]:
    """A plan and, unless it expects more than `most` seconds, the fit."""
    model = ESTIMATORS[method](k, random_state=0, client=client)
    found = plan(X, model)
    result = {"plan": found.as_dict(), "real": None, "scans": None}
    if found.seconds <= most:
        began = time.perf_counter()
        model.fit(X)
        result |= {"real": time.perf_counter() - began, "scans": model.n_scans_}
    return result


def cells(result: dict[str, Any]) -> tuple[str, ...]:
    """Predicted, range, real, error, scans and the cost of the plan."""
    p, real = result["plan"], result["real"]
    said = (f"{p['seconds']:.2f} s", f"{p['seconds_low']:.2f} to {p['seconds_high']:.2f} s")
    low, scans, high = p["scans"]
    counted = f"{scans} ({low} to {high})"
    spent = f"{p['calibration_seconds']:.1f} s"
    if real is None:
        return (*said, "not run", "", "", counted, "", p["feature_mode"], spent)
    inside = "yes" if p["seconds_low"] <= real <= p["seconds_high"] else "no"
    error = f"{100 * (p['seconds'] / real - 1):+.0f} %"
    outcome = (f"{real:.2f} s", error, inside, counted, str(result["scans"]))
    return (*said, *outcome, p["feature_mode"], spent)


def summary(results: list[dict[str, Any]], most: float) -> str:
    """How many plans were near, in words."""
    done = [r for r in results if r["real"] is not None]
    if not done:
        return f"No fit was expected to take {most:g} s or less, so that none was run."
    errors = np.array([abs(r["plan"]["seconds"] / r["real"] - 1) for r in done])
    inside = sum(r["plan"]["seconds_low"] <= r["real"] <= r["plan"]["seconds_high"] for r in done)
    return (
        f"{np.sum(errors <= AIM)} of {len(done)} expected times are within {AIM:.0%} of the real "
        f"one (median error {np.median(errors):.0%}, largest {errors.max():.0%}); {inside} of "
        f"{len(done)} real times are in the range. {len(results) - len(done)} fit(s) were expected "
        f"to take more than {most:g} s and were not run."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=whole, default=[200_000, 500_000])
    parser.add_argument("--methods", nargs="+", choices=list(ESTIMATORS), default=list(METHODS))
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--workers", type=int, default=0, help="worker processes [0: threads]")
    parser.add_argument("--most", type=float, default=120.0, help="seconds of a fit at most")
    parser.add_argument("--name", default="planner", help="of the page")
    parser.add_argument("--keep", type=Path, help="where finished cases are kept")
    parser.add_argument("--gib", type=float, default=2.0, help="memory that is taken beforehand")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in KEEPING.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEPING})
    warnings.simplefilter("ignore")
    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    taking = [take(int(options.gib * 2**30)) for _ in range(2)]
    taking = kept.setdefault("taking", taking)
    print("taking memory, s/GiB:", *taking, flush=True)
    header = ("data", "rows", "method", "predicted", "range", "real", "error", "in range")
    header += ("scans predicted", "scans", "features", "planned in")
    lines, data = [], []
    with place(options.workers) as client:
        for name in options.sets:
            k, make = SETS[name]
            for n in options.rows:
                X = np.asarray(make(n))
                for method in options.methods:
                    case = f"{name} {n} {method}"
                    if case not in kept:
                        kept[case] = measure(method, k, X, client, options.most)
                        kept["load"] = os.getloadavg()[1]
                    result = kept[case]
                    if options.keep:
                        options.keep.write_text(json.dumps(kept))
                    data.append({"data": name, "rows": n, "method": method, **result})
                    lines.append((name, f"{n:,}", method, *cells(result)))
                    print(*lines[-1], sep=" | ", flush=True)
    where = f"{options.workers} worker processes" if options.workers else "threads of one process"
    text = (
        f"Default settings, {where}, rows in memory. Times are those of a fit with the labels of "
        "all rows; the error is that of the predicted time relative to the real one. All memory "
        f"had been taken before, at {taking[0]:.2f} s a GiB; taken again it cost {taking[1]:.2f} "
        "s a GiB. The first is no part of a plan. The load of the machine at the end was "
        f"{kept['load']:.1f}; other work at the same time makes both times uncertain.\n\n"
    )
    command = "python pipelines/benchmarks/planner.py --rows " + " ".join(map(str, options.rows))
    if options.workers:
        command += f" --workers {options.workers}"
    if list(options.methods) != list(METHODS):
        command += " --methods " + " ".join(options.methods)
    parts = [summary(data, options.most), text + table(header, lines)]
    write(options.name, "What a plan says, and what the fit takes", command, parts, data)


if __name__ == "__main__":
    main()
