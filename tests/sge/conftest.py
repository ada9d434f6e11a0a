"""A real Grid Engine of two slots on this machine for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

PROVISION = Path(__file__).parent / "provision"
PROGRAMS = ("qsub", "sge_qmaster", "sge_execd")


@dataclass(frozen=True)
class GridEngine:
    """The queue, as seen through its own commands, and a folder for its jobs."""

    folder: Path

    def jobs(self):
        """The numbers of all jobs."""
        done = subprocess.run(["qstat"], capture_output=True, text=True, check=True, timeout=60)
        return [line.split()[0] for line in done.stdout.splitlines()[2:]]

    def wait(self, what, seconds=60):
        """Wait until `what()` is true."""
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.jobs()
            time.sleep(0.2)

    def config(self, **more):
        """A cluster config of one-core jobs."""
        return {
            "kind": "sge",
            "queue": "all.q",
            "jobs": 2,
            "cores": 1,
            "memory": "1GiB",
            "walltime": "00:10:00",
            "interface": "lo",
            "wait": "60s",
            "lost_worker_timeout": "2s",
            "log_directory": str(self.folder / "jobs"),
            "local_directory": str(self.folder / "scratch"),
            **more,
        }


@pytest.fixture(scope="session")
def running_sge():
    old = os.environ.get("SGE_ROOT")
    os.environ["SGE_ROOT"] = "/var/lib/gridengine"
    try:
        subprocess.run([PROVISION, "start"], check=True, timeout=240)
        yield
    finally:
        subprocess.run([PROVISION, "stop"], check=True, timeout=120)
        os.environ.pop("SGE_ROOT") if old is None else os.environ.update(SGE_ROOT=old)


@pytest.fixture
def sge(request, unavailable, tmp_path):
    """The queue, with no job in it."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        unavailable("Grid Engine is not installed (tests/sge/provision install, as root)")
    request.getfixturevalue("running_sge")
    (tmp_path / "scratch").mkdir()
    queue = GridEngine(tmp_path)
    yield queue
    left = queue.jobs()
    if left:
        subprocess.run(["qdel", *left], check=False, timeout=60, capture_output=True)
        queue.wait(lambda: not queue.jobs())
