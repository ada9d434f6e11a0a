"""`dmkc submit` on a real queue: coordinator and workers are jobs, and a kill costs nothing."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

from dmkc.cli import main

pytestmark = pytest.mark.slow
FIT = (
    "--method",
    "mkc",
    "--rank",
    "20",
    "--seed",
    "0",
    "--sample-rows",
    "500",
    "--dtype",
    "float32",
    "--no-report",
)


def labels_of(run):
    return zarr.open_array(store=run / "labels.zarr", mode="r")[:]


@pytest.fixture
def place(slurm, tmp_path, monkeypatch):
    """A folder with rows, a config, and the unbroken run of this process's threads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    rng = np.random.default_rng(0)
    side = rng.random(20_000) < 0.4
    np.save("x.npy", rng.normal(size=(20_000, 4)) + np.where(side, 1.5, -1.0)[:, None])
    config = slurm.config(jobs=1, coordinator={"memory": "1GiB", "walltime": "00:01:00"})
    Path("slurm.yaml").write_text(yaml.safe_dump(config))
    assert main(["fit", "x.npy", "--out", "whole", "--quiet", *FIT]) == 0
    return tmp_path


@pytest.fixture
def say(capsys):
    """Run a command and return what it prints."""

    def run(*words, code=0):
        capsys.readouterr()
        found = main(list(words))
        out, err = capsys.readouterr()
        assert found == code, err
        return out if code == 0 else err

    return run


def state(say):
    return json.loads(say("status", "run", "--json"))


def test_a_submitted_fit(slurm, place, say):
    job = say("submit", "x.npy", "--out", "run", "--cluster", "slurm.yaml", *FIT).strip()
    assert job.isdigit()
    assert (place / "run").stat().st_mode & 0o777 == 0o700
    assert "in the queue already" in say("submit", "--resume", "run", code=2)
    slurm.wait(lambda: state(say)["state"] == "finished", 120)
    np.testing.assert_array_equal(labels_of(place / "run"), labels_of(place / "whole"))
    assert "1 Dask worker(s)" in say("logs", "run") and "done" in say("logs", "run")
    slurm.wait(lambda: not slurm.jobs())  # the workers went with their coordinator
    assert "not in the queue" in say("cancel", "run", code=2)


def paused_coordinator(slurm, place, say):
    """Submit, and stop the coordinator's process in the middle of its fit."""
    say("submit", "x.npy", "--out", "run", "--cluster", "slurm.yaml", *FIT)
    journal = place / "run" / "journal.dmkc"
    slurm.wait(lambda: journal.exists() and journal.stat().st_size > 500, 120)
    process = json.loads((place / "run" / "status.json").read_text())["process"]
    os.kill(process, signal.SIGSTOP)
    assert not (place / "run" / "metrics.json").exists()
    return process


def test_killed_by_its_walltime_and_resumed(slurm, place, say):
    paused_coordinator(slurm, place, say)
    found = state(say)
    assert found["state"] == "running" and found["queue says"] == "running"
    # the queue first asks the process to end, which it may still note down, and then kills it
    slurm.wait(lambda: state(say)["state"] != "running", 240)
    assert state(say)["state"] in ("ended early", "killed")
    records = (slurm.folder / "log" / "jobs.txt").read_text()
    assert f"JobId={found['job']} " in records and "TIMEOUT" in records
    assert "dmkc submit --resume run" in state(say)["advice"]
    slurm.wait(lambda: not slurm.jobs(), 240)
    assert say("submit", "--resume", "run").strip().isdigit()
    slurm.wait(lambda: state(say)["state"] == "finished", 120)
    np.testing.assert_array_equal(labels_of(place / "run"), labels_of(place / "whole"))


def test_cancelled_and_resumed_here(slurm, place, say):
    process = paused_coordinator(slurm, place, say)
    say("cancel", "run")
    os.kill(process, signal.SIGCONT)
    slurm.wait(lambda: not slurm.jobs(), 120)
    assert state(say)["state"] in ("ended early", "killed")
    say("fit", "--resume", "run", "--quiet", "--cluster", str(_threads(place)))
    np.testing.assert_array_equal(labels_of(place / "run"), labels_of(place / "whole"))


def _threads(place):
    path = place / "threads.yaml"
    path.write_text("kind: threads\nthreads: 1\n")
    return path
