"""Libraries that every scan needs, imported by all processes of a fit at the same time.

What a worker is sent first would import them otherwise, one worker after the other as each gets
its first block, while this process waits for them, and then the other way round.
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import Any

from dmkc.compiled import ready_to_load

log = logging.getLogger("dmkc")

NEEDED = ("scipy.sparse", "scipy.linalg", "dmkc.scan.rounds", "dmkc.scan.survey", "dmkc.scan.cuts")
"""What a worker imports for its first tasks in any case."""
_begun: set[asyncio.Task] = set()


def begin(dask_worker: Any) -> None:
    """Have a worker import what it will need; it answers and works meanwhile."""
    if not ready_to_load.cache_info().currsize and not _begun:
        task = asyncio.get_running_loop().create_task(_load(dask_worker))
        _begun.add(task)  # the loop itself would forget it
        task.add_done_callback(_begun.discard)


async def _load(dask_worker: Any) -> None:
    try:
        # where tasks are unpickled: two threads that import modules which need each other
        # could each be left with half of one
        for name in NEEDED:
            await asyncio.sleep(0)
            import_module(name)
        # no message imports Numba, and its lock may be held for long
        threads = dask_worker.executors["default"]
        await asyncio.get_running_loop().run_in_executor(threads, ready_to_load)
    except Exception as problem:  # the first task that needs it will say so
        log.info("Libraries could not be loaded beforehand: %s", problem)
