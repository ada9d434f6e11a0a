"""The one entry point for input data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import labelled, lazy, store, views
from dmkc.data.blocks import check_dimensions
from dmkc.data.rows import Rows, array_rows, frame_rows, sparse_rows
from dmkc.errors import UserError, UserTypeError
from dmkc.importing import is_of
from dmkc.typing import TableLike

ACCEPTED = (
    "a NumPy array, a list of rows, a pandas or Dask DataFrame, a Dask array, an xarray "
    "DataArray or Dataset, a SciPy sparse matrix, a zarr.Array, the path of a Zarr array or .npy "
    "file, or a dict or list of such tables with the same rows"
)


def as_rows(
    X: TableLike, *, variable: str | None = None, order: Mapping[str, Any] | None = None
) -> Rows:
    """Check X and return its rows; rows that have been checked are returned as they are.

    variable chooses an array of a Zarr group or a variable of an xarray Dataset; order are the
    views that X must have, in their order, unless it is one table of all their columns.
    """
    if isinstance(X, Rows):
        return X
    if isinstance(X, (str, os.PathLike)):
        location = os.fspath(X)
        if not isinstance(location, str):
            raise UserTypeError(
                "The path of X is given as bytes; decode it with os.fsdecode first."
            )
        return store.store_rows(location, variable)
    if is_of(X, "zarr", "Array") or is_of(X, "zarr", "Group"):
        return store.zarr_object_rows(X, variable)
    if is_of(X, "xarray", "Dataset"):
        if variable is not None:
            return labelled.data_array_rows(labelled.pick_variable(X, variable))
        X = labelled.views_of(X)
        if len(X) == 1 and not order:
            return as_rows(next(iter(X.values())))
    if variable is not None:
        raise UserError(
            f"`variable={variable!r}` chooses from a Zarr group or an xarray Dataset, but `X` is a "
            f"{type(X).__name__}; leave `variable` out."
        )
    if isinstance(X, (list, tuple)) and views.are_tables(X):
        X = views.named(X)
    if isinstance(X, Mapping) and not sp.issparse(X):
        parts = views.in_order_of(X, order) if order else X
        return views.joined_rows({name: _view(name, part) for name, part in parts.items()})
    if is_of(X, "xarray", "DataArray"):
        return labelled.data_array_rows(X)
    if is_of(X, "dask.array", "Array"):
        return lazy.dask_rows(X)
    if is_of(X, "dask.dataframe", "DataFrame"):
        return lazy.dask_frame_rows(X)
    if is_of(X, "pandas", "DataFrame"):
        return frame_rows(X)
    if sp.issparse(X):
        return sparse_rows(X)
    if is_of(X, "pandas", "Series") or is_of(X, "dask.dataframe", "Series"):
        check_dimensions(1, X.shape if isinstance(X.shape[0], int) else ("n",))
    if isinstance(X, (np.ndarray, list, tuple)) or hasattr(X, "__array__"):
        return array_rows(X)
    raise UserTypeError(f"`X` is a {type(X).__name__}, which is not supported; pass {ACCEPTED}.")


def _view(name: Any, part: Any) -> Rows:
    """The rows of one view; what is wrong with them is said of it by name."""
    try:
        return as_rows(part)
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"View {name!r}: {problem}") from None
