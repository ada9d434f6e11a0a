"""Columns of all rows in a Zarr group, written by one scan and read by all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from dmkc.data import RowRecord
from dmkc.kernels import KernelPlan
from dmkc.scan.base import Scan
from dmkc.scan.engine import Block, Engine
from dmkc.scan.grid import Grid


@dataclass(frozen=True)
class StoredReader:
    """Reads records whose parts are arrays of a Zarr group."""

    path: str
    parts: tuple[str, ...]

    def read(self, start: int, stop: int) -> RowRecord:
        group: Any = zarr.open_group(self.path, mode="r")
        return RowRecord(**{name: np.asarray(group[name][start:stop]) for name in self.parts})


@dataclass(frozen=True)
class StoreScan(Scan):
    """Writes what is stored of every block to a Zarr group; each block is one chunk."""

    plan: KernelPlan
    reader: StoredReader
    name = "store"
    recorded = False

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> tuple[int]:
        record = self.plan(rows)
        group: Any = zarr.open_group(self.reader.path, mode="r+")
        for name in self.reader.parts:
            group[name][first_row : first_row + len(record)] = vars(record)[name]
        return (len(record),)


def store_columns(
    path: str,
    engine: Engine,
    blocks: Sequence[Block],
    grid: Grid,
    plan: KernelPlan,
    extra: tuple[str, ...],
) -> StoredReader:
    """Write what is stored of all blocks to a new Zarr group, in one scan."""
    reader = StoredReader(path, _create(path, grid, plan, extra))
    engine.scan(StoreScan(plan, reader), blocks, grid)
    return reader


def _create(path: str, grid: Grid, plan: KernelPlan, extra: tuple[str, ...]) -> tuple[str, ...]:
    """An empty array for every part of the records."""
    parts: dict[str, tuple[tuple[int, ...], np.dtype]] = {"rows": ((plan.width,), plan.dtype)}
    if plan.diagonals:
        parts["diagonals"] = ((len(plan.fitted),), np.dtype(np.float64))
    for name in extra:
        parts[name] = ((), plan.dtype if name == "weights" else np.dtype(np.int64))
    group = zarr.create_group(path)
    for name, (tail, dtype) in parts.items():
        group.create_array(
            name,
            shape=(grid.n_rows, *tail),
            chunks=(grid.block_rows, *tail),
            dtype=dtype.name,
            compressors=None,  # random-looking numbers: compression would only cost time
            fill_value=np.nan if dtype.kind == "f" else 0,  # a chunk that was lost is noticed
        )
    return tuple(parts)
