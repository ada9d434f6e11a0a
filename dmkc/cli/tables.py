"""Input rows from files: Zarr, .npy, .npz, and tables with named columns (CSV, Parquet)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from dmkc.cli.options import as_argument
from dmkc.cli.raw import COMPRESSED, UNPACKING, opened, read_npz, taken_from_pipe
from dmkc.data import as_rows
from dmkc.errors import UserError
from dmkc.showing import printable
from dmkc.typing import TableLike

LARGE_BYTES = 256 << 20
"""CSV files beyond this size are read in pieces on every pass."""
SAMPLE_ROWS = 1000
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": None, ".data": ","}
"""None: any white space."""


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


def read_frame(
    path: str, kind: str, options: TableOptions, names: Sequence[str] | None
) -> tuple[Any, np.ndarray | None]:
    """The chosen columns, and which rows were kept when that is known."""
    if options.dtype is not None:
        _check_dtype(options.dtype)
    if kind == "parquet":
        return _parquet(path, options, names), None
    return _csv(path, options, names)


def chosen_columns(
    there: Sequence[Any], options: TableOptions, names: Sequence[str] | None
) -> list[Any]:
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


def csv_has_header(path: str, delimiter: str | None, held: bytes | None = None) -> bool:
    """Whether the first line of a file holds names: a word, or the numbers 0, 1, 2, ... .

    Empty cells are missing values and decide nothing.
    """
    first = _pandas(path, delimiter, held, header=None, nrows=1, dtype=str).iloc[0].dropna()
    numbers = pd.to_numeric(first, errors="coerce")
    counted = len(first) > 1 and list(first) == [str(i) for i in range(len(first))]
    return counted or bool(numbers.isna().any())


def read_csv(
    path: str,
    delimiter: str | None,
    header: bool | None,
    held: bytes | None = None,
    **kwargs: Any,
) -> pd.DataFrame:
    """A CSV in memory; columns without names are numbered.  What a pipe gave is `held`."""
    if header is None:
        header = csv_has_header(path, delimiter, held)
    return _pandas(path, delimiter, held, header=0 if header else None, **kwargs)


def _csv(
    path: str, options: TableOptions, names: Sequence[str] | None
) -> tuple[Any, np.ndarray | None]:
    header, delimiter = options.header, options.delimiter
    held = taken_from_pipe(path, delimiter)
    if header is None:
        header = csv_has_header(path, delimiter, held)
    missing = {"na_values": list(options.missing)}
    head = read_csv(path, delimiter, header, held, nrows=SAMPLE_ROWS, **missing)
    columns = chosen_columns(list(head.columns), options, names)
    dtypes = {column: options.dtype for column in columns} if options.dtype else None
    if _is_large(path):
        return _large_csv(path, header, head, columns, options), None
    index = _find(options.index_column, list(head.columns)) if options.index_column else None
    used = [*columns, *([index] if index is not None else [])]
    try:
        frame = read_csv(path, delimiter, header, held, usecols=used, dtype=dtypes, **missing)
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
        columns = chosen_columns(there, options, names)
        frame = dd.read_parquet(path, columns=columns)
    except UserError:
        raise
    except Exception as problem:
        raise UserError(f"{path} cannot be read as Parquet ({problem}).") from None
    if options.dtype is not None:
        frame = frame.astype(options.dtype)
    return frame.dropna() if options.drop_missing else frame


def _pandas(path: str, delimiter: str | None, held: bytes | None, **kwargs: Any) -> pd.DataFrame:
    try:
        with opened(path, held) as source:
            return pd.read_csv(source, sep=delimiter or r"\s+", **kwargs)
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty.") from None
    except (pd.errors.ParserError, UnicodeDecodeError, *UNPACKING) as problem:
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


@dataclass(frozen=True, eq=False)
class Table:
    """Input rows in the form a clusterer takes."""

    X: TableLike
    n_rows: int | None
    """None when only a pass over the file would tell."""
    kept: np.ndarray | None = None
    """Which rows of the file were kept, when some were dropped and all are in memory."""
    notes: tuple[str, ...] = ()


def add_input(parser: argparse.ArgumentParser) -> None:
    """The options that say how the input is read."""
    parser.add_argument(
        "--view",
        action="append",
        type=as_argument(_view),
        metavar="NAME=FILE",
        help="instead of INPUT, one of several files with the same rows; may be repeated",
    )
    group = parser.add_argument_group("input")
    group.add_argument(
        "--variable", metavar="NAME", help="array of a Zarr group or an .npz file [X]"
    )
    group.add_argument("--columns", metavar="A,B", help="columns of a table to use [all]")
    group.add_argument("--exclude", metavar="A,B", help="columns of a table to leave out")
    group.add_argument("--index-column", metavar="A", help="column that names the rows")
    group.add_argument("--delimiter", metavar="C", help="between the fields of a CSV, or 'tab'")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether a CSV begins with names [yes, unless its first line is all numbers]",
    )
    group.add_argument(
        "--column-dtype", metavar="TYPE", help="type of the columns of a CSV, such as float32"
    )
    group.add_argument(
        "--missing", metavar="A,B", help="further values of a CSV that stand for a missing one"
    )
    group.add_argument(
        "--drop-missing", action="store_true", help="drop rows of a table with missing values"
    )


def input_name(args: argparse.Namespace) -> str:
    """The input of a command in a few words, which are safe to print."""
    if args.view:
        return printable(", ".join(name for name, _ in args.view))
    return printable(Path(args.input).name)


def open_table(args: argparse.Namespace, names: Any = None) -> Table:
    """The input of a command; `names` are the columns wanted unless the command chooses some."""
    if (args.input is None) == (not args.view):
        raise UserError("Either INPUT or at least one --view NAME=FILE is required.")
    options = TableOptions(
        columns=_listed(args.columns),
        exclude=_listed(args.exclude) or (),
        index_column=args.index_column,
        delimiter={"tab": "\t", "\\t": "\t"}.get(args.delimiter, args.delimiter),
        header=args.header,
        dtype=args.column_dtype,
        missing=_listed(args.missing) or (),
        drop_missing=args.drop_missing,
    )
    if args.view:
        return _views_table(args.view, args.variable, options)
    return read_table(args.input, args.variable, options, names)


def _view(text: str) -> tuple[str, str]:
    """The name and the file of a view."""
    name, sign, where = text.partition("=")
    if not (name and sign and where):
        raise UserError(f"a view is given as NAME=FILE, such as pixels=pix.zarr, not {text!r}")
    return name, where


def _views_table(
    views: list[tuple[str, str]], variable: str | None, options: TableOptions
) -> Table:
    """Several files with the same rows."""
    names = [name for name, _ in views]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"There are two views {twice[0]!r}; give each a name of its own.")
    if variable is not None or not options.plain:
        raise UserError(
            "Options that choose or convert columns go with one INPUT; name arrays of groups as "
            "NAME=FILE::ARRAY, and make tables as they should be clustered."
        )
    parts = {name: read_table(where, None, options) for name, where in views}
    X = {name: part.X for name, part in parts.items()}
    known = [part.n_rows for part in parts.values() if part.n_rows is not None]
    return Table(X, known[0] if known else None)


def read_table(where: str, variable: str | None, options: TableOptions, names: Any = None) -> Table:
    """The rows at a path, a URL or "path::name"."""
    path, variable = split_name(where, variable)
    kind = kind_of(path)
    if kind == "text" and _suffix(path) not in DELIMITERS:
        raise UserError(
            f"{path} is of no known kind; give .zarr, .npy, .npz, .parquet, .csv, .tsv or .txt."
        )
    if kind in ("csv", "parquet", "text"):
        if variable is not None:
            raise UserError(f"{path} is a table; choose from it with --columns, not --variable.")
        if options.delimiter is None:
            options = replace(options, delimiter=DELIMITERS.get(_suffix(path)))
        frame, kept = read_frame(path, kind, options, names)
        return _frame_table(frame, kept)
    if not options.plain:
        raise UserError(
            f"{path} is an array and not a table (.csv or .parquet), so columns cannot be chosen, "
            "converted or searched for missing values."
        )
    if kind == "npz":
        X = read_npz(path, variable, ("X",))
        return Table(X, as_rows(X).n_rows)
    text = path if variable is None else f"{path}::{variable}"
    return Table(text, as_rows(text).n_rows)


def read_small(where: str) -> np.ndarray:
    """A table of numbers that fits in memory."""
    table = read_table(where, None, TableOptions())
    blocks = as_rows(table.X)
    block = blocks.blocks(blocks.n_rows)[0]
    found = block.delayed.compute() if hasattr(block, "delayed") else block.load()
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def kind_of(path: str) -> str:
    """What a path holds: zarr, npy, npz, parquet, csv, or text for other files."""
    if "://" in path and not path.startswith("file://"):
        suffix = _suffix(path)
        return {".parquet": "parquet", ".csv": "csv"}.get(suffix, "zarr")
    place = Path(path.removeprefix("file://")).expanduser()
    if not place.exists():
        raise UserError(f"There is nothing at {path}; check the path.")
    if place.is_dir():
        if any((place / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
            return "zarr"
        if any(place.glob("*.parquet")) or any(place.glob("*/*.parquet")):
            return "parquet"
        return "zarr"
    suffix = _suffix(path)
    kinds = {name: name[1:] for name in (".npy", ".npz", ".parquet")}
    kind = (kinds | dict.fromkeys((".csv", ".tsv", ".data"), "csv")).get(suffix, "text")
    if not place.is_file() and not (place.is_fifo() and kind in ("csv", "text")):
        raise UserError(f"{path} is not a regular file.")
    return kind


def split_name(where: str, variable: str | None = None) -> tuple[str, str | None]:
    """Split "path::name" unless a file has that very name."""
    base, mark, name = where.rpartition("::")
    if not mark or not name or "://" in name or os.path.exists(where):
        return where, variable
    if variable not in (None, name):
        raise UserError(f"{where} names {name!r}, but --variable says {variable!r}.")
    return base, name


def _frame_table(frame: Any, kept: np.ndarray | None) -> Table:
    lazy = hasattr(frame, "npartitions")
    notes: tuple[str, ...] = ()
    if kept is not None and not kept.all():
        notes = (f"{int((~kept).sum())} of {len(kept)} rows were dropped for missing values.",)
    return Table(frame, None if lazy else as_rows(frame).n_rows, kept, notes)


def _suffix(path: str) -> str:
    name = path.rstrip("/").lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(item.strip() for item in text.split(","))
