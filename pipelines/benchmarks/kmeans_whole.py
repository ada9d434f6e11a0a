"""Whole fits of k-means beside scikit-learn and faiss: few and many clusters, short and wide rows.

    python pipelines/benchmarks/kmeans_whole.py [--peers PYTHON] [--repeats N] [--quick]

--peers names a Python that has faiss; where it is not installed, it is left out.  Every fit is a
process of its own on two threads, from starts of its own and with the same number of steps over all
rows; fits take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common import table, write
from dmkc.datasets import make_ringnorm
from graphs_cells import in_process
from kmeans_whole_fit import METHODS

STEPS = 25
"""As faiss does, unless told otherwise."""
CASES = ((1_000_000, 20, 8), (1_000_000, 20, 100), (100_000, 784, 100), (1_000_000, 20, 1000))
"""Rows, columns, clusters."""
ONCE = 2 * 10**9
"""Products of a step from which on a fit is run once: scikit-learn's takes minutes."""


def rows_of(n: int, d: int) -> np.ndarray:
    """Ringnorm, or for wide rows a mixture that a thirtieth of the columns explains."""
    if d == 20:
        return np.ascontiguousarray(make_ringnorm(n, seed=0, chunks=None)[0], dtype=np.float32)
    rng = np.random.default_rng(0)
    centres, directions = 3.0 * rng.normal(size=(60, d // 30)), rng.normal(size=(d // 30, d))
    inside = centres[rng.integers(0, 60, size=n)] + rng.normal(size=(n, d // 30))
    return (inside @ directions / 5.0 + rng.normal(size=(n, d))).astype(np.float32)


def measured(
    path: Path, k: int, repeats: int, peers: str, limit: float
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in METHODS}
    script = Path(__file__).with_name("kmeans_whole_fit.py")
    for _ in range(repeats):
        for method, fits in found.items():
            python = peers if method == "faiss" else sys.executable
            fits.append(in_process([python, script, method, path, k, STEPS], limit))
            print(k, method, fits[-1], file=sys.stderr, flush=True)
    return found


def lines_of(case: tuple[int, int, int], found: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """A line for every method, ratios to ours and to the lowest inertia."""
    good = {m: [f for f in fits if "failed" not in f] for m, fits in found.items()}
    medians = {
        m: {key: float(np.median([f[key] for f in fits])) for key in fits[0]}
        for m, fits in good.items()
        if fits
    }
    lowest = min((each["inertia"] for each in medians.values()), default=1.0)
    mine = medians.get("dmkc", {"clock": np.nan, "processor": np.nan})
    n, d, k = case
    lines: list[Any] = []
    for method, fits in found.items():
        if method not in medians:
            lines.append((f"{n:,} x {d}", k, method, fits[0]["failed"], "", "", "", ""))
            continue
        one = medians[method]
        lines.append(
            (
                f"{n:,} x {d}",
                k,
                method,
                f"{one['clock']:.2f}",
                f"{one['processor']:.2f}",
                f"{mine['clock'] / one['clock']:.2f}",
                f"{mine['processor'] / one['processor']:.2f}",
                f"{100 * (one['inertia'] / lowest - 1):.2f} %",
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a fit")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, and no page")
    options = parser.parse_args()
    lines, data = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for n, d, k in CASES:
            n = n // 10 if options.quick else n
            path = Path(folder) / "rows.npy"
            np.save(path, rows_of(n, d))
            repeats = 1 if n * d * k > ONCE or options.quick else options.repeats
            found = measured(path, k, repeats, options.peers, options.limit)
            data[f"{n} x {d}, {k} clusters"] = found
            lines += lines_of((n, d, k), found)
    header = (
        "rows", "clusters", "method", "s", "processor s", "dmkc / it, s", "dmkc / it, processor s",
        "inertia above least",
    )  # fmt: skip
    text = (
        f"float32 rows in memory, two threads, {STEPS} steps over all rows, each from a start of "
        "its own: scikit-learn's k-means++ on all rows, faiss's random rows, dmkc's k-means++ and "
        "k-means on a sample. Times are those of a whole fit with labels. "
        f"Medians of {options.repeats} fits in turns; one of wide rows and "
        "of 1000 clusters."
    )
    if options.quick:
        print(table(header, lines))
        return
    command = "python pipelines/benchmarks/kmeans_whole.py --peers PYTHON"
    if options.repeats != parser.get_default("repeats"):
        command += f" --repeats {options.repeats}"
    write("kmeans-whole", "Whole fits of k-means", command, [text, table(header, lines)], data)


if __name__ == "__main__":
    main()
