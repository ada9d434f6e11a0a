"""Waiting for tasks of a Dask cluster, and noticing when nobody will ever run them.

Tasks bound for a worker are left lying when all workers go at once: Dask's scheduler does not give
them to those that come later, and whoever waits for them would wait for ever.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from distributed import Client, Future, wait

from dmkc.display import Count, counting

LOOK_SECONDS = 2.0
"""How often a wait looks whether anybody still works on the results."""


PAUSED_LOOKS = 30
"""So many looks in a row, a minute, all workers may have paused for want of memory."""


class Stuck(RuntimeError):
    """Tasks that no worker will ever run."""


class Paused(RuntimeError):
    """All workers have stopped taking tasks, since their memory is nearly full."""


def wait_all(client: Client, futures: Sequence[Future], some_worker: Callable[[], Any]) -> None:
    """Wait until all tasks have ended.

    `some_worker` is called now and then; it returns once there is a worker.
    """
    watch = Watch(client, futures)
    with client.as_current(), counting(done_of(futures)):
        while True:
            with contextlib.suppress(TimeoutError):
                wait(futures, timeout=LOOK_SECONDS)
                return
            some_worker()
            watch.look()


def gather_all(
    client: Client, futures: Sequence[Future], some_worker: Callable[[], Any]
) -> list[Any]:
    """The results of all tasks, in this process; `some_worker` as in `wait_all`."""
    coroutine, loop = client.gather(futures, asynchronous=True), cast(Any, client.loop)
    job = asyncio.run_coroutine_threadsafe(coroutine, loop.asyncio_loop)
    watch = Watch(client, futures)
    try:
        with counting(done_of(futures)):
            while not concurrent.futures.wait([job], timeout=LOOK_SECONDS).done:
                some_worker()
                watch.look()
            return job.result()
    finally:
        job.cancel()


def done_of(futures: Sequence[Future]) -> Count:
    """How many tasks have ended, as this process knows it, and how many there are."""
    return lambda: (sum(future.done() for future in futures), len(futures))


@dataclass
class Watch:
    """Looks whether anybody still works on results that are missing."""

    client: Client
    futures: Sequence[Future]
    idle: int = 0
    """Looks in a row that have found all workers idle while results are missing."""
    paused: int = 0
    """Looks in a row that have found all of them paused, and nothing new done."""
    done: int = 0

    def look(self) -> None:
        """Raise where waiting longer would be in vain."""
        done = sum(future.done() for future in self.futures)
        missing = done < len(self.futures)
        self.idle = self.idle + 1 if missing and not any(self.client.processing().values()) else 0
        if self.idle > 1:
            raise Stuck("all workers were gone for a while")
        workers = self.client.scheduler_info(n_workers=-1).get("workers", {}).values()
        full = missing and bool(workers) and all(w.get("status") == "paused" for w in workers)
        self.paused = self.paused + 1 if full and done == self.done else 0
        self.done = done
        if self.paused > PAUSED_LOOKS:
            raise Paused(
                "All workers have paused for a minute, since their memory is nearly full: give "
                "them more memory, or use more of them."
            )
