"""Labels in files: written block by block, read from every usual form."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr

from dmkc.cli import runs
from dmkc.cli.raw import read_npz
from dmkc.cli.reading import CsvOptions, Held, delimiter_of, find_column, kind_of, read_columns
from dmkc.cli.tables import split_name
from dmkc.errors import UserError
from dmkc.tables import is_lazy
from dmkc.typing import PerRow
from dmkc.writing import staged

CHUNK_ROWS = 1 << 20
NAMES = ("labels", "y", "truth", "target", "cluster")
"""Arrays and columns that are taken for labels unless one is named."""


MISSING = -2
"""In an array of labels: the row was dropped, and has none."""


def write_labels(
    labels: PerRow,
    path: Path,
    *,
    lengths: Sequence[int] | None = None,
    replace: bool = False,
) -> int:
    """Write labels to a Zarr array that appears when it is whole; return how many there are.

    Lazy labels are computed and written block by block; `lengths` are the rows of the partitions
    of a Dask series.
    """
    if hasattr(labels, "to_dask_array"):
        labels = labels.to_dask_array(lengths=True if lengths is None else list(lengths))
    values = labels if isinstance(labels, da.Array) else np.asarray(labels)
    n = int(values.shape[0])
    with staged(path, replace=replace) as folder:
        array = zarr.create_array(
            store=folder,
            shape=(n,),
            chunks=(max(min(n, CHUNK_ROWS), 1),),
            dtype=values.dtype,
            attributes=runs.mark("labels"),
        )
        if isinstance(values, da.Array):
            # Every stored chunk is written by one task only.
            aligned = values.rechunk(array.chunks, method="tasks")
            runs.store(aligned, array)
        else:
            for start in range(0, n, CHUNK_ROWS):
                array[start : start + CHUNK_ROWS] = values[start : start + CHUNK_ROWS]
    return n


def cluster_sizes(path: Path) -> tuple[list[int], int]:
    """Rows of each cluster in a stored array, read chunk by chunk, and rows of noise."""
    array: Any = zarr.open_array(store=path, mode="r")
    sizes = np.zeros(1, dtype=np.int64)  # the first is noise, whose label is -1
    for start in range(0, array.shape[0], CHUNK_ROWS):
        part = np.bincount(array[start : start + CHUNK_ROWS] + 1, minlength=len(sizes))
        sizes = np.pad(sizes, (0, len(part) - len(sizes))) + part
    noise, *clusters = sizes.tolist()
    return clusters, noise


def read_labels(where: str, dropped: bool = False) -> Any:
    """Labels from a file or "file::name", one a row; a Dask array where the file is Zarr.

    Rows that were dropped before a fit are left out of the array that it wrote, or masked.
    """
    path, name = split_name(where)
    kind = kind_of(path)
    values: Any
    if kind == "zarr":
        values = _zarr(path, name, dropped)
    elif kind == "npy":
        values = _npy(path)
    elif kind == "npz":
        values = read_npz(path, name, NAMES)
    elif kind in ("csv", "parquet", "feather"):
        values = _column(path, kind, name)
    else:
        values = _text(path)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise UserError(
            f"{where} has {values.ndim} dimensions; labels are one value a row, so name the array "
            "or column as FILE::NAME."
        )
    return values


def _zarr(path: str, name: str | None, dropped: bool) -> Any:
    place: Any = path if "://" in path else Path(path)
    if "://" not in path and runs.is_run_folder(place) and name is None:
        place = place / "labels.zarr"
    try:
        node = zarr.open(store=place, mode="r")
    except Exception as problem:
        raise UserError(f"{path} cannot be read as Zarr ({problem}).") from None
    if isinstance(node, zarr.Group):
        flat = {key: array for key, array in node.arrays() if array.ndim == 1 or key == name}
        names = [name] if name is not None else [key for key in NAMES if key in flat] or list(flat)
        if len(names) != 1 or names[0] not in flat:
            there = ", ".join(key for key, _ in node.arrays()) or "nothing"
            raise UserError(f"Name an array of {path} as {path}::NAME; it holds {there}.")
        node = flat[names[0]]
    elif name is not None:
        raise UserError(f"{path} is a single array, so {name!r} cannot be chosen from it.")
    missing = runs.marks(node.attrs).get("missing")
    if missing is None:
        return da.from_zarr(node)
    values: Any = node[:]
    gaps = values == missing if values.dtype.kind in "iu" else np.isnan(values)
    return np.ma.masked_array(values, gaps) if dropped else values[~gaps]


def _npy(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise UserError(f"{path} cannot be read as a .npy file ({problem}).") from None


def read_whole(path: str, kind: str) -> Held:
    """All columns of a table in memory."""
    held = read_columns(path, kind, CsvOptions(delimiter_of(path)))
    return replace(held, frame=held.frame.compute()) if is_lazy(held.frame) else held


def label_column(path: str, there: Sequence[Any], name: str | None) -> Any:
    """The column that holds the labels of a table."""
    if name is not None:
        return find_column(name, there)
    names = list(there) if len(there) == 1 else [key for key in NAMES if key in there]
    if len(names) != 1:
        shown = ", ".join(map(str, there[:20]))
        raise UserError(f"Name a column of {path} as {path}::NAME; it has {shown}.")
    return names[0]


def _column(path: str, kind: str, name: str | None) -> np.ndarray:
    frame = read_whole(path, kind).frame
    return frame[label_column(path, list(frame.columns), name)].to_numpy()


def _text(path: str) -> np.ndarray:
    """One label a line: numbers where all are, else words."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a file of labels, one a line.") from None
    words = np.array([line.strip() for line in lines if line.strip()])
    if not len(words):
        raise UserError(f"{path} is empty.")
    with contextlib.suppress(ValueError):
        return words.astype(np.int64)
    with contextlib.suppress(ValueError):
        return words.astype(np.float64)
    return words
