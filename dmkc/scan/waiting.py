"""Waiting for tasks of a Dask cluster, and noticing when nobody will ever run them.

Tasks bound for a worker are left lying when all workers go at once: Dask's scheduler does not give
them to those that come later, and whoever waits for them would wait for ever.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

from distributed import Client, Future, wait

LOOK_SECONDS = 2.0
"""How often a wait looks whether anybody still works on the results."""


class Stuck(RuntimeError):
    """Tasks that no worker will ever run."""


def wait_all(client: Client, futures: Sequence[Future], some_worker: Callable[[], Any]) -> None:
    """Wait until all tasks have ended.

    `some_worker` is called now and then; it returns once there is a worker.
    """
    idle = 0
    with client.as_current():
        while True:
            with contextlib.suppress(TimeoutError):
                wait(futures, timeout=LOOK_SECONDS)
                return
            some_worker()
            idle = _idle_looks(client, futures, idle)


def gather_all(
    client: Client, futures: Sequence[Future], some_worker: Callable[[], Any]
) -> list[Any]:
    """The results of all tasks, in this process; `some_worker` as in `wait_all`."""
    coroutine, loop = client.gather(futures, asynchronous=True), cast(Any, client.loop)
    job = asyncio.run_coroutine_threadsafe(coroutine, loop.asyncio_loop)
    idle = 0
    try:
        while not concurrent.futures.wait([job], timeout=LOOK_SECONDS).done:
            some_worker()
            idle = _idle_looks(client, futures, idle)
        return job.result()
    finally:
        job.cancel()


def _idle_looks(client: Client, futures: Sequence[Future], before: int) -> int:
    """How many looks in a row have found all workers idle while results are missing."""
    missing = not all(future.done() for future in futures)
    looks = before + 1 if missing and not any(client.processing().values()) else 0
    if looks > 1:
        raise Stuck("all workers were gone for a while")
    return looks
