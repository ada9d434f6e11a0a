"""Names for what users hand over and get back, for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from distributed import Client

TableLike: TypeAlias = Any
"""Rows and columns in any form that `dmkc.data.as_rows` takes."""
PerRow: TypeAlias = Any
"""Something for every row, such as labels: a list, a NumPy or Dask array, a Series, a DataArray."""
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
"""What random numbers are drawn from, as scikit-learn takes it."""
MaybeClient: TypeAlias = "Client | None"
"""The cluster to run on; None: the current one, or threads."""
NamedValues: TypeAlias = dict[str, Any]
"""What is known of one thing, such as a step of a fit, by name."""
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What a file of JSON may hold."""
