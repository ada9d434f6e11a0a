"""The files of a model on this machine, looked at before any of them is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dmkc.data.chunks import unpacked_size
from dmkc.modelfile.values import ModelFileError

MOST_FILES = 1 << 20
MOST_DESCRIPTION = 1 << 26
"""Bytes of a zarr.json, at most."""
METADATA = "zarr.json"
FREE_BYTES = 64 << 20
"""Arrays up to this size may be packed as tightly as they can be; larger ones are written bare."""
MOST_RATIO = 1000
"""How many times larger than its files a larger array may be."""


def check_folder(root: Path) -> None:
    """Refuse a folder with anything but folders and regular files that lie inside of it."""
    top = os.path.realpath(root)
    for number, path in enumerate(_entries(root)):
        if number == MOST_FILES:
            raise ModelFileError(f"it has more than {MOST_FILES} files.")
        try:
            state = os.lstat(path)
        except FileNotFoundError:  # of a model that has just been replaced
            continue
        if stat.S_ISLNK(state.st_mode):
            target = os.path.realpath(path)
            if os.path.commonpath([top, target]) != top or not os.path.exists(target):
                raise ModelFileError(f"{path.name} is a link to something outside of the folder.")
            state = os.stat(target)
        if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
            raise ModelFileError(f"{path.name} is neither a regular file nor a folder.")
        if path.name == METADATA and state.st_size > MOST_DESCRIPTION:
            raise ModelFileError(f"a {METADATA} is larger than any model's ({state.st_size}).")


def check_chunks(array: Path, n_bytes: int, chunk_bytes: int, packed: bool) -> None:
    """Refuse chunks of an array that would become larger than it says when they are unpacked."""
    stored = 0
    for path in _chunks(array / "c"):
        try:
            size = path.stat().st_size
            held = unpacked_size(path) if packed else size
        except FileNotFoundError:
            raise ModelFileError(f"a chunk of the array {array.name!r} is missing.") from None
        stored += size
        if held != chunk_bytes:
            said = "an unknown number of" if held is None else held
            raise ModelFileError(
                f"the array {array.name!r} is damaged: a chunk holds {said} bytes and not "
                f"{chunk_bytes}."
            )
    if n_bytes > FREE_BYTES + MOST_RATIO * stored:
        raise ModelFileError(
            f"the array {array.name!r} is larger than its files can be ({n_bytes} bytes from "
            f"{stored})."
        )


def _entries(root: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        yield from (Path(place, name) for name in (*folders, *files))


def _chunks(place: Path) -> Iterator[Path]:
    """The chunk files of an array; a system may have added hidden ones, which nobody reads."""
    if place.is_file():  # of an array without dimensions
        yield place
    for path in _entries(place):
        if path.is_file() and not path.name.startswith("."):
            yield path
