"""Fits whose workers are jobs of a real queue: the labels are those of this process's threads."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import numpy as np
import pytest

from dmkc import MultipleKernelClustering, clusters
from dmkc.scan.cluster import ClusterEngine

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    side = rng.random(40_000) < 0.4
    return rng.normal(size=(40_000, 4)) + np.where(side, 1.5, -1.0)[:, None]


@pytest.fixture(scope="module")
def expected(X):
    return estimator().fit(X)


def estimator(**params):
    params = {"random_state": 1, "rank": 20, "sample_rows": 1000, "dtype": "float32", **params}
    return MultipleKernelClustering(**params)


def assert_identical(model, expected):
    assert model.objective_ == expected.objective_
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


@pytest.fixture
def slowly(monkeypatch):
    """Scans that take a second, and something to be done before one of them."""
    scan, calls, actions = ClusterEngine.scan, [], {}

    def slow(self, *args):
        calls.append(1)
        actions.get(len(calls), lambda: None)()
        time.sleep(1)
        return scan(self, *args)

    monkeypatch.setattr(ClusterEngine, "scan", slow)
    return actions


def nodes(client):
    """The nodes that the workers run on."""
    return set(client.run(os.getenv, "SLURMD_NODENAME").values())


@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
def test_labels_are_those_of_threads(slurm, X, expected, feature_mode):
    with clusters.open(slurm.config(tls="temporary", shared_directory=str(slurm.folder))) as client:
        client.wait_for_workers(2, timeout=60)
        assert nodes(client) == {"node1", "node2"}
        assert client.scheduler_info()["address"].startswith("tls://127.0.0.1:")
        assert_identical(estimator(feature_mode=feature_mode).fit(X), expected)
    slurm.wait(lambda: not slurm.jobs())


def test_a_cluster_grows_with_the_work_and_shrinks_after_it(slurm, X, expected, slowly):
    config = slurm.config(adapt={"minimum": 1, "maximum": 2, "idle": "3s"})
    del config["jobs"]
    seen = set()
    with clusters.open(config) as client:
        assert len(client.nthreads()) == 1
        busy = [client.submit(time.sleep, 1, pure=False) for _ in range(60)]
        client.wait_for_workers(2, timeout=60)
        slowly[6] = lambda: seen.update(client.scheduler_info()["workers"])
        assert_identical(estimator().fit(X), expected)
        assert len(seen) == 2
        client.cancel(busy)
        slurm.wait(lambda: len(client.nthreads()) == 1)
        slurm.wait(lambda: len(slurm.jobs()) == 1)


def test_a_job_that_is_cancelled_in_mid_fit_is_replaced(slurm, X, expected, slowly):
    gone = []

    def cancel():
        gone.extend(slurm.jobs(states="running")[:1])
        subprocess.run(["scancel", *gone], check=True)

    slowly[4] = cancel
    with clusters.open(slurm.config()) as client:
        client.wait_for_workers(2, timeout=60)
        before = set(slurm.jobs())
        assert_identical(estimator().fit(X), expected)
        assert gone
        slurm.wait(lambda: len(set(slurm.jobs(states="running")) - set(gone)) == 2)
        assert set(slurm.jobs()) - before
        client.wait_for_workers(2, timeout=60)


def test_all_jobs_cancelled_at_once(slurm, X, expected, slowly):
    slowly[5] = lambda: subprocess.run(["scancel", "--user=root"], check=True)
    with clusters.open(slurm.config()):
        assert_identical(estimator().fit(X), expected)


def test_workers_whose_lifetime_ends_are_replaced(slurm, X, expected, slowly):
    """Both workers end during the fit, and others take their place."""
    seen, stop = set(), threading.Event()

    def watch():
        while not stop.wait(0.5):
            seen.update(slurm.jobs())

    slowly[4] = lambda: slurm.wait(lambda: len(seen) >= 4, 120)  # in the middle of the fit
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with clusters.open(slurm.config(lifetime="12s")):
            assert_identical(estimator().fit(X), expected)
    finally:
        stop.set()
        watcher.join()
    assert len(seen) >= 4


def test_a_check_starts_one_job(slurm, tmp_path, capsys):
    import yaml

    from dmkc.cli import main

    path = tmp_path / "slurm.yaml"
    path.write_text(yaml.safe_dump(slurm.config()))
    assert main(["cluster", "check", str(path), "--start"]) == 0
    out = capsys.readouterr().out
    assert "#SBATCH -p debug" in out and "1 Dask worker(s)" in out and "the same bits" in out
