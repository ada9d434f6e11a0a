"""Clusters whose workers are jobs of a batch queue, through dask-jobqueue."""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Status
from distributed.security import Security

from dmkc.clusters.network import warn_if_open
from dmkc.clusters.schema import STAGGER, Config
from dmkc.clusters.start import LOOPBACK, connected
from dmkc.clusters.values import PLAIN, ConfigError

log = logging.getLogger("dmkc")

CLASSES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
}
OWN_NAMES = {"resources": "resource_spec", "memory_unit": "lsf_units"}
"""dask-jobqueue's names of keys that only some queues have."""
RETRY_SECONDS = (2.0, 5.0)
SAID = re.compile(r"stderr:\n(.*)", re.DOTALL)
"""What the queue's command said, in an error of dask-jobqueue."""


@dataclass
class Submissions:
    """What came of the jobs that were submitted."""

    accepted: int = 0
    refused: list[str] = field(default_factory=list)
    """What the queue said of every job that it did not take."""

    def noted_by(self, job_class: Any) -> Any:
        """A class of jobs that tries some times, and notes down here what came of it.

        Queues that are busy refuse jobs now and then, and Dask would not submit one again.
        """
        noted = self

        class Noted(job_class):  # type: ignore[misc]
            async def _submit_job(self, script_filename: str) -> Any:
                for pause in (*RETRY_SECONDS, None):
                    try:
                        out = await super()._submit_job(script_filename)
                    except (RuntimeError, OSError) as problem:
                        reason = _reason(problem)
                        log.warning("The queue refused a job: %s", reason)
                        if pause is None:
                            noted.refused.append(reason)
                            self.status = Status.failed  # or the cluster could not be closed
                            raise
                        await asyncio.sleep(pause)
                    else:
                        noted.accepted += 1
                        return out
                raise AssertionError

        return Noted


def _reason(problem: Exception) -> str:
    found = SAID.search(str(problem))
    return " ".join((found[1] if found and found[1].strip() else str(problem)).split())


def start_queue(config: Config, security: Security | None, stack: ExitStack) -> Client:
    """A scheduler in this process and worker jobs, which are replaced when they end."""
    # read when a worker is lost, so that it must hold as long as the cluster does
    lost = f"{config['lost_worker_timeout']}s"
    stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": lost}))
    cluster = make(config, security)
    stack.callback(_remove_keys, cluster)
    stack.enter_context(cluster)
    warn_if_open(config, cluster.scheduler_address, config["dashboard"])
    # a fixed number of jobs is kept up in the same way: one that is lost is submitted again
    limits = config["adapt"] or {"minimum": config["jobs"], "maximum": config["jobs"], "idle": 60}
    cluster.adapt(
        minimum_jobs=limits["minimum"],
        maximum_jobs=limits["maximum"],
        interval="1s",
        wait_count=max(1, round(limits["idle"])),  # checks, one a second
    )
    return connected(stack, cluster, security)


def first_jobs(config: Config) -> int:
    """How many jobs are submitted at the start."""
    adapt = config.get("adapt")
    return int(config.get("jobs") or 1) if adapt is None else max(1, int(adapt["minimum"]))


def make(config: Config, security: Security | None) -> Any:
    """The cluster object of dask-jobqueue, with its scheduler started and no job submitted."""
    jobqueue = _jobqueue()
    make_private(config["log_directory"], config["shared_directory"])
    options: dict[str, Any] = {
        "dashboard": config["dashboard"] is not None,
        "dashboard_address": config["dashboard"] or LOOPBACK,
    }
    if config["interface"] is None:
        options["host"] = None  # every interface: workers come from other machines
    kind, submissions = getattr(jobqueue, CLASSES[config.kind]), Submissions()
    cluster = kind(
        **worker_settings(config, security),
        job_cls=submissions.noted_by(kind.job_cls),
        interface=config["interface"],
        security=security,
        shared_temp_directory=config["shared_directory"],
        scheduler_options=options,
    )
    cluster.submissions = submissions
    return cluster


def _remove_keys(cluster: Any) -> None:
    """Remove the temporary certificates that dask-jobqueue wrote for the workers."""
    for name in ("_job_ca_file", "_job_cert", "_job_key"):
        if hasattr(cluster, name):
            getattr(cluster, name).close()


