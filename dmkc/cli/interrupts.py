"""Ctrl-C and SIGTERM end a command tidily, even where the exception that they raise gets lost.

A signal's exception comes up wherever the program is: inside a finalizer or a callback of compiled
code it is printed or swallowed, and the command would go on. So it is also written down, and raised
again by whoever is told of the progress of a fit.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import thread
from queue import SimpleQueue
from typing import Any, NoReturn


class Terminated(BaseException):
    """SIGTERM, by which queues announce the end of a job."""


_asked: list[type[BaseException]] = []
"""What has been asked for and may have got lost."""


@contextlib.contextmanager
def tidy_end() -> Iterator[None]:
    """Let signals unwind the command, so that clusters are closed and jobs given back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    # Whoever started the command may have had Ctrl-C ignored, as shells do for what runs behind.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if _asked:
            _claim_threads()
        _asked.clear()


def heed() -> None:
    """Raise once more what a signal has asked for."""
    if _asked:
        raise _asked[-1]


def _claim_threads() -> None:
    """Note threads of pools that the interpreter does not know it has to end.

    An exception inside `ThreadPoolExecutor.submit` may come after a thread was started and before
    that was noted, and at its end the interpreter would wait for that thread forever.
    """
    noted: Any = thread._threads_queues
    for each in threading.enumerate():
        if vars(each).get("_target") is thread._worker and each not in noted:
            for part in vars(each).get("_args", ()):
                if isinstance(part, SimpleQueue):
                    noted[each] = part


def _terminate(*_: Any) -> NoReturn:
    _asked.append(Terminated)
    raise Terminated("ended by a signal")


def _interrupt(*_: Any) -> NoReturn:
    # The system's own handler ends the process at once, even where Python's would have to wait.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _asked.append(KeyboardInterrupt)
    raise KeyboardInterrupt
