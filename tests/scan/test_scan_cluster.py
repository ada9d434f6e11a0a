"""How the engine of a cluster cuts scans into tasks, and where it keeps blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from dmkc.clusterers import labelling
from dmkc.data import as_rows
from dmkc.data.blocks import Read
from dmkc.scan.base import Scan
from dmkc.scan.cluster import (
    FAN_IN,
    LIBRARIES,
    TASKS_A_THREAD,
    ClusterEngine,
    held_at_most,
)
from dmkc.scan.grid import Grid
from dmkc.scan.rounds import SHORT_SECONDS


@dataclass(frozen=True)
class Numbers:
    """A reader of rows that hold their own number."""

    def read(self, start, stop):
        return np.arange(start, stop, dtype=float)[:, None]


@dataclass(frozen=True)
class Total(Scan):
    """The sum of all rows."""

    name = "total"

    def block(self, rows, first_row, leaf_rows):
        return (rows.sum(),)


@dataclass(frozen=True)
class Failing(Scan):
    """A scan that cannot be."""

    name = "failing"

    def block(self, rows, first_row, leaf_rows):
        raise ZeroDivisionError("of this scan")


N = 120
GRID = Grid(N, 1, 0)
BLOCKS = [Read(Numbers(), i, i + 1) for i in range(N)]
EXPECTED = (N * (N - 1) / 2,)


@pytest.fixture(scope="module")
def client():
    """A cluster whose idle workers take no tasks, and with them copies of blocks, from others.

    Under load Dask's scheduler has them do so when it likes; what is tested here is the engine.
    """
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def messages(client, monkeypatch):
    """The number of tasks of every message to the scheduler."""
    send, sent = client._graph_to_futures, []

    def counted(expr, keys, *args, **kwargs):
        sent.append(len(keys))
        return send(expr, keys, *args, **kwargs)

    monkeypatch.setattr(client, "_graph_to_futures", counted)
    return sent


def test_many_blocks_that_are_read_are_few_tasks_and_messages(client, messages):
    engine = ClusterEngine(client)
    assert engine.scan(Total(), BLOCKS, GRID) == EXPECTED
    tasks = TASKS_A_THREAD * 3
    assert messages == [tasks, -(-tasks // FAN_IN)]


def test_few_blocks_that_are_read_are_a_task_each(client, messages):
    grid = Grid(10, 1, 0)
    assert ClusterEngine(client).scan(Total(), BLOCKS[:10], grid) == (45,)
    assert messages == [10]


def test_blocks_are_held_by_one_message_and_scanned_by_a_task_a_thread(client, messages):
    engine = ClusterEngine(client)
    held = engine.hold(np.copy, BLOCKS, "held")
    assert engine.scan(Total(), held, GRID) == EXPECTED
    assert messages[0] == N and messages[-1] == 3
    np.testing.assert_array_equal(
        np.ravel(engine.collect(np.copy, held, "again")), np.arange(N, dtype=float)
    )


def test_short_scans_of_held_blocks_after_the_first_are_no_tasks(client, messages):
    engine = ClusterEngine(client)
    held = engine.hold(np.negative, BLOCKS, "values")
    messages.clear()
    for _ in range(3):
        assert engine.scan(Total(), held, GRID) == (-EXPECTED[0],)
    assert messages == [3]
    held[0].seconds = SHORT_SECONDS  # the last one was not short
    assert engine.scan(Total(), held, GRID) == (-EXPECTED[0],)
    assert messages == [3, 3]


def test_blocks_that_are_not_where_they_were_are_scanned_by_tasks(client, messages):
    engine = ClusterEngine(client)
    held = engine.hold(np.negative, BLOCKS, "values")
    engine.scan(Total(), held, GRID)
    held[0].home, held[-1].home = held[-1].home, held[0].home
    messages.clear()
    assert engine.scan(Total(), held, GRID) == (-EXPECTED[0],)
    assert messages == [3]


def test_an_error_inside_a_short_scan_is_told_as_that_of_a_task(client):
    engine = ClusterEngine(client)
    held = engine.hold(np.negative, BLOCKS, "values")
    engine.scan(Total(), held, GRID)
    with pytest.raises(ZeroDivisionError, match="of this scan"):
        engine.scan(Failing(), held, GRID)
    assert engine.scan(Total(), held, GRID) == (-EXPECTED[0],)


def test_blocks_that_another_worker_made_are_found_and_shared_out(client, monkeypatch):
    """All blocks are made by one worker, as when the others were slow to start."""
    engine = ClusterEngine(client)
    first = min(engine._workers())
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_spread", lambda blocks: [(first, list(blocks))])
        held = engine.hold(np.copy, BLOCKS, "held")
    for block in held:
        block.home = max(engine._workers())
    engine._note_homes(held)
    where = client.who_has([b.future for b in held])
    assert all(b.home in where[b.future.key] for b in held)
    assert engine.scan(Total(), held, GRID) == EXPECTED
    assert Counter(b.home for b in held) == dict.fromkeys(engine._workers(), N // 3)
    where = client.who_has([b.future for b in held])
    assert all(list(where[b.future.key]) == [b.home] for b in held)


def test_keys_mean_one_task_wherever_a_block_is_used(client):
    """Scans hold blocks of rows while labels of the same rows, cut alike, are computed."""
    X = da.random.default_rng(0).normal(size=(80, 2), chunks=(15, 2)) + 1
    rows, engine = as_rows(X), ClusterEngine(client)
    held = [engine.hold(np.copy, rows.blocks(20), "held") for _ in range(2)]
    labels = labelling.lazily(rows.blocks(20), np.copy, np.dtype(float), 2)
    with client.as_current():
        np.testing.assert_array_equal((labels + 1).compute(), X.compute() + 1)
    for blocks in held:
        values = np.concatenate(engine.collect(np.copy, blocks, "again"))
        np.testing.assert_array_equal(values, X.compute(scheduler="synchronous"))


def test_a_warning_of_the_scheduler_is_heard(client, scheduler_warnings):
    with client.as_current():
        first = client.get({"two": (np.add, 1, "one"), "one": 1}, "two", sync=False)
        second = client.get({"two": (np.add, 1, "other"), "other": 1}, "two", sync=False)
        assert first.result() == second.result() == 2
    assert "Detected different" in scheduler_warnings.pop()


@pytest.mark.parametrize("gigabytes", [0.5, 1.0, 1.5, 64.0])
def test_small_workers_are_not_filled_until_they_are_paused(gigabytes):
    limit = int(gigabytes * 1e9)
    assert 0.1 * limit - 1 <= held_at_most(limit) <= 0.5 * limit
    assert held_at_most(limit) + LIBRARIES <= 0.7 * limit
    assert held_at_most(64 << 30) == 32 << 30
