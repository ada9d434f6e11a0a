"""Clustering by neighbour graphs beside its peers: how good, and in how many seconds.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/graphs.py [--peers PYTHON] \\
        [--sets mnist-whole ...] [--methods k-means ...] [--seeds 0 1 2 3 4] [--out kept] [--page]

Every fit is a process of its own and one JSON line in OUT/graphs.jsonl, so that a run that was
stopped goes on where it was.  --peers names a Python that has secuer (with scanpy, igraph and
louvain), genieclust and dask-ml; what is not installed is left out and named.  --page only writes
the page.  All methods are told the number of classes, and no set has settings of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import graphs_page
from accuracy import digits, folder
from all_methods_sets import SETS as SAMPLED
from all_methods_sets import rows_of
from graphs_cells import Cells, fit_in_memory
from graphs_fit import METHODS

ROWS = 2000
"""The sets of all_methods.py are sampled to this many rows, as there."""
SMALL = 10_000
"""Rows up to which methods whose cost grows with their square take part."""
SQUARE = ("spectral", "dask-ml")
SEEDLESS = ("genie",)
OURS = ("dmkc spectral", "dmkc consensus")
"""They scale columns by their own default, so that they are given raw ones only."""
WHOLE: dict[str, Any] = {
    "semeion-whole": lambda: folder("semeion"),
    "digits-whole": lambda: digits(*range(10)),
    "satellite-whole": lambda: folder("satellite"),
    "letter-whole": lambda: folder("letter"),
    "mnist-whole": lambda: folder("mnist"),
    "covertype-whole": lambda: folder("covertype"),
}
"""All rows and columns, by size."""
NAMES = [*SAMPLED, *WHOLE]


def rows_and_classes(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in SAMPLED:
        return rows_of(name, ROWS)
    X, y = WHOLE[name]()
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def wanted(n: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The fits of a set of n rows."""
    for method in options.methods:
        if method in SQUARE and n > SMALL:
            continue
        for columns in ("raw",) if method in OURS else ("raw", "standardised"):
            yield {"method": method, "columns": columns}


def fill(name: str, cells: Cells, options: argparse.Namespace) -> None:
    """Make the fits of one set that are missing."""
    X, y = rows_and_classes(name)
    about = {"set": name, "rows": len(X), "size": X.size, "clusters": int(y.max()) + 1}
    with tempfile.TemporaryDirectory() as place:
        paths = {columns: Path(place) / f"{columns}.npy" for columns in ("raw", "standardised")}
        np.save(paths["raw"], X)
        np.save(paths["standardised"], StandardScaler().fit_transform(X))
        for fit in wanted(len(X), options):
            method, columns = fit["method"], fit["columns"]
            seeds = options.seeds[:1] if method in SEEDLESS else options.seeds
            missing = [s for s in seeds if about | fit | {"seed": s} not in cells]
            if missing and not cells.is_hopeless(method, X.size, columns=columns):
                path, limit = paths[columns], options.limit
                found = fit_in_memory(method, path, y, missing, limit, options.peers)
                for seed, cell in zip(missing, found, strict=True):
                    cells.add(about | fit | {"seed": seed} | cell)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=NAMES, choices=NAMES, metavar="SET")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a fit")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=Path("graphs"), help="where fits are kept")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = Cells(options.out / "graphs.jsonl", ("set", "method", "columns", "seed"))
    absent = []
    for name in [] if options.page else options.sets:
        try:
            fill(name, cells, options)
        except FileNotFoundError:
            absent.append(name)
    graphs_page.write_page(cells, list(WHOLE), absent, options)


if __name__ == "__main__":
    main()
