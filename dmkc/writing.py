"""Files and folders that appear whole or not at all, and locks that go with their process.

Everything is written beside its place, in a folder that is locked while its process lives, and
takes its place by renaming.  What processes that were killed have left is known by its free lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

NEW, OLD, LOCK = "new", "old", "lock"
METADATA = "zarr.json"
_HOLDER = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.part")
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
"""What renaming a folder to a name says when there is something of that name."""


@contextlib.contextmanager
def staged(path: Path, *, replace: bool, inside: str | None = None) -> Iterator[Path]:
    """A path to write a file or folder to, which takes the place of `path` when all went well.

    A Zarr group with all its arrays in the folder `inside` replaces another one without an instant
    at which there is none: its metadata is exchanged in one step.
    """
    clear_leftovers(path.parent)
    holder, handle = _new_holder(path)
    try:
        fresh = holder / NEW
        yield fresh
        if fresh.is_dir():
            _settle(fresh, path, holder / OLD, replace, inside)
        else:
            os.replace(fresh, path)
    finally:
        # Threads that an interruption left behind may still be writing a last chunk.
        for _ in range(3):
            shutil.rmtree(holder, ignore_errors=True)
            if not holder.exists():
                break
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a file of text that appears when it is whole and on the disk."""
    target = Path(os.path.realpath(path))  # a link stays one
    with staged(target, replace=True) as fresh, open(fresh, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def clear_leftovers(folder: Path) -> None:
    """Remove what processes that were killed have left half written in a folder, and say so."""
    for holder in folder.glob(".*.part"):
        found = _HOLDER.fullmatch(holder.name)
        if found is not None and not holder.is_symlink() and holder.is_dir():
            with contextlib.suppress(OSError):  # somebody else's, or cleared by somebody else
                _clear(holder, folder / found["name"])


def remove(path: Path) -> None:
    """Delete a file, a link or a folder, never what a link points to."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def lock(handle: int, *, exclusive: bool = True, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed; False: another one has it, None: there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except OSError as problem:
        return False if problem.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one at a path, which may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _new_holder(path: Path) -> tuple[Path, int]:
    """A folder beside `path` and its lock."""
    while True:
        holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        # Another process may take it for abandoned until it is locked.
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(holder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if lock(handle) is not False and is_at(handle, holder / LOCK):
                return holder, handle
            os.close(handle)


def _clear(holder: Path, path: Path) -> None:
    """Remove a folder that no process writes to any more."""
    there = {entry.name for entry in holder.iterdir()}
    if not there:
        holder.rmdir()
        return
    if LOCK not in there or not there <= {NEW, OLD, LOCK}:
        return
    handle = os.open(holder / LOCK, os.O_RDWR)
    try:
        if not lock(handle):
            return
        if OLD in there and not path.exists():
            os.rename(holder / OLD, path)  # its process ended between two renamings
        shutil.rmtree(holder)
        warnings.warn(
            f"Removed {holder}, which a process that was killed had left half written.",
            RuntimeWarning,
            stacklevel=5,
        )
    finally:
        os.close(handle)


def _settle(fresh: Path, path: Path, old: Path, replace: bool, inside: str | None) -> None:
    """Put a folder in its place, whoever else does so at the same time."""
    if not replace and (path.exists() or path.is_symlink()):
        raise FileExistsError(f"{path} has come into being meanwhile and was left as it is.")
    while True:
        try:
            os.rename(fresh, path)
            return
        except OSError as problem:
            if not replace or problem.errno not in _TAKEN:
                if old.exists() and not path.exists():
                    os.rename(old, path)
                raise
        with contextlib.suppress(FileNotFoundError):  # somebody else has moved it
            if inside is not None:
                _exchange(fresh, path, inside)
                return
            remove(old)
            os.rename(path, old)


def _exchange(fresh: Path, path: Path, inside: str) -> None:
    """Give a Zarr group other arrays and then other metadata, which says where they are."""
    with _held(path / METADATA):
        # What is there now is removed later: the arrays of others that come meanwhile are not.
        before = [entry for entry in path.iterdir() if entry.name != METADATA]
        os.rename(fresh / inside, path / inside)
        os.replace(fresh / METADATA, path / METADATA)
        for entry in before:
            shutil.rmtree(entry, ignore_errors=True)
            with contextlib.suppress(OSError):
                entry.unlink()


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """The lock of the file that is at a path."""
    while True:
        handle = os.open(path, os.O_RDWR)
        try:
            lock(handle, wait=True)
            if is_at(handle, path):
                yield
                return
        finally:
            os.close(handle)
