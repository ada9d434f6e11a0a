"""Inputs whose values are in memory: NumPy, lists, pandas and SciPy sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.data import checks
from dmkc.data.blocks import (
    Block,
    HeldArray,
    HeldFrame,
    HeldSparse,
    Read,
    bounds,
    csr,
    csr_rows,
)
from dmkc.data.container import Container, PandasContainer
from dmkc.data.rows import Rows
from dmkc.errors import UserError, UserTypeError


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Cuts a NumPy array into views."""

    values: np.ndarray  # the whole input
    dtype: np.dtype  # dtype of the loaded blocks

    def blocks(self, block_rows: int) -> list[Block]:
        # Each reader holds its own slice, so that a pickled block carries no other rows.
        return [
            Read(HeldArray(self.values[start:stop], start, self.dtype), start, stop)
            for start, stop in bounds(self.values.shape[0], block_rows)
        ]


@dataclass(frozen=True, eq=False)
class FrameSource:
    """Cuts a pandas DataFrame into slices."""

    frame: Any  # the whole input, with a plain range as index
    dtype: np.dtype  # dtype of the loaded blocks

    def blocks(self, block_rows: int) -> list[Block]:
        return [
            Read(HeldFrame(self.frame.iloc[start:stop], start, self.dtype), start, stop)
            for start, stop in bounds(len(self.frame), block_rows)
        ]


@dataclass(frozen=True, eq=False)
class SparseSource:
    """Cuts a csr_array into views."""

    matrix: Any  # the whole input

    def blocks(self, block_rows: int) -> list[Block]:
        return [
            Read(HeldSparse(csr_rows(self.matrix, start, stop), start), start, stop)
            for start, stop in bounds(self.matrix.shape[0], block_rows)
        ]


def array_rows(
    values: Any,
    container: Container | None = None,
    column_names: tuple[str, ...] | None = None,
) -> Rows:
    """Return the rows of a NumPy array, a list of lists or anything NumPy can read."""
    array = _plain_array(values)
    checks.check_dimensions(array.ndim, array.shape)
    if array.dtype == object:
        array = checks.numbers_from_objects(array)
    dtype = checks.block_dtype(array.dtype)
    n_rows, n_columns = checks.check_shape(array.shape)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        sparse=False,
        density=1.0,
        column_names=column_names,
        in_memory=True,
        container=container or Container("numpy", n_rows),
        source=ArraySource(array, dtype),
    )


def sparse_rows(
    matrix: Any,
    container: Container | None = None,
    column_names: tuple[str, ...] | None = None,
) -> Rows:
    """Return the rows of a SciPy sparse matrix or array of any format."""
    checks.check_dimensions(matrix.ndim, matrix.shape)
    dtype = checks.block_dtype(matrix.dtype)
    n_rows, n_columns = checks.check_shape(matrix.shape)
    held = csr(matrix, dtype)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        sparse=True,
        density=held.nnz / (n_rows * n_columns),
        column_names=column_names,
        in_memory=True,
        container=container or Container("scipy", n_rows),
        source=SparseSource(held),
    )


def frame_rows(frame: Any) -> Rows:
    """Return the rows of a pandas DataFrame."""
    import pandas as pd

    n_rows, n_columns = checks.check_shape(frame.shape)
    dtype = checks.frame_dtype(frame.columns, frame.dtypes)
    names = checks.string_names(frame.columns)
    container = PandasContainer("pandas", n_rows, index=frame.index)
    if all(isinstance(kind, pd.SparseDtype) and kind.fill_value == 0 for kind in frame.dtypes):
        return sparse_rows(frame.sparse.to_coo().astype(dtype), container, names)
    if any(not isinstance(kind, np.dtype) for kind in frame.dtypes):
        # Slices of Arrow and nullable columns may drag whole buffers along when pickled.
        values = frame.to_numpy(dtype=dtype, na_value=np.nan)
        return array_rows(values, container, names)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        sparse=False,
        density=1.0,
        column_names=names,
        in_memory=True,
        container=container,
        source=FrameSource(frame.set_axis(pd.RangeIndex(n_rows), axis=0), dtype),
    )


def _plain_array(values: Any) -> np.ndarray:
    """Return values as a base-class ndarray, without a copy when it is one."""
    if isinstance(values, np.matrix):
        raise UserTypeError("np.matrix is not supported; convert X with np.asarray first.")
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return np.asarray(values.data)
        checks.block_dtype(values.dtype)
        kept = np.result_type(values.dtype, np.float32)
        return np.ma.filled(values.astype(kept), np.nan)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise UserError(
            f"X could not be read as a table of numbers ({error}); make sure that every row has "
            "the same number of columns."
        ) from error
