"""Scans on the workers of a Dask cluster.

Every held block has a home: blocks are spread over the workers once, in contiguous runs, and each
scan sends one task to every worker thread, which walks over the blocks that live there, or some
tasks where blocks are read anew.  The number of tasks goes with the threads, whatever the number of
blocks, and all of them are one message.  Placement is soft: a block remembers how it was made, and
when its worker is gone it is made again on another one; blocks also move to workers that have
joined.  Where workers are killed again and again, which mostly means that they run out of memory,
tasks become smaller: one block each, then half a block.  Short scans of held blocks need no tasks
(`dmkc/scan/rounds.py`).
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import dask
import psutil
from dask.delayed import delayed
from distributed import Client, Future, KilledWorker
from distributed.comm import CommClosedError
from distributed.protocol.pickle import dumps

from dmkc.compiled import ready_to_load
from dmkc.data import Lazy, Read
from dmkc.scan.base import Scan
from dmkc.scan.engine import (
    Block,
    Engine,
    Make,
    block_bytes_for,
    only_node,
    resident_bytes,
)
from dmkc.scan.grid import Grid, Node, Piece
from dmkc.scan.lost import SchedulerLost, WorkersLost, await_worker, check_scheduler, why_lost
from dmkc.scan.rounds import MOST_WORKERS, SHORT_SECONDS, ask_directly, runs_of
from dmkc.scan.tasks import fold_run, make_value, same, scan_run
from dmkc.scan.versions import check_versions
from dmkc.scan.waiting import Stuck, gather_all, wait_all

log = logging.getLogger("dmkc")

FAN_IN = 32
TASKS_A_THREAD = 16
"""At most, where blocks are read anew: enough to keep workers evenly busy."""
FEW_TASKS = 4
"""For every worker: what only so many tasks need is sent with each of them."""
LARGE_VALUE = 1 << 18
"""Bytes from which on a value that many tasks need is sent to every worker once."""
ATTEMPTS = 5
SPENT_SCANS = 32
MOST_LEVEL = 64
"""Leaves in a block, as a power of two: no limit, until workers run out of memory."""
LIBRARIES = 250 << 20
"""Bytes that the libraries of a fit take on a worker."""
REFRESH_SECONDS = 5.0
PATIENCE_SECONDS = 1800.0
"""How long a fit waits for a worker when all are gone; a batch queue may take its time."""
_numbers = itertools.count()

_LOST = (CancelledError, KilledWorker, CommClosedError, Stuck)


def _with_scheduler(method: Callable) -> Callable:
    """The method of an engine, whose failure is told for what it is when the scheduler is gone."""

    @functools.wraps(method)
    def told(self: ClusterEngine, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except SchedulerLost:
            raise
        except Exception as error:
            check_scheduler(self.client, self._address, error)
            raise

    return told


@dataclass(eq=False)
class Placed:
    """A block whose value lives on a worker."""

    future: Future
    start: int
    stop: int
    home: str
    make: Make | None
    """Makes the value from `source`; None when `source` was sent as it is."""
    source: Block
    """Where the value came from, so that it can be made again."""
    seconds: float = math.inf
    """What the last scan took that began with this block."""


def held_at_most(limit: int) -> int:
    """Bytes that a worker with so much memory may hold.

    Half of it; less on a small one, which libraries and the blocks at work would fill so far that
    Dask pauses it.
    """
    return int(max(min(0.5 * limit, 0.65 * limit - LIBRARIES), 0.1 * limit))


class ClusterEngine(Engine):
    """Runs scans through a connected `distributed.Client`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, int] = {}
        self._spent: list[list[Future]] = []
        self._kept: list[Future] = []
        self._asked = -REFRESH_SECONDS
        self._block_a_task = False
        self._most_level = MOST_LEVEL
        self._address = client.scheduler_info(n_workers=0).get("address", "its address")
        workers = self._workers()
        check_versions(client, workers)
        ready_to_load()  # this process needs it too, and workers do the same now
        self.threads = sum(workers.values())
        info = self._info()
        limits = [w["memory_limit"] or psutil.virtual_memory().total for w in info.values()]
        self.memory = sum(map(held_at_most, limits))
        self.block_bytes = block_bytes_for(self.memory / self.threads)
        self.description = f"{len(workers)} Dask worker(s), {self.threads} thread(s)"

    def require(self, modules: set[str]) -> None:
        found = self.client.run(missing_modules, sorted(modules)) if modules else {}
        for worker, missing in found.items():
            if missing:
                raise ImportError(
                    f"The worker {worker} cannot import {missing[0]!r}, which this fit needs: "
                    "install it where the workers run, or send a file of code with "
                    f"client.upload_file('{missing[0]}.py')."
                )

    def _workers(self, fresh: bool = False) -> dict[str, int]:
        """Threads of every worker, asked for now and then: it costs a round trip."""
        if fresh or time.monotonic() - self._asked > REFRESH_SECONDS:
            self._asked = time.monotonic()
            info = self._info()
            while not info:
                await_worker(self.client, self._address, PATIENCE_SECONDS)
                info = self._info()
            self._known = {address: w["nthreads"] for address, w in sorted(info.items())}
        return self._known

    def _info(self) -> dict[str, Any]:
        """What the scheduler knows of its workers."""
        found = self.client.scheduler_info(n_workers=-1)
        check_scheduler(self.client, self._address)
        return found.get("workers", {})

    def _some_worker(self) -> None:
        """Return once there is a worker."""
        self._workers(fresh=True)

    def resident(self) -> list[int]:
        return list(self.client.run(resident_bytes).values())

    @_with_scheduler
    def bring(self, blocks: Sequence[Block]) -> list[Block]:
        """Rows in this process's memory are sent to the workers once."""
        return self._settled(self._place(None, blocks, "rows"))

    @_with_scheduler
    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        return self._settled(self._place(make, blocks, name))

    def _settled(self, placed: list[Placed]) -> list[Block]:
        """The blocks once they are all made; what was lost meanwhile is made again."""
        for _ in range(ATTEMPTS):
            stuck = False
            try:
                wait_all(self.client, [p.future for p in placed], self._some_worker)
            except _LOST as error:
                stuck = isinstance(error, Stuck)
            if not stuck and not any(_is_lost(p.future) for p in placed):
                break
            self._recover(placed, stuck)
        self._note_homes(placed)
        return list(placed)

    def _note_homes(self, placed: Sequence[Placed]) -> None:
        """Where blocks really are: an idle worker may have made some that were not meant for it.

        A scan at the intended home would fetch such a block, and both workers would hold it.
        """
        found = self.client.who_has([p.future for p in placed])
        for block in placed:
            holders = found.get(block.future.key)
            if holders and block.home not in holders:
                block.home = holders[0]

    @_with_scheduler
    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        for attempt in itertools.count(1):
            blocks, grid = self._fitting(blocks, grid)
            try:
                self._share_out(blocks)
                parts = self._scan_timed(scan, blocks, grid)
                return only_node([piece for part in parts for piece in part], grid, scan)
            except _LOST as error:
                if attempt == ATTEMPTS:
                    raise WorkersLost(why_lost(scan.name, error)) from error
                if isinstance(error, KilledWorker):
                    self._lessen(blocks, grid)
                log.warning("A scan was lost with a worker (%s); running it again.", error)
                self._recover(blocks, isinstance(error, Stuck))
        raise AssertionError

    def _lessen(self, blocks: Sequence[Block], grid: Grid) -> None:
        """Less work for every task from now on: one block, or half of one that is read anew."""
        if all(isinstance(b, Read) for b in blocks):
            self._most_level = max(grid.level - 1, 0)
        else:
            self._block_a_task = True

    def _fitting(self, blocks: Sequence[Block], grid: Grid) -> tuple[Sequence[Block], Grid]:
        """Blocks that are read anew, as small as the workers' memory has shown to need.

        Leaves stay as they are, and so do the bits of every sum.
        """
        if grid.level <= self._most_level or not all(isinstance(b, Read) for b in blocks):
            return blocks, grid
        finer = replace(grid, level=self._most_level)
        parts = [
            Read(b.reader, start, min(start + finer.block_rows, b.stop))
            for b in blocks
            for start in range(b.start, b.stop, finer.block_rows)
        ]
        return parts, finer

    def _share_out(self, blocks: Sequence[Block]) -> None:
        """Move blocks to workers that have few, such as new ones, and from those that have left."""
        workers = self._workers()
        placed = [b for b in blocks if isinstance(b, Placed)]
        if len(placed) < len(workers):
            return
        number, total = next(_numbers), sum(workers.values())
        room = {w: -(-len(placed) * threads // total) for w, threads in workers.items()}
        moving = []
        for block in placed:
            if room.get(block.home, 0) > 0:
                room[block.home] -= 1
            else:
                moving.append(block)
        if not moving:
            return
        free = [home for home, left in room.items() for _ in range(left)]
        homes = {f"moved-{number}-{b.start}": home for b, home in zip(moving, free, strict=False)}
        moved = self._map(same, homes, [b.future for b in moving])
        for block, future, home in zip(moving, moved, homes.values(), strict=True):
            block.future, block.home = future, home
        log.info("%d of %d blocks moved to other workers.", len(moving), len(placed))

    @_with_scheduler
    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        for attempt in itertools.count(1):
            try:
                futures = [p.future for p in self._place(func, blocks, name)]
                return gather_all(self.client, futures, self._some_worker)
            except _LOST as error:
                if attempt == ATTEMPTS:
                    raise WorkersLost(why_lost(name, error)) from error
                log.warning("Results were lost with a worker (%s); making them again.", error)
                self._recover(blocks, isinstance(error, Stuck))
        raise AssertionError

    def _scan_timed(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> list[list[Piece]]:
        """Held blocks whose last scan was short are asked for without tasks."""
        began, first = time.monotonic(), blocks[0]
        if not all(isinstance(b, Placed) for b in blocks):
            return self._scan_once(scan, blocks, grid)
        parts, short = None, first.seconds < SHORT_SECONDS and len(self._workers()) <= MOST_WORKERS
        if short:
            parts = ask_directly(self.client, runs_of(self._groups(blocks)), scan, grid)
        if parts is None:
            parts = self._scan_once(scan, blocks, grid)
            if short:  # somebody has gone, or has lost a block, which was made again elsewhere
                self._workers(fresh=True)
                self._note_homes(blocks)
        first.seconds = time.monotonic() - began
        return parts

    def _scan_once(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> list[list[Piece]]:
        number = next(_numbers)
        if any(isinstance(b, Lazy) for b in blocks):
            futures = self._scan_lazy(scan, blocks, grid, number)
        else:
            futures = self._scan_groups(scan, self._groups(blocks), grid, number)
        depth = 0
        while len(futures) > FAN_IN:
            depth += 1
            parts = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            keys = [f"{scan.name}-sum-{number}-{depth}-{i}" for i in range(len(parts))]
            futures = self.client.map(fold_run, parts, scan=scan, grid=grid, key=keys, pure=False)
        # Letting go of futures is a message of its own, and the client sends one message in ten
        # milliseconds: done after every scan it would hold up the next one.
        self._spent = [*self._spent, futures] if len(self._spent) < SPENT_SCANS else [futures]
        return gather_all(self.client, futures, self._some_worker)

    def _scan_groups(
        self, scan: Scan, groups: list[tuple[str, list[Block]]], grid: Grid, number: int
    ) -> list[Future]:
        """Tasks bound for the homes of their blocks."""
        homes = {f"{scan.name}-{number}-{i}": home for i, (home, _) in enumerate(groups)}
        values = [[self._value(b) for b in run] for _, run in groups]
        starts = [[b.start for b in run] for _, run in groups]
        return self._map(scan_run, homes, values, starts, scan=scan, grid=grid)

    def _scan_lazy(
        self, scan: Scan, blocks: Sequence[Block], grid: Grid, number: int
    ) -> list[Future]:
        """One graph for all blocks, so that each block's rows are freed once they are scanned."""
        task = delayed(scan_run, pure=False)
        return self.client.compute(
            [
                task(
                    [b.delayed if isinstance(b, Lazy) else self._value(b)],
                    [b.start],
                    scan,
                    grid,
                    dask_key_name=f"{scan.name}-{number}-{b.start}",
                )
                for b in blocks
            ]
        )

    def _place(self, make: Make | None, blocks: Sequence[Block], name: str) -> list[Placed]:
        number = next(_numbers)
        computed = self._compute([b for b in blocks if isinstance(b, Lazy)])
        spread = [(home, block) for home, run in self._spread(blocks) for block in run]
        futures: dict[int, Future] = {}
        homes: dict[str, str] = {}
        values = []
        for home, block in spread:
            if make is None and isinstance(block, Read):
                sent = self.client.scatter(block.load(), workers=[home], hash=False)
                futures[block.start] = sent
            else:
                homes[f"{name}-{number}-{block.start}"] = home
                values.append(computed.get(block.start) or self._value(block))
        if homes:
            made = self._map(make_value, homes, values, make=self._sent(make, len(homes)))
            starts = [block.start for _, block in spread if block.start not in futures]
            futures.update(zip(starts, made, strict=True))
        placed = [Placed(futures[b.start], b.start, b.stop, home, make, b) for home, b in spread]
        return sorted(placed, key=lambda p: p.start)  # runs of a worker need not be contiguous

    def _sent(self, value: Any, tasks: int) -> Any:
        """What many tasks need: sent to every worker once if it is large, and not with each task.

        A worker would hold a copy for every task that waits there.
        """
        if tasks <= FEW_TASKS * len(self._workers()) or len(dumps(value)) < LARGE_VALUE:
            return value
        sent = self.client.scatter(value, broadcast=True, hash=False)
        self._kept.append(sent)  # blocks that are lost with a worker are made again from it
        return sent

    def _compute(self, blocks: Sequence[Lazy]) -> dict[int, Future]:
        """Futures of lazy blocks, from one graph."""
        if not blocks:
            return {}
        futures = self.client.compute([b.delayed for b in blocks])
        return {b.start: f for b, f in zip(blocks, futures, strict=True)}

    def _recover(self, blocks: Sequence[Block], stuck: bool = False) -> None:
        """Make blocks again that were lost with their worker, or that nobody is making."""
        time.sleep(0.5)
        homes = self._workers(fresh=True)
        placed = [b for b in blocks if isinstance(b, Placed)]
        lost = [b for b in placed if _is_lost(b.future) or (stuck and not b.future.done())]
        sources = [b.source for b in lost if isinstance(b.source, Placed)]
        if sources:
            self._recover(sources, stuck)
        for make, group in itertools.groupby(lost, key=lambda b: b.make):
            members = list(group)
            again = self._place(make, [b.source for b in members], "again")
            for block, new in zip(members, again, strict=True):
                block.future, block.home = new.future, new.home
        log.info("Blocks were spread again over %d worker(s).", len(homes))

    def _map(
        self, func: Callable, homes: dict[str, str], *values: Sequence[Any], **same: Any
    ) -> list[Future]:
        """One message for all tasks; `homes` are their keys and the workers they are bound for.

        Keys are new ones, and so nothing is pure: Dask would hash all arguments to find a name.
        """
        with dask.annotate(workers=lambda key: [homes[key]], allow_other_workers=True):
            return self.client.map(func, *values, key=list(homes), pure=False, **same)

    def _value(self, block: Block) -> Any:
        """What a task takes for a block: a future, or something that loads itself there."""
        return block.future if isinstance(block, Placed) else block

    def _spread(self, blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
        """Runs of blocks for the workers: where they are, or in proportion to the threads."""
        workers = self._workers()
        if all(isinstance(b, Placed) and b.home in workers for b in blocks):
            at: dict[str, list[Block]] = {}
            for block in blocks:
                at.setdefault(block.home, []).append(block)
            return list(at.items())
        slots = [address for address, threads in workers.items() for _ in range(threads)]
        n = len(blocks)
        edges = [round(s * n / len(slots)) for s in range(len(slots) + 1)]
        runs_of = zip(slots, itertools.pairwise(edges), strict=True)
        return [(slot, list(blocks[a:b])) for slot, (a, b) in runs_of if b > a]

    def _groups(self, blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
        """The runs of blocks that one task each walks over: one for every thread.

        Blocks that are read in the task are some runs for every thread, which keeps workers evenly
        busy; all blocks go one at a time once workers have run out of memory.
        """
        threads = self._workers()
        groups = []
        for home, run in self._spread(blocks):
            most = threads.get(home, 1) if isinstance(run[0], Placed) else TASKS_A_THREAD
            parts = len(run) if self._block_a_task else min(most, len(run))
            for i in range(parts):
                piece = run[i * len(run) // parts : (i + 1) * len(run) // parts]
                groups.append((home, piece))
        return groups


def _is_lost(future: Future) -> bool:
    """Whether a value went with its worker (other errors are for whoever asks for the value)."""
    if future.status == "error":
        return isinstance(future.exception(), _LOST)
    return future.status in ("cancelled", "lost")


def missing_modules(names: list[str]) -> list[str]:
    """The modules that cannot be found in this process."""
    return [name for name in names if name not in sys.modules and find_spec(name) is None]
