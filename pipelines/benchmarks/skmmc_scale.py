"""Time and memory of SparseKernelMMC against the number of rows.

    python pipelines/benchmarks/skmmc_scale.py [--sizes 250000 ...]

Generated rows (ringnorm, 20 columns), kernel columns made anew on every scan so that memory is that
of the rows; each size runs in a process of its own, of which the peak memory is taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from common import peak, table, write

SIZES = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)


def child(n: int) -> None:
    """Fit n rows, after a small fit that compiles the loops, and print what it took."""
    from dmkc import SparseKernelMMC
    from dmkc.datasets import make_ringnorm
    from dmkc.metrics import accuracy

    params = {"rank": 100, "feature_mode": "recompute", "dtype": "float32", "random_state": 0}
    params["scale"] = "standard"
    SparseKernelMMC(**params).fit(make_ringnorm(20_000, seed=1)[0].astype(np.float32))
    X, y = make_ringnorm(n, seed=0)
    X = np.asarray(X, dtype=np.float32)  # many rows are generated lazily
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten (Linux)
    before = peak()
    began = time.perf_counter()
    model = SparseKernelMMC(**params).fit(X)
    seconds = time.perf_counter() - began
    after = peak()
    found = {
        "seconds": seconds,
        "scans": model.n_scans_,
        "rows, MB": X.nbytes / 1e6,
        "more memory, MB": (after - before) / 1e6,
        "accuracy": 100 * accuracy(y, model.labels_),
    }
    print(json.dumps(found))


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of log value over log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return
    data = {}
    for n in options.sizes:
        command = [sys.executable, __file__, "--child", str(n)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        data[str(n)] = json.loads(said.splitlines()[-1])
        print(n, data[str(n)], flush=True)
    found = list(data.values())
    per_scan = [f["seconds"] / f["scans"] for f in found]
    slope = exponent(options.sizes, [f["seconds"] for f in found])
    slope_scan = exponent(options.sizes, per_scan)
    lines = []
    for n, f, each in zip(options.sizes, found, per_scan, strict=True):
        times = [f"{f['seconds']:.2f}", f["scans"], f"{1e3 * each:.0f}"]
        memory = [f"{f['rows, MB']:.0f}", f"{f['more memory, MB']:.0f}"]
        lines.append([f"{n:,}", *times, *memory, f"{f['accuracy']:.2f}"])
    header = ["rows", "fit, s", "scans", "per scan, ms", "rows, MB", "more memory at peak, MB"]
    summary = (
        f"Time grows as n^{slope:.3f} (per scan: n^{slope_scan:.3f}; aim: at most 1.05). Beyond "
        "what held the rows before the fit, peak memory rose by the column shown."
    )
    parts = [summary, table([*header, "accuracy, %"], lines)]
    command = "python pipelines/benchmarks/skmmc_scale.py"
    write("skmmc-scale", "SKMMC: time and memory against rows", command, parts, data)


if __name__ == "__main__":
    main()
