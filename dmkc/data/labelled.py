"""xarray inputs: DataArrays in memory or backed by Dask, and variables of Datasets."""

from __future__ import annotations

from typing import Any

from dmkc.data.blocks import check_dimensions, string_names
from dmkc.data.lazy import dask_rows
from dmkc.data.rows import Rows, XarrayContainer, array_rows, sparse_rows
from dmkc.errors import UserError
from dmkc.importing import is_of


def data_array_rows(array: Any) -> Rows:
    """Return the rows of a DataArray; its first dimension is the rows."""
    check_dimensions(array.ndim, array.shape)
    row, column = array.dims
    names = string_names(array.indexes[column]) if column in array.indexes else None
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
    if is_of(data, "dask.array", "Array"):
        return dask_rows(data, names, container)
    if hasattr(data, "tocsr"):
        return sparse_rows(data.tocsr(), container(array.shape[0], None), names)
    return array_rows(data, container(array.shape[0], None), names)


def views_of(dataset: Any) -> dict[str, Any]:
    """The 2-D variables of a Dataset by name, and its 1-D variables as one table, "columns"."""
    import xarray as xr

    wide = {str(name): data for name, data in dataset.data_vars.items() if data.ndim == 2}
    flat = {str(name): data for name, data in dataset.data_vars.items() if data.ndim == 1}
    other = [name for name, data in dataset.data_vars.items() if data.ndim not in (1, 2)]
    if other or not (wide or flat):
        what = f"the variable {other[0]!r} has {dataset[other[0]].ndim} dimensions" if other else ""
        raise UserError(
            f"A Dataset is clustered by its 1-D and 2-D variables, but {what or 'there are none'}; "
            "choose one with `variable=` or pass X[name]."
        )
    rows = {name: data.dims[0] for name, data in (wide | flat).items()}
    first = next(iter(rows))
    for name, row in rows.items():
        if row != rows[first]:
            raise UserError(
                f"The variables of the Dataset do not line up: the rows of {first!r} are "
                f"{rows[first]!r} and those of {name!r} are {row!r}."
            )
    if flat:
        column = next(n for n in ("column", "variable", "columns_") if n not in dataset.dims)
        stacked = xr.concat([data.drop_vars(_others(data)) for data in flat.values()], dim=column)
        table = stacked.assign_coords({column: list(flat)}).transpose(rows[first], column)
        wide = {**wide, "columns": table}
    return wide


def _others(data: Any) -> list[Any]:
    """Coordinates beside that of the rows."""
    return [name for name in data.coords if name not in data.dims]


def pick_variable(dataset: Any, variable: str) -> Any:
    """Return the chosen variable of a Dataset, or say which ones there are."""
    if variable in dataset.variables:
        return dataset[variable]
    there = ", ".join(f"{name!r} {data.shape}" for name, data in dataset.data_vars.items())
    raise UserError(
        f"The Dataset has no variable {variable!r}; its variables are {there or '(none)'}."
    )