def make_private(*folders: str | None) -> None:
    """Make folders for their owner alone; those that exist stay as they are."""
    for folder in folders:
        if folder is not None:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def worker_settings(config: Config, security: Security | None) -> dict[str, Any]:
    """What a worker job is made from, in dask-jobqueue's words."""
    settings: dict[str, Any] = {
        "cores": config["cores"],
        "memory": f"{config['memory']}B",
        "processes": config["processes"],
        "job_name": config["name"],
        "python": shlex.quote(config["python"] or sys.executable),
        "local_directory": config["local_directory"],
        "log_directory": harmless(config, "log_directory"),
        "death_timeout": f"{config['death_timeout']:.0f}",
        "worker_extra_args": worker_arguments(config),
        "job_script_prologue": prologue(config),
        "job_extra_directives": (
            config["directives"] if config.kind == "htcondor" else list(config["directives"])
        ),
    }
    if "walltime" in config:
        settings["walltime"] = walltime_text(config.kind, config["walltime"])
    if "disk" in config:
        settings["disk"] = f"{config['disk']}B"
    for name in ("queue", "account", "project", "resources", "memory_unit"):
        if config.get(name) is not None:
            settings[OWN_NAMES.get(name, name)] = config[name]
    if config.kind == "lsf":
        settings["use_stdin"] = True
    if security is not None:
        for name, path in security.get_tls_config_for_role("worker").items():
            if isinstance(path, str) and "\n" not in path and not PLAIN.fullmatch(path):
                raise ConfigError(
                    f"{config.source}: the path of tls.{name} ({path!r}) has characters that "
                    "cannot stand in a job script; move the file."
                )
    harmless(config, "shared_directory")
    return settings


def harmless(config: Config, name: str) -> str | None:
    """A path that stands in a job script unquoted, because the queue reads it itself."""
    path = config[name]
    if path is not None and not PLAIN.fullmatch(path):
        raise ConfigError(
            f"{config.source}: {name} ({path!r}) has characters that cannot stand in a job "
            "script; choose another folder."
        )
    return path


def worker_arguments(config: Config) -> list[str]:
    """Further options of `dask worker`; its pages would be served on every interface."""
    arguments = ["--no-dashboard", "--dashboard-address", LOOPBACK]
    if config["lifetime"] is not None:
        stagger = STAGGER * config["lifetime"]
        arguments += ["--lifetime", f"{config['lifetime']:.0f}s"]
        arguments += ["--lifetime-stagger", f"{stagger:.0f}s"]
    return arguments


def prologue(config: Config) -> list[str]:
    """Shell lines before the worker: what is not meant as a command is quoted."""
    lines = [f"module load {shlex.quote(name)}" for name in config["modules"]]
    if config["activate"] is not None:
        lines.append(f". {shlex.quote(config['activate'] + '/bin/activate')}")
    lines += [
        f"export {name}={shlex.quote(value)}" for name, value in config["environment"].items()
    ]
    return [*lines, *config["prologue"]]


def walltime_text(kind: str, seconds: int) -> str:
    """A walltime as the queue reads it: LSF counts hours and minutes, the others seconds too."""
    minutes = -(-seconds // 60)
    if kind == "lsf":
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def script(config: Config, security: Security | None = None) -> str:
    """The job script of a worker, without a scheduler being started or a job submitted."""
    jobqueue = _jobqueue()
    job = getattr(jobqueue, CLASSES[config.kind]).job_cls
    scheme = "tcp" if config["tls"] is None else "tls"
    settings = worker_settings(config, security)
    make_private(settings["log_directory"])  # dask-jobqueue would make it for everybody to read
    made = job(
        f"{scheme}://SCHEDULER:PORT",
        name="WORKER",
        interface=config["interface"],
        protocol=None if security is None else "tls://",
        security=None if config["tls"] == "temporary" else security,
        **settings,
    )
    return re.sub(r"\n{2,}", "\n", made.job_script())


def _jobqueue() -> Any:
    try:
        import dask_jobqueue
    except ImportError:
        raise ConfigError(
            "Batch queues need the package dask-jobqueue (in a clone: pip install '.[hpc]')."
        ) from None
    return dask_jobqueue
