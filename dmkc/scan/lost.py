"""Schedulers that are gone and workers that do not come: noticed, and said in a sentence."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings

from distributed import Client

log = logging.getLogger("dmkc")

LOOK_SECONDS, SAY_SECONDS = 5.0, 30.0
"""How often a fit without workers looks what has become of them, and when it says that it waits."""
DEATHS, DEATHS_SECONDS = 3, 60.0
"""So many workers that were ended for their memory in this time could not even begin."""


class WorkersLost(RuntimeError):
    """Workers that end however small the tasks are, or that never come back."""


class SchedulerLost(RuntimeError):
    """A scheduler that cannot be reached any more."""


def check_scheduler(client: Client, address: str, error: BaseException | None = None) -> None:
    """Raise SchedulerLost once Dask has given up reaching the scheduler."""
    while client.status == "connecting":
        time.sleep(0.1)
    if client.status != "running":
        raise SchedulerLost(
            f"The Dask scheduler at {address} is gone, and what it knew of this fit with it: "
            "connect to a new one and fit again (inside dmkc.checkpoint the fit goes on)."
        ) from error


def await_worker(client: Client, address: str, patience: float) -> None:
    """Return once there is a worker; say so when that takes long, or cannot be."""
    log.info("Waiting for Dask workers.")
    began, said = time.monotonic(), False
    while (waited := time.monotonic() - began) < patience:
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=min(LOOK_SECONDS, max(patience - waited, 0.01)))
            return
        check_scheduler(client, address)
        _check_deaths(client)
        if not said and time.monotonic() - began > SAY_SECONDS:
            said = True
            warnings.warn(
                f"No Dask worker has come for {SAY_SECONDS:.0f} s; the fit waits {patience:.0f} s "
                "for one. Do workers end when they start, for want of memory?",
                RuntimeWarning,
                stacklevel=2,
            )
    raise WorkersLost(f"All Dask workers are gone and none came within {patience:.0f} s.")


def _check_deaths(client: Client) -> None:
    """Raise WorkersLost where Dask ends workers for their memory as often as they start."""
    events = client.get_events("worker-restart-memory")[-DEATHS:]
    if len(events) == DEATHS and events[-1][0] - events[0][0] < DEATHS_SECONDS:
        held = events[-1][1].get("rss", 0) / 1e6
        raise WorkersLost(
            f"Dask's workers end as soon as they start: the last one had {held:.0f} MB in memory, "
            "more than it may have (memory_limit); give workers more memory."
        )


def why_lost(name: str, error: BaseException) -> str:
    """The sentence for a scan whose workers end again and again."""
    return (
        f"Workers ended again and again during the scan {name!r} ({error}). If they ran out "
        "of memory, give them more of it, or make columns anew on every scan "
        '(feature_mode="recompute").'
    )
