"""Passes, time and memory of nonparallel planes against the numbers of rows and of columns.

    python pipelines/benchmarks/planes_speed.py [--rows 125000 ...] [--columns 1250 ...]

Two normal clusters that ten of the columns separate by three standard deviations (several clusters:
their centres in these columns are drawn with that deviation), the gap of every convex problem
closed to 1e-4.  Each size runs in a process of its own, whose peak memory is taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from common import peak, table, write

ROWS = (125_000, 500_000, 2_000_000)
COLUMNS = (1_250, 5_000, 20_000)
FEW_COLUMNS, FEW_ROWS = 50, 400
"""The other side of each: columns of many rows, rows of many columns."""
CLUSTERS = (5, 10)
CLUSTER_ROWS, CLUSTER_COLUMNS = 500, 2_000
"""The size of rows in several clusters."""
INFORMATIVE, SHIFT, TOL = 10, 3.0, 1e-4


def made(n: int, d: int, k: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their clusters and the columns that separate these."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, size=n)
    X = rng.standard_normal(size=(n, d), dtype=np.float32)
    true = np.sort(rng.choice(d, INFORMATIVE, replace=False))
    centres = np.repeat([[0.0], [1.0]], INFORMATIVE, axis=1)
    if k > 2:
        centres = rng.normal(size=(k, INFORMATIVE))
    X[:, true] += (SHIFT * centres[y]).astype(np.float32)
    return X, y, true


def child(n: int, d: int, k: int) -> None:
    """Fit rows of that shape twice, for its memory and for its time, and print what it took.

    A small fit before compiles the loops.  Time is that of the second fit, for a virtual machine
    may take seconds to hand out the memory of the first.
    """
    from dmkc import NonparallelPlaneClustering
    from dmkc.metrics import accuracy

    warnings.simplefilter("ignore")
    NonparallelPlaneClustering(tol=TOL, random_state=0).fit(made(300, min(d, 100))[0])
    X, y, true = made(n, d, k)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten (Linux)
    before = peak()
    NonparallelPlaneClustering(k, tol=TOL, random_state=0).fit(X)
    more = peak() - before
    began = time.perf_counter()
    model = NonparallelPlaneClustering(k, tol=TOL, random_state=0).fit(X)
    seconds = time.perf_counter() - began
    selected = model.get_support(indices=True)
    found = {
        "seconds": seconds,
        "scans": int(model.n_scans_),
        "sample scans": sum(r["on"] == "sample" for r in model.history_),
        "gap": float(model.gap_),
        "rows, MB": X.nbytes / 1e6,
        "more memory, MB": more / 1e6,
        "accuracy": 100 * accuracy(y, model.labels_),
        "selected": len(selected),
        "found": len(np.intersect1d(selected, true)),
    }
    print(json.dumps(found))


def run(n: int, d: int, k: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", str(n), str(d), str(k)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(said.splitlines()[-1])
    print(n, d, k, found, flush=True)
    return found


def line(shape: tuple[int, int, int], f: dict[str, float]) -> list[str]:
    return [
        f"{shape[0]:,} x {shape[1]:,}",
        f"{shape[2]}",
        f"{f['seconds']:.1f}",
        f"{f['scans']}",
        f"{f['sample scans']}",
        f"{f['gap']:.0e}",
        f"{f['rows, MB']:.0f}",
        f"{f['more memory, MB']:.0f}",
        f"{f['accuracy']:.2f}",
        f"{f['found']} of {INFORMATIVE}",
        f"{f['selected']}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--columns", nargs="+", type=int, default=list(COLUMNS))
    parser.add_argument("--child", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(*options.child)
        return
    shapes = [(n, FEW_COLUMNS, 2) for n in options.rows]
    shapes += [(FEW_ROWS, d, 2) for d in options.columns]
    shapes += [(CLUSTER_ROWS, CLUSTER_COLUMNS, k) for k in CLUSTERS]
    data = [run(*shape) for shape in shapes]
    header = ["rows x columns", "clusters", "fit, s", "passes over all rows"]
    header += ["passes over the sample", "gap"]
    header += ["rows, MB", "more memory at peak, MB", "accuracy, %", "columns found", "selected"]
    lines = [line(shape, found) for shape, found in zip(shapes, data, strict=True)]
    summary = (
        "Defaults but for the gap; the sample has up to 8192 rows and several starts race on it. "
        f"{INFORMATIVE} columns separate the clusters, by {SHIFT:g} standard deviations each "
        "(several clusters: their centres have that deviation in these columns)."
    )
    command = "python pipelines/benchmarks/planes_speed.py"
    title = "Nonparallel planes: passes, time and memory"
    write("planes-speed", title, command, [summary, table(header, lines)], data)


if __name__ == "__main__":
    main()
