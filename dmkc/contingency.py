"""Contingency tables of classes and clusters, counted block by block.

The table of a distributed array is the sum of its blocks' tables: every block is read once, and
nothing but tables travels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dmkc.errors import UserError
from dmkc.typing import PerRow

Array = NDArray[Any]

MAX_CELLS = 20_000_000
_FAN_IN = 16


@dataclass(frozen=True, eq=False)
class Contingency:
    """The weight of the rows of every class (table's rows) in every cluster (its columns).

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc.metrics import Contingency, accuracy
    >>> counted = Contingency(np.array([[9, 1], [2, 8]]), np.array(["a", "b"]), np.array([0, 1]))
    >>> accuracy(counted)
    0.85
    """

    table: Array
    classes: Array
    clusters: Array

    def __post_init__(self) -> None:
        if self.table.shape != (len(self.classes), len(self.clusters)):
            raise UserError(
                f"The table's shape {self.table.shape} does not fit {len(self.classes)} classes "
                f"and {len(self.clusters)} clusters; give one row per class and one column per "
                "cluster."
            )
        if not np.isfinite(self.table).all() or (self.table < 0).any():
            raise UserError("The table has negative or non-finite cells; give weights >= 0.")


def contingency(truth: PerRow, labels: PerRow, sample_weight: PerRow = None) -> Contingency:
    """Count the rows (or sum their weights) of each pair of true class and cluster.

    NumPy arrays, lists, pandas Series, xarray and Dask arrays are read; when any of them is a
    Dask array the others follow its chunks (those of `truth` first) and workers do the counting.

    Examples
    --------
    >>> from dmkc.metrics import contingency
    >>> contingency(["a", "a", "b"], [0, 1, 1]).table
    array([[1, 1],
           [0, 1]])
    """
    given = {"truth": truth, "labels": labels, "sample_weight": sample_weight}
    arrays = {name: _vector(name, value) for name, value in given.items() if value is not None}
    for name in ("truth", "labels"):
        if name not in arrays:
            raise UserError(f"No {name} were given; pass one value per row.")
    rows = len(arrays["truth"])
    for name, array in arrays.items():
        if len(array) != rows:
            raise UserError(
                f"truth has {rows} rows but {name} has {len(array)}; pass arrays of one length."
            )
    if rows == 0:
        raise UserError("There are no rows to compare; pass at least one row.")

    lead = next((array for array in arrays.values() if isinstance(array, da.Array)), None)
    if lead is None:
        result = _block_table(*arrays.values())
    else:
        result = _dask_table([_like(array, lead) for array in arrays.values()])
    if result.table.sum() <= 0:
        raise UserError("All sample weights are zero; give at least one row a positive weight.")
    return result


def cluster_name(label: Any) -> str:
    """A cluster by its label; -1 is noise."""
    return "noise" if label == -1 else f"cluster {label}"


def _vector(name: str, value: Any) -> Any:
    """A one-dimensional NumPy or Dask array (of known chunks) of what was passed."""
    if hasattr(value, "to_dask_array"):
        value = value.to_dask_array(lengths=True)
    elif type(value).__module__.partition(".")[0] == "xarray":
        value = value.data
    if isinstance(value, da.Array):
        if any(math.isnan(size) for size in value.shape):
            value = value.compute_chunk_sizes()
    else:
        value = np.asarray(value)
    if value.ndim != 1:
        raise UserError(
            f"{name} has {value.ndim} dimensions; pass a one-dimensional array, one value per row."
        )
    return value


def _like(array: Any, lead: Any) -> Any:
    if isinstance(array, da.Array):
        return array.rechunk(lead.chunks)
    return da.from_array(array, chunks=lead.chunks)


def _dask_table(arrays: list[Any]) -> Contingency:
    # Unoptimised graphs keep the keys that truth and labels share, so that their common
    # ancestors are computed once.
    blocks = [array.to_delayed(optimize_graph=False).ravel() for array in arrays]
    count, merge = dask.delayed(_block_table, pure=True), dask.delayed(_merge, pure=True)
    tables = [count(*parts) for parts in zip(*blocks, strict=True)]
    while len(tables) > 1:
        tables = [merge(tables[i : i + _FAN_IN]) for i in range(0, len(tables), _FAN_IN)]
    return tables[0].compute()


def _block_table(truth: Array, labels: Array, weight: Array | None = None) -> Contingency:
    classes, row = _values("truth", np.asarray(truth))
    clusters, column = _values("labels", np.asarray(labels))
    shape = _shape(classes, clusters)
    if weight is not None:
        weight = np.asarray(weight)
        if weight.dtype.kind not in "biuf" or not np.isfinite(weight).all() or (weight < 0).any():
            raise UserError("sample_weight must hold finite numbers >= 0; correct the weights.")
        weight = weight.astype(np.float64)
    cells = np.bincount(row * shape[1] + column, weight, minlength=shape[0] * shape[1])
    return Contingency(cells.reshape(shape), classes, clusters)


def _values(name: str, array: Array) -> tuple[Array, Array]:
    """The distinct values, sorted, and every row's place among them."""
    if pd.isna(array).any():
        raise UserError(f"{name} holds missing values (NaN); drop those rows or label them.")
    try:
        values, place = np.unique(array, return_inverse=True)
    except TypeError:
        raise UserError(
            f"{name} mixes values that cannot be sorted; use one type of value for all rows."
        ) from None
    return values, place


def _shape(classes: Array, clusters: Array) -> tuple[int, int]:
    if len(classes) * len(clusters) > MAX_CELLS:
        raise UserError(
            f"truth has {len(classes)} and labels {len(clusters)} distinct values, too many for a "
            "table; pass class numbers, not measurements."
        )
    return len(classes), len(clusters)


def _merge(parts: list[Contingency]) -> Contingency:
    classes = np.unique(np.concatenate([part.classes for part in parts]))
    clusters = np.unique(np.concatenate([part.clusters for part in parts]))
    table = np.zeros(_shape(classes, clusters), dtype=np.result_type(*(p.table for p in parts)))
    for part in parts:
        place = np.searchsorted(classes, part.classes), np.searchsorted(clusters, part.clusters)
        table[np.ix_(*place)] += part.table
    return Contingency(table, classes, clusters)
