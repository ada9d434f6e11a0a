"""All rows as scannable columns: kept in memory, made anew on every scan, or stored once."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import numpy as np

from dmkc.clusterers.rowset import SpreadRows
from dmkc.data import Lazy, Rows, check_weights, with_weights
from dmkc.data.blocks import ReaderSource
from dmkc.data.rows import scan_width
from dmkc.errors import UserError
from dmkc.kernels import Kernel, KernelPlan
from dmkc.scan.engine import Block, Engine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import sample_positions
from dmkc.typing import PerRow

log = logging.getLogger("dmkc")

STORE_NS_PER_BYTE = 1.0
"""Reading stored columns back, about; on one machine with a local disk."""
HELD_NS_PER_BYTE = 0.12
"""Reading columns that are held in memory, and a part of what writing them there once costs."""
COMPUTE_NS = 0.05, 1.0
"""Making columns anew: per multiplication of the inner products, and per column."""
QUICK_NS = 0.02, 0.22
"""The same of kernels by inner products, in single precision."""


@dataclass(frozen=True)
class Layout:
    """How the rows of a fit are cut, and how what is scanned of them is held."""

    grid: Grid
    width: int
    """Numbers that are scanned of a row."""
    dtype: np.dtype
    """Their precision."""
    mode: str
    """persist, recompute or store."""
    sample_rows: int
    """Rows of the sample that a fit begins from."""

    @property
    def n_bytes(self) -> int:
        """Bytes that scans go over."""
        return self.grid.n_rows * self.width * self.dtype.itemsize


def choose_mode(
    settings: Any,
    rows: Rows,
    kernels: Sequence[Kernel],
    width: int,
    compared: int,
    dtype: np.dtype,
    engine: Engine,
) -> str:
    """Keep columns in memory when they fit, unless they are made faster than they are read there;
    else whichever is cheaper per scan.

    Stored columns must be readable by every worker, so that a cluster stores only where it has
    been told a path.
    """
    mode, of_row = settings.mode, width * dtype.itemsize
    n_bytes = rows.n_rows * of_row
    if mode == "auto":
        quick = dtype.itemsize == 4 and not rows.sparse and all(k.by_products for k in kernels)
        per_product, per_column = QUICK_NS if quick else COMPUTE_NS
        anew = per_product * rows.n_columns * compared + per_column * width
        shared = settings.store_path is not None or engine.here
        if n_bytes <= engine.memory:
            mode = "recompute" if quick and anew < HELD_NS_PER_BYTE * of_row else "persist"
        elif shared and anew > STORE_NS_PER_BYTE * of_row:
            mode = "store"
        else:
            mode = "recompute"
    log.info(
        "features: %.2f GB, %s (%.2f GB may be held), on %s",
        n_bytes / 1e9,
        mode,
        engine.memory / 1e9,
        engine.description,
    )
    return mode


def block_grid(rows: Rows, engine: Engine, width: int, mode: str, leaf_rows: int) -> Grid:
    """How rows with so many columns to scan are cut into blocks.

    Columns that are made anew exist for a leaf at a time, so that a block is as large as its rows
    allow: blocks that are smaller than the chunks of a store would have them read several times.
    """
    of_rows = scan_width(rows)
    return engine.grid(
        rows.n_rows, of_rows if mode == "recompute" else max(width, of_rows), leaf_rows
    )


def sample_of(rows: Rows, size: int, seed: int) -> np.ndarray:
    """Numbers of the rows that a fit begins from, ascending."""
    return sample_positions(rows.n_rows, size, seed) if rows.sampled is None else rows.sampled


def row_blocks(
    rows: Rows,
    engine: Engine,
    grid: Grid,
    mode: str,
    sample_weight: PerRow,
    many_scans: bool = False,
) -> list[Block]:
    """The blocks of all rows, where scans can use them again and again.

    Rows that columns are made of anew are kept in memory, too, for many scans and if they fit.
    """
    make = partial(_row_blocks, rows, engine, grid, sample_weight)
    blocks = engine.once((rows, grid.block_rows), make)
    lazy = any(isinstance(b, Lazy) for b in blocks)
    fit = rows.n_rows * rows.n_columns * rows.dtype.itemsize <= engine.memory
    again = mode == "recompute" and many_scans and fit and (lazy or not rows.in_memory)
    return engine.hold(_as_is, blocks, "rows") if again or (mode == "persist" and lazy) else blocks


def _row_blocks(rows: Rows, engine: Engine, grid: Grid, sample_weight: PerRow) -> list[Block]:
    """The blocks with their weights; those in this process's memory are put where scans run."""
    blocks: list[Block] = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, rows.n_rows))
    here = rows.in_memory and not any(isinstance(b, Lazy) for b in blocks)
    return engine.bring(blocks) if here else blocks


def carried(sample_weight: PerRow, rows: Rows) -> tuple[str, ...]:
    """The parts of records that come with the rows."""
    there = {"weights": sample_weight is not None, "constrained": rows.constrained is not None}
    return tuple(name for name, has in there.items() if has)


def spread(
    engine: Engine,
    blocks: Sequence[Block],
    grid: Grid,
    plan: KernelPlan,
    mode: str,
    store_path: str | None,
    extra: tuple[str, ...],
) -> SpreadRows:
    """What is stored of all blocks, in the chosen way; `extra` are the parts beside the values."""
    make = None
    if mode == "persist":
        blocks = engine.hold(plan, blocks, "columns")
    elif mode == "store":
        store = partial(_stored_blocks, engine, blocks, grid, plan, store_path, extra)
        blocks = engine.once(("stored", id(plan), id(blocks), store_path), store)
    else:
        make = plan
    return SpreadRows(engine, grid, blocks, plan.width, plan.dtype, make)


def _stored_blocks(
    engine: Engine,
    blocks: Sequence[Block],
    grid: Grid,
    plan: KernelPlan,
    store_path: str | None,
    extra: tuple[str, ...],
) -> list[Block]:
    """Blocks that are read from a store, which is deleted once nobody has them any more."""
    from dmkc.clusterers.stored import store_columns  # and with it Zarr, where it is needed

    folder = tempfile.mkdtemp(prefix="dmkc-columns-", dir=_store_parent(store_path))
    path = os.path.join(folder, "columns.zarr")
    reader = store_columns(path, engine, blocks, grid, plan, extra)
    weakref.finalize(reader, shutil.rmtree, folder, ignore_errors=True)
    return list(ReaderSource(reader, grid.n_rows).blocks(grid.block_rows))


def _store_parent(store_path: str | None) -> str | None:
    if store_path is not None and not os.path.isdir(store_path):
        raise UserError(f"`store_path` must be an existing folder, but {store_path!r} is not one.")
    return store_path or dask.config.get("temporary-directory", None)


def _as_is(rows: Any) -> Any:
    return rows
