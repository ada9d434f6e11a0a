"""Neighbour graphs on up to 20 million rows of the published shapes, two workers of 2 GB each.

    python pipelines/benchmarks/graphs_scale.py [--peers PYTHON] [--shapes flower ...] \\
        [--methods "dmkc spectral" ...] [--no-growth] [--times 0.01] [--out kept] [--folder DIR] \\
        [--page]

Rows are imitations of the shapes of Huang et al. (2020) at the published sizes, and two bananas at
all of these sizes, for the growth of the time with the rows.  Every fit is a process of its own and
one JSON line in OUT/graphs-scale.jsonl, so that a run that was stopped goes on where it was.
--times multiplies all numbers of rows, for a trial; --peers is as in graphs.py.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from common import table, write
from dmkc import datasets
from graphs_cells import HERE, MISSING, Cell, Cells, failures, fit_in_memory, in_process, measures
from graphs_cluster import ESTIMATORS


@dataclass(frozen=True)
class Shape:
    """A shape of the paper: how it is imitated, and what was published."""

    make: Callable[..., Any]
    clusters: int
    rows: int
    uspec: str
    """Accuracy in % and seconds, on four cores."""
    usenc: str
    k_means: str


SHAPES = {
    "two bananas": Shape(
        datasets.make_two_bananas, 2, 1_000_000, "99.6 (10 s)", "99.8 (318 s)", "78.9"
    ),
    "smiling face": Shape(
        datasets.make_smiling_face, 4, 2_000_000, "93.6 (27 s)", "93.5 (659 s)", "74.3"
    ),
    "concentric circles": Shape(
        datasets.make_concentric_circles, 3, 5_000_000, "99.99 (47 s)", "99.99 (1726 s)", "53.0"
    ),
    "circles and Gaussians": Shape(
        datasets.make_circles_and_gaussians, 11, 10_000_000, "81.3 (319 s)", "94.0 (3603 s)", "63.1"
    ),
    "flower": Shape(datasets.make_flower, 13, 20_000_000, "88.9 (764 s)", "93.8 (7226 s)", "60.9"),
}
GROWTH = "two bananas"
CLUSTERED = tuple(ESTIMATORS)
IN_MEMORY = ("secuer", "k-means", "dask-ml")
USUAL = ("dmkc spectral", "dmkc consensus", "secuer", "k-means")
CHUNK = 262_144
ABOUT = """
Rows of two float32 columns, imitations of the published shapes from descriptions
(`dmkc.datasets`). **dmkc**: default parameters (k-means: ten starts), from rows in Zarr to labels
in Zarr, on two worker processes of one thread and at most {memory} each; the peak is that of the
larger worker, and a small fit before compiles what is compiled. **secuer** (1000 anchors, 5
neighbours), **k-means** (scikit-learn, `n_init=10`) and **dask-ml** (spectral clustering of 100
Nyström rows) have all rows in the memory of one process, with all cores and at most {peer_memory};
reading rows and writing labels is not in their seconds. Accuracy is by one-to-one matching,
majority accuracy the share of rows of their cluster's majority class, which the published figures
probably are. Lines of dmkc were measured on a machine that did nothing else, those of secuer and
k-means in an earlier run of the same kind. Seed {seed}; a fit of a peer was stopped after
{limit:g} s, and its method not tried on more rows. dask-ml had nothing beside it at a million rows,
and other work before it at ten million, where it was stopped after 1300 s, 17 minutes of a
processor.
""".strip()


def sizes(shapes: list[str], times: float, growth: bool = True) -> list[tuple[str, int]]:
    """Shapes and rows: each at its published size, then the one whose growth is measured."""
    each = [(shape, SHAPES[shape].rows) for shape in shapes]
    if growth and GROWTH in shapes:
        each += [(GROWTH, s.rows) for s in SHAPES.values() if (GROWTH, s.rows) not in each]
    return [(shape, max(1000, int(n * times))) for shape, n in each]


def fit(method: str, k: int, place: Path, options: argparse.Namespace) -> Cell:
    """One fit to the rows in a folder."""
    if method not in CLUSTERED:
        truth = da.from_zarr(str(place / "y.zarr")).compute()
        rows, seeds, limit = place / "X.npy", [options.seed], options.limit
        if not rows.exists():
            np.save(rows, da.from_zarr(str(place / "X.zarr")).compute())
        peers, memory = options.peers, options.peer_memory
        return fit_in_memory(method, rows, truth, seeds, limit, peers, memory)[0]
    out = place / "labels.zarr"
    words = [method, place / "X.zarr", k, options.seed, out, options.memory]
    cell = in_process([sys.executable, HERE / "graphs_cluster.py", *words], options.limit)
    if "failed" in cell:
        return cell
    return cell | measures(da.from_zarr(str(place / "y.zarr")), da.from_zarr(str(out)))


def fill(shape: str, n: int, cells: Cells, options: argparse.Namespace) -> None:
    """Make the fits of one shape and number of rows that are missing."""
    about = {"shape": shape, "rows": n, "size": n, "seed": options.seed}
    missing = [
        about | {"method": method}
        for method in options.methods
        if about | {"method": method} not in cells and not cells.is_hopeless(method, n)
    ]
    if not missing:
        return
    X, y = SHAPES[shape].make(n, chunks=CHUNK)
    place = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        X.to_zarr(str(place / "X.zarr"))
        y.to_zarr(str(place / "y.zarr"))
        for cell in missing:
            if not cells.is_hopeless(cell["method"], n):
                cells.add(cell | fit(cell["method"], SHAPES[shape].clusters, place, options))
    finally:
        shutil.rmtree(place)


def exponent(cells: Cells, method: str) -> str:
    """The slope of log seconds against log rows, of the shape at all sizes."""
    found = [c for c in cells.where(shape=GROWTH, method=method) if "failed" not in c]
    if len({cell["rows"] for cell in found}) < 2:
        return ""
    rows, seconds = np.log([(cell["rows"], cell["seconds"]) for cell in found]).T
    return f"{np.polyfit(rows, seconds, 1)[0]:.2f}"


def line(cell: Cell) -> list[str]:
    first = [cell["shape"], f"{cell['rows']:,}", cell["method"]]
    if "failed" in cell:
        return [*first, cell["failed"], "", "", ""]
    good = [f"{cell[name]:.2f}" for name in ("accuracy", "majority_accuracy")]
    return [*first, f"{cell['seconds']:.1f}", f"{cell['peak'] / 1e9:.2f} GB", *good]


def write_page(cells: Cells, options: argparse.Namespace) -> None:
    """docs/results/graphs-scale.md and .json."""
    order = [*CLUSTERED, *IN_MEMORY]
    found = sorted(
        cells.found.values(),
        key=lambda c: (list(SHAPES).index(c["shape"]), c["rows"], order.index(c["method"])),
    )
    header = ("shape", "rows", "method", "seconds", "peak", "accuracy, %", "majority accuracy, %")
    growth = [[method, value] for method in order if (value := exponent(cells, method))]
    shapes = [[name, f"{s.rows:,}", s.uspec, s.usenc, s.k_means] for name, s in SHAPES.items()]
    parts = [
        ABOUT.format(**vars(options)),
        table(header, [line(cell) for cell in found if cell.get("failed") != MISSING]),
        "## Published\n\n" + table(("shape", "rows", "U-SPEC", "U-SENC", "k-means"), shapes),
        "## Growth\n\nThe slope of the logarithm of seconds against that of the rows, two bananas "
        "(aim: at most 1.05).\n\n" + table(("method", "exponent"), growth),
        f"## Fits that failed or were stopped\n\n{failures(cells, ('shape', 'rows'))}",
    ]
    restarted = [c for c in found if c.get("same processes") is False]
    if restarted:
        names = ", ".join(f"{c['method']} on {c['shape']} ({c['rows']:,})" for c in restarted)
        parts.append(f"A worker was restarted during: {names}.")
    command = "python pipelines/benchmarks/graphs_scale.py --peers PYTHON"
    stored: list[Any] = list(found)
    write("graphs-scale", "Neighbour graphs on many rows", command, parts, stored)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*CLUSTERED, *IN_MEMORY]
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--methods", nargs="+", default=list(USUAL), choices=known)
    parser.add_argument("--times", type=float, default=1.0, help="multiplies numbers of rows")
    parser.add_argument("--no-growth", action="store_true", help="published sizes only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", default="2GB", help="limit of each worker")
    parser.add_argument("--peer-memory", default="16GB", help="limit of a fit in memory")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of a fit")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=Path("graphs"), help="where fits are kept")
    parser.add_argument("--folder", help="where to put rows while they are needed")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    cells = Cells(options.out / "graphs-scale.jsonl", ("shape", "rows", "method", "seed"))
    for shape, n in (
        [] if options.page else sizes(options.shapes, options.times, not options.no_growth)
    ):
        fill(shape, n, cells, options)
    write_page(cells, options)


if __name__ == "__main__":
    main()
