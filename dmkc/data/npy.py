"""Inputs in .npy files, which are memory-mapped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dmkc.data import checks
from dmkc.data.blocks import ReaderSource
from dmkc.data.container import Container
from dmkc.data.rows import Rows
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
        raise UserError(f"{path!r} holds a single array; leave variable={variable!r} out.")
    if "://" in path:
        raise UserError(f"{path!r} is a remote .npy file; copy it to a local or shared disk.")
    try:
        values = _map(path)
    except Exception as error:
        raise UserError(
            f"The file {path!r} could not be memory-mapped as a .npy file ({error}); write it "
            "again with numpy.save from a numeric array."
        ) from error
    checks.check_dimensions(values.ndim, values.shape)
    dtype = checks.block_dtype(values.dtype, f"The file {path!r}")
    n_rows, n_columns = checks.check_shape(values.shape)
    reader = NpyReader(path, (n_rows, n_columns), dtype)
    return Rows(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        sparse=False,
        density=1.0,
        column_names=None,
        in_memory=False,
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
