"""xarray inputs: DataArrays in memory or backed by Dask, and variables of Datasets."""

from __future__ import annotations

from typing import Any

import dask.array as da

from dmkc.data import checks
from dmkc.data.container import XarrayContainer
from dmkc.data.lazy import dask_rows
from dmkc.data.memory import array_rows, sparse_rows
from dmkc.data.rows import Rows
from dmkc.errors import UserError


def data_array_rows(array: Any) -> Rows:
    """Return the rows of a DataArray; its first dimension is the rows."""
    checks.check_dimensions(array.ndim, array.shape)
    row, column = array.dims
    names = checks.string_names(array.indexes[column]) if column in array.indexes else None
    others = [name for name, coord in array.coords.items() if coord.dims != (row,)]
    # Only the coordinates are kept, so that the container does not hold on to the values.
    coordinates = array.drop_vars(others).coords.to_dataset()

    def container(n_rows: int, row_chunks: tuple[int, ...] | None) -> XarrayContainer:
        return XarrayContainer(
            "xarray", n_rows, row_chunks, row_dimension=row, coordinates=coordinates
        )

    if not getattr(array.variable, "_in_memory", True) and array.chunks is None:
        # Opened from a file without chunks: touching its values would load all of them.
        array = array.chunk({row: "auto", column: -1})
    data = array.data
    if isinstance(data, da.Array):
        return dask_rows(data, names, container)
    if hasattr(data, "tocsr"):
        return sparse_rows(data.tocsr(), container(array.shape[0], None), names)
    return array_rows(data, container(array.shape[0], None), names)


def pick_variable(dataset: Any, variable: str | None) -> Any:
    """Return the chosen variable of a Dataset, or say which ones there are."""
    if variable is not None and variable in dataset.variables:
        return dataset[variable]
    there = ", ".join(f"{name!r} {data.shape}" for name, data in dataset.data_vars.items())
    if variable is None:
        raise UserError(
            "X is an xarray Dataset and only one variable can be clustered; choose it with "
            f"variable= or pass X[name]. Its variables are {there or '(none)'}."
        )
    raise UserError(
        f"The Dataset has no variable {variable!r}; its variables are {there or '(none)'}."
    )
