"""Labels as tables that can be joined to what was clustered: CSV and Parquet files.

Every row of the original table has one, named by its index column or its number; rows that were
dropped have a missing label.  Parts are made in parallel, and written one after the other.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from dask.system import CPU_COUNT

from dmkc.cli import runs
from dmkc.cli.labels import MISSING, read_labels
from dmkc.cli.reading import kind_of, read_csv
from dmkc.cli.recipes import Source, Table
from dmkc.display import advance, stage
from dmkc.errors import UserError
from dmkc.tables import Recipe, is_lazy
from dmkc.writing import staged

FORMATS = ("csv", "parquet", "zarr")
ROW = "row"
"""The column of row numbers, where no column names the rows."""
LABEL = "cluster"
CHUNK_ROWS = 1 << 20
SLICE_ROWS = 1 << 16
"""Rows of a table in memory that are written at a time."""
PARTS_AT_ONCE = 2 * CPU_COUNT


@dataclass(frozen=True)
class Layout:
    """What a table of labels holds beside them."""

    append: bool = False
    """Whether all columns of the input are written."""
    index: Any = None
    """The column that names the rows; None: their numbers do."""


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out-format",
        choices=FORMATS,
        help="a table of labels beside labels.zarr, or none but that [like a table that is read]",
    )


def add_append(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--append", action="store_true", help="write the columns of the input beside the labels"
    )


def format_of(path: str) -> str:
    """What a file of labels is by its name."""
    ending = Path(path).suffix.lower()
    found = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}.get(ending, "zarr")
    if found == "zarr" and ending not in ("", ".zarr"):
        raise UserError(f"Labels are written to .csv, .parquet or .zarr, and not to {path}.")
    return found


def format_for(args: argparse.Namespace, table: Table) -> str:
    """What the labels of a run are written as, beside the Zarr array that they always are."""
    if args.append and args.out_format == "zarr":
        raise UserError("--append writes a table: choose --out-format csv or parquet.")
    if args.out_format is not None:
        return args.out_format
    if table.source is None:
        return "zarr"
    return "csv" if kind_of(args.input) in ("csv", "text") else "parquet"


def check_append(append: bool, source: Source | None) -> None:
    """Refuse to append labels to what is no table, or has such a column."""
    if not append:
        return
    if source is None:
        raise UserError("--append writes the columns of a table; the input is an array.")
    if LABEL in source.frame.columns:
        raise UserError(
            f"The table has a column {LABEL!r} already, so that --append would write two; rename "
            "it first."
        )


def is_own_table(path: Path) -> bool:
    """Whether a file looks like a table of labels, which may be replaced by another."""
    try:
        if format_of(str(path)) == "parquet":
            return LABEL in pq.read_schema(path).names
        return LABEL in read_csv(str(path), ",", True, nrows=1).columns
    except (OSError, ValueError, pa.ArrowException):
        return False


def write_table(
    path: Path,
    values: Mapping[str, Any],
    source: Source | None,
    *,
    append: bool = False,
    replace: bool = False,
) -> Counter[int]:
    """Write what is known of every row that was clustered beside the names of all rows.

    Return how many rows every cluster has.
    """
    sizes: Counter[int] = Counter()
    is_csv = format_of(str(path)) == "csv"
    if source is None:
        parts = _array_parts(values)
    else:
        parts = _table_parts(
            values, source, append, source.texts() if is_csv and source.texts else None
        )
    with staged(path, replace=replace) as fresh:
        if is_csv:
            alone = source is not None and not is_lazy(source.frame)
            _write_csv(fresh, _counted(parts, sizes), alone)
        else:
            _write_parquet(fresh, _counted(parts, sizes))
    return sizes


def place_dropped(path: Path, source: Source | None) -> None:
    """Give every row of the original table its place in an array of those that were clustered.

    Rows that were dropped are missing there: `MISSING`, or NaN among numbers that are not whole.
    """
    if source is None or source.n_rows == sum(source.kept_lengths):
        return
    stored: Any = zarr.open_array(store=path, mode="r")
    missing: Any = MISSING if stored.dtype.kind in "iu" else np.nan
    with stage("writing labels of all rows"), staged(path, replace=True) as fresh:
        array = zarr.create_array(
            store=fresh,
            shape=(source.n_rows,),
            chunks=(min(source.n_rows, CHUNK_ROWS),),
            dtype=stored.dtype,
            attributes=runs.mark("labels", missing=MISSING),
        )
        start = 0
        for part in _table_parts({LABEL: da.from_zarr(stored)}, source, False, None):
            values = part[LABEL].to_numpy(dtype=stored.dtype, na_value=missing)
            array[start : start + len(values)] = values
            start += len(values)


def write_labels_of(model: Any, table: Table, folder: Path, shape: str, append: bool) -> None:
    """Write a table of the labels of a run, and of what else is known of every row."""
    stored = {name: folder / f"{name.removesuffix('_')}.zarr" for name in model._per_row}
    values = {LABEL: read_labels(str(stored.pop("labels_")))}
    values |= {name.removesuffix("_"): read_labels(str(path)) for name, path in stored.items()}
    write_table(
        folder / f"labels.{shape}", values | scored(model, table), table.source, append=append
    )


def scored(model: Any, table: Table) -> dict[str, np.ndarray]:
    """The scores of rows in memory, where the model has any; others would cost another pass."""
    if not model._has_scores or is_lazy(table.X) or table.source is None:
        return {}
    return {"score": scores(model, table.X)}


def scores(model: Any, X: Any) -> np.ndarray:
    """How far ahead of the next one the cluster of every row is, by the model's scores."""
    found = np.asarray(model.decision_function(X))
    if found.ndim == 1 or found.shape[1] == 1:
        return np.abs(found.ravel())
    best = np.partition(found, -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def _counted(parts: Iterator[pd.DataFrame], sizes: Counter[int]) -> Iterator[pd.DataFrame]:
    """The same parts, with the rows of clusters counted on the way."""
    for part in parts:
        sizes.update({int(k): int(n) for k, n in part[LABEL].dropna().value_counts().items()})
        yield part


def _write_csv(path: Path, parts: Iterator[pd.DataFrame], alone: bool) -> None:
    """Write parts one after the other; of one that is alone it is told how far it has come."""
    with open(path, "w", encoding="utf-8", newline="") as stream:
        for number, part in enumerate(parts):
            for first in range(0, max(len(part), 1), SLICE_ROWS):
                if alone:
                    advance(first, len(part))
                head = number == first == 0
                part[first : first + SLICE_ROWS].to_csv(stream, index=False, header=head)
        stream.flush()
        os.fsync(stream.fileno())


def _write_parquet(path: Path, parts: Iterator[pd.DataFrame]) -> None:
    writer = None
    try:
        for part in parts:
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pandas(part, schema=schema, preserve_index=False)
            if writer is None:
                table = table.cast(_without_nulls(table.schema))
                writer = pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _without_nulls(schema: pa.Schema) -> pa.Schema:
    """A column that is empty in the first part may hold text in others."""
    fields = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _array_parts(values: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    """Rows of an array, in pieces."""
    n = len(next(iter(values.values())))
    for start in range(0, max(n, 1), CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, n)
        some = {name: np.asarray(each[start:stop]) for name, each in values.items()}
        yield pd.DataFrame({ROW: np.arange(start, stop), **some})


def _table_parts(
    values: Mapping[str, Any], source: Source, append: bool, texts: Any
) -> Iterator[pd.DataFrame]:
    """Rows of a table, part by part as it was read; `texts` are its cells as they were written."""
    layout = Layout(append, source.index)
    if not is_lazy(source.frame):
        some = {name: np.asarray(each) for name, each in values.items()}
        yield placed(source.frame, texts, 0, layout, source.recipe, some)
        return
    starts = np.concatenate([[0], np.cumsum(source.lengths)]).tolist()
    columns = {name: _lazy_parts(each, source.kept_lengths) for name, each in values.items()}
    place, parts = dask.delayed(placed, pure=False), source.frame.to_delayed()
    written = [None] * len(parts) if texts is None else texts.to_delayed()
    tasks = [
        place(part, text, start, layout, source.recipe, {n: some[i] for n, some in columns.items()})
        for i, (part, text, start) in enumerate(zip(parts, written, starts[:-1], strict=True))
    ]
    for first in range(0, len(tasks), PARTS_AT_ONCE):
        advance(first, len(tasks))
        yield from dask.compute(*tasks[first : first + PARTS_AT_ONCE])


def _lazy_parts(values: Any, lengths: tuple[int, ...]) -> list[Any]:
    """Lazy values of the rows of every part."""
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=list(lengths))
    if not isinstance(values, da.Array):
        values = da.from_array(np.asarray(values), chunks=(lengths,))
    return list(values.rechunk((lengths,), method="tasks").to_delayed().ravel())


def placed(
    part: pd.DataFrame,
    texts: pd.DataFrame | None,
    start: int,
    layout: Layout,
    recipe: Recipe,
    values: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """The rows of a part with their values; those of dropped rows are missing."""
    shown = part if texts is None else texts.set_axis(part.index)
    if layout.append:
        out = shown.copy()
    elif layout.index is not None:
        out = shown[[layout.index]].copy()
    else:
        out = pd.DataFrame({ROW: np.arange(start, start + len(part))}, index=part.index)
    kept = recipe.kept(part)
    for name, some in values.items():
        whole = some.dtype.kind in "iu"
        full = np.zeros(len(part), dtype=np.int64 if whole else np.float64)
        full[kept] = some
        masked = pd.arrays.IntegerArray if whole else pd.arrays.FloatingArray
        out[name] = masked(full, ~kept)
    return out
