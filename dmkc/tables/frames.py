"""Every kind of frame as a pandas or a Dask one, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask

from dmkc.data import passes
from dmkc.errors import UserError, UserTypeError
from dmkc.importing import is_of


def as_frame(X: Any) -> Any:
    """X as a pandas or Dask DataFrame; polars frames and Datasets of 1-D variables become one."""
    if is_of(X, "pandas", "DataFrame") or is_lazy(X):
        found = X
    elif is_of(X, "polars", "LazyFrame"):
        found = X.collect().to_pandas()
    elif is_of(X, "polars", "DataFrame"):
        found = X.to_pandas()
    elif is_of(X, "xarray", "Dataset") and all(v.ndim == 1 for v in X.data_vars.values()):
        found = X.to_dataframe()
    else:
        raise UserTypeError(
            f"`X` is a {type(X).__name__}, which has no columns of different kinds; pass a pandas, "
            "Dask or polars DataFrame, or an xarray Dataset of 1-D variables."
        )
    names = list(found.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"The table has two columns {twice[0]!r}; give each a name of its own.")
    return found


def is_table(X: Any) -> bool:
    """Whether X is a frame of named columns."""
    known = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"))
    return is_lazy(X) or any(is_of(X, *each) for each in known)


def is_lazy(X: Any) -> bool:
    """Whether a frame is computed by Dask."""
    return is_of(X, "dask.dataframe", "DataFrame")


def of_parts(frame: Any, function: Callable[[Any], Any]) -> list[Any]:
    """What a function says of every partition of a frame; one in memory is its own."""
    if not is_lazy(frame):
        return [function(frame)]
    ask = dask.delayed(function, pure=False)
    with passes.counted():
        return list(dask.compute(*[ask(part) for part in frame.to_delayed()]))
