"""Workers that join, run out of memory or all leave, seen from the engine."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

import dmkc
from dmkc.data.blocks import Read
from dmkc.scan import cluster, lost, waiting
from dmkc.scan.base import Scan
from dmkc.scan.cluster import ClusterEngine
from dmkc.scan.grid import Grid
from dmkc.scan.lost import SchedulerLost, WorkersLost


@pytest.fixture
def one_worker():
    """A client of one worker process whose first loss counts."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


@dataclass(frozen=True)
class Ones:
    """A reader of rows of two ones."""

    def read(self, start, stop):
        return np.ones((stop - start, 2))


def blocks_of(n_rows, grid):
    step = grid.block_rows
    return [Read(Ones(), i, min(i + step, n_rows)) for i in range(0, n_rows, step)]


@dataclass(frozen=True)
class Where(Scan):
    """Which workers have scanned how many rows."""

    name = "where"

    def block(self, rows, first_row, leaf_rows):
        return {get_worker().address: len(rows)}

    def merge(self, left, right):
        both = {**left}
        for address, n in right.items():
            both[address] = both.get(address, 0) + n
        return both


@pytest.mark.parametrize("kind", ["held", "read"])
def test_a_worker_that_joins_takes_its_share_of_the_next_scan(kind, monkeypatch):
    monkeypatch.setattr(cluster, "REFRESH_SECONDS", 0.0)
    with (
        # else an idle worker may take what is bound for another one, when the scheduler likes
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        engine, grid = ClusterEngine(client), Grid(60, 1, 0)
        blocks = blocks_of(60, grid)
        if kind == "held":
            blocks = engine.hold(np.copy, blocks, "held")
        before = engine.scan(Where(), blocks, grid)
        assert sum(before.values()) == 60 and len(before) == 2
        local.scale(3)
        client.wait_for_workers(3)
        after = engine.scan(Where(), blocks, grid)
        assert sum(after.values()) == 60 and len(after) == 3
        if kind == "held":
            (new,) = set(after) - set(before)
            assert after[new] == sum(b.home == new for b in blocks) == 20


@dataclass(frozen=True)
class Fragile(Scan):
    """Sums rows; its process ends, as for want of memory, on more rows at once than it bears."""

    most: int
    deaths: str

    name = "fragile"

    def block(self, rows, first_row, leaf_rows):
        if len(rows) > self.most:
            with open(self.deaths, "a") as file:
                file.write("x")
            os._exit(1)
        return (rows.sum(axis=0),)


def deaths(path):
    return len(path.read_text()) if path.exists() else 0


@pytest.mark.slow
def test_blocks_become_smaller_where_workers_run_out_of_memory(one_worker, tmp_path):
    engine, grid = ClusterEngine(one_worker), Grid(32, 1, 3)
    scan = Fragile(4, str(tmp_path / "deaths"))
    (found,) = engine.scan(scan, blocks_of(32, grid), grid)
    np.testing.assert_array_equal(found, [32.0, 32.0])
    died = deaths(tmp_path / "deaths")
    assert died > 0
    engine.scan(scan, blocks_of(32, grid), grid)  # which has learned from the first one
    assert deaths(tmp_path / "deaths") == died


@pytest.mark.slow
def test_workers_that_always_run_out_of_memory_end_in_a_sentence(one_worker, tmp_path):
    engine, grid = ClusterEngine(one_worker), Grid(4, 1, 1)
    with pytest.raises(WorkersLost, match=r"again and again.*more of it"):
        engine.scan(Fragile(0, str(tmp_path / "deaths")), blocks_of(4, grid), grid)


def spilled(dask_worker):
    return dask_worker.data.spilled_total.disk


@pytest.mark.slow
def test_held_blocks_beyond_the_memory_are_spilled(tmp_path):
    """Four times as much as the worker may keep in memory."""
    kept = 8 << 20
    with (
        dask.config.set({"distributed.worker.memory.target": kept / 1e9}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit="1GB",
            local_directory=str(tmp_path),
            dashboard_address=None,
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        engine, grid = ClusterEngine(client), Grid(4 * kept // 16, 4096, 3)
        held = engine.hold(np.copy, blocks_of(grid.n_rows, grid), "held")
        (on_disk,) = client.run(spilled).values()
        assert on_disk > 2 * kept
        (found,) = engine.scan(Fragile(10**9, str(tmp_path / "deaths")), held, grid)
    np.testing.assert_array_equal(found, [grid.n_rows, grid.n_rows])


@dataclass(frozen=True)
class Slow(Scan):
    """Counts rows, slowly; says that it has begun."""

    began: str

    name = "slow"

    def block(self, rows, first_row, leaf_rows):
        Path(self.began).touch()
        time.sleep(0.3)
        return (len(rows),)


@pytest.mark.slow
def test_a_scan_goes_on_with_new_workers_after_all_were_lost(own_process_client, tmp_path):
    """Dask's scheduler keeps tasks that are bound for lost workers from those that come later."""
    client, grid = own_process_client, Grid(10, 1, 0)
    engine, pids = ClusterEngine(client), list(client.run(os.getpid).values())
    blocks = engine.hold(np.copy, blocks_of(10, grid), "held")

    def kill_all():
        while not (tmp_path / "began").exists():
            time.sleep(0.02)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_all)
    killer.start()
    assert engine.scan(Slow(str(tmp_path / "began")), blocks, grid) == (10,)
    killer.join()
    assert not set(pids) & set(client.run(os.getpid).values())


def test_a_fit_does_not_wait_for_ever_for_workers(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.1)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        engine, grid = ClusterEngine(client), Grid(4, 1, 0)
        held = engine.hold(np.copy, blocks_of(4, grid), "held")
        local.scale(0)
        while client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.02)
        with pytest.raises(WorkersLost, match="none came"):
            engine.scan(Where(), held, grid)


@contextlib.contextmanager
def workers_that_leave():
    """An engine whose only worker has left."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        engine = ClusterEngine(client)
        local.scale(0)
        while client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.02)
        yield engine


def test_workers_that_end_when_they_start_are_noticed(monkeypatch):
    """Dask's nannies tell the scheduler which workers they ended for their memory."""
    monkeypatch.setattr(lost, "LOOK_SECONDS", 0.1)
    with workers_that_leave() as engine:
        for _ in range(lost.DEATHS):
            engine.client.log_event("worker-restart-memory", {"rss": 123_000_000})
        with pytest.raises(WorkersLost, match=r"end as soon as they start.*123 MB"):
            engine._workers(fresh=True)


def test_a_long_wait_for_workers_is_said(monkeypatch):
    monkeypatch.setattr(lost, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(lost, "SAY_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.4)
    with workers_that_leave() as engine:
        with (
            pytest.warns(RuntimeWarning, match="No Dask worker has come") as said,
            pytest.raises(WorkersLost, match="none came"),
        ):
            engine._workers(fresh=True)
        assert len(said) == 1


@pytest.mark.slow  # Dask's client tries to reach the scheduler for half a minute
def test_a_scheduler_that_is_gone_is_one_sentence_and_the_fit_resumes(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = dmkc.KMeans(3, random_state=0)
    expected = model.fit(X).labels_
    scan, calls = ClusterEngine.scan, []
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Client(local.scheduler_address, set_as_default=False, timeout=0.5) as client,
    ):

        def deadly(self, *args):
            calls.append(args)
            if len(calls) == 2:
                local.sync(local.scheduler.close)
            return scan(self, *args)

        monkeypatch.setattr(ClusterEngine, "scan", deadly)
        with dmkc.checkpoint(tmp_path), pytest.raises(SchedulerLost, match="is gone") as said:
            model.set_params(client=client).fit(X)
        assert "\n" not in str(said.value) and str(said.value).endswith(".")
    with dmkc.checkpoint(tmp_path) as journal:
        assert journal.replaying
        labels = model.set_params(client=None).fit(X).labels_
    np.testing.assert_array_equal(labels, expected)
