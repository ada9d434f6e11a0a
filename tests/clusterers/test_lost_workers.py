"""Workers that die during a fit: the result is that of an undisturbed one."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

import dask.array as da
import numpy as np
import pytest
from distributed import get_worker

from dmkc import MultipleKernelClustering
from dmkc.data.blocks import HeldArray, Read
from dmkc.scan import cluster, rounds
from dmkc.scan.base import Scan
from dmkc.scan.cluster import ClusterEngine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import TakeScan


def rows(n=30_000):
    rng = np.random.default_rng(0)
    side = rng.random(n) < 0.4
    return rng.normal(size=(n, 4)) + np.where(side, 1.5, -1.0)[:, None]


def fit(X, **params):
    params = {"random_state": 1, "rank": 10, "sample_rows": 500, "dtype": "float32", **params}
    return MultipleKernelClustering(**params).fit(X)


def fit_on(client, X, **params):
    with client.as_current():
        return fit(X, **params)


def assert_identical(model, expected):
    assert model.objective_ == expected.objective_
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(expected.labels_))


def kill_before_scan(monkeypatch, client, which):
    """Kill one worker's process just before some scan of the cluster."""
    scan, calls, killed = ClusterEngine.scan, [], []

    def deadly(self, *args):
        calls.append(1)
        if len(calls) == which:
            address, pid = sorted(client.run(os.getpid).items())[0]
            os.kill(pid, signal.SIGKILL)
            killed.append(address)
        return scan(self, *args)

    monkeypatch.setattr(ClusterEngine, "scan", deadly)
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("which", [1, 4])
def test_a_worker_lost_between_scans(own_process_client, monkeypatch, feature_mode, lazy, which):
    X = da.from_array(rows(), chunks=(3_000, 4)) if lazy else rows()
    expected = fit(rows())
    killed = kill_before_scan(monkeypatch, own_process_client, which)
    model = fit_on(own_process_client, X, feature_mode=feature_mode)
    assert killed
    assert_identical(model, expected)


@pytest.mark.slow
@pytest.mark.parametrize("which", [1, 4])
def test_a_worker_lost_with_values_that_were_sent_once(own_process_client, monkeypatch, which):
    monkeypatch.setattr(cluster, "LARGE_VALUE", 1)
    monkeypatch.setattr(cluster, "FEW_TASKS", 0)
    expected = fit(rows())
    killed = kill_before_scan(monkeypatch, own_process_client, which)
    assert_identical(fit_on(own_process_client, rows(), feature_mode="persist"), expected)
    assert killed


class Deadly:
    """A linear kernel that ends its worker's process the first time it is used there."""

    def __init__(self, flag):
        self.flag = str(flag)

    def __call__(self, A, B):
        try:
            get_worker()
        except ValueError:
            return A @ B.T
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return A @ B.T
        os._exit(1)


@pytest.mark.slow
@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
def test_a_worker_lost_in_the_middle_of_its_work(own_process_client, tmp_path, feature_mode):
    flag = tmp_path / "died"
    kernels = [Deadly(flag), "gaussian"]
    expected = fit(rows(), kernels=kernels)
    assert not flag.exists()
    model = fit_on(own_process_client, rows(), kernels=kernels, feature_mode=feature_mode)
    assert flag.exists()
    assert_identical(model, expected)


@dataclass(frozen=True)
class DeadlyTotal(Scan):
    """The sum of all rows; one process that first comes to it ends."""

    flag: str

    def block(self, rows, first_row, leaf_rows):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            os._exit(1)
        return (rows.sum(),)


@pytest.mark.slow
def test_a_worker_lost_while_it_is_asked_directly(own_process_client, tmp_path, monkeypatch):
    asked = []

    def counted(*args):
        asked.append(rounds.ask_directly(*args))
        return asked[-1]

    monkeypatch.setattr(cluster, "SHORT_SECONDS", 60.0)
    monkeypatch.setattr(cluster, "ask_directly", counted)
    engine, grid = ClusterEngine(own_process_client), Grid(8, 1, 0)
    X = np.arange(8.0)[:, None]
    blocks = [Read(HeldArray(X, 0, X.dtype), i, i + 1) for i in range(8)]
    held = engine.hold(np.negative, blocks, "values")
    (tmp_path / "done").touch()
    assert engine.scan(DeadlyTotal(str(tmp_path / "done")), held, grid) == (-28.0,)
    assert engine.scan(DeadlyTotal(str(tmp_path / "died")), held, grid) == (-28.0,)
    assert asked == [None] and (tmp_path / "died").exists()
    assert engine.scan(DeadlyTotal(str(tmp_path / "died")), held, grid) == (-28.0,)
    assert len(asked) == 2 and asked[1] is not None


@pytest.mark.slow
def test_a_worker_that_joins_during_a_fit_is_welcome(own_process_client, monkeypatch):
    scan, calls = ClusterEngine.scan, []

    def joined(self, *args):
        calls.append(1)
        if len(calls) == 3:
            own_process_client.cluster.scale(3)
            own_process_client.wait_for_workers(3)
        return scan(self, *args)

    expected = fit(rows())
    monkeypatch.setattr(ClusterEngine, "scan", joined)
    assert_identical(fit_on(own_process_client, rows()), expected)
    assert len(calls) > 3


def test_what_is_collected_is_in_row_order_wherever_blocks_are(process_client):
    engine, grid = ClusterEngine(process_client), Grid(10, 1, 0)
    X = np.arange(20.0).reshape(10, 2)
    blocks = engine.bring([Read(HeldArray(X, 0, X.dtype), i, i + 1) for i in range(10)])
    homes = sorted({block.home for block in blocks})
    for i, block in enumerate(blocks):  # as after workers have left and joined
        block.home = homes[i % 2]
    np.testing.assert_array_equal(np.concatenate(engine.collect(np.copy, blocks, "rows")), X)
    held = engine.hold(np.copy, blocks, "copies")
    assert [block.start for block in held] == list(range(10))
    values, _ = engine.scan(TakeScan(np.arange(10)), held, grid)
    np.testing.assert_array_equal(values, X)
