"""The journal of a run: one file to which every scan's small statistic is appended, as bytes.

Numbers come back bit for bit, arrays with their order in memory (it decides the order of later
sums).  Nothing is pickled: a record is JSON beside plain arrays, and the only classes it can name
are dataclasses of this package.

A record is its length, its bytes and a digest over these and the digest before, so that the records
form a chain.  Whatever instant a process is killed at, the file holds whole records and at most one
torn one at its end, which is recognised and cut off when the file is opened again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import io
import json
import logging
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.errors import UserError
from dmkc.writing import is_at, lock

PACKAGE = __name__.partition(".")[0]
_LENGTH = struct.Struct("<Q")
log = logging.getLogger("dmkc")
NAME = "journal.dmkc"
MAGIC = b"dmkc journal 1\n"
DIGEST_BYTES = 16
LOCK_SECONDS = 1.0
"""How long a lock is waited for: asking whether a run is in use takes it for an instant."""


class NotRecordable(Exception):
    """A statistic of a kind that has no form in a record."""


class DamagedRecord(Exception):
    """Bytes that are no record."""


def to_bytes(value: Any) -> bytes:
    """A value as bytes; raises NotRecordable."""
    arrays: list[np.ndarray] = []
    head = json.dumps(_encode(value, arrays)).encode()
    out = io.BytesIO()
    out.write(_LENGTH.pack(len(head)))
    out.write(head)
    for array in arrays:
        np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def from_bytes(data: bytes) -> Any:
    """The value that was written; raises DamagedRecord."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        head = json.loads(data[_LENGTH.size : _LENGTH.size + length])
        stream = io.BytesIO(data[_LENGTH.size + length :])
        return _decode(head, lambda: np.lib.format.read_array(stream, allow_pickle=False))
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, EOFError) as problem:
        raise DamagedRecord(str(problem)) from problem


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or (isinstance(value, bool | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, np.generic):
        arrays.append(np.asarray(value))
        return {"is": "scalar"}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"is": "int", "of": str(value)}
    if isinstance(value, float):
        return {"is": "float", "of": value.hex()}
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays.append(value)
        return {"is": "array"}
    if isinstance(value, sp.csr_array | sp.csr_matrix):
        arrays += [value.data, value.indices, value.indptr]
        return {"is": "csr", "of": list(value.shape)}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        if type(value) not in (tuple, list):
            raise NotRecordable(f"a {type(value).__name__}")
        return {"is": kind, "of": [_encode(item, arrays) for item in value]}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"is": "dict", "of": {key: _encode(item, arrays) for key, item in value.items()}}
    cls = type(value)
    if dataclasses.is_dataclass(value) and _known(cls.__module__, cls.__qualname__) is cls:
        names = [field.name for field in dataclasses.fields(cls)]
        inside = {name: _encode(getattr(value, name), arrays) for name in names}
        return {"is": "object", "as": [cls.__module__, cls.__qualname__], "of": inside}
    raise NotRecordable(f"a {cls.__name__}")


def _decode(stored: Any, array: Callable[[], np.ndarray]) -> Any:
    if not isinstance(stored, dict):
        return stored
    kind: str = stored["is"]
    of: Any = stored.get("of")
    if kind == "scalar":
        return array()[()]
    if kind == "array":
        return array()
    if kind == "int":
        return int(of)
    if kind == "float":
        return float.fromhex(of)
    if kind == "csr":
        return sp.csr_array((array(), array(), array()), shape=tuple(of))
    if kind in ("tuple", "list"):
        items = [_decode(item, array) for item in of]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {key: _decode(item, array) for key, item in of.items()}
    cls = _known(*stored["as"]) if kind == "object" else None
    if cls is None:
        raise DamagedRecord(f"the unknown kind {kind!r}")
    return cls(**{name: _decode(item, array) for name, item in of.items()})


def _known(module: str, name: str) -> type | None:
    """A dataclass of this package, or None."""
    if module.partition(".")[0] != PACKAGE:
        return None
    try:
        # A journal is looked through before the fit that wrote it has imported its statistics.
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError):
        return None
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None


def digest(*values: Any) -> str:
    """A digest of anything a scan or an estimator is made of."""
    state = hashlib.blake2b(digest_size=16)
    for value in values:
        _feed(state, value)
    return state.hexdigest()


