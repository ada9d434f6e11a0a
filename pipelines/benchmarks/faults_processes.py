"""Processes for the fault suite, all forked from one that has imported dmkc: so they are cheap.

Importing the library takes longer than the fits that are disturbed.  A fork server imports it once;
clients, schedulers, nannies and, through these, workers are forked from it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
from multiprocessing import connection, forkserver
from typing import Any

import dask

PRELOADED = ["faults_strike"]
WORKERS = 2
START_SECONDS = 60.0
LOOK_SECONDS = 0.5

# The fork server looks for modules where the environment says, and not where this process does.
os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
os.environ["DASK_LOGGING__DISTRIBUTED"] = "critical"
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)


class Cluster:
    """A scheduler and two nannies, each a process that can be killed."""

    def __init__(self) -> None:
        self._scheduler: Any = None
        self._nannies: list[Any] = []
        self.address = ""

    def mend(self) -> str:
        """Start whatever is missing; the scheduler's address."""
        if self._scheduler is None or not self._scheduler.is_alive():
            self.close()
            here, there = context.Pipe(duplex=False)
            self._scheduler = context.Process(target=run_scheduler, args=(there,))
            self._scheduler.start()
            if not here.poll(START_SECONDS):
                raise RuntimeError("The scheduler of the fault suite did not start.")
            self.address = here.recv()
        self._nannies = [nanny for nanny in self._nannies if nanny.is_alive()]
        while len(self._nannies) < WORKERS:
            server = forkserver._forkserver._forkserver_address  # type: ignore[attr-defined]
            self._nannies.append(context.Process(target=run_nanny, args=(self.address, server)))
            self._nannies[-1].start()
        return self.address

    def pids(self) -> dict[str, list[int]]:
        """Process numbers by part; those of the workers are the scheduler's to say."""
        return {"scheduler": [self._scheduler.pid], "nanny": [n.pid for n in self._nannies]}

    def close(self) -> None:
        """End all processes; workers end with their nannies."""
        for process in [*self._nannies, self._scheduler]:
            if process is not None:
                process.kill()
                process.join()
        self._nannies, self._scheduler = [], None


def run_scheduler(pipe: Any) -> None:
    from distributed import Scheduler

    async def serve() -> None:
        settings = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        async with Scheduler(host="127.0.0.1", port=0, **settings) as scheduler:
            pipe.send(scheduler.address)
            await scheduler.finished()

    prepare()
    asyncio.run(serve())


def run_nanny(address: str, server: str) -> None:
    from distributed import Nanny

    # A forked process would start a fork server of its own, with all its imports.
    shared: Any = forkserver._forkserver  # type: ignore[attr-defined]
    shared._forkserver_address = server
    shared.ensure_running = lambda: None

    async def serve() -> None:
        where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        async with Nanny(address, nthreads=1, memory_limit="1GB", **where) as nanny:
            await nanny.finished()

    prepare()
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        asyncio.run(serve())


def prepare(sink: str = os.devnull) -> None:
    """Say nothing on the terminal, and end with the suite, however that ends."""
    handle = os.open(sink, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    suite = multiprocessing.parent_process()

    def follow() -> None:
        if suite is not None:
            connection.wait([suite.sentinel])
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def wait_for(process: Any, seconds: float) -> int | None:
    """The exit code of a process, or None for one that had to be ended after this time.

    Time in which the whole suite was stopped (SIGSTOP) does not count.
    """
    for _ in range(round(seconds / LOOK_SECONDS)):
        process.join(LOOK_SECONDS)
        if process.exitcode is not None:
            break
    if process.exitcode is not None:
        return process.exitcode
    process.kill()
    process.join()
    return None
