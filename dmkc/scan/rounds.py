"""Short scans without the scheduler's bookkeeping: one message to every worker, and its answer.

A task takes ten to twenty milliseconds before and after its work: it is announced, planned, handed
out, reported and fetched, and most of these messages wait a little for others to go with.  Where
held blocks are scanned in less, a fit of many rounds would mostly wait.  So workers are asked
directly for the statistics of blocks that they hold; they work on them in the threads of their
tasks.  Scans that take longer stay tasks, which the dashboard shows, and so does every scan that
could not be answered in this way: a worker has gone, or a block has moved.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from distributed import Client

from dmkc.scan.base import Scan
from dmkc.scan.grid import Grid, Piece
from dmkc.scan.tasks import scan_run

log = logging.getLogger("dmkc")

SHORT_SECONDS = 0.25
"""A scan of blocks on which the last one took less is asked for directly."""
MOST_WORKERS = 16
"""With more of them every worker is told of too many blocks of others."""

Run = tuple[list[str], list[int]]
"""Keys of blocks that one thread walks over, and their first rows."""


def ask_directly(
    client: Client, runs: dict[str, list[Run]], scan: Scan, grid: Grid
) -> list[list[Piece]] | None:
    """What every thread of every worker found; None where not all of them could answer.

    All workers are asked that there are: for one that has gone Dask would wait half a minute.
    """
    found = client.run(answer, runs, scan, grid, on_error="return")
    parts = [found.get(address) for address in runs]
    if not all(isinstance(part, list) for part in parts):
        log.info("A scan could not be answered directly; it is run as tasks.")
        return None
    return [pieces for part in parts for pieces in part]


async def answer(
    runs: dict[str, list[Run]], scan: Scan, grid: Grid, dask_worker: Any = None
) -> list[list[Piece]] | None:
    """The statistics of the blocks of a worker, one part for every thread; None: some are gone."""
    mine = runs.get(dask_worker.address, [])
    if any(key not in dask_worker.data for keys, _ in mine for key in keys):
        return None
    loop, threads = asyncio.get_running_loop(), dask_worker.executors["default"]
    work = [
        loop.run_in_executor(
            threads, scan_run, [dask_worker.data[key] for key in keys], starts, scan, grid
        )
        for keys, starts in mine
    ]
    return list(await asyncio.gather(*work))


def runs_of(groups: Sequence[tuple[str, list[Any]]]) -> dict[str, list[Run]]:
    """Runs of held blocks by worker, from the groups of a scan's tasks."""
    runs: dict[str, list[Run]] = {}
    for home, blocks in groups:
        runs.setdefault(home, []).append(
            ([b.future.key for b in blocks], [b.start for b in blocks])
        )
    return runs
