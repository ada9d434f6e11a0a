"""The checked input: its shape and type, its row blocks, and the form that results go back to.

Inputs whose values are in memory (NumPy, lists, pandas and SciPy sparse) become rows here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dmkc.data.blocks import (
    Block,
    HeldArray,
    HeldFrame,
    HeldSparse,
    Read,
    block_dtype,
    bounds,
    check_dimensions,
    check_shape,
    csr,
    csr_rows,
    frame_dtype,
    numbers_from_objects,
    of_their_own,
    string_names,
)
from dmkc.data.record import with_constrained
from dmkc.data.recut import in_chunks
from dmkc.errors import UserError, UserTypeError
from dmkc.importing import is_of

SPARSE_WIDTH = 2048
BETWEEN = "="
"""Between the name of a category and a value, in the name of a column of zeros and ones."""


@dataclass(frozen=True, eq=False)
class Container:
    """An array-like input: results are a NumPy array, or a Dask array if the input was lazy."""

    kind: str  # numpy, scipy, pandas, xarray, dask, dask-dataframe, zarr or npy
    n_rows: int  # number of rows results must have
    row_chunks: tuple[int, ...] | None = None  # rows per chunk of a lazy input, else None

    @property
    def lazy(self) -> bool:
        """Whether the input was lazy, so that results should be a Dask array."""
        return self.row_chunks is not None

    def wrap(self, values: Any, name: str = "label", columns: Sequence[str] | None = None) -> Any:
        """Return per-row results (a NumPy or Dask array, 1-D or 2-D) in the input's own form.

        `columns` name those of 2-D results; else they are numbered behind `name`.
        """
        if values.ndim not in (1, 2) or values.shape[0] != self.n_rows:
            raise UserError(
                f"Results must be 1-D or 2-D with {self.n_rows} rows to match X, but their shape "
                f"is {values.shape}."
            )
        return self._dress(self._settle(values), name, columns)

    def row_labels(self, positions: np.ndarray) -> list[str]:
        """Return names of rows for messages: index labels where known, else row numbers."""
        return [str(int(position)) for position in positions]

    def _settle(self, values: Any) -> Any:
        """Return values as the array type this container holds, in the input's row chunks."""
        is_dask = is_of(values, "dask.array", "Array")
        if self.row_chunks is None:
            return values.compute() if is_dask else np.asarray(values)
        if is_dask:
            return in_chunks(values, self.row_chunks)
        import dask.array as da

        whole_axes = tuple((size,) for size in values.shape[1:])
        return da.from_array(np.asarray(values), chunks=(self.row_chunks, *whole_axes))

    def _dress(self, values: Any, name: str, columns: Sequence[str] | None) -> Any:
        """Return settled values with the input's labels attached."""
        return values


@dataclass(frozen=True, eq=False)
class PandasContainer(Container):
    """A pandas DataFrame: results are a Series or DataFrame with its index."""

    index: Any = None  # the DataFrame's index

    def row_labels(self, positions: np.ndarray) -> list[str]:
        return [str(label) for label in self.index.take(np.asarray(positions, dtype=np.intp))]

    def _dress(self, values: Any, name: str, columns: Sequence[str] | None) -> Any:
        import pandas as pd

        if values.ndim == 1:
            return pd.Series(values, index=self.index, name=name)
        names = _output_names(name, values.shape[1]) if columns is None else list(columns)
        return pd.DataFrame(values, index=self.index, columns=names)


@dataclass(frozen=True, eq=False)
class DaskFrameContainer(Container):
    """A Dask DataFrame: results are a Dask Series or DataFrame with its index and divisions."""

    index: Any = None  # the DataFrame's Dask index

    def _dress(self, values: Any, name: str, columns: Sequence[str] | None) -> Any:
        import dask.dataframe as dd

        if values.ndim == 1:
            return dd.from_dask_array(values, columns=name, index=self.index)
        names = _output_names(name, values.shape[1]) if columns is None else list(columns)
        return dd.from_dask_array(values, columns=names, index=self.index)


