"""Zarr stores of rows on this machine, looked at before Zarr opens what is in them.

A store of a stranger may hold pipes and devices instead of files, chunks that unpack to far more
than they should, or metadata that claims more than its files can hold.
"""

from __future__ import annotations

import itertools
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dmkc.errors import UserError

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
MOST_METADATA = 1 << 26
FREE_BYTES = 1 << 30
"""What any array or chunk may claim to hold, however little is stored of it."""
MOST_RATIO = 10_000
"""How many times larger than its files a larger array or chunk may be."""
FREE_CHUNKS = 10_000
"""Chunks that any array may have, and how many it may have for each that is stored."""
SOME_FILES = 100
SLACK_BYTES = 1 << 26
"""What a chunk may unpack to beyond twice its size, for checksums and filters."""
ZSTD = b"\x28\xb5\x2f\xfd"


def check_metadata_files(folder: Path) -> None:
    """Refuse metadata that is no regular file of bearable size, in a store and the arrays in it."""
    others = (
        entry.path for entry in os.scandir(folder) if not entry.is_file(follow_symlinks=False)
    )
    inside = filter(os.path.isdir, others)
    for place, name in itertools.product((str(folder), *inside), METADATA):
        path = os.path.join(place, name)
        if os.path.lexists(path) and (problem := _problem(path, MOST_METADATA)):
            raise UserError(f"{path} {problem}, so the Zarr store cannot be read.")


def check_claims(array: Any, folder: Path, where: str) -> None:
    """Refuse an array that claims far more bytes or chunks than it stores."""
    width, chunk = array.dtype.itemsize, array.shards or array.chunks
    counts = (-(-size // step) for size, step in zip(array.shape, chunk, strict=True))
    claims: list[tuple[str, int, int, int, Callable[[], Iterable[int]]]] = [
        ("bytes", width * math.prod(array.shape), FREE_BYTES, MOST_RATIO, lambda: _sizes(folder)),
        (
            "bytes in a chunk",
            width * math.prod(chunk),
            FREE_BYTES,
            MOST_RATIO,
            lambda: _one(folder),
        ),
        ("chunks", math.prod(counts), FREE_CHUNKS, FREE_CHUNKS, lambda: map(bool, _sizes(folder))),
    ]
    for what, claimed, free, ratio, sizes in claims:
        if claimed <= free:
            continue
        stored = 0
        for size in sizes():  # honest files suffice soon
            stored += size
            if claimed <= free + ratio * stored:
                break
        else:
            raise UserError(
                f"{where[0].upper()}{where[1:]} says that it has {claimed} {what}, but stores only "
                f"{stored}; write it again with all of its chunks and the shape that it has."
            )


def check_chunk_files(array: Any, folder: Path, start: int, stop: int) -> None:
    """Refuse chunks of rows [start, stop) that are no files, or unpack to more than a chunk."""
    shape = array.shards or array.chunks
    n_bytes = array.dtype.itemsize * math.prod(shape)
    runs = [range(start // shape[0], -(-stop // shape[0])), range(-(-array.shape[1] // shape[1]))]
    for place in itertools.product(*runs):
        path = str(folder / array.metadata.encode_chunk_key(place))
        if not os.path.lexists(path):
            continue  # all of it is the fill value
        problem = _problem(path, 2 * n_bytes + SLACK_BYTES)
        if not problem and (unpacked_size(Path(path)) or 0) > 2 * n_bytes + SLACK_BYTES:
            problem = f"unpacks to far more than the {n_bytes} bytes of a chunk"
        if problem:
            raise UserError(
                f"Rows {start} to {stop - 1} cannot be read, because {path} {problem}; write these "
                "rows again or restore the store from a copy."
            )


def unpacked_size(path: Path) -> int | None:
    """What a Zstandard frame says that it holds (RFC 8878, section 3.1.1.1), if it says so."""
    with open(path, "rb") as file:
        head = file.read(18)
    if len(head) < 6 or head[:4] != ZSTD:
        return None
    about = head[4]
    single, dictionary = bool(about & 0x20), (0, 1, 2, 4)[about & 3]
    width = (int(single), 2, 4, 8)[about >> 6]
    begin = 5 + (not single) + dictionary
    if not width or len(head) < begin + width:
        return None
    return int.from_bytes(head[begin : begin + width], "little") + (256 if width == 2 else 0)


def _problem(path: str, most: int) -> str:
    """Why a file is not to be opened, in half a sentence."""
    try:
        state = os.stat(path)
    except OSError as problem:
        return f"cannot be opened ({(problem.strerror or 'unknown').lower()})"
    if not stat.S_ISREG(state.st_mode):
        return "is not a regular file"
    return f"is too large ({state.st_size} bytes)" if state.st_size > most else ""


def _sizes(folder: Path) -> Iterator[int]:
    """Bytes of the files of an array."""
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names if name not in METADATA):
            if os.path.isfile(path):
                yield os.path.getsize(path)


def _one(folder: Path) -> list[int]:
    """Bytes of the largest of some files."""
    return [max(itertools.islice(_sizes(folder), SOME_FILES), default=0)]
