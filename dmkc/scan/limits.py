"""One BLAS thread inside tasks: workers times BLAS threads must never oversubscribe a machine.

The limit is process-wide while tasks run in several threads, so entries are counted: the first
task in sets it and the last one out restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0
_limit: Any = None
_controller: ThreadpoolController | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the body with BLAS and OpenMP limited to one thread in this process."""
    global _inside, _limit, _controller
    with _lock:
        if _inside == 0:
            if _controller is None:
                _controller = ThreadpoolController()
            _limit = _controller.limit(limits=1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
                _limit = None
