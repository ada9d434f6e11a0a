"""Rows that carry a weight each: blocks of rows and weights that travel together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from dmkc.data.blocks import Block, Lazy, Read


@dataclass(frozen=True, eq=False)
class Weighted:
    """The values of a block with the weights of its rows."""

    rows: Any  # ndarray or csr_array
    weights: np.ndarray  # one weight per row

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def __getitem__(self, which: Any) -> Weighted:
        return Weighted(self.rows[which], self.weights[which])


def parted(values: Any) -> tuple[Any, np.ndarray | None]:
    """Rows and their weights, or None where rows have no weights."""
    return (values.rows, values.weights) if isinstance(values, Weighted) else (values, None)


@dataclass(frozen=True, eq=False)
class WeightedReader:
    """Reads rows and their weights, which are in memory."""

    block: Read  # the rows
    weights: np.ndarray  # weights of these rows

    def read(self, start: int, stop: int) -> Weighted:
        return Weighted(self.block.load(), self.weights)


def check_weights(sample_weight: Any, n_rows: int) -> Any:
    """Weights as a float64 vector, in memory or a Dask array; one per row, none negative."""
    if isinstance(sample_weight, da.Array):
        weights = sample_weight.astype(np.float64)
    else:
        weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_rows} rows; give one weight "
            "per row."
        )
    low, total = weights.min(), weights.sum()
    if isinstance(weights, da.Array):
        low, total = dask.compute(low, total)
    if not np.isfinite(total) or low < 0 or total <= 0:
        raise ValueError(
            "sample_weight must hold finite numbers that are not negative, and not only zeros."
        )
    return weights


def with_weights(blocks: Sequence[Block], weights: Any) -> list[Block]:
    """The blocks with their rows' weights."""
    join = dask.delayed(Weighted, pure=True)
    out: list[Block] = []
    for block in blocks:
        part = weights[block.start : block.stop]
        lazy = isinstance(part, da.Array)
        if isinstance(block, Lazy) or lazy:
            rows = block.delayed if isinstance(block, Lazy) else dask.delayed(block.load)()
            values = dask.delayed(np.asarray)(part) if lazy else part
            out.append(Lazy(join(rows, values), block.start, block.stop))
        else:
            out.append(Read(WeightedReader(block, part), block.start, block.stop))
    return out
