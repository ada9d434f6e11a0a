"""How far computations of Dask in this process have come, for whoever is watching."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dask.callbacks import Callback

from dmkc import display


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """Have the tasks of a computation counted; it costs nothing for a task, and none is slowed."""
    if display.current() is None:
        yield
        return
    states: list[Any] = []

    def count() -> tuple[int, int]:
        if not states:
            return 0, 0
        state = states[0]
        done = len(state["finished"])
        return done, done + sum(len(state[name]) for name in ("ready", "waiting", "running"))

    # The first one is the outermost: tasks may compute something by Dask themselves.
    begun = Callback(start_state=lambda graph, state: states.append(state))
    with display.counting(count), begun:
        yield
