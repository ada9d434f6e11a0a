"""Forest cover types (581,012 x 54) from the shell, beside scikit-learn's k-means.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/covertype.py [--folder DIR]

Every method is one command in a process of its own, from reading the rows to written labels, so
that times and peak memory are comparable.  Labels are read only to measure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from common import peak, table, write
from dmkc.datasets import load
from dmkc.metrics import accuracy, adjusted_rand_index, normalized_mutual_info, rand_index

SKLEARN = """
import sys, numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.preprocessing import StandardScaler
X = StandardScaler().fit_transform(np.load(sys.argv[1]))
labels = {method}({m}, n_init=10, random_state=0).fit_predict(X)
np.save(sys.argv[2], labels)
"""


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak memory (bytes) of a command."""
    began, most = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        most = max(most, peak(process.pid))
        time.sleep(0.05)
    if process.returncode != 0:
        raise RuntimeError(f"{command[:6]} failed")
    return time.perf_counter() - began, most


def commands(m: int, folder: Path) -> dict[str, tuple[list[str], Path]]:
    """Each method's command and where it leaves the labels."""
    rows = str(folder / "rows.npy")
    found: dict[str, tuple[list[str], Path]] = {}
    for method in ("KMeans", "MiniBatchKMeans"):
        out = folder / f"{method}.npy"
        code = SKLEARN.format(method=method, m=m)
        found[f"scikit-learn {method}"] = ([sys.executable, "-c", code, rows, str(out)], out)
    for name, more in {
        "dmkc fit": [],
        "dmkc fit --train-rows 20000": ["--train-rows", "20000"],
    }.items():
        out = folder / name.replace(" ", "-")
        command = [sys.executable, "-m", "dmkc", "fit", rows, "--method", "mkc"]
        command += ["--clusters", str(m), "--seed", "0"]
        found[name] = ([*command, *more, "--out", str(out)], out / "labels.zarr")
    return found


def measure(m: int, folder: Path, y: np.ndarray) -> list[dict[str, Any]]:
    results = []
    for name, (command, out) in commands(m, folder).items():
        seconds, peak = run(command)
        labels = np.load(out) if out.suffix == ".npy" else zarr.open_array(str(out))[:]
        results.append(
            {
                "method": name,
                "clusters": m,
                "seconds": seconds,
                "peak": peak,
                "accuracy": accuracy(y, labels),
                "rand": rand_index(y, labels),
                "adjusted rand": adjusted_rand_index(y, labels),
                "nmi": normalized_mutual_info(y, labels),
            }
        )
        print(results[-1], flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", default=None, help="where to put rows and runs")
    options = parser.parse_args()
    data = load("covertype")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        np.save(folder / "rows.npy", X)
        del X
        found = measure(len(np.unique(y)), folder, y)
    lines = [
        (
            r["method"],
            f"{r['seconds']:.1f}",
            f"{r['peak'] / 1e6:,.0f}",
            f"{100 * r['accuracy']:.2f}",
            *(f"{r[k]:.3f}" for k in ("rand", "adjusted rand", "nmi")),
        )
        for r in found
    ]
    header = ("command", "seconds", "peak memory, MB", "accuracy, %", "Rand")
    text = table((*header, "adjusted Rand", "normalised mutual information"), lines)
    share = np.bincount(np.unique(y, return_inverse=True)[1]).max() / len(y)
    text += (
        f"\n\n7 clusters, standardised columns; {len(y):,} x 54 float64 rows "
        f"({len(y) * 54 * 8 / 1e6:,.0f} MB) read from a .npy file. Seconds are those of the whole "
        "process: starting Python, reading, fitting, writing labels (dmkc also writes the model "
        f"and a report). One class alone holds {100 * share:.1f} % of the rows."
    )
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/covertype.py"
    write("covertype", "Forest cover types from the shell", command, [text], found)


if __name__ == "__main__":
    main()
