"""Scans on the workers of a Dask cluster.

Every block has a home: it is spread over the workers once and each scan sends one task to every
worker thread, which walks over the blocks that live there.  A scan is therefore as many tasks as
there are threads, whatever the number of blocks.  Placement is soft: when a worker is gone its
blocks are made again elsewhere from where they came.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future

from dmkc.data import Lazy
from dmkc.scan.base import Scan
from dmkc.scan.engine import Block, Engine, Held, Make, load, only_node, run_block
from dmkc.scan.grid import Grid, Node, Piece, fold_pieces
from dmkc.scan.limits import one_blas_thread

FAN_IN = 32
_numbers = itertools.count()


@dataclass(frozen=True)
class Placed:
    """A block whose value lives on a worker."""

    future: Future
    start: int
    stop: int
    home: str


class ClusterEngine(Engine):
    """Runs scans through a connected `distributed.Client`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        workers = self._workers()
        self.threads = sum(threads for _, threads in workers)
        limits = [w["memory_limit"] for w in self._info().values() if w["memory_limit"]]
        self.memory = int(0.5 * sum(limits))
        self.description = f"{len(workers)} Dask worker(s), {self.threads} thread(s)"

    def _info(self) -> dict[str, Any]:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def _workers(self) -> list[tuple[str, int]]:
        """Addresses and threads of the workers, waiting for the first one if there is none."""
        if not self._info():
            self.client.wait_for_workers(1, timeout=300)
        return sorted((address, w["nthreads"]) for address, w in self._info().items())

    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        number = next(_numbers)
        placed = []
        for home, run in self._spread(blocks):
            for block in run:
                future = self.client.submit(
                    _make_value,
                    self._value(block),
                    make,
                    key=f"{name}-{number}-{block.start}",
                    workers=[home],
                    allow_other_workers=True,
                )
                placed.append(Placed(future, block.start, block.stop, home))
        return placed

    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        number = next(_numbers)
        futures = []
        for part, (home, run) in enumerate(self._groups(blocks)):
            futures.append(
                self.client.submit(
                    _scan_run,
                    scan,
                    [self._value(b) for b in run],
                    [b.start for b in run],
                    grid,
                    key=f"{scan.name}-{number}-{part}",
                    workers=[home] if home else None,
                    allow_other_workers=bool(home),
                )
            )
        depth = 0
        while len(futures) > FAN_IN:
            depth += 1
            futures = [
                self.client.submit(
                    _fold_run,
                    scan,
                    futures[i : i + FAN_IN],
                    grid,
                    key=f"{scan.name}-sum-{number}-{depth}-{i}",
                )
                for i in range(0, len(futures), FAN_IN)
            ]
        parts = self.client.gather(futures)
        return only_node([piece for part in parts for piece in part], grid, scan)

    def _value(self, block: Block) -> Any:
        """What a task takes for a block: a future, or something that loads itself there."""
        if isinstance(block, Placed):
            return block.future
        if isinstance(block, Lazy):
            return self.client.compute(block.delayed)
        return block

    def _spread(self, blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
        """Contiguous runs of blocks for the workers, in proportion to their threads."""
        slots = [address for address, threads in self._workers() for _ in range(threads)]
        n = len(blocks)
        edges = [round(s * n / len(slots)) for s in range(len(slots) + 1)]
        return [(slots[s], list(blocks[edges[s] : edges[s + 1]])) for s in range(len(slots))]

    def _groups(self, blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
        """The runs of blocks that one task each walks over."""
        if not all(isinstance(b, Placed) for b in blocks):
            return [(home, run) for home, run in self._pieces(blocks) if run]
        threads = dict(self._workers())
        groups = []
        for home, members in itertools.groupby(blocks, key=lambda b: b.home):
            run = list(members)
            parts = max(1, min(threads.get(home, 1), len(run)))
            for i in range(parts):
                piece = run[i * len(run) // parts : (i + 1) * len(run) // parts]
                groups.append((home if home in threads else "", piece))
        return groups

    def _pieces(self, blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
        """Blocks that are read or computed in the task go one at a time: memory stays small."""
        return [(home, [block]) for home, run in self._spread(blocks) for block in run]


def _make_value(rows: Any, make: Make) -> Any:
    with one_blas_thread():
        return make(_rows(rows))


def _scan_run(scan: Scan, values: list, starts: list[int], grid: Grid) -> list[Piece]:
    pieces = [
        run_block(scan, _rows(value), start, grid)
        for value, start in zip(values, starts, strict=True)
    ]
    return fold_pieces(pieces, grid.n_leaves, scan.merge)


def _fold_run(scan: Scan, parts: list[list[Piece]], grid: Grid) -> list[Piece]:
    pieces = [piece for part in parts for piece in part]
    return fold_pieces(pieces, grid.n_leaves, scan.merge)


def _rows(value: Any) -> Any:
    return load(value) if isinstance(value, Held) or hasattr(value, "load") else value
