"""Files of tables as frames: CSV, Parquet and Arrow, one or many; lazily where they are large."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dmkc.cli.raw import COMPRESSED, UNPACKING, check_unpacked, opened, taken_from_pipe
from dmkc.cli.runs import is_run_folder
from dmkc.cli.speaking import meant
from dmkc.data.lazy import fixed
from dmkc.errors import UserError

LARGE_BYTES = 256 << 20
"""Tables beyond this size are read in pieces on every pass."""
SAMPLE_ROWS = 1000
LATER_ROWS = 1 << 18
"""Rows that are looked at in one go beyond these."""
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": None, ".data": ","}
"""None: any white space."""
TABLES = ("csv", "parquet", "feather", "text")
"""Kinds of files that hold tables."""
SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".csv": "csv",
    ".tsv": "csv",
    ".data": "csv",
}
KNOWN = ".zarr, .npy, .npz, .parquet, .feather, .csv, .tsv or .txt"
INDEX = "index"
"""The name of an index of pandas that has none."""


@dataclass(frozen=True)
class CsvOptions:
    """How lines of text become columns."""

    delimiter: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Held:
    """All columns of a table, in memory or lazily, and the one that a file says names the rows."""

    frame: Any
    index: Any = None
    texts: Callable[[], Any] | None = None
    """The same cells as they stand in a file of text, for copies of it."""
    some: Callable[[list[Any]], Any] | None = None
    """Some columns of a lazy table alone, so that others need not be read on every pass."""


def files_of(path: str) -> list[str]:
    """The files of a path: itself, or all that a pattern such as part-*.csv means."""
    if "://" in path or os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(os.path.expanduser(path)))
    if not found:
        raise UserError(f"There is nothing at {path}; check the pattern.")
    return found


def kind_of(path: str) -> str:
    """What a path holds: zarr, npy, npz, parquet, feather, csv, or text for other files."""
    if "://" in path and not path.startswith("file://"):
        found = SUFFIXES.get(suffix_of(path), "zarr")
        return found if found in ("parquet", "csv") else "zarr"
    kinds = {_kind_of_one(each) for each in files_of(path.removeprefix("file://"))}
    if len(kinds) > 1:
        raise UserError(f"{path} means files of different kinds: {', '.join(sorted(kinds))}.")
    return kinds.pop()


def _kind_of_one(path: str) -> str:
    place = Path(path).expanduser()
    if not place.exists():
        raise UserError(f"There is nothing at {path}; check the path.")
    if place.is_dir():
        if is_run_folder(place):
            return "zarr"
        if any((place / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
            return "zarr"
        for ending, kind in SUFFIXES.items():
            if kind in TABLES and (
                any(place.glob(f"*{ending}")) or any(place.glob(f"*=*/**/*{ending}"))
            ):
                return kind
        return "parquet" if any(place.glob("*/*.parquet")) else "zarr"
    kind = SUFFIXES.get(suffix_of(path), "text")
    if not place.is_file() and not (place.is_fifo() and kind in ("csv", "text")):
        raise UserError(f"{path} is not a regular file.")
    return kind


def read_columns(path: str, kind: str, options: CsvOptions) -> Held:
    """All columns of a table."""
    path = path.removeprefix("file://")
    if kind in ("csv", "text"):
        return _csv(path, options)
    for value, flag in ((options.header, "--header"), (options.missing, "--missing")):
        if value:
            name = "Parquet" if kind == "parquet" else "Arrow"
            raise UserError(f"{flag} is for CSV files, and {path} is {name}.")
    return _arrow(path, kind)


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


def find_column(name: Any, there: Sequence[Any]) -> Any:
    """A column by name, or by number where columns have no names."""
    if name in there:
        return name
    if isinstance(name, str) and name.isdigit() and int(name) in there:
        return int(name)
    shown = ", ".join(map(str, there[:20])) + (", ..." if len(there) > 20 else "")
    raise UserError(f"There is no column {name!r}; the columns are {shown}.{meant(name, there)}")


def suffix_of(path: str) -> str:
    """The ending of a name without that of a packed file."""
    name = path.rstrip("/").lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def delimiter_of(path: str) -> str | None:
    """What stands between the fields of a file by its name."""
    return DELIMITERS.get(suffix_of(path), ",")


def _csv(path: str, options: CsvOptions) -> Held:
    files = _csv_files(path)
    for file in files:
        check_unpacked(file)
    held = taken_from_pipe(files[0], options.delimiter)
    header = options.header
    if header is None:
        header = csv_has_header(files[0], options.delimiter, held)
    settled = replace(options, header=header)
    if any(map(_is_large, files)) or sum(map(_size, files)) > LARGE_BYTES:
        lazy = partial(_large_csv, files, settled)
        return Held(lazy(), texts=partial(lazy, as_text=True), some=lazy)
    try:
        frame = _small_csv(files, settled, held)
    except UserError:
        raise
    except (ValueError, OverflowError) as problem:
        raise UserError(f"{path} cannot be read as a table ({problem}).") from None
    return Held(frame, texts=partial(_small_csv, files, settled, held, True))


def _small_csv(
    files: list[str], options: CsvOptions, held: bytes | None, as_text: bool = False
) -> pd.DataFrame:
    more = _as_text() if as_text else {"na_values": list(options.missing)}
    parts = [read_csv(file, options.delimiter, options.header, held, **more) for file in files]
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _as_text() -> dict[str, Any]:
    """Every cell as it is written."""
    return {"dtype": str, "keep_default_na": False}


def _csv_files(path: str) -> list[str]:
    found = files_of(path)
    if len(found) == 1 and "://" not in path and Path(path).is_dir():
        found = sorted(
            str(file)
            for file in Path(path).iterdir()
            if SUFFIXES.get(suffix_of(file.name)) == "csv"
        )
    return found


def _large_csv(
    files: list[str], options: CsvOptions, names: list[Any] | None = None, as_text: bool = False
) -> Any:
    import dask.dataframe as dd

    missing = list(options.missing)
    head = read_csv(
        files[0], options.delimiter, options.header, nrows=SAMPLE_ROWS, na_values=missing
    )
    kinds = {name: pd.api.types.infer_dtype(head[name]) for name in head}
    kinds |= _of_later_rows(files, options, [name for name in head if head[name].isna().all()])
    numbers = {name for name, kind in kinds.items() if kind in ("floating", "integer")}
    # Whole numbers at the top of a file may be followed by fractions or gaps.
    dtypes = {name: "float64" if name in numbers else "object" for name in head}
    frame = dd.read_csv(
        files,
        sep=options.delimiter or r"\s+",
        header=0 if options.header else None,
        usecols=names,
        **(_as_text() if as_text else {"na_values": missing, "dtype": dtypes}),
    )
    return fixed(frame)


def _of_later_rows(files: list[str], options: CsvOptions, names: list[Any]) -> dict[Any, str]:
    """What columns hold whose first rows are missing values, told by the first that are not."""
    found: dict[Any, str] = {}
    for file in files if names else ():
        parts = pd.read_csv(
            file,
            sep=options.delimiter or r"\s+",
            header=0 if options.header else None,
            na_values=list(options.missing),
            usecols=names,
            chunksize=LATER_ROWS,
        )
        with parts:
            for part in parts:
                seen = {name: part[name].dropna() for name in names if name not in found}
                found |= {n: pd.api.types.infer_dtype(v) for n, v in seen.items() if len(v)}
                if len(found) == len(names):
                    return found
    return found


def _arrow(path: str, kind: str) -> Held:
    """Parquet or Arrow files, or folders of them with partitions in their names."""
    import pyarrow.dataset as ds

    files = files_of(path)
    source: Any = files if len(files) > 1 else files[0]
    if "://" in path:
        return _lazy_parquet(source)
    try:
        found = ds.dataset(source, format=kind, partitioning="hive")
        if kind == "parquet" and _cells(found) * 8 > LARGE_BYTES:
            return _lazy_parquet(source)
        frame = found.to_table().to_pandas()
    except UserError:
        raise
    except Exception as problem:
        name = "Parquet" if kind == "parquet" else "Arrow"
        text = " ".join(str(problem).split())
        raise UserError(f"{path} cannot be read as {name} ({text}).") from None
    return _with_index(frame, not isinstance(frame.index, pd.RangeIndex))


def _lazy_parquet(source: Any) -> Held:
    held = _parquet_columns(source)
    index = held.index

    def some(names: list[Any]) -> Any:
        return _parquet_columns(source, [name for name in names if name != index]).frame

    return replace(held, some=some)


def _parquet_columns(source: Any, names: list[Any] | None = None) -> Held:
    import dask.dataframe as dd

    try:
        frame = dd.read_parquet(source, columns=names)
    except Exception as problem:
        raise UserError(f"{source} cannot be read as Parquet ({problem}).") from None
    return _with_index(fixed(frame), frame.index.name is not None)


def _with_index(frame: Any, has_one: bool) -> Held:
    """The index of a stored frame as one of its columns."""
    if not has_one:
        return Held(frame)
    if isinstance(frame.index, pd.MultiIndex):
        return Held(frame.reset_index())
    name = frame.index.name
    if name is None or str(name).startswith("__index_level"):
        name = INDEX if INDEX not in frame.columns else "index_"
        frame = frame.rename_axis(index=name)
    return Held(frame.reset_index(), name)


def _cells(found: Any) -> int:
    return int(found.count_rows()) * max(len(found.schema.names), 1)


def _pandas(path: str, delimiter: str | None, held: bytes | None, **kwargs: Any) -> pd.DataFrame:
    try:
        with opened(path, held) as source:
            # All of a column is read before its type is settled, or it may be half text.
            return pd.read_csv(source, sep=delimiter or r"\s+", low_memory=False, **kwargs)
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


def _size(path: str) -> int:
    return 0 if path.endswith(COMPRESSED) else os.path.getsize(path)
