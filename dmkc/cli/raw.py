"""Files of rows before they are read: pipes, first lines of tables, arrays in .npz files."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.display import counting
from dmkc.errors import UserError

MOST_FIELDS = 100_000
"""Columns of a table; a frame of more takes minutes to make."""
MOST_LINE = 16 << 20
"""Bytes of the first line of a table."""
MOST_BLANK = 1 << 20
"""Bytes of blank lines before the first line."""
MOST_PIPE = 256 << 20
"""Bytes that a pipe may give, all of which are held in memory."""
MOST_UNPACKED, MOST_RATIO = 64 << 20, 25
"""A packed table may unpack to so many bytes, or to so many times its own size."""
MOST_EMPTY_ROWS = 1 << 26
"""Rows of a sparse file beyond those that its values could fill."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
UNPACKING = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What a damaged packed file ends with."""
SPARSE_KEYS = {"format", "shape", "data"}


class _Bounded(io.RawIOBase):
    """What a packed file unpacks to, as far as its size makes that likely."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream, self._path, self._given = stream, path, 0
        self._most = max(MOST_UNPACKED, MOST_RATIO * os.path.getsize(path))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        self._given += len(found)
        if self._given > self._most:
            raise UserError(
                f"{self._path} unpacks to more than {self._most} bytes, {MOST_RATIO} times its "
                "size and more; unpack it first if you trust it."
            )
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Tallied(io.FileIO):
    """A file that knows how much of it was read, for whoever asks while it is."""

    taken = 0

    def readinto(self, buffer: Any) -> int | None:
        found = super().readinto(buffer)
        self.taken += found or 0
        return found


def unpacked(path: str) -> Any:
    """A file on this machine to read from; a packed one that unpacks to too much is refused."""
    import fsspec

    stream = fsspec.filesystem("file").open(path, "rb", compression="infer")
    return io.BufferedReader(_Bounded(stream, path)) if path.endswith(COMPRESSED) else stream


def check_unpacked(path: str) -> None:
    """Refuse a packed table that unpacks to too much before any of it is held in memory."""
    if "://" in path or not path.endswith(COMPRESSED) or not os.path.isfile(path):
        return
    with contextlib.suppress(*UNPACKING), unpacked(path) as stream:  # damage is said by its reader
        while stream.read(1 << 20):
            pass


@contextlib.contextmanager
def opened(path: str, held: bytes | None) -> Iterator[Any]:
    """What pandas is to read a table from; how far it has come is counted."""
    if held is not None:
        yield io.BytesIO(held)
    elif "://" not in path and path.endswith(COMPRESSED):
        with unpacked(path) as stream:
            yield stream
    elif not os.path.isfile(path):
        yield path
    else:
        file, size = _Tallied(path), os.path.getsize(path)
        with io.BufferedReader(file) as stream, counting(lambda: (file.taken, size)):
            yield stream


def taken_from_pipe(path: str, delimiter: str | None) -> bytes | None:
    """All that a pipe gives, which nobody can read twice; None for files.

    A first line of more fields than a table can have is refused.
    """
    held = None
    if "://" not in path and stat.S_ISFIFO(os.stat(path).st_mode):
        if path.endswith(COMPRESSED):
            raise UserError(f"{path} is a pipe; unpack what goes into it.")
        with open(path, "rb") as pipe:
            held = pipe.read(MOST_PIPE + 1)
        if len(held) > MOST_PIPE:
            raise UserError(f"{path} is a pipe of more than {MOST_PIPE} bytes; give a file.")
    line = _first_line(path, held)
    mark = None if delimiter is None else delimiter.encode()
    fields = len(line.split(mark)) if line else 0
    if fields > MOST_FIELDS:
        raise UserError(
            f"{path} has {fields} fields in its first line, and a table may have {MOST_FIELDS}; "
            "write so many columns as .npy, .npz or Zarr."
        )
    if len(line) == MOST_LINE:
        raise UserError(f"{path} is no table: its first line has more than {MOST_LINE} bytes.")
    return held


def _first_line(path: str, held: bytes | None) -> bytes:
    """The first line that is not blank, as far as it may go; none where that cannot be told."""
    import fsspec

    try:
        if held is not None:
            stream: Any = io.BytesIO(held)
        elif "://" in path:
            stream = fsspec.open(path, "rb", compression="infer").open()
        else:
            stream = unpacked(path)
        with stream:
            blank = 0
            while line := stream.readline(MOST_LINE):
                if line.strip():
                    return line
                blank += len(line)
                if blank > MOST_BLANK:
                    raise UserError(f"{path} is no table: it begins with {blank} blank characters.")
    except UserError:
        raise
    except Exception:
        return b""  # reading all of it will say what is wrong
    return b""


def read_npz(path: str, variable: str | None, defaults: tuple[str, ...]) -> Any:
    """An array of an .npz file, or the sparse matrix that SciPy wrote into one."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            if set(stored.files) >= SPARSE_KEYS and variable is None:
                return _with_bounded_rows(sp.load_npz(path), path)
            there = ", ".join(stored.files) or "nothing"
            names = (variable,) if variable is not None else defaults
            name = next((name for name in names if name in stored.files), None)
            if name is None and variable is None and len(stored.files) == 1:
                name = stored.files[0]
            if name is None:
                raise UserError(
                    f"{path} has no array {' or '.join(map(str, names))} (it holds {there}); "
                    "choose one with --variable or as FILE::NAME."
                )
            return stored[name]
    except (UserError, OSError, MemoryError):
        raise
    except Exception as problem:
        raise UserError(f"{path} cannot be read as plain arrays ({problem}).") from None


def _with_bounded_rows(matrix: Any, path: str) -> Any:
    """The matrix of a file, unless it claims far more rows than it has values for."""
    if max(matrix.shape) > MOST_EMPTY_ROWS + 1000 * matrix.data.size:
        raise UserError(
            f"{path} claims to be a sparse matrix of shape {matrix.shape}, but holds only "
            f"{matrix.data.size} values; write it again with the shape that it has."
        )
    return matrix
