"""Several fits of the same rows at once: each goes its own way, and what they scan is one pass.

A fit runs in a thread of its own, but only one of them runs at any time: it goes on until it asks
for a scan, and then it is the turn of the next one.  Once all of them wait, scans of the same
blocks are run as one pass, each with its own statistic, so that every fit is given the bits that it
would have got alone.  Blocks and stored values that several fits would make are made once.
"""

from __future__ import annotations

import contextvars
import hashlib
import pickle
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dmkc.scan.base import MappedScan, Scan
from dmkc.scan.engine import Asked, Block, Each, Engine, Make, shared
from dmkc.scan.grid import Grid, Node


class _Abandoned(BaseException):
    """Ends a fit that is not needed any more."""


@dataclass(frozen=True)
class _Made:
    """Values of all blocks that a fit waits for."""

    make: Make
    blocks: Sequence[Block]
    name: str
    hold: bool
    """Whether they are kept where they are made, and not brought to this process."""


class _Kept(list[Block]):
    """Held blocks, and what they were made from: as long as they live, nothing else has its id."""

    def __init__(self, blocks: Sequence[Block], *made_from: Any) -> None:
        super().__init__(blocks)
        self.made_from = made_from


class _Turns:
    """A fit in a thread of its own, which runs only while it is its turn."""

    def __init__(self, work: Callable[[], None], engine: SharedEngine) -> None:
        engine.ask = self._ask
        self.question: Asked | _Made | None = None
        """What it waits for; None once it has ended."""
        self._error: BaseException | None = None
        self._answer: Any = None
        self._my_turn, self._your_turn = threading.Semaphore(0), threading.Semaphore(0)
        context = contextvars.copy_context()  # recorder, meter and listeners of the caller
        context.run(shared.set, engine)
        self._thread = threading.Thread(target=context.run, args=(self._run, work), daemon=True)

    def go_on(self, answer: Any = None) -> None:
        """Let it run until it asks for something or ends; raise what ended it."""
        self.question, self._answer = None, answer
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._my_turn.release()
        self._your_turn.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """End it, wherever it is."""
        if self._thread.ident is not None:
            self._answer = _Abandoned()
            self._my_turn.release()
            self._thread.join()

    def _ask(self, question: Asked | _Made) -> Any:
        self.question = question
        self._your_turn.release()
        self._my_turn.acquire()
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        self.question = None
        self._your_turn.release()


