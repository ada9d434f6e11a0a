"""Compiled loops on disk: read wherever they lie, written where that is allowed.

Numba's own cache does not look into a folder that it may not write, such as one that was filled
when dmkc was installed; it fails where no folder can be written or the disk is full; and of two
processes that save two forms of a loop at once one may later be handed out for the other.  Here
every form of a loop is a file of its own, which says what it was made from and is there whole or
not at all, and what cannot be kept is compiled again by the next process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps


class LoopCache(NullCache):
    """The compiled forms of one function."""

    def __init__(self, func: FunctionType, made_from: str) -> None:
        """`made_from` says all that the compiled forms depend on beside arguments and machine."""
        self._source = Path(func.__code__.co_filename)
        version = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
        self._name = f"{self._source.stem}.{func.__qualname__}.{version}"
        self._made_from = numba.__version__, _digest(made_from)

    @property
    def cache_path(self) -> str:
        return str(self._source.parent / "__pycache__")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        header = self._header(sig, target_context)
        for folder in _folders(self._source):
            # whatever is wrong with a file, the loop can be compiled
            with contextlib.suppress(Exception), open(folder / self._file(header), "rb") as file:
                if pickle.load(file) == header:
                    return CompileResult._rebuild(target_context, *pickle.load(file))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals:
            return
        header = self._header(sig, data.target_context)
        content = pickle.dumps(header) + dumps(data._reduce())
        for folder in _folders(self._source):
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / self._file(header), content)
                return

    def _header(self, sig: Any, target_context: Any) -> tuple[Any, ...]:
        """What a compiled form depends on: the source, the arguments and the processor."""
        return (*self._made_from, str(sig), repr(target_context.codegen().magic_tuple()))

    def _file(self, header: tuple[Any, ...]) -> str:
        *_, arguments, processor = header
        digest = _digest(f"{arguments} {processor}")
        return f"{self._name}-{digest[:16]}.loop"


def _folders(source: Path) -> Iterator[Path]:
    """Where compiled loops of a file may lie, the best place first."""
    place = _digest(str(source.parent.resolve()))[:16]
    told = getattr(numba.config, "CACHE_DIR", "")  # NUMBA_CACHE_DIR
    if told:
        yield Path(told, place)
    yield source.parent / "__pycache__"
    with contextlib.suppress(RuntimeError):  # nobody's home
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(caches, "dmkc", place)
    private = _private_folder()
    if private is not None:
        yield private / place


def _private_folder() -> Path | None:
    """A folder among the temporary files that nobody else can put anything into."""
    with contextlib.suppress(OSError):
        user = os.getuid() if hasattr(os, "getuid") else "user"
        folder = Path(tempfile.gettempdir(), f"dmkc-loops-{user}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        private = not stat.S_IMODE(found.st_mode) & 0o077 and found.st_uid == user
        if stat.S_ISDIR(found.st_mode) and (private or user == "user"):
            return folder
    return None


def _write(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all, whoever else writes it now."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)  # loops that are made when dmkc is installed are for everybody
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
