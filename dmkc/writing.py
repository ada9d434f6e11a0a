"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def staged(path: Path, *, replace: bool) -> Iterator[Path]:
    """A hidden sibling folder to write into, which takes the place of `path` when all went well."""
    holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        fresh = holder / "new"
        yield fresh
        _settle(fresh, path, holder / "old", replace)
    finally:
        # Threads that an interruption left behind may still be writing a last chunk.
        for _ in range(3):
            shutil.rmtree(holder, ignore_errors=True)
            if not holder.exists():
                break


def _settle(fresh: Path, path: Path, old: Path, replace: bool) -> None:
    if not replace:
        if path.exists() or path.is_symlink():
            raise FileExistsError(f"{path} has come into being meanwhile and was left as it is.")
        os.rename(fresh, path)
        return
    if path.exists():
        os.rename(path, old)
    try:
        os.rename(fresh, path)
    except OSError:
        if old.exists():
            os.rename(old, path)
        raise


def remove(path: Path) -> None:
    """Delete a file, a link or a folder, never what a link points to."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
