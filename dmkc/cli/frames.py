"""Tables with named columns: CSV through pandas, large ones and Parquet through Dask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dmkc.errors import UserError

LARGE_BYTES = 256 << 20
"""CSV files beyond this size are read in pieces on every pass."""
SAMPLE_ROWS = 1000


@dataclass(frozen=True)
class TableOptions:
    """How a table is read and which of its columns count."""

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    index_column: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    dtype: str | None = None
    missing: tuple[str, ...] = ()
    drop_missing: bool = False

    @property
    def plain(self) -> bool:
        """Whether nothing is asked for that only tables have."""
        return self == TableOptions()


def read(
    path: str, kind: str, options: TableOptions, names: Sequence[str] | None
) -> tuple[Any, np.ndarray | None]:
    """The chosen columns, and which rows were kept when that is known."""
    if options.dtype is not None:
        _check_dtype(options.dtype)
    if kind == "parquet":
        return _parquet(path, options, names), None
    return _csv(path, options, names)


def chosen(there: Sequence[Any], options: TableOptions, names: Sequence[str] | None) -> list[Any]:
    """The columns to cluster, in the order asked for."""
    wanted = list(there)
    if options.columns is not None:
        wanted = [_find(column, there) for column in options.columns]
    elif names is not None and set(names) <= set(there):
        wanted = list(names)
    elif names is not None and any(isinstance(column, str) for column in there):
        absent = ", ".join(name for name in names if name not in there)
        raise UserError(f"The table lacks columns that the model was fitted on: {absent}.")
    out = [_find(column, there) for column in options.exclude]
    if options.index_column is not None:
        out.append(_find(options.index_column, there))
    kept = [column for column in wanted if column not in out]
    if not kept:
        raise UserError("No column is left to cluster; choose fewer with --exclude.")
    return kept


def csv_has_header(path: str, delimiter: str | None) -> bool:
    """Whether the first line of a file holds names: a word, or the numbers 0, 1, 2, ... .

    Empty cells are missing values and decide nothing.
    """
    first = _pandas(path, delimiter, header=None, nrows=1, dtype=str).iloc[0].dropna()
    numbers = pd.to_numeric(first, errors="coerce")
    counted = len(first) > 1 and list(first) == [str(i) for i in range(len(first))]
    return counted or bool(numbers.isna().any())


def read_csv(path: str, delimiter: str | None, header: bool | None, **kwargs: Any) -> pd.DataFrame:
    """A CSV in memory; columns without names are numbered."""
    if header is None:
        header = csv_has_header(path, delimiter)
    return _pandas(path, delimiter, header=0 if header else None, **kwargs)


def _csv(
    path: str, options: TableOptions, names: Sequence[str] | None
) -> tuple[Any, np.ndarray | None]:
    header, delimiter = options.header, options.delimiter
    if header is None:
        header = csv_has_header(path, delimiter)
    missing = {"na_values": list(options.missing)}
    head = read_csv(path, delimiter, header, nrows=SAMPLE_ROWS, **missing)
    columns = chosen(list(head.columns), options, names)
    dtypes = {column: options.dtype for column in columns} if options.dtype else None
    if _is_large(path):
        return _large_csv(path, header, head, columns, options), None
    index = _find(options.index_column, list(head.columns)) if options.index_column else None
    used = [*columns, *([index] if index is not None else [])]
    try:
        frame = read_csv(path, delimiter, header, usecols=used, dtype=dtypes, **missing)
    except UserError:
        raise
    except (ValueError, OverflowError) as problem:
        raise UserError(f"{path} cannot be read as numbers ({problem}).") from None
    if index is not None:
        frame = frame.set_index(index)
    frame = frame[columns]
    gaps = frame.isna().any(axis=1).to_numpy()
    if not options.drop_missing:
        if gaps.any():
            raise UserError(
                f"{path} has {int(gaps.sum())} rows with missing values, the first at row "
                f"{frame.index[gaps][0]}; drop such rows with --drop-missing or fill them in."
            )
        return frame, None
    return frame[~gaps], ~gaps


def _large_csv(
    path: str, header: bool, head: pd.DataFrame, columns: list[Any], options: TableOptions
) -> Any:
    import dask.dataframe as dd

    from dmkc.data import as_rows

    as_rows(head[columns])  # Refuses columns of text by name before anything long begins.
    frame = dd.read_csv(
        path,
        sep=options.delimiter or r"\s+",
        header=0 if header else None,
        usecols=columns,
        na_values=list(options.missing),
        # Whole numbers at the top of a file may be followed by fractions or gaps.
        dtype={column: options.dtype or "float64" for column in columns},
    )[columns]
    return frame.dropna() if options.drop_missing else frame


def _parquet(path: str, options: TableOptions, names: Sequence[str] | None) -> Any:
    import dask.dataframe as dd

    for value, flag in ((options.header, "--header"), (options.missing, "--missing")):
        if value:
            raise UserError(f"{flag} is for CSV files, and {path} is Parquet.")
    try:
        there = list(dd.read_parquet(path).columns)
        columns = chosen(there, options, names)
        frame = dd.read_parquet(path, columns=columns)
    except UserError:
        raise
    except Exception as problem:
        raise UserError(f"{path} cannot be read as Parquet ({problem}).") from None
    if options.dtype is not None:
        frame = frame.astype(options.dtype)
    return frame.dropna() if options.drop_missing else frame


def _pandas(path: str, delimiter: str | None, **kwargs: Any) -> pd.DataFrame:
    try:
        return pd.read_csv(path, sep=delimiter or r"\s+", **kwargs)
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty.") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as problem:
        text = " ".join(str(problem).split())
        raise UserError(f"{path} cannot be read as a table ({text}).") from None


def _is_large(path: str) -> bool:
    if "://" in path:
        return True
    # Compressed files cannot be read in pieces.
    packed = path.endswith((".gz", ".bz2", ".xz", ".zst"))
    return not packed and os.path.getsize(path) > LARGE_BYTES


def _find(name: str, there: Sequence[Any]) -> Any:
    """A column by name, or by number where columns have no names."""
    if name in there:
        return name
    if name.isdigit() and int(name) in there:
        return int(name)
    shown = ", ".join(map(str, there[:20])) + (", ..." if len(there) > 20 else "")
    raise UserError(f"There is no column {name!r}; the columns are {shown}.")


def _check_dtype(name: str) -> None:
    try:
        fine = np.dtype(name).kind in "iuf"
    except TypeError:
        fine = False
    if not fine:
        raise UserError(f"{name!r} is not a type of numbers; use one such as float32 or float64.")
