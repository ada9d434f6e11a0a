"""What the engine of a fit is asked to do, and how long each call takes.

Inside `metering` every engine that a fit opens keeps count.  It also says that it has a share of
its memory only: a fit of a tenth of the rows with a tenth of the memory holds its columns in the
same way as the fit of all rows.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dask.sizeof import sizeof

from dmkc.data import Read
from dmkc.data.record import split_weights
from dmkc.scan.base import Scan
from dmkc.scan.engine import Block, Engine, Make, counted
from dmkc.scan.grid import Grid, Node


@dataclass(frozen=True)
class Call:
    """One pass over rows."""

    name: str
    """What it is for, such as "survey" or "columns"."""
    is_scan: bool
    """Whether it returned a statistic, and not a value for every row."""
    on_subset: bool
    """Whether it went over a training subset in this process, and not over all rows."""
    rows: int
    seconds: float
    held: int
    """Bytes that it has left in memory."""


@dataclass
class Meter:
    """Calls so far, and how much of its memory an engine admits to."""

    share: float = 1.0
    """Of the memory for all rows."""
    subset_share: float = 1.0
    """Of the memory for a training subset."""
    calls: list[Call] = field(default_factory=list)


@contextlib.contextmanager
def metering(meter: Meter) -> Iterator[None]:
    """Have the fits inside the `with` block counted."""
    token = counted.set(partial(MeteringEngine, meter=meter))
    try:
        yield
    finally:
        counted.reset(token)


class MeteringEngine(Engine):
    """Another engine whose calls are timed."""

    def __init__(self, inner: Engine, meter: Meter, on_subset: bool = False) -> None:
        self._inner, self._meter, self._on_subset = inner, meter, on_subset
        share = meter.subset_share if on_subset else meter.share
        self.threads, self.memory = inner.threads, int(inner.memory * share)
        self.block_bytes, self.description = inner.block_bytes, inner.description
        self.here = inner.here

    def local(self) -> Engine:
        return MeteringEngine(self._inner.local(), self._meter, on_subset=True)

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        return self._inner.remember(name, make)

    def bring(self, blocks: Sequence[Block]) -> list[Block]:
        return self._held("rows", blocks, lambda: self._inner.bring(blocks))

    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        return self._held(name, blocks, lambda: self._inner.hold(make, blocks, name))

    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        began = time.perf_counter()
        node = self._inner.scan(scan, blocks, grid)
        self._count(scan.name, blocks, time.perf_counter() - began, is_scan=True)
        return node

    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        began = time.perf_counter()
        values = self._inner.collect(func, blocks, name)
        self._count(name, blocks, time.perf_counter() - began)
        return values

    def _held(
        self, name: str, blocks: Sequence[Block], make: Callable[[], list[Block]]
    ) -> list[Block]:
        began = time.perf_counter()
        made = make()
        seconds = time.perf_counter() - began
        new = [block for block in made if not isinstance(block, Read)]
        sizes = self._inner.collect(_size, new, "size") if new else []
        self._count(name, blocks, seconds, held=sum(sizes))
        return made

    def _count(
        self,
        name: str,
        blocks: Sequence[Block],
        seconds: float,
        is_scan: bool = False,
        held: int = 0,
    ) -> None:
        rows = sum(block.stop - block.start for block in blocks)
        self._meter.calls.append(Call(name, is_scan, self._on_subset, rows, seconds, held))


def _size(value: Any) -> int:
    """Bytes of a block with the weights of its rows."""
    rows, weights = split_weights(value)
    return int(sizeof(rows)) + (0 if weights is None else weights.nbytes)
