"""Hosts with addresses of their own, one of which is cut off for a while."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fit_across_hosts import STOPS, estimator, rows

HUB, FIRST, SECOND = "10.77.0.1", "10.77.0.2", "10.77.0.3"
SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s",  # a silent worker is given up
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """Three network namespaces: a hub, and two hosts that are wired to a bridge on it."""

    def __init__(self):
        number = os.getpid() % 100_000
        self.hub, *self.hosts = (f"dmkc{number}-{name}" for name in ("hub", "a", "b"))
        self.wires = [f"dk{number}{name}" for name in "ab"]

    def make(self):
        for name in (self.hub, *self.hosts):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self.hub, "addr", "add", f"{HUB}/24", "dev", "bridge0")
        ip("-n", self.hub, "link", "set", "bridge0", "up")
        for host, wire, address in zip(self.hosts, self.wires, (FIRST, SECOND), strict=True):
            peer = ("peer", "name", "eth0", "netns", host)
            ip("-n", self.hub, "link", "add", wire, "type", "veth", *peer)
            ip("-n", self.hub, "link", "set", wire, "master", "bridge0", "up")
            ip("-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")

    def plug(self, number, state):
        """Switch the wire to a host "up" or "down"."""
        ip("-n", self.hub, "link", "set", self.wires[number], state)

    def close(self):
        for name in (self.hub, *self.hosts):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.fixture
def network(unavailable):
    made = Network()
    try:
        try:
            made.make()
        except (OSError, subprocess.CalledProcessError) as problem:
            unavailable(f"no network namespaces ({getattr(problem, 'stderr', '') or problem})")
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def process(host, log, *words):
    """A Python process on a host, ended with its children; what it says goes to the file `log`."""
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    with open(log, "w") as file:
        running = subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, *words],
            env=os.environ | SETTINGS | {"PYTHONPATH": paths},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def wait_for(path, running, seconds=100):
    """Wait for a file that the fit writes."""
    end = time.monotonic() + seconds
    while not path.exists():
        said = (path.parent / "fit.log").read_text()[-2000:]
        assert time.monotonic() < end, f"{path.name} never came: {said}"
        assert running.poll() in (None, 0), f"the fit ended: {said}"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_host_that_is_cut_off_and_comes_back(network, tmp_path):
    """Longer than the scheduler waits: its work is done elsewhere, and later it works again."""
    address, quiet = f"tcp://{HUB}:8786", "--no-dashboard"
    script = str(Path(__file__).with_name("fit_across_hosts.py"))
    cut, back = STOPS
    with contextlib.ExitStack() as stack:

        def start(host, name, *words):
            return stack.enter_context(process(host, tmp_path / f"{name}.log", *words))

        def worker(number, name):
            place = ("--host", (FIRST, SECOND)[number], "--local-directory", str(tmp_path / name))
            # a worker that imports is silent for long, so that it does so before it begins
            more = ("--nthreads", "1", "--preload", "dmkc.scan.cluster", quiet)
            words = ("-m", "distributed.cli.dask_worker", address, *place, *more)
            return start(network.hosts[number], name, *words)

        where = ("--host", HUB, "--port", "8786", quiet)
        start(network.hub, "scheduler", "-m", "distributed.cli.dask_scheduler", *where)
        worker(0, "first")
        lost = worker(1, "second")
        fit = start(network.hub, "fit", script, address, str(tmp_path))
        wait_for(tmp_path / f"reached-{cut}", fit)
        network.plug(1, "down")
        (tmp_path / f"go-{cut}").touch()
        wait_for(tmp_path / f"reached-{back}", fit)  # the scans in between were done without it
        network.plug(1, "up")
        lost.wait(timeout=60)  # Dask's worker has ended, and whatever runs the host starts another
        worker(1, "third")
        (tmp_path / f"go-{back}").touch()
        wait_for(tmp_path / "homes.json", fit)
    homes = json.loads((tmp_path / "homes.json").read_text())
    hosts = [{home.split("//")[1].split(":")[0] for home in scan} for scan in homes]
    assert hosts[cut - 2] == hosts[-1] == {FIRST, SECOND}
    assert {FIRST} in hosts
    expected = estimator().fit(rows())
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected.labels_)
