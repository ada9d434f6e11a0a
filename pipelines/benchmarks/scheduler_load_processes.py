"""A scheduler in one process and many simulated workers in another, so that each can be metered.

The workers are Dask's own and talk over sockets; only, they run a task in their event loop and not
in a thread of its own, since the threads of so many workers would fight for one interpreter, and
they do not watch themselves, since so many at once would be busy with that alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import dask
import psutil
from dask.local import SynchronousExecutor
from distributed import Client

from faults_processes import START_SECONDS, context, prepare, run_scheduler

# A busy machine must not make the scheduler give workers up; processes are forked with these.
os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "1h"
os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "300s"
os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP"] = "300s"

UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "1h",
}


def run_workers(address: str, count: int) -> None:
    """Simulated workers of one thread each."""
    from distributed import Worker

    async def serve() -> None:
        where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        async with contextlib.AsyncExitStack() as stack:
            workers = [
                await stack.enter_async_context(
                    Worker(address, nthreads=1, name=i, executor=SynchronousExecutor(), **where)
                )
                for i in range(count)
            ]
            await workers[0].finished()

    prepare()
    with dask.config.set(UNWATCHED):
        asyncio.run(serve())


@dataclass(frozen=True)
class Cost:
    """Seconds of something: on the clock, and of processors by process."""

    clock: float
    client: float
    scheduler: float
    workers: float
    """Of all workers together."""

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Simulated:
    """A client of simulated workers, and the processes that are metered."""

    client: Client
    processes: tuple[psutil.Process, psutil.Process, psutil.Process]
    """Of the client, the scheduler and the workers."""

    def cost(self, job: Callable[[], Any]) -> Cost:
        """What a job costs."""
        before, began = self._used(), time.perf_counter()
        job()
        clock = time.perf_counter() - began
        spent = [now - then for now, then in zip(self._used(), before, strict=True)]
        return Cost(clock, *spent)

    def _used(self) -> list[float]:
        return [sum(process.cpu_times()[:2]) for process in self.processes]


@contextlib.contextmanager
def simulated(count: int) -> Iterator[Simulated]:
    """So many simulated workers."""
    here, there = context.Pipe(duplex=False)
    scheduler = context.Process(target=run_scheduler, args=(there,))
    scheduler.start()
    if not here.poll(START_SECONDS):
        raise RuntimeError("The scheduler did not start.")
    address = here.recv()
    workers = context.Process(target=run_workers, args=(address, count))
    workers.start()
    try:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=START_SECONDS)
            numbers = (None, scheduler.pid, workers.pid)
            yield Simulated(client, tuple(psutil.Process(n) for n in numbers))  # type: ignore[arg-type]
    finally:
        for process in (workers, scheduler):
            process.kill()
            process.join()
