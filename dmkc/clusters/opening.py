"""From a config to a connected client, and everything closed again afterwards."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from distributed import Client
from distributed.security import Security

from dmkc.clusters import start
from dmkc.clusters.network import security_of
from dmkc.clusters.queues import Submissions, first_jobs, start_queue
from dmkc.clusters.schema import QUEUES, Config, read
from dmkc.clusters.start import ClusterError
from dmkc.scan import versions

log = logging.getLogger("dmkc")

LOOK_SECONDS = 1.0
Starter = Callable[[Config, Security | None, contextlib.ExitStack], Client]
STARTERS: dict[str, Starter] = {
    "threads": start.start_threads,
    "local": start.start_local,
    "existing": start.connect_existing,
    "ssh": start.start_ssh,
    "kubernetes": start.start_kubernetes,
    **{queue: start_queue for queue in QUEUES},
}


@contextlib.contextmanager
def open_cluster(config: Any) -> Iterator[Client]:
    """Start (or reach) the cluster of a config and close it afterwards.

    Inside the `with` block the client is the current one, so that estimators find it by
    themselves.

    Parameters
    ----------
    config : path of a YAML file, or a mapping
        What to start; see the files in ``cluster_configs``.

    Yields
    ------
    distributed.Client
        Connected, with at least one worker.

    Examples
    --------
    >>> import dmkc.clusters
    >>> with dmkc.clusters.open({"kind": "threads", "threads": 2}) as client:
    ...     sum(client.nthreads().values())
    2
    """
    checked = read(config)
    with contextlib.ExitStack() as stack:
        client = STARTERS[checked.kind](checked, security_of(checked), stack)
        _wait_for_a_worker(client, checked)
        if checked.kind not in ("threads", "local"):
            check_versions(client)
        log.info("cluster: %s, dashboard %s", checked.kind, dashboard_of(client, checked) or "off")
        stack.enter_context(client.as_current())
        yield client


def dashboard_of(client: Client, config: Config) -> str | None:
    """The address of the dashboard, if there is one."""
    if "dashboard" not in config:  # somebody else's scheduler, which says so itself
        return client.dashboard_link or None
    if config["dashboard"] is None:
        return None
    port = client.scheduler_info(n_workers=0)["services"]["dashboard"]
    host = config["dashboard"].rpartition(":")[0]
    return f"http://{host or socket.gethostname()}:{port}/status"


def _wait_for_a_worker(client: Client, config: Config) -> None:
    patience = config.get("wait") or start.CONNECT_SECONDS
    submissions = getattr(client.cluster, "submissions", None) or Submissions()
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=min(LOOK_SECONDS, max(end - time.monotonic(), 0.01)))
            return
        if not submissions.accepted and len(submissions.refused) >= first_jobs(config):
            break
    if submissions.refused and not submissions.accepted:
        raise ClusterError(f"The queue refused every worker job: {submissions.refused[-1]}")
    logs = config.get("log_directory")
    where = f" and at the jobs' output in {logs}" if logs else ""
    hint = f"; look at the queue{where}" if config.kind in QUEUES else ""
    raise ClusterError(
        f"No worker of the {config.kind} cluster came within {patience:.0f} s{hint}."
    )


def check_versions(client: Client) -> None:
    """Refuse a cluster whose workers have other versions."""
    try:
        versions.check_versions(client)
    except versions.VersionsDiffer as problem:
        raise ClusterError(str(problem)) from problem