@dataclass(frozen=True, eq=False)
class XarrayContainer(Container):
    """An xarray DataArray: results are a DataArray with its row dimension and coordinates."""

    row_dimension: Any = None  # name of the first dimension
    coordinates: Any = None  # Dataset of the coordinates that lie along the row dimension only

    def row_labels(self, positions: np.ndarray) -> list[str]:
        index = self.coordinates.indexes.get(self.row_dimension)
        if index is None:
            return super().row_labels(positions)
        return [str(label) for label in index.take(np.asarray(positions, dtype=np.intp))]

    def _dress(self, values: Any, name: str, columns: Sequence[str] | None) -> Any:
        import xarray as xr

        dimensions, coordinates = [self.row_dimension], dict(self.coordinates.coords)
        if values.ndim == 2:
            taken = {self.row_dimension, *self.coordinates.coords}
            dimensions.append("feature" if "feature" not in taken else "output_feature")
            if columns is not None:
                coordinates[dimensions[1]] = list(columns)
        return xr.DataArray(values, coords=coordinates, dims=dimensions, name=name)


def _output_names(name: str, count: int) -> list[str]:
    return [f"{name}_{column}" for column in range(count)]


class Source(Protocol):
    """Cuts one kind of input into blocks."""

    def blocks(self, block_rows: int) -> list[Block]:
        """Return blocks of exactly block_rows rows in order; the last may be shorter."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """A two-dimensional numeric input that has passed every check that needs no scan."""

    n_rows: int  # number of rows
    n_columns: int  # number of columns
    dtype: np.dtype  # dtype of the loaded blocks
    sparse: bool = False  # loaded blocks are csr_array
    density: float = 1.0  # stored fraction if sparse (estimated if the input is lazy)
    column_names: tuple[str, ...] | None = None  # only when every column name is a string
    in_memory: bool = False  # the values are in this process already
    container: Container  # puts results into the input's own form
    source: Source = field(repr=False)  # cuts the input into blocks
    # rows that blocks number, ascending
    constrained: np.ndarray | None = field(default=None, repr=False)
    sampled: np.ndarray | None = field(default=None, repr=False)  # rows to begin from, if not any
    views: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # first and last + 1 columns

    @property
    def together(self) -> list[tuple[int, int]]:
        """First and last + 1 of adjacent columns of one category, known by names `name=value`."""
        parts = [name.partition(BETWEEN) for name in self.column_names or ()]
        owners = [owner if sign else number for number, (owner, sign, _) in enumerate(parts)]
        edges = [i for i in range(1, len(owners)) if owners[i] != owners[i - 1]]
        runs = zip([0, *edges], [*edges, len(owners)], strict=True)
        return [(start, stop) for start, stop in runs if parts and parts[start][1]]

    def blocks(self, block_rows: int) -> list[Block]:
        """Return the rows as blocks of exactly block_rows rows, the last one shorter if need be."""
        blocks = self.source.blocks(block_rows)
        if self.constrained is not None:
            blocks = with_constrained(blocks, self.constrained)
        return of_their_own(blocks)


def scan_width(rows: Rows) -> int:
    """Numbers in a row as far as planning goes: sparse rows hold few, however wide they are.

    It must not depend on the density, which is only estimated where rows are lazy.
    """
    return min(rows.n_columns, SPARSE_WIDTH) if rows.sparse else rows.n_columns


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
    check_dimensions(array.ndim, array.shape)
    if array.dtype == object:
        array = numbers_from_objects(array)
    dtype = block_dtype(array.dtype)
    n_rows, n_columns = check_shape(array.shape)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
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
    check_dimensions(matrix.ndim, matrix.shape)
    dtype = block_dtype(matrix.dtype)
    n_rows, n_columns = check_shape(matrix.shape)
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

    n_rows, n_columns = check_shape(frame.shape)
    dtype = frame_dtype(frame.columns, frame.dtypes)
    names = string_names(frame.columns)
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
        block_dtype(values.dtype)
        kept = np.result_type(values.dtype, np.float32)
        return np.ma.filled(values.astype(kept), np.nan)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise UserError(
            f"`X` could not be read as a table of numbers ({error}); make sure that every row has "
            "the same number of columns."
        ) from error
