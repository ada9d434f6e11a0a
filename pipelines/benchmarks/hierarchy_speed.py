"""Time of hierarchical kernel k-means: against its own n x n form, and as rows grow.

python pipelines/benchmarks/hierarchy_speed.py [--rows 1e4 1e5 1e6] [--whole 2000]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from common import table, write
from dmkc import HierarchicalKernelKMeans
from dmkc.datasets import make_ringnorm

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "clusterers"))


def fit(X: Any, **params: Any) -> tuple[float, HierarchicalKernelKMeans]:
    began = time.perf_counter()
    model = HierarchicalKernelKMeans(2, random_state=0, **params).fit(X)
    return time.perf_counter() - began, model


def whole_matrices(X: np.ndarray, model: HierarchicalKernelKMeans) -> float:
    """Seconds of one draw and one sweep on n x n matrices, up to the partition."""
    from direct_kernels import hierarchy, standardised, unit_kernels

    began = time.perf_counter()
    kernels = unit_kernels(model.kernels_, standardised(X))
    hierarchy(kernels, 2, (8, 4), [w > 0 for w in model.connections_[0]], 0.01, 1)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=float, default=[1e4, 1e5, 1e6])
    parser.add_argument(
        "--whole", type=int, default=0, help="rows of the n x n comparison; 0: none"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X = np.asarray(make_ringnorm(int(max([*options.rows, options.whole])), seed=0, chunks=None)[0])
    fit(X[:1000])
    rows, data, parts = [], {}, []
    for n in map(int, options.rows):
        seconds, model = fit(X[:n])
        peak = psutil.Process().memory_info().rss / 2**30
        data[str(n)] = {"seconds": seconds, "rss": peak}
        rows.append((f"{n:,}", f"{seconds:.1f}", f"{peak:.1f}", model.n_scans_))
    parts.append(table(("rows x 20, 12 kernels", "fit, s", "memory, GiB", "scans"), rows))
    if len(rows) > 1:
        sizes, times = np.array(options.rows), np.array([d["seconds"] for d in data.values()])
        slope = float(np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0]))
        data["exponent"] = slope
        parts.append(f"Time grows as n^{slope:.2f} from the smallest to the largest (aim: 1.05).")
    if options.whole:
        few = X[: options.whole]
        seconds, model = fit(few, n_masks=1, max_iter=1)
        theirs = whole_matrices(few, model)
        data["whole"] = {"rows": options.whole, "reduced": seconds, "whole": theirs}
        parts.append(
            f"One draw and one sweep of {options.whole:,} rows: {seconds:.2f} s for the whole fit, "
            f"{theirs:.1f} s on n x n matrices without k-means: {theirs / seconds:.0f}x (aim: 50x)."
        )
    command = "python pipelines/benchmarks/hierarchy_speed.py"
    write("hierarchy-speed", "Speed of hierarchical kernel k-means", command, parts, data)


if __name__ == "__main__":
    main()
