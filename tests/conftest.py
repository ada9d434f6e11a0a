"""Dask clusters that several tests share."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager

import pytest
from distributed import Client, LocalCluster


@pytest.fixture
def unavailable():
    """Ends a test that cannot run here: on a developer's machine only, never in CI."""

    def end(reason):
        if os.environ.get("CI"):
            pytest.fail(f"CI must be able to run this: {reason}")
        pytest.skip(reason)

    return end


LEAVING = (
    "Removing worker",
    "Could not retire worker",
    "heartbeat",
    "workers died while trying to run it",
    "lost all",
    "Couldn't gather keys",
    "broadcast to",
    "replication",
    "Attempting to reschedule task",
)
"""What Dask's scheduler says of workers that end, as some tests have them do."""


class _Warnings(logging.Handler):
    """What Dask's scheduler warns of, but for workers that end."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.found = []

    def emit(self, record):
        text = record.getMessage()
        if not any(words in text for words in LEAVING):
            self.found.append(text)


@pytest.fixture(autouse=True)
def scheduler_warnings():
    """Fails a test in which a scheduler of this process warns, as of a key for two tasks."""
    logger, heard = logging.getLogger("distributed.scheduler"), _Warnings()
    logger.addHandler(heard)
    yield heard.found
    logger.removeHandler(heard)
    assert not heard.found, heard.found


@contextmanager
def _two_workers(processes):
    """A client of two workers that is never the default one."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=None
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def thread_client():
    """A cluster in this process."""
    with _two_workers(False) as client:
        yield client


@pytest.fixture(scope="session")
def process_client():
    """A cluster of two processes."""
    with _two_workers(True) as client:
        yield client


@pytest.fixture
def own_process_client():
    """A cluster of two processes for one test, which may break it."""
    with _two_workers(True) as client:
        yield client


@pytest.fixture
def quick_reports(monkeypatch):
    """Reports that do not look for structure, which takes a second and has tests of its own."""
    from dmkc.report import trust

    monkeypatch.setattr(trust, "_evidence", lambda subject: 5.0)
