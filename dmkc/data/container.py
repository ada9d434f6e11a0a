"""The form an input came in, so that results go back to the caller in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from dmkc.errors import UserError


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

    def wrap(self, values: Any, name: str = "label") -> Any:
        """Return per-row results (a NumPy or Dask array, 1-D or 2-D) in the input's own form."""
        if values.ndim not in (1, 2) or values.shape[0] != self.n_rows:
            raise UserError(
                f"Results must be 1-D or 2-D with {self.n_rows} rows to match X, but their shape "
                f"is {values.shape}."
            )
        return self._dress(self._settle(values), name)

    def row_labels(self, positions: np.ndarray) -> list[str]:
        """Return names of rows for messages: index labels where known, else row numbers."""
        return [str(int(position)) for position in positions]

    def _settle(self, values: Any) -> Any:
        """Return values as the array type this container holds, in the input's row chunks."""
        is_dask = isinstance(values, da.Array)
        if self.row_chunks is None:
            return values.compute() if is_dask else np.asarray(values)
        if is_dask:
            whole = {axis: -1 for axis in range(1, values.ndim)}
            return values.rechunk({0: self.row_chunks, **whole}, method="tasks")
        whole_axes = tuple((size,) for size in values.shape[1:])
        return da.from_array(np.asarray(values), chunks=(self.row_chunks, *whole_axes))

    def _dress(self, values: Any, name: str) -> Any:
        """Return settled values with the input's labels attached."""
        return values


@dataclass(frozen=True, eq=False)
class PandasContainer(Container):
    """A pandas DataFrame: results are a Series or DataFrame with its index."""

    index: Any = None  # the DataFrame's index

    def row_labels(self, positions: np.ndarray) -> list[str]:
        return [str(label) for label in self.index.take(np.asarray(positions, dtype=np.intp))]

    def _dress(self, values: Any, name: str) -> Any:
        import pandas as pd

        if values.ndim == 1:
            return pd.Series(values, index=self.index, name=name)
        return pd.DataFrame(values, index=self.index, columns=_output_names(name, values.shape[1]))


@dataclass(frozen=True, eq=False)
class DaskFrameContainer(Container):
    """A Dask DataFrame: results are a Dask Series or DataFrame with its index and divisions."""

    index: Any = None  # the DataFrame's Dask index

    def _dress(self, values: Any, name: str) -> Any:
        import dask.dataframe as dd

        columns = name if values.ndim == 1 else _output_names(name, values.shape[1])
        return dd.from_dask_array(values, columns=columns, index=self.index)


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

    def _dress(self, values: Any, name: str) -> Any:
        import xarray as xr

        dimensions = [self.row_dimension]
        if values.ndim == 2:
            taken = {self.row_dimension, *self.coordinates.coords}
            dimensions.append("feature" if "feature" not in taken else "output_feature")
        return xr.DataArray(values, coords=self.coordinates.coords, dims=dimensions, name=name)


def _output_names(name: str, count: int) -> list[str]:
    return [f"{name}_{column}" for column in range(count)]
