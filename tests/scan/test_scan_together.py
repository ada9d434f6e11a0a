"""Fits that run together: turns, what is made once, and statistics that are their own."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import numpy as np
import pytest

from dmkc.data import RowRecord
from dmkc.scan.base import LeafScan, MappedScan
from dmkc.scan.engine import Held, ThreadEngine, open_engine
from dmkc.scan.requests import SideBySide
from dmkc.scan.together import Together

ROWS = np.random.default_rng(0).normal(size=(300, 4))


@dataclass(frozen=True)
class Power(LeafScan):
    """Sums of a power of the rows."""

    exponent: int

    def leaf(self, record: RowRecord):
        return (np.sum(record.rows**self.exponent, axis=0),)


@dataclass(frozen=True, eq=False)
class Half:
    """Half of the columns; remembers how often it was asked."""

    calls: list = field(default_factory=list)

    def room(self, n_rows):
        return np.empty((n_rows, 2))

    def __call__(self, rows, out=None):
        self.calls.append(len(rows))
        out = self.room(len(rows)) if out is None else out[: len(rows)]
        out[:] = rows[:, :2]
        return out


@pytest.fixture
def together():
    return Together(ThreadEngine(), 2, 4096)


def blocks_of(engine):
    grid = engine.grid(len(ROWS), 4, 64)
    return engine.once("rows", lambda: [Held(ROWS, 0, len(ROWS))]), grid


def test_rows_are_mapped_once_for_all_scans_of_the_same_map():
    one, other = Half(), Half()
    scans = (MappedScan(one, Power(1)), Power(2), MappedScan(other, Power(1)))
    both = SideBySide((*scans, MappedScan(one, Power(3))))
    nodes = both.block(ROWS, 0, 64)
    assert len(one.calls) == len(other.calls) == 5
    for scan, node in zip(both.scans, nodes, strict=True):
        np.testing.assert_array_equal(node, scan.block(ROWS, 0, 64))


def test_scans_that_wait_are_one_pass_and_equal_ones_are_done_once(together, monkeypatch):
    seen, found, scan = [], {}, ThreadEngine.scan

    def noted(self, asked, blocks, grid):
        seen.append(asked)
        return scan(self, asked, blocks, grid)

    monkeypatch.setattr(ThreadEngine, "scan", noted)

    def fit(name, powers):
        engine = open_engine()
        blocks, grid = blocks_of(engine)
        found[name] = [engine.scan(Power(power), blocks, grid)[0] for power in powers]
        found[name][0] *= 0  # a statistic is its own

    together.run([lambda: fit("a", (1, 2, 3)), lambda: fit("b", (1, 3))])
    assert seen == [Power(1), SideBySide((Power(2), Power(3))), Power(3)] and together.n_scans == 3
    for name, powers in (("a", (2, 3)), ("b", (3,))):
        for value, power in zip(found[name][1:], powers, strict=True):
            np.testing.assert_allclose(value, np.sum(ROWS**power, axis=0))


def test_what_is_held_alike_is_made_once_and_let_go(together):
    half = Half()
    held = []

    def fit(make):
        engine = open_engine()
        blocks, _ = blocks_of(engine)
        held.append(engine.hold(make, blocks, "half"))

    other = Half()
    together.run([lambda: fit(half), lambda: fit(other), lambda: fit(half)])
    assert len(half.calls) == len(other.calls) == 1
    assert sum(blocks is held[0] for blocks in held) == 2 and len(together.held) == 2
    held.clear()
    gc.collect()
    assert len(together.held) == 0


def test_one_that_fails_ends_all(together):
    ended = []

    def fit(power):
        engine = open_engine()
        blocks, grid = blocks_of(engine)
        try:
            for _ in range(3):
                engine.scan(Power(power), blocks, grid)
        finally:
            ended.append(power)

    with pytest.raises(TypeError):
        together.run([lambda: fit(1), lambda: fit("two"), lambda: fit(3)])
    assert sorted(map(str, ended)) == ["1", "3", "two"]
