"""Training on a few hundred rows against training on all of them.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/subsets.py [--sets letterAB ...] [--seeds 10]

The data sets and subset sizes of the paper's comparison (letter A/B, satellite and letter A-D with
500 training rows, MNIST 0-4 with 1000).  Every figure is the accuracy on *all* rows; no parameter
is chosen by labels.  A seed changes the sample, the landmarks and the start of every fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from accuracy import TASKS, k_means
from common import left_out, one_by_one, table, write
from dmkc import MultipleKernelClustering
from dmkc.metrics import accuracy

TRAIN_ROWS = {"letterAB": 500, "satellite": 500, "letterABCD": 500, "mnist01234": 1000}
WAYS: dict[str, dict[str, Any]] = {
    "all rows": {},
    "subset": {"train_rows": True},
    "subset, then 3 rounds on all rows": {"train_rows": True, "polish": 3},
}


def measure(name: str, scale: str | None, seeds: int) -> dict[str, Any]:
    """Accuracies of every way and seed, with the seconds they took."""
    X, y = TASKS[name][0]()
    _, y = np.unique(y, return_inverse=True)
    m = int(y.max()) + 1
    found: dict[str, Any] = {"rows": len(X), "columns": X.shape[1], "clusters": m}
    found["k-means"] = k_means(X, y, m)[0]
    for way, options in WAYS.items():
        chosen = options | ({"train_rows": TRAIN_ROWS[name]} if options else {})
        began = time.perf_counter()
        found[way] = [
            100
            * accuracy(
                y,
                MultipleKernelClustering(m, scale=scale, random_state=seed, **chosen)
                .fit(X)
                .labels_,
            )
            for seed in range(seeds)
        ]
        found[f"{way}, seconds"] = (time.perf_counter() - began) / seeds
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(TRAIN_ROWS), choices=list(TRAIN_ROWS))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys = [f"{name}, {scale}" for name in options.sets for scale in ("standard", None)]

    def one(key: str) -> dict[str, Any]:
        name, scale = key.split(", ")
        return measure(name, None if scale == "None" else scale, options.seeds)

    data, absent = one_by_one("subsets", keys, one, f"{options.seeds} seeds")
    lines = []
    for key, found in data.items():
        name, scale = key.split(", ")
        cells = [
            f"{np.mean(found[way]):.2f} ± {np.std(found[way]):.2f} "
            f"({found[f'{way}, seconds']:.1f} s)"
            for way in WAYS
        ]
        change = np.mean(found["subset"]) - np.mean(found["all rows"])
        size = f"{TRAIN_ROWS[name]:,} of {found['rows']:,}"
        kind = "none" if scale == "None" else scale
        lines.append((name, size, kind, *cells, f"{change:+.2f}", f"{found['k-means']:.2f}"))
    header = ("data", "training rows", "scaling", *WAYS)
    header += ("subset less all rows, points", "k-means (oracle scaling)")
    text = (
        f"Accuracy in % on all rows, mean ± standard deviation over {options.seeds} seeds, with "
        "the seconds of a fit. Default settings; labels are used for nothing but the accuracy.\n\n"
    )
    command = f"DMKC_DATA_DIR=... python pipelines/benchmarks/subsets.py --seeds {options.seeds}"
    parts = [text + table(header, lines), *left_out(absent)]
    write("subsets", "Training on a subset", command, parts, data)


if __name__ == "__main__":
    main()
