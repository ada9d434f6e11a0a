"""Pairs of rows from whatever a user has: row numbers, index labels, a file.

A pair may carry a weight in a third column, which matters where constraints are penalties.  Here
pairs become row numbers and every mistake that one list alone can show is refused.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dmkc.data import Container
from dmkc.data.rows import PandasContainer, XarrayContainer
from dmkc.errors import UserError

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}


@dataclass(frozen=True)
class Pairs:
    """Distinct unordered pairs of rows, the smaller row number first."""

    rows: np.ndarray
    """(pairs, 2) row numbers."""
    weights: np.ndarray | None
    """One positive weight per pair, or None where none were given."""

    def __len__(self) -> int:
        return len(self.rows)


def as_pairs(source: Any, name: str, container: Container) -> tuple[Pairs, int]:
    """The pairs of one list, and how many repetitions of a pair were left out.

    Where rows have an index, its labels name them; whole numbers are row numbers where the labels
    are something else.
    """
    table = _table(source, name, row_index(container))
    weights = None
    if table.shape[1] == 3:
        weights = _weights(table[:, 2], name)
        table = table[:, :2]
    rows = _positions(table, name, container)
    same = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if len(same):
        (label,) = container.row_labels(rows[same[:1], 0])
        raise UserError(f"`{name}` pairs row {label} with itself; drop that pair.")
    rows = np.sort(rows, axis=1)
    key = rows[:, 0] * np.int64(container.n_rows) + rows[:, 1]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    repeated = len(key) - len(first)
    if repeated and weights is not None:
        largest = np.zeros(len(first))
        np.maximum.at(largest, which, weights)
        weights = largest
    elif weights is not None:
        weights = weights[first]
    return Pairs(rows[first], weights), repeated


def pair_rows(source: Any, name: str, container: Container) -> np.ndarray:
    """Row numbers of pairs, as many as were given and in the order given."""
    table = _table(source, name, row_index(container))
    return _positions(table[:, :2], name, container)


def _table(source: Any, name: str, index: pd.Index | None) -> np.ndarray:
    """The pairs as an array of two or three columns."""
    if source is None:
        return np.empty((0, 2), np.int64)
    if isinstance(source, (str, os.PathLike)):
        source = _without_names(read_pairs(os.fspath(source), name), os.fspath(source), index)
    if isinstance(source, pd.DataFrame):
        table = source.to_numpy(dtype=None if _numeric(source) else object)
    elif isinstance(source, np.ndarray):
        table = source
    elif hasattr(source, "compute") or hasattr(source, "__array__"):
        table = np.asarray(source)
    else:
        try:
            table = np.array(list(source), dtype=object)
        except (TypeError, ValueError):
            table = np.empty(0)
    if table.size == 0 and table.ndim <= 2:
        return np.empty((0, 2), np.int64)
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise UserError(
            f"`{name}` must be pairs of rows: a table with two columns, and a third one where "
            f"pairs have weights, but its shape is {table.shape}."
        )
    return table


def read_pairs(path: str, name: str) -> Any:
    """The pairs in a CSV (with or without names in its first line), .npy or Zarr file."""
    place = Path(path.removeprefix("file://")).expanduser()
    if "://" not in path.removeprefix("file://") and not place.exists():
        raise UserError(f"There is no file {path} to read `{name}` from.")
    suffix = place.suffix.lower()
    if suffix == ".npy":
        return np.load(place, allow_pickle=False)
    if suffix in SEPARATORS:
        return _read_csv(path, SEPARATORS[suffix], name)
    import zarr

    try:
        found = zarr.open_array(path, mode="r")
    except Exception as problem:
        raise UserError(
            f"{path} cannot be read as pairs for `{name}`: give a .csv, .tsv, .txt or .npy file or "
            f"a Zarr array ({problem})."
        ) from None
    return np.asarray(found[...])


def _read_csv(path: str, separator: str, name: str) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path, sep=separator, header=None, comment="#")
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except (pd.errors.ParserError, UnicodeDecodeError) as problem:
        text = " ".join(str(problem).split())
        raise UserError(f"{path} cannot be read as pairs for `{name}` ({text}).") from None
    if _numeric(frame) or len(frame) < 2:
        return frame
    body = frame.iloc[1:].reset_index(drop=True).infer_objects()
    as_numbers = body.apply(pd.to_numeric, errors="coerce")
    header = pd.to_numeric(frame.iloc[0], errors="coerce").isna()
    # A word above a column of numbers is its name.
    numbers = as_numbers.notna().all()
    if (header & numbers).any():
        for column in body.columns[numbers]:
            body[column] = as_numbers[column]
        return body
    return frame


def _without_names(table: Any, path: str, index: pd.Index | None) -> Any:
    """A table of row labels without a first line that names its columns."""
    if not isinstance(table, pd.DataFrame) or index is None or len(table) < 2:
        return table
    first = table.iloc[0, :2]
    if _numeric(table) or index.isin(first).any():
        return table
    warnings.warn(
        f"The first line of {path} ({', '.join(map(str, first))}) names no rows of X and is taken "
        "for the names of columns.",
        stacklevel=2,
    )
    return table.iloc[1:]


def _numeric(frame: pd.DataFrame) -> bool:
    return all(isinstance(t, np.dtype) and t.kind in "iuf" for t in frame.dtypes)


def _weights(column: np.ndarray, name: str) -> np.ndarray:
    try:
        weights = column.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError(
            f"The third column of `{name}` must hold weights, which are numbers."
        ) from None
    if not np.isfinite(weights).all() or (weights <= 0).any():
        raise UserError(f"The weights of `{name}` must be finite numbers greater than 0.")
    return weights


def _positions(table: np.ndarray, name: str, container: Container) -> np.ndarray:
    """Row numbers of the rows that pairs name."""
    if not len(table):
        return np.empty((0, 2), np.int64)
    index = row_index(container)
    whole = _whole_numbers(table)
    if index is None or (whole is not None and index.inferred_type != "integer"):
        if whole is None:
            raise UserError(
                f"`{name}` must name rows by their numbers, which are whole numbers, because `X` "
                f"has no row labels; it holds {_example(table)!r}."
            )
        outside = whole[(whole < 0) | (whole >= container.n_rows)]
        if len(outside):
            raise UserError(
                f"`{name}` names row {outside[0]}, but `X` has {container.n_rows} rows, numbered "
                "from 0."
            )
        return whole
    if not index.is_unique:
        repeated = index[index.duplicated()][0]
        raise UserError(
            f"`{name}` names rows by the index of `X`, but the label {repeated!r} stands for "
            "several rows; make the index unique or reset it to give row numbers."
        )
    asked = table.ravel() if whole is None else whole.ravel()
    found = index.get_indexer(pd.Index(asked))
    if (found < 0).any():
        label = asked[np.flatnonzero(found < 0)[0]]
        raise UserError(f"`{name}` names row {label!r}, which is not in the index of `X`.")
    return found.reshape(-1, 2).astype(np.int64)


def row_index(container: Container) -> pd.Index | None:
    """The labels of the rows, where they have some in memory."""
    if isinstance(container, PandasContainer):
        return container.index
    if isinstance(container, XarrayContainer):
        return container.coordinates.indexes.get(container.row_dimension)
    return None


def _whole_numbers(table: np.ndarray) -> np.ndarray | None:
    """The table as integers, or None where something in it is no whole number."""
    if table.dtype.kind in "iu":
        return table.astype(np.int64)
    if table.dtype == object:
        if not all(isinstance(v, Real) and not isinstance(v, bool) for v in table.ravel()):
            return None
        if all(isinstance(v, Integral) for v in table.ravel()):
            return table.astype(np.int64)
        table = table.astype(np.float64)
    if table.dtype.kind != "f" or not np.array_equal(table, np.rint(table)):
        return None
    return table.astype(np.int64)


def _example(table: np.ndarray) -> Any:
    for value in table.ravel():
        if not isinstance(value, Integral) and not (
            isinstance(value, Real) and float(value).is_integer()
        ):
            return value.item() if isinstance(value, np.generic) else value
    return table.ravel()[0]
