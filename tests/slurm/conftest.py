"""A real SLURM of two nodes on loopback for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

PROVISION = Path(__file__).parent / "provision"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")


@dataclass(frozen=True)
class Slurm:
    """The queue, as seen through its own commands."""

    folder: Path

    def ask(self, *words):
        """The lines that a command of SLURM prints."""
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.split("\n")[:-1]

    def jobs(self, form="%i", **limits):
        more = [f"--{name}={value}" for name, value in limits.items()]
        return self.ask("squeue", "-h", "-o", form, *more)

    def wait(self, what, seconds=60):
        """Wait until `what()` is true."""
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.ask("squeue")
            time.sleep(0.2)

    def config(self, **more):
        """A cluster config of one-core jobs."""
        return {
            "kind": "slurm",
            "queue": "debug",
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
def running_slurm():
    folder = Path(tempfile.mkdtemp(prefix="dmkc-slurm-"))
    folder.chmod(0o755)  # munge runs as another user
    old = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        subprocess.run([PROVISION, "start", folder], check=True, timeout=120)
        (folder / "scratch").mkdir()
        yield Slurm(folder)
    finally:
        subprocess.run([PROVISION, "stop", folder], check=True, timeout=120)
        os.environ.pop("SLURM_CONF") if old is None else os.environ.update(SLURM_CONF=old)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(request, unavailable):
    """The queue, with no job in it."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        unavailable("SLURM is not installed (tests/slurm/provision install, as root)")
    queue = request.getfixturevalue("running_slurm")
    yield queue
    subprocess.run(["scancel", "--user=root"], check=True, timeout=60)
    queue.wait(lambda: not queue.jobs())
