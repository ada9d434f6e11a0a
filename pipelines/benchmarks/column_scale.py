"""What to divide columns by, for the methods of this library, without labels.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/column_scale.py [--sets iris ...] [--state F]

True labels are used to measure only.  Every method is fitted with its default parameters but for
`scale`: "standard", None, and "if-mixed", which is one of both by the columns' standard deviations.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dmkc
from common import table, write
from dmkc.kernels.tiles import MIXED, mixed_units
from dmkc.metrics import accuracy
from selection_sets import SETS, prepared

METHODS: dict[str, Any] = {
    "mkc": dmkc.MultipleKernelClustering,
    "skmmc": dmkc.SparseKernelMMC,
    "odm": dmkc.MarginDistributionClustering,
    "kmeans": dmkc.KMeans,
    "kernel-kmeans": dmkc.KernelKMeans,
    "mkkm": dmkc.MultipleKernelKMeans,
}
ROWS, COLUMNS = 1000, 2500
"""Of larger sets the first rows; wider sets are left out."""
FIXED = ("standard", None)


def measure(name: str) -> dict[str, Any] | None:
    X, y = prepared(name)
    if X.shape[1] > COLUMNS:
        return None
    X, y = X[:ROWS], y[:ROWS]
    m, spread = int(y.max()) + 1, X.std(axis=0)
    found: dict[str, Any] = {"mixed": mixed_units(spread[spread > 0]), "clusters": m}
    for method, make in METHODS.items():
        found[method] = [
            100 * accuracy(y, np.asarray(make(m, scale=scale, random_state=0).fit(X).labels_))
            for scale in FIXED
        ]
    return found


def text_of(data: dict[str, Any]) -> list[str]:
    mixed = [d for d in data.values() if d["mixed"]]
    shared = [d for d in data.values() if not d["mixed"]]
    rows = []
    for method in METHODS:
        cells: list[str] = []
        for group in (mixed, shared):
            both = np.array([d[method] for d in group])
            gain = both[:, 1] - both[:, 0]
            cells += [f"{value:.1f}" for value in both.mean(axis=0)]
            cells.append(f"{(gain > 1).sum()} / {(gain < -1).sum()}")
        chosen = [d[method][0 if d["mixed"] else 1] for d in data.values()]
        cells += [f"{np.mean([d[method][k] for d in data.values()]):.1f}" for k in (0, 1)]
        rows.append([method, *cells, f"{np.mean(chosen):.1f}"])
    header = ["method"]
    for title in (f"mixed units ({len(mixed)} sets)", f"one unit ({len(shared)})"):
        header += [f"{title}: standard", "None", "better / worse by a point"]
    header += ["all: standard", "None", "if-mixed"]
    each = [
        (
            name,
            "mixed" if d["mixed"] else "one",
            *(" / ".join(f"{value:.1f}" for value in d[method]) for method in METHODS),
        )
        for name, d in data.items()
    ]
    about = (
        "Accuracy in % by best matching, default parameters but for `scale`. Units are **mixed** "
        f"where the largest standard deviation of a column is more than {MIXED:g} times the "
        "median. Where they are, dividing helps "
        "or not by the set; where columns share a unit it harms most methods, for columns that "
        "hardly vary (the margins of a picture) then weigh as much as others. **if-mixed** divides "
        f"in the first case alone. Sets have at most {ROWS:,} rows and {COLUMNS:,} columns here."
    )
    return [about, table(header, rows), table(("set", "units", *METHODS), each)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--state", type=Path, default=Path("column-scale-state.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = json.loads(options.state.read_text()) if options.state.exists() else {}
    for name in options.sets:
        if name not in kept:
            kept[name] = measure(name)
            options.state.write_text(json.dumps(kept))
            print(name, kept[name], flush=True)
    data = {name: kept[name] for name in options.sets if kept[name] is not None}
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/column_scale.py"
    write("column-scale", "What to divide columns by", command, text_of(data), data)


if __name__ == "__main__":
    main()
