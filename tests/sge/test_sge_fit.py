"""Worker jobs and coordinators in a real Grid Engine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

from dmkc import MultipleKernelClustering, clusters
from dmkc.cli import main
from dmkc.scan.cluster import ClusterEngine

pytestmark = pytest.mark.slow
SETTINGS = {"random_state": 0, "rank": 20, "sample_rows": 500, "dtype": "float32"}
FIT = (
    "--method",
    "mkc",
    "--seed",
    "0",
    "--rank",
    "20",
    "--sample-rows",
    "500",
    "--dtype",
    "float32",
    "--no-report",
)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    side = rng.random(20_000) < 0.4
    return rng.normal(size=(20_000, 4)) + np.where(side, 1.5, -1.0)[:, None]


@pytest.fixture(scope="module")
def expected(X):
    return MultipleKernelClustering(**SETTINGS).fit(X)


def test_a_job_that_is_deleted_is_submitted_again_and_no_label_changes(
    sge, X, expected, monkeypatch
):
    scan, calls = ClusterEngine.scan, []

    def disturbed(self, *args):
        calls.append(1)
        if len(calls) == 4:
            number = next(iter(self.client.run(os.getenv, "JOB_ID").values()))
            subprocess.run(["qdel", number], check=True, timeout=60, capture_output=True)
        return scan(self, *args)

    monkeypatch.setattr(ClusterEngine, "scan", disturbed)
    config = sge.config(tls="temporary", shared_directory=str(sge.folder / "shared"))
    with clusters.open(config) as client:
        client.wait_for_workers(2, timeout=60)
        before = set(client.run(os.getenv, "JOB_ID").values())
        model = MultipleKernelClustering(**SETTINGS).fit(X)
        assert len(calls) > 4
        sge.wait(lambda: len(set(client.run(os.getenv, "JOB_ID").values()) | before) == 3)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    sge.wait(lambda: not sge.jobs())


def test_a_submitted_fit(sge, X, expected, monkeypatch, capsys):
    monkeypatch.chdir(sge.folder)
    np.save("x.npy", X)
    config = sge.config(
        jobs=1,
        environment={"PYTHONPATH": str(Path(__file__).parents[2])},
        coordinator={"memory": "1GiB", "walltime": "00:10:00"},
    )
    Path("sge.yaml").write_text(yaml.safe_dump(config))
    words = ["submit", "x.npy", "--out", "run", "--cluster", "sge.yaml", "--clusters", "2", *FIT]
    assert main(words) == 0
    assert capsys.readouterr().out.strip() in sge.jobs()

    def state():
        assert main(["status", "run", "--json"]) == 0
        return json.loads(capsys.readouterr().out)["state"]

    sge.wait(lambda: state() == "finished", 120)
    labels = zarr.open_array(store="run/labels.zarr", mode="r")[:]
    np.testing.assert_array_equal(labels, expected.labels_)
    sge.wait(lambda: not sge.jobs())
