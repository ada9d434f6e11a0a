"""What a neighbour graph costs in a bank: making its columns, and a scan over them.

    python pipelines/benchmarks/graphs_cost.py [--quick]

Making columns is compared with the bare arithmetic, one compiled loop of product, K smallest and
K x q, with the same anchors and columns; a scan with one read of what is stored.  Everything in one
thread and float32.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numba
import numpy as np

from common import interleaved, table, write
from dmkc import Neighbours
from dmkc.clusterers.prepare import FeatureSettings, Prepared, prepare
from dmkc.data import as_rows
from dmkc.scan.cuts import Affine, CutRequest, CutScan
from dmkc.scan.engine import one_blas_thread, open_engine

NEIGHBOURS = 6
DIMENSIONS = 32
TILE = 1024


@numba.njit(nogil=True, fastmath=True)
def bare(rows, anchors_t, squares, values, k, dots, out):  # pragma: no cover - compiled
    """Product, the k smallest distances, equal weights times k rows of q numbers."""
    n, p = rows.shape[0], len(squares)
    q = values.shape[1]
    lowest, places = np.empty(k, rows.dtype), np.empty(k, np.int64)
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        np.dot(rows[start:stop], anchors_t, dots[: stop - start])
        for i in range(start, stop):
            row = dots[i - start]
            lowest[:] = np.inf
            worst = 0
            for j in range(p):
                score = squares[j] - 2 * row[j]
                if score < lowest[worst]:
                    lowest[worst], places[worst] = score, j
                    worst = 0
                    for c in range(1, k):
                        if lowest[c] > lowest[worst]:
                            worst = c
            target = out[i]
            target[:] = 0
            for c in range(k):
                part = values[places[c]]
                for j in range(q):
                    target[j] += part[j] / k


@numba.njit(nogil=True, fastmath=True)
def read(stored):  # pragma: no cover - compiled
    """The sum of all numbers, which is bound by memory alone."""
    total = np.float32(0)
    for i in range(stored.shape[0]):
        row = stored[i]
        for j in range(row.shape[0]):
            total += row[j]
    return total


def prepared(X: np.ndarray, mode: str) -> Prepared:
    kernels = (Neighbours(NEIGHBOURS, dimensions=DIMENSIONS),)
    settings = FeatureSettings(kernels, None, 1, "uniform", "float32", mode, None, 8192, 0)
    return prepare(as_rows(X), open_engine(), settings, 2)


def rows_of(n: int, d: int) -> np.ndarray:
    """Rows in forty clumps."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(40, d))
    return (centres[rng.integers(0, 40, n)] + rng.normal(size=(n, d))).astype(np.float32)


def making(n: int, d: int, repeats: int) -> list[Any]:
    """Columns of a block by the plan, and by the bare loop."""
    X = rows_of(n, d)
    found = prepared(X, "recompute")
    plan = found.features.plan
    state = plan.fitted[0].state()
    rows = (X - plan.scaling.shift.astype(np.float32)) * plan.scaling.factor.astype(np.float32)
    anchors = state["anchors"].astype(np.float32)
    squares = np.einsum("ij,ij->i", anchors, anchors)
    values = state["values"].astype(np.float32)
    turned = np.ascontiguousarray(anchors.T)
    dots, out = (
        np.empty((TILE, len(anchors)), np.float32),
        np.empty((n, values.shape[1]), np.float32),
    )
    stored = np.empty((n, plan.width), np.float32)

    def ours() -> None:
        for start in range(0, n, plan.leaf_rows):
            plan(X[start : start + plan.leaf_rows], stored[start : start + plan.leaf_rows])

    with one_blas_thread():
        seconds = interleaved(
            {
                "ours": ours,
                "bare": partial(bare, rows, turned, squares, values, NEIGHBOURS, dots, out),
            },
            repeats,
        )
    per_row = {name: 1e9 * s / n for name, s in seconds.items()}
    ratio = per_row["ours"] / per_row["bare"]
    size = f"{n:,} x {d}, {len(anchors)} anchors"
    return [size, f"{per_row['bare']:.0f}", f"{per_row['ours']:.0f}", f"{ratio:.2f}"]


def scanning(n: int, repeats: int) -> list[Any]:
    """A scan of one model over stored columns, and one read of them."""
    found = prepared(rows_of(n, 8), "persist")
    features, rng = found.features, np.random.default_rng(1)

    def model() -> Affine:
        return features.to_stored(rng.normal(size=features.offsets[-1]), 0.0)

    scan = CutScan.of([CutRequest(model(), (model(),))], found.all_rows.dtype)
    blocks = [block.value for block in found.all_rows.blocks]  # type: ignore[attr-defined]
    leaf_rows = features.plan.leaf_rows

    def ours() -> None:
        for block in blocks:
            scan.block(block, 0, leaf_rows)

    def bare_read() -> None:
        for block in blocks:
            read(block.rows)

    seconds = interleaved({"ours": ours, "read": bare_read}, repeats)
    ratio = seconds["ours"] / seconds["read"]
    size = f"{n:,} x {features.plan.width}"
    return [size, f"{1e3 * seconds['read']:.0f}", f"{1e3 * seconds['ours']:.0f}", f"{ratio:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rows, to try the command")
    options = parser.parse_args()
    few = options.quick
    sizes = [(4096, 16)] if few else [(200_000, 2), (100_000, 16), (50_000, 100), (20_000, 784)]
    made = [making(n, d, 3 if few else 7) for n, d in sizes]
    scanned = [scanning(n, 3 if few else 7) for n in ([20_000] if few else [1_000_000, 4_000_000])]
    parts = [
        f"One thread, float32, {NEIGHBOURS} neighbours, {DIMENSIONS} stored numbers a row. "
        "**bare** is one compiled loop of product, smallest distances and their weighted rows; "
        "it neither scales rows, nor computes distances anew from differences, nor makes "
        "weights of them.",
        "## Making the columns\n\n"
        + table(["rows x columns", "bare, ns a row", "ours, ns a row", "ratio"], made),
        "## One scan over them\n\n"
        "**read** adds up all stored numbers; the scan is that of a margin method: score, "
        "mask and sum of the rows inside.\n\n"
        + table(["rows x stored", "read, ms", "scan, ms", "ratio"], scanned),
    ]
    write(
        "graphs-cost",
        "What a neighbour graph costs",
        "python pipelines/benchmarks/graphs_cost.py",
        parts,
        {"made": made, "scanned": scanned},
    )


if __name__ == "__main__":
    main()
