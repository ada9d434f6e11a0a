"""Inputs in stored arrays: .npy files and Zarr, in files, in memory or behind fsspec URLs."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dmkc.data.blocks import ReaderSource, block_dtype, bounds, check_dimensions, check_shape, dense
from dmkc.data.chunks import check_chunk_files, check_claims, check_metadata_files
from dmkc.data.rows import Container, Rows, array_rows
from dmkc.errors import UserError


@dataclass(frozen=True, eq=False)
class NpyReader:
    """Reads rows of a memory-mapped .npy file."""

    path: str  # absolute path of the file
    shape: tuple[int, int]  # shape the file had when it was checked
    dtype: np.dtype  # dtype of what read returns

    def read(self, start: int, stop: int) -> np.ndarray:
        values = _map(self.path)
        if values.shape != self.shape:
            raise UserError(
                f"The file {self.path!r} had shape {self.shape} when it was checked and now has "
                f"{values.shape}; start again with the new file."
            )
        # A copy, so that the block outlives any later change of the file.
        return np.array(values[start:stop], dtype=self.dtype, order="C")


def npy_rows(path: str, variable: str | None) -> Rows:
    """Return the rows of a local .npy file."""
    if variable is not None:
        raise UserError(f"{path!r} holds a single array; leave `variable={variable!r}` out.")
    if "://" in path:
        raise UserError(f"{path!r} is a remote .npy file; copy it to a local or shared disk.")
    if not os.path.isfile(path):
        raise UserError(f"{path!r} is not a regular file.")
    try:
        values = _map(path)
    except Exception as error:
        raise UserError(
            f"The file {path!r} could not be memory-mapped as a .npy file ({error}); write it "
            "again with numpy.save from a numeric array."
        ) from error
    check_dimensions(values.ndim, values.shape)
    dtype = block_dtype(values.dtype, f"The file {path!r}")
    n_rows, n_columns = check_shape(values.shape)
    reader = NpyReader(path, (n_rows, n_columns), dtype)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        container=Container("npy", n_rows),
        source=ReaderSource(reader, n_rows),
    )


def _map(path: str) -> np.ndarray:
    """Map a file once per process, and again after it has been replaced."""
    state = os.stat(path)
    return _mapped(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=32)
def _mapped(path: str, changed: int, size: int) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False)


@dataclass(frozen=True, eq=False)
class ZarrReader:
    """Reads rows of a Zarr array."""

    where: str  # store and array as shown in messages
    store: str | None  # path or URL to open, or None when array is given
    path: str  # path of the array inside the store
    mark: str  # tells whether the stored array is still the one that was checked
    dtype: np.dtype  # dtype of what read returns
    array: Any = None  # an array the caller opened

    def read(self, start: int, stop: int) -> np.ndarray:
        array = self.array
        if self.store is not None:
            array = _opened(self.store, self.path, self.mark)
            if "://" not in self.store:
                check_chunk_files(array, Path(self.store, self.path), start, stop)
        try:
            values = array[start:stop, :]
        except Exception as error:
            raise UserError(
                f"Rows {start} to {stop - 1} of {self.where} could not be read, because a chunk "
                f"is truncated, corrupt or out of reach ({type(error).__name__}: {error}); write "
                "these rows again or restore the store from a copy."
            ) from error
        return dense(values, self.dtype)


def store_rows(location: str, variable: str | None) -> Rows:
    """Return the rows of the Zarr array or .npy file at a path or URL."""
    location, variable = _split_name(location, variable)
    if "://" not in location:
        location = os.path.abspath(os.path.expanduser(location))
        if not os.path.exists(location):
            raise FileNotFoundError(
                f"There is nothing at {location!r}; give the path of a Zarr array, a Zarr group "
                "or a .npy file."
            )
    if location.endswith(".npy") and not os.path.isdir(location):
        return npy_rows(location, variable)
    if os.path.isfile(location):
        raise UserError(
            f"{location!r} is a file, not a Zarr store; give the directory of a Zarr array or "
            "group, or a .npy file."
        )
    return _zarr_rows(_open_node(location), location, variable)


def zarr_object_rows(node: Any, variable: str | None) -> Rows:
    """Return the rows of a zarr.Array, or of an array in a zarr.Group."""
    return _zarr_rows(node, None, variable)


def _zarr_rows(node: Any, location: str | None, variable: str | None) -> Rows:
    import zarr

    shown = repr(location) if location is not None else str(node.store_path)
    if isinstance(node, zarr.Group):
        array = _pick(node, shown, variable)
    elif variable is not None:
        raise UserError(
            f"The Zarr store {shown} is a single array, so `variable={variable!r}` cannot be "
            "chosen from it; leave `variable` out."
        )
    else:
        array = node
    inside = array.path[len(node.path) :].strip("/") if location is not None else array.path
    where = f"the Zarr store {shown}" + (f", array {inside!r}" if inside else "")
    if location is not None and inside:
        # A group may describe the array by a consolidated copy of its metadata.
        array = _open_node(location, inside)
    check_dimensions(array.ndim, array.shape)
    dtype = block_dtype(array.dtype, where[0].upper() + where[1:])
    n_rows, n_columns = check_shape(array.shape)
    attributes = array.metadata.attributes
    named = attributes if isinstance(attributes, dict) else {}
    packed = [name for name in ("scale_factor", "add_offset") if name in named]
    if packed:
        raise UserError(
            f"{where[0].upper() + where[1:]} holds packed values ({' and '.join(packed)}); open "
            "it with xarray.open_zarr and pass the variable, which unpacks them."
        )
    if location is not None and "://" not in location:
        check_claims(array, Path(location, inside), where)
    height = int((array.shards or array.chunks)[0])
    chunks = tuple(stop - start for start, stop in bounds(n_rows, height))
    container = Container("zarr", n_rows, chunks)
    if location is None and isinstance(array.store, zarr.storage.MemoryStore):
        # A store in this process's memory would travel whole with every block.
        return array_rows(array[:], container)
    if location is None:
        reader = ZarrReader(where, None, array.path, _mark(array), dtype, array)
    else:
        reader = ZarrReader(where, location, inside, _mark(array), dtype)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        container=container,
        source=ReaderSource(reader, n_rows),
    )


def _split_name(location: str, variable: str | None) -> tuple[str, str | None]:
    """Split "path::name", and turn file URLs into plain paths."""
    base, mark, name = location.rpartition("::")
    # "::" is also how fsspec chains URLs, and may be part of a file name.
    if mark and name and "://" not in name and not os.path.exists(location):
        if variable not in (None, name):
            raise UserError(
                f"The path {location!r} names the array {name!r} but `variable={variable!r}`; "
                "give only one of them."
            )
        location, variable = base, name
    for prefix in ("file://", "local://"):
        location = location.removeprefix(prefix)
    return location, variable


def _open_node(location: str, path: str = "") -> Any:
    """Open a Zarr array or group for reading, with a sentence for everything that can fail."""
    import zarr
    from zarr.errors import NodeNotFoundError

    # Zarr takes any string with "::" for a URL, so a local path must not be a string.
    target: Any = location if "://" in location else Path(location)
    if "://" not in location:
        check_metadata_files(target / path)
    try:
        return zarr.open(store=target, path=path, mode="r")
    except ImportError:
        raise
    except (NodeNotFoundError, FileNotFoundError) as error:
        if "://" not in location:
            raise UserError(
                f"The directory {location!r} is not a Zarr store, because it holds no array or "
                "group metadata; give the directory of a Zarr array or group."
            ) from error
        raise FileNotFoundError(
            f"There is no Zarr array or group at {location!r}; check the address."
        ) from error
    except Exception as error:
        raise UserError(
            f"The metadata of the Zarr store {location!r} could not be read "
            f"({type(error).__name__}: {error}); the store is incomplete or corrupt, so write it "
            "again or restore it from a copy."
        ) from error


def _pick(group: Any, shown: str, variable: str | None) -> Any:
    """Return the chosen array of a group, or its only two-dimensional numeric array."""
    import zarr

    try:
        members = dict(group.members(max_depth=None))
    except Exception as error:
        raise UserError(
            f"The arrays of the Zarr group {shown} could not be listed ({type(error).__name__}: "
            f"{error}); its metadata is incomplete or corrupt."
        ) from error
    arrays = {name: node for name, node in members.items() if isinstance(node, zarr.Array)}
    if variable is not None and variable.strip("/") in arrays:
        return arrays[variable.strip("/")]
    there = ", ".join(f"{name!r} {node.shape}" for name, node in sorted(arrays.items()))
    if variable is not None:
        raise UserError(
            f"The Zarr group {shown} has no array {variable!r}; its arrays are {there or '(none)'}."
        )
    tables = [node for node in arrays.values() if node.ndim == 2 and node.dtype.kind in "biuf"]
    if len(tables) == 1:
        return tables[0]
    raise UserError(
        f"The Zarr group {shown} has {len(tables)} two-dimensional numeric arrays; choose one "
        f'with `variable=` or as "path::name". Its arrays are {there or "(none)"}.'
    )


def _mark(array: Any) -> str:
    """Return a digest of how the array is stored."""
    stored = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    text = json.dumps(stored, default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=32)
def _opened(store: str, path: str, mark: str) -> Any:
    """Open an array once per process; a store written anew has another mark."""
    array = _open_node(store, path)
    if _mark(array) != mark:
        raise UserError(
            f"The Zarr store {store!r} has been written anew with another layout since it was "
            "checked; start again with the new store."
        )
    return array