class SharedEngine(Engine):
    """An engine as one of several fits that run together sees it."""

    ask: Callable[[Asked | _Made], Any]
    """Wait for an answer."""

    def __init__(self, together: Together) -> None:
        self._together, self._inner = together, together.engine
        self.threads, self.block_bytes = self._inner.threads, self._inner.block_bytes
        self.description, self.here = self._inner.description, self._inner.here
        self.memory = self._inner.memory // together.count

    def local(self) -> Engine:
        return self._inner.local()

    def grid(self, n_rows: int, width: int, leaf_rows: int | None = None) -> Grid:
        """Blocks of as many rows as those of the other fits, which changes no bit of a sum."""
        own, most = super().grid(n_rows, width, leaf_rows), self._together.block_rows
        level = max(most // own.leaf_rows, 1).bit_length() - 1
        return replace(own, level=min(own.level, level))

    def once(self, what: Hashable, make: Callable[[], list[Block]]) -> list[Block]:
        known = self._together.rows
        if what not in known:
            known[what] = make()
        return known[what]

    def first_equal(self, value: Any) -> Any:
        return self._together.values.setdefault(_print(value), value)

    def bring(self, blocks: Sequence[Block]) -> list[Block]:
        return self._inner.bring(blocks)

    def hold(self, make: Make, blocks: Sequence[Block], name: str) -> list[Block]:
        return self.ask(_Made(make, blocks, name, hold=True))

    def scan(self, scan: Scan, blocks: Sequence[Block], grid: Grid) -> Node:
        if not scan.recorded:  # it writes something, for one fit alone
            return self._inner.scan(scan, blocks, grid)
        return self.ask(Asked(scan, blocks, grid))

    def collect(self, func: Make, blocks: Sequence[Block], name: str) -> list[Any]:
        return self.ask(_Made(func, blocks, name, hold=False))


class Together:
    """Runs fits together on one engine, each of which has an equal share of its memory."""

    def __init__(self, engine: Engine, count: int, block_rows: int) -> None:
        self.engine, self.count, self.block_rows = engine, count, block_rows
        self.n_scans = 0
        """Passes over all rows so far."""
        self.rows: dict[Hashable, list[Block]] = {}
        self.held: weakref.WeakValueDictionary[tuple[int, int], _Kept]
        self.held = weakref.WeakValueDictionary()
        self.values: dict[Hashable, Any] = {}

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Run fits to their ends; the first that fails ends them all.

        The order of turns depends on what is scanned alone, never on how rows are held: a journal
        that was written in one mode can be read in another.
        """
        fits = [_Turns(work, SharedEngine(self)) for work in works]
        try:
            for fit in fits:
                fit.go_on()
            while waiting := [fit for fit in fits if fit.question is not None]:
                answer, next_ones = self._next(waiting)
                answers = _or_error(answer, [fit.question for fit in next_ones])
                for fit, found in zip(next_ones, answers, strict=True):
                    fit.go_on(found)
        finally:
            for fit in fits:
                fit.end()

    def _next(self, waiting: list[_Turns]) -> tuple[Callable[[list[Any]], list[Any]], list[_Turns]]:
        """Whose turn it is, and how they are answered.

        Scans wait for blocks that are being made, so that they meet in every mode, and labels for
        all scans: fits end at different times.
        """
        scanning = [fit for fit in waiting if isinstance(fit.question, Asked)]
        holding = [f for f in waiting if isinstance(f.question, _Made) and f.question.hold]
        if holding:
            return self._held, holding
        return (self._scanned, scanning) if scanning else (self._collected, waiting)

    def _scanned(self, asked: list[Asked]) -> list[Node]:
        self.n_scans += len({one.over for one in asked})
        first: dict[Hashable, Scan] = {}
        asked = [one._replace(scan=first.setdefault(_alike(one), one.scan)) for one in asked]
        return self.engine.scan_together(asked)

    def _held(self, asked: list[_Made]) -> list[list[Block]]:
        """Blocks that are still held for another fit are given again."""
        kept = {_source(one): self.held.get(_source(one)) for one in asked}
        for new in _by_blocks([one for one in asked if kept[_source(one)] is None]):
            makes = list({id(one.make): one.make for one in new.values()}.values())
            blocks, name = next((one.blocks, one.name) for one in new.values())
            if len(makes) == 1:
                made = [self.engine.hold(makes[0], blocks, name)]
            else:
                made = self.engine.hold_each(makes, blocks, name)
            for make, found in zip(makes, made, strict=True):
                what = id(make), id(blocks)
                kept[what] = self.held[what] = _Kept(found, make, blocks)
        return [kept[_source(one)] or [] for one in asked]

    def _collected(self, asked: list[_Made]) -> list[list[Any]]:
        found: dict[int, list[Any]] = {}
        for here in _by_blocks(asked):
            self.n_scans += 1
            each = Each(tuple(one.make for one in here.values()))
            blocks, name = next((one.blocks, one.name) for one in here.values())
            parts = self.engine.collect(each, blocks, name)
            found.update(zip(here, map(list, zip(*parts, strict=True)), strict=True))
        return [found[k] for k in range(len(asked))]


def _or_error(answer: Callable[[list[Any]], list[Any]], asked: list[Any]) -> list[Any]:
    """Answers; where they cannot be had together, each alone, or the error that it comes to."""
    try:
        return answer(asked)
    except Exception as error:
        if len(asked) == 1:
            return [error]
        return [_or_error(answer, [one])[0] for one in asked]


def _by_blocks(asked: list[_Made]) -> list[dict[int, _Made]]:
    """Those of the same blocks, by number."""
    found: dict[int, dict[int, _Made]] = {}
    for k, one in enumerate(asked):
        found.setdefault(id(one.blocks), {})[k] = one
    return list(found.values())


def _source(one: _Made) -> tuple[int, int]:
    return id(one.make), id(one.blocks)


def _alike(one: Asked) -> Hashable:
    """The same for scans that come to the same."""
    if isinstance(one.scan, MappedScan):
        return one.over, id(one.scan.make), _print(one.scan.scan)
    return one.over, _print(one.scan)


def _print(value: Any) -> Hashable:
    """The same for equal values; what cannot be pickled equals nothing else."""
    try:
        return hashlib.blake2b(pickle.dumps(value), digest_size=32).digest()
    except Exception:
        return id(value)