def _feed(state: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        state.update(f"array {value.dtype.str} {value.shape} ".encode())
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.generic):
        _feed(state, np.asarray(value))
    elif isinstance(value, float):
        state.update(f"float {value.hex()} ".encode())
    elif value is None or isinstance(value, bool | int | str | bytes):
        state.update(f"{type(value).__name__} {value!r} ".encode())
    elif sp.issparse(value):
        rows = value.tocsr()
        _feed_items(state, "sparse", (rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: str(pair[0]))
        _feed_items(state, "dict", [part for pair in pairs for part in pair])
    elif isinstance(value, tuple | list | np.ndarray):
        _feed_items(state, "list", list(value))
    elif hasattr(value, "__code__"):  # a kernel that is a function
        _feed_items(state, value.__qualname__, (value.__code__.co_code, value.__defaults__))
    else:
        _feed_items(state, type(value).__qualname__, [getattr(value, "__dict__", {})])


def _feed_items(state: Any, kind: str, items: Any) -> None:
    state.update(f"{kind} {len(items)} ".encode())
    for item in items:
        _feed(state, item)


class CheckpointError(UserError):
    """A checkpoint that cannot be used; the text is a sentence."""


class Journal:
    """Records that are read in order, and appended to once all are read."""

    def __init__(self, folder: Path, every: float) -> None:
        self.folder, self.every = folder, every
        self.path = folder / NAME
        self._handle = self._locked()
        try:
            self._places, self._chain = self._survey()
        except BaseException:
            os.close(self._handle)
            raise
        self._next = 0
        self._synced = time.monotonic()
        self._broken = False

    def __len__(self) -> int:
        return len(self._places)

    @property
    def replaying(self) -> bool:
        """Whether there are records that have not been read."""
        return self._next < len(self._places)

    def read(self) -> Any:
        """The next record."""
        start, length, _ = self._places[self._next]
        value = from_bytes(os.pread(self._handle, length, start))
        self._next += 1
        return value

    def forget_rest(self) -> None:
        """Cut off the record that was read last and all after it."""
        self._next -= 1
        start = self._places[self._next][0] - _LENGTH.size
        os.ftruncate(self._handle, start)
        self._places = self._places[: self._next]
        self._chain = self._places[-1][2] if self._places else b""

    def append(self, body: bytes) -> None:
        """Write a record (of `to_bytes`); it is on the disk after `every` seconds at the latest.

        A disk that is full ends the checkpoints and not the fit.
        """
        if self._broken:
            return
        chain = _digest(self._chain, body)
        end = os.lseek(self._handle, 0, os.SEEK_END)
        try:
            _write_all(self._handle, _LENGTH.pack(len(body)) + body + chain)
            if time.monotonic() - self._synced >= self.every:
                os.fsync(self._handle)
                self._synced = time.monotonic()
        except OSError as problem:
            self._broken = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, end)
            log.warning("No more checkpoints: %s cannot be written (%s).", self.path, problem)
            return
        self._chain = chain
        self._places.append((end + _LENGTH.size, len(body), chain))
        self._next = len(self._places)

    def clear(self) -> None:
        """Forget all records."""
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        self._places, self._chain = self._survey()
        self._next = 0

    def remove(self) -> None:
        """Remove the file, while nobody else works on the run."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._handle)
        os.close(self._handle)

    def _locked(self) -> int:
        """The open file, locked: one process at a time, until it ends in whatever way."""
        end = time.monotonic() + LOCK_SECONDS
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            # A run that has just ended has removed the file on which its lock was.
            if _is_locked(handle, exclusive=True) and is_at(handle, self.path):
                return handle
            os.close(handle)
            if time.monotonic() > end:
                raise CheckpointError(
                    f"Another process is working on the run in {self.folder}; wait for it to end."
                )
            time.sleep(0.05)

    def _survey(self) -> tuple[list[tuple[int, int, bytes]], bytes]:
        """Where the whole records are; a torn end is cut off."""
        size = os.fstat(self._handle).st_size
        head = os.pread(self._handle, len(MAGIC), 0)
        if head != MAGIC:
            if head and not MAGIC.startswith(head):
                raise CheckpointError(f"{self.path} is not a journal of this version of dmkc.")
            os.ftruncate(self._handle, 0)
            _write_all(self._handle, MAGIC)
            return [], b""
        places: list[tuple[int, int, bytes]] = []
        at, chain = len(MAGIC), b""
        while at < size:
            (length,) = _LENGTH.unpack(_padded(os.pread(self._handle, _LENGTH.size, at)))
            start = at + _LENGTH.size
            stop = start + length
            if stop + DIGEST_BYTES > size:
                break
            body = os.pread(self._handle, length, start)
            found = os.pread(self._handle, DIGEST_BYTES, stop)
            if found != _digest(chain, body):
                break
            try:
                from_bytes(body)
            except DamagedRecord:
                break
            chain, at = found, stop + DIGEST_BYTES
            places.append((start, length, chain))
        if at < size:
            log.info("The last %d bytes of %s are no whole record.", size - at, self.path)
            os.ftruncate(self._handle, at)
        return places, chain


def in_use(folder: Path) -> bool:
    """Whether a process works on the run in a folder, here or on a machine that shares it."""
    try:
        handle = os.open(folder / NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _is_locked(handle, exclusive=False)
    finally:
        os.close(handle)


def _is_locked(handle: int, exclusive: bool) -> bool:
    """Lock a file until it is closed, if nobody else has it."""
    found = lock(handle, exclusive=exclusive)
    if found is None:
        log.warning("Files cannot be locked here; run one process a folder.")
    return found is not False


def _padded(head: bytes) -> bytes:
    """Eight bytes; a torn length reads as one that no file has."""
    return head if len(head) == _LENGTH.size else b"\xff" * _LENGTH.size


def _digest(chain: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(chain + body, digest_size=DIGEST_BYTES).digest()


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
