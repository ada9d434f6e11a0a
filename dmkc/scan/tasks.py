"""What the tasks of a scan do on a worker."""

from __future__ import annotations

from typing import Any

from dmkc.data import BlockRows, Read
from dmkc.scan.base import Scan
from dmkc.scan.engine import Make, load, one_blas_thread, run_block
from dmkc.scan.grid import Grid, Piece, fold_pieces


def same(value: Any) -> Any:
    """A block, moved to the worker that asked for it."""
    return value


def make_value(rows: BlockRows, make: Make | None) -> Any:
    """What is held of a block."""
    with one_blas_thread():
        values = _rows(rows)
        return values if make is None else make(values)


def scan_run(values: list, starts: list[int], scan: Scan, grid: Grid) -> list[Piece]:
    """The merged statistics of some blocks, one block in memory at a time."""
    pieces = (
        run_block(scan, _rows(value), start, grid)
        for value, start in zip(values, starts, strict=True)
    )
    with one_blas_thread():
        return fold_pieces(pieces, grid.n_leaves, scan.merge)


def fold_run(parts: list[list[Piece]], scan: Scan, grid: Grid) -> list[Piece]:
    """The merged statistics of some tasks."""
    pieces = (piece for part in parts for piece in part)
    return fold_pieces(pieces, grid.n_leaves, scan.merge)


def _rows(value: Any) -> Any:
    return load(value) if isinstance(value, Read) else value
