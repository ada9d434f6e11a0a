"""Records: rows, or what is stored of them, and what else belongs to each, as named parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import dask
import numpy as np
import scipy.sparse as sp

from dmkc.data.blocks import Block, Lazy, Read, of_their_own
from dmkc.errors import UserError
from dmkc.importing import is_of
from dmkc.typing import PerRow

BlockRows: TypeAlias = "np.ndarray | sp.csr_array | RowRecord"
"""The rows of a block, bare or as a record."""
MOST_WEIGHT = 1e30
"""Weights within this, and its inverse, can be summed and multiplied in single precision."""


@dataclass(frozen=True, eq=False)
class RowRecord:
    """Some rows and what belongs to each of them."""

    rows: Any  # ndarray or csr_array: the rows, or what is stored of them
    weights: np.ndarray | None = None  # None: all weigh 1
    constrained: np.ndarray | None = None  # see `with_constrained`; None: no row is
    diagonals: np.ndarray | None = None  # k(x, x) of every kernel, where these are asked for
    labels: np.ndarray | None = None  # a column of cluster numbers for every start

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, which: Any) -> RowRecord:
        return RowRecord(*(None if part is None else part[which] for part in self._parts()))

    def __sizeof__(self) -> int:
        """Bytes, by which Dask keeps account of its workers' memory."""
        return sum(_bytes_of(part) for part in self._parts() if part is not None)

    def weights_in(self, dtype: np.dtype) -> np.ndarray:
        """The weights of the rows, in this precision."""
        if self.weights is None:
            return np.ones(len(self), dtype)
        return self.weights.astype(dtype, copy=False)

    def _parts(self) -> tuple[Any, ...]:
        return self.rows, self.weights, self.constrained, self.diagonals, self.labels


def _bytes_of(part: Any) -> int:
    if isinstance(part, np.ndarray):
        return part.nbytes
    return part.data.nbytes + part.indices.nbytes + part.indptr.nbytes


def as_record(values: Any) -> RowRecord:
    """Rows as a record; bare rows have nothing else."""
    return values if isinstance(values, RowRecord) else RowRecord(values)


def joined(parts: Sequence[Any]) -> Any:
    """Values or records of consecutive rows, as one."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], RowRecord):
        return np.concatenate(parts)
    columns = zip(*(part._parts() for part in parts), strict=True)
    return RowRecord(*(None if c[0] is None else np.concatenate(c) for c in columns))


def split_weights(values: Any) -> tuple[Any, np.ndarray | None]:
    """Rows and their weights, or None where rows have no weights."""
    return (values.rows, values.weights) if isinstance(values, RowRecord) else (values, None)


@dataclass(frozen=True, eq=False)
class WeightedReader:
    """Reads rows and their weights, which are in memory."""

    block: Read  # the rows
    weights: np.ndarray  # weights of these rows

    def read(self, start: int, stop: int) -> RowRecord:
        first = self.block.start
        rows = self.block.reader.read(start, stop)
        return weighted(rows, self.weights[start - first : stop - first])


@dataclass(frozen=True, eq=False)
class ConstrainedReader:
    """Reads rows some of which have numbers."""

    block: Read  # the rows
    first: int  # number of the first of them that has one
    places: np.ndarray  # which rows of the block have numbers

    def read(self, start: int, stop: int) -> RowRecord:
        low, high = start - self.block.start, stop - self.block.start
        lo, hi = np.searchsorted(self.places, [low, high])
        rows = self.block.reader.read(start, stop)
        return constrained(rows, self.first + int(lo), self.places[lo:hi] - low)


def weighted(values: Any, weights: np.ndarray) -> RowRecord:
    """The values of a block with weights."""
    return replace(as_record(values), weights=weights)


def constrained(values: Any, first: int, places: np.ndarray) -> RowRecord:
    """The values of a block with numbers at some places, consecutive from `first` on."""
    numbers = np.zeros(values.shape[0], np.int64)
    numbers[places] = np.arange(first, first + len(places))
    return RowRecord(values, constrained=numbers)


def check_weights(sample_weight: PerRow, n_rows: int) -> Any:
    """Weights as a float64 vector, in memory or a Dask array; one per row, none negative."""
    if is_of(sample_weight, "dask.array", "Array"):
        weights = sample_weight.astype(np.float64)
    else:
        try:
            weights = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise UserError(f"`sample_weight` must hold numbers ({problem}).") from None
    if weights.shape != (n_rows,):
        raise UserError(
            f"`sample_weight` has shape {weights.shape}, but `X` has {n_rows} rows; give one "
            "weight per row."
        )
    lazy = is_of(weights, "dask.array", "Array")
    least = np.where(weights > 0, weights, np.inf).min()
    ends = (weights.min(), weights.max(), least)
    low, high, least = dask.compute(*ends) if lazy else ends
    if not np.isfinite(high) or not low >= 0 or high <= 0:
        raise UserError(
            "`sample_weight` must hold finite numbers that are not negative, and not only zeros."
        )
    if high > MOST_WEIGHT or least < 1.0 / MOST_WEIGHT:
        value = high if high > MOST_WEIGHT else least
        raise UserError(
            f"`sample_weight` holds {value:g}, but weights must be 0 or lie between "
            f"{1.0 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}: multiply all of them by a constant."
        )
    return weights


def with_weights(blocks: Sequence[Block], weights: Any) -> list[Block]:
    """The blocks with their rows' weights."""
    join = dask.delayed(weighted, pure=False)
    out: list[Block] = []
    for block in blocks:
        part = weights[block.start : block.stop]
        lazy = is_of(part, "dask.array", "Array")
        if isinstance(block, Lazy) or lazy:
            rows = block.delayed if isinstance(block, Lazy) else dask.delayed(block.load)()
            values = dask.delayed(np.asarray)(part) if lazy else part
            out.append(Lazy(join(rows, values), block.start, block.stop))
        else:
            out.append(Read(WeightedReader(block, part), block.start, block.stop))
    return of_their_own(out)


def rank_among(rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The numbers that `with_constrained` gives to the rows at some positions."""
    at = np.searchsorted(rows, positions)
    hit = at < len(rows)
    hit[hit] = rows[at[hit]] == positions[hit]
    return np.where(hit, at + 1, 0)


def with_constrained(blocks: Sequence[Block], rows: np.ndarray) -> list[Block]:
    """The blocks with their rows' numbers: these rows, ascending, have 1, 2, ..., all others 0.

    Each block carries its own part of the table only.
    """
    join = dask.delayed(constrained, pure=False)
    out: list[Block] = []
    for block in blocks:
        lo, hi = np.searchsorted(rows, [block.start, block.stop])
        first, places = int(lo) + 1, rows[lo:hi] - block.start
        if isinstance(block, Lazy):
            out.append(Lazy(join(block.delayed, first, places), block.start, block.stop))
        else:
            out.append(Read(ConstrainedReader(block, first, places), block.start, block.stop))
    return out
