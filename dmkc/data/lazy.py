"""Inputs that Dask computes: Dask arrays, dense or sparse, and Dask DataFrames."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

from dmkc.data import passes
from dmkc.data.blocks import (
    Block,
    Lazy,
    block_dtype,
    bounds,
    check_dimensions,
    check_shape,
    csr,
    csr_rows,
    dense,
    frame_dtype,
    frame_values,
    string_names,
)
from dmkc.data.recut import Cut, Join, joined, recut
from dmkc.data.rows import Container, DaskFrameContainer, Rows
from dmkc.errors import UserError

if TYPE_CHECKING:
    import dask.array as da

log = logging.getLogger("dmkc")


@dataclass(frozen=True, eq=False)
class DaskSource:
    """Cuts a Dask array with dense chunks."""

    array: da.Array  # the whole input, with known chunks
    dtype: np.dtype  # dtype of the loaded blocks

    def blocks(self, block_rows: int) -> list[Block]:
        return _blocks(
            self.array,
            block_rows,
            partial(_dense_rows, dtype=self.dtype),
            partial(_dense_whole, dtype=self.dtype),
        )


@dataclass(frozen=True, eq=False)
class DaskSparseSource:
    """Cuts a Dask array with sparse chunks, which Dask itself cannot rechunk."""

    array: da.Array  # the whole input, with known chunks
    dtype: np.dtype  # dtype of the loaded blocks

    def blocks(self, block_rows: int) -> list[Block]:
        return _blocks(
            self.array,
            block_rows,
            partial(_sparse_rows, dtype=self.dtype),
            partial(_sparse_whole, dtype=self.dtype),
        )


def _blocks(array: da.Array, block_rows: int, cut: Cut, join: Join) -> list[Block]:
    edges = bounds(array.shape[0], block_rows)
    graph, keys = recut(array, [stop - start for start, stop in edges], cut, join)
    return [
        Lazy(Delayed(key, graph, layer=key[0]), start, stop)
        for key, (start, stop) in zip(keys, edges, strict=True)
    ]


def dask_rows(
    array: da.Array,
    column_names: tuple[str, ...] | None = None,
    make_container: Callable[[int, tuple[int, ...]], Container] | None = None,
) -> Rows:
    """Return the rows of a Dask array; make_container gets the row count and the row chunks."""
    check_dimensions(array.ndim, array.shape)
    dtype = block_dtype(array.dtype)
    meta = array._meta
    if isinstance(meta, np.ma.MaskedArray) and dtype.kind != "f":
        dtype = np.dtype(np.float64)  # masked entries become NaN
    array = _with_known_chunks(array)
    n_rows, n_columns = check_shape(array.shape)
    sparse = sp.issparse(meta) or (not isinstance(meta, np.ndarray) and hasattr(meta, "tocsr"))
    row_chunks = tuple(int(size) for size in array.chunks[0])
    if make_container is None:
        container = Container("dask", n_rows, row_chunks)
    else:
        container = make_container(n_rows, row_chunks)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        sparse=sparse,
        density=_density_of_first_rows(array) if sparse else 1.0,
        column_names=column_names,
        container=container,
        source=DaskSparseSource(array, dtype) if sparse else DaskSource(array, dtype),
    )


def fixed(frame: Any) -> Any:
    """The same frame with partitions that stay as they are.

    Dask joins the partitions of a Parquet file when few of its columns are used, so that the
    index alone would have others than the columns.
    """
    return frame.map_partitions(_as_is, meta=frame._meta).optimize()


def _as_is(part: Any) -> Any:
    return part


def dask_frame_rows(frame: Any) -> Rows:
    """Return the rows of a Dask DataFrame."""
    n_columns = len(frame.columns)
    if n_columns == 0:
        check_shape((len(frame), 0))
    dtype = frame_dtype(frame.columns, frame.dtypes)
    frame = fixed(frame)
    log.info("Counting the rows of the %d partitions of X.", frame.npartitions)
    # The index alone is enough for counting, so that a Parquet reader can leave columns out.
    with passes.counted():
        counts = frame.index.map_partitions(len).compute()
    meta = np.empty((0, n_columns), dtype=dtype)
    array = frame.map_partitions(frame_values, dtype, meta=meta).copy()
    array._chunks = (tuple(int(count) for count in counts), (n_columns,))
    rows = dask_rows(array, string_names(frame.columns))
    container = DaskFrameContainer(
        "dask-dataframe", rows.n_rows, rows.container.row_chunks, index=frame.index
    )
    return replace(rows, container=container)


def _with_known_chunks(array: da.Array) -> da.Array:
    if not any(np.isnan(size) for axis in array.chunks for size in axis):
        return array
    log.info("Computing the unknown chunk sizes of X; this runs its whole graph once.")
    known = array.copy()  # compute_chunk_sizes writes into the array it is called on
    try:
        known.compute_chunk_sizes()
    except Exception as error:
        raise UserError(
            f"The chunk sizes of `X` are unknown and computing them failed ({error}); make X from "
            "chunks of known shape, or call X.compute_chunk_sizes() first."
        ) from error
    return known


def _density_of_first_rows(array: da.Array) -> float:
    """Estimate the stored fraction from the first chunks that have rows."""
    first = next(index for index, size in enumerate(array.chunks[0]) if size)
    chunks = dask.compute(*array.to_delayed()[first])
    stored = sum(int(csr(chunk, chunk.dtype).nnz) for chunk in chunks)
    return stored / (array.chunks[0][first] * array.shape[1])


def _dense_rows(chunk: Any, low: int, high: int, dtype: np.dtype) -> np.ndarray:
    return dense(chunk[low:high], dtype)


def _dense_whole(pieces: list[list[Any]], dtype: np.dtype) -> np.ndarray:
    # masked and sparse pieces become plain ones first, which NumPy can join
    return dense(joined([[dense(piece, dtype) for piece in row] for row in pieces]), dtype)


def _sparse_rows(chunk: Any, low: int, high: int, dtype: np.dtype) -> Any:
    # A copy, because a view would keep the whole chunk alive.
    return csr_rows(csr(chunk, dtype), low, high).copy()


def _sparse_whole(pieces: list[list[Any]], dtype: np.dtype) -> Any:
    """Join a grid of row pieces and column chunks into one csr_array."""
    grid = [[csr(chunk, dtype) for chunk in row] for row in pieces]
    if len(grid) == 1 and len(grid[0]) == 1:
        return grid[0][0]
    # A column chunk of no columns would break the stacking and adds nothing.
    rows = [sp.hstack([chunk for chunk in row if chunk.shape[1]], format="csr") for row in grid]
    return csr(sp.vstack(rows, format="csr"), dtype)
