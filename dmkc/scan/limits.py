"""One BLAS thread inside tasks: workers times BLAS threads must never oversubscribe a machine.

It also keeps bits: a BLAS sums in another order on another number of threads.

Some libraries count threads for each calling thread (OpenMP, MKL): every thread that comes in sets
its own limit.  OpenBLAS counts for the whole process: the first thread in sets the limit and the
last one out restores it, which need not be the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import LibController, ThreadpoolController

Before = list[tuple[LibController, int]]
"""Libraries with the numbers of threads they had."""

_lock = threading.Lock()
_inside = 0
_before: Before = []
_libraries: tuple[list[LibController], list[LibController]] | None = None
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the body with BLAS and OpenMP limited to one thread."""
    depth = getattr(_here, "depth", 0)
    if depth == 0:
        _here.before = _come_in()
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth
        if depth == 0:
            _go_out(_here.before)


def _come_in() -> Before:
    """Limit this thread and, if it is the first one in, the process."""
    global _inside, _before, _libraries
    with _lock:
        if _libraries is None:
            _libraries = _loaded()
        shared, own = _libraries
        if _inside == 0:
            _before = _limited(shared)
        _inside += 1
    return _limited(own)


def _go_out(own: Before) -> None:
    """Take back what `_come_in` did."""
    global _inside, _before
    _restore(own)
    with _lock:
        _inside -= 1
        if _inside == 0:
            _restore(_before)
            _before = []


def _loaded() -> tuple[list[LibController], list[LibController]]:
    """Libraries with one number of threads for the process, and with one for each thread."""
    shared: list[LibController] = []
    own: list[LibController] = []
    for library in ThreadpoolController().lib_controllers:
        info: dict[str, Any] = library.info()
        whole = info["internal_api"] in ("openblas", "blis")
        (shared if whole and info["threading_layer"] != "openmp" else own).append(library)
    return shared, own


def _limited(libraries: list[LibController]) -> Before:
    before = [(library, int(library.get_num_threads() or 1)) for library in libraries]
    _restore([(library, 1) for library in libraries])
    return before


def _restore(before: Before) -> None:
    for library, number in before:
        # threadpoolctl lets only the thread that set an OpenBLAS limit change it
        free = getattr(library, "clear_controlling_thread", None)
        if free is not None:
            free(force=True)
        library.set_num_threads(number)
        if free is not None and number > 1:
            free(force=True)
