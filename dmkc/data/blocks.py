"""Row blocks: pieces of the input that can be loaded on their own, on any worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

# A loaded block: a C-contiguous 2-D ndarray, or a csr_array with sorted indices.
Values: TypeAlias = Any


class Reader(Protocol):
    """Something that returns the values of any rows it covers."""

    def read(self, start: int, stop: int) -> Values:
        """Return rows [start, stop), counted from the first row of the whole input."""


@dataclass(frozen=True, eq=False)
class Read:
    """Rows [start, stop) that any process can load without a Dask graph.

    The loaded values may be a view of the caller's data, so they must not be written to.
    """

    reader: Reader  # where the rows come from
    start: int  # first row
    stop: int  # one past the last row

    def load(self) -> Values:
        """Return the rows as a C-contiguous ndarray or a csr_array with sorted indices."""
        return self.reader.read(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class Lazy:
    """Rows [start, stop) that a Dask graph computes."""

    delayed: Delayed  # computes to a C-contiguous ndarray or a csr_array with sorted indices
    start: int  # first row
    stop: int  # one past the last row


Block: TypeAlias = Read | Lazy


@dataclass(frozen=True, eq=False)
class HeldArray:
    """Reads from a NumPy array in memory."""

    values: np.ndarray  # the held rows, of any layout
    first: int  # row number of values[0] in the whole input
    dtype: np.dtype  # dtype of what read returns

    def read(self, start: int, stop: int) -> np.ndarray:
        return dense(self.values[start - self.first : stop - self.first], self.dtype)


@dataclass(frozen=True, eq=False)
class HeldFrame:
    """Reads from a pandas DataFrame in memory whose columns have NumPy dtypes."""

    frame: Any  # the held rows, with a plain range as index
    first: int  # row number of the frame's first row in the whole input
    dtype: np.dtype  # dtype of what read returns

    def read(self, start: int, stop: int) -> np.ndarray:
        return frame_values(self.frame.iloc[start - self.first : stop - self.first], self.dtype)


@dataclass(frozen=True, eq=False)
class HeldSparse:
    """Reads from a csr_array in memory."""

    matrix: Any  # the held rows, with sorted indices
    first: int  # row number of the matrix's first row in the whole input

    def read(self, start: int, stop: int) -> Any:
        return csr_rows(self.matrix, start - self.first, stop - self.first)


@dataclass(frozen=True, eq=False)
class ReaderSource:
    """Cuts an input that one small reader can fetch any rows of."""

    reader: Reader  # shared by all blocks
    n_rows: int  # number of rows

    def blocks(self, block_rows: int) -> list[Block]:
        return [Read(self.reader, start, stop) for start, stop in bounds(self.n_rows, block_rows)]


def bounds(n_rows: int, block_rows: int) -> list[tuple[int, int]]:
    """Return the [start, stop) of every block of block_rows rows; the last may be shorter."""
    if isinstance(block_rows, bool) or not isinstance(block_rows, (int, np.integer)):
        raise TypeError(
            f"block_rows must be a whole number of rows, but it is {block_rows!r} "
            f"({type(block_rows).__name__})."
        )
    if block_rows < 1:
        raise ValueError(f"block_rows must be at least 1, but it is {block_rows}.")
    step = int(block_rows)
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def dense(block: Any, dtype: np.dtype) -> np.ndarray:
    """Return block as a C-contiguous ndarray of the dtype, as a view when it already is one."""
    if sp.issparse(block):
        block = block.toarray()
    if isinstance(block, np.ma.MaskedArray):
        # Masked means missing, and missing is NaN everywhere else.
        block = np.ma.filled(block.astype(dtype), np.nan) if dtype.kind == "f" else block.data
    return np.ascontiguousarray(block, dtype=dtype)


def frame_values(frame: Any, dtype: np.dtype) -> np.ndarray:
    """Return the values of a pandas DataFrame with missing values as NaN."""
    if any(not isinstance(kind, np.dtype) for kind in frame.dtypes):
        return np.ascontiguousarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    return np.ascontiguousarray(frame.to_numpy(dtype=dtype))


def csr(block: Any, dtype: np.dtype) -> Any:
    """Return block as a csr_array of the dtype with sorted indices and no repeated entries."""
    if not sp.issparse(block) and hasattr(block, "tocsr"):
        block = block.tocsr()
    matrix = sp.csr_array(block)
    if matrix.dtype != dtype:
        matrix = matrix.astype(dtype)
    if not matrix.has_canonical_format:
        # csr_array may share its buffers with the caller's matrix, which must stay as it is.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def csr_rows(matrix: Any, start: int, stop: int) -> Any:
    """Return rows [start, stop) of a csr_array without copying its values."""
    if start == 0 and stop == matrix.shape[0]:
        return matrix
    low, high = matrix.indptr[start], matrix.indptr[stop]
    parts = (
        matrix.data[low:high],
        matrix.indices[low:high],
        matrix.indptr[start : stop + 1] - low,
    )
    rows = sp.csr_array(parts, shape=(stop - start, matrix.shape[1]), copy=False)
    rows.has_sorted_indices = True
    rows.has_canonical_format = True
    return rows
