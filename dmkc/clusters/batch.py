"""The job of a coordinator: its script, and the queue's own commands to submit and end it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmkc.clusters.queues import make_private, prologue, walltime_text
from dmkc.clusters.schema import COORDINATOR, Config
from dmkc.clusters.start import ClusterError
from dmkc.clusters.values import PLAIN, ConfigError
from dmkc.writing import write_text

SECONDS = 60


@dataclass(frozen=True)
class Commands:
    """How a queue is spoken to; no word of a user passes through a shell."""

    mark: str
    """What its directives begin with."""
    submit: tuple[str, ...]
    cancel: tuple[str, ...]
    state: tuple[str, ...]
    job: str = r"(\d+)"
    """Where the job's number is in what `submit` prints."""


QUEUE_COMMANDS = {
    "slurm": Commands(
        "#SBATCH", ("sbatch", "--parsable"), ("scancel",), ("squeue", "-h", "-o", "%T", "-j")
    ),
    "pbs": Commands("#PBS", ("qsub",), ("qdel",), ("qstat",), r"(\d+[\w.\-]*)"),
    "lsf": Commands(
        "#BSUB", ("bsub",), ("bkill",), ("bjobs", "-noheader", "-o", "stat"), r"<(\d+)>"
    ),
    "sge": Commands("#$", ("qsub", "-terse"), ("qdel",), ("qstat", "-j")),
    "htcondor": Commands(
        "", ("condor_submit", "-terse"), ("condor_rm",), ("condor_q", "-af", "JobStatus")
    ),
}


def coordinator_script(config: Config, name: str, run: Path, command: Sequence[str]) -> str:
    """The script of the job that runs `command`, which starts the workers in its turn."""
    wanted = config["coordinator"] or {key: about.default for key, about in COORDINATOR.items()}
    if not PLAIN.fullmatch(str(run)):
        raise ConfigError(
            f"The path {str(run)!r} has characters that cannot stand in a job script; choose "
            "another folder."
        )
    run_line = "exec " + " ".join(map(shlex.quote, command))
    if config.kind == "htcondor":
        return _condor_script(config, wanted, name, run, [*prologue(config), run_line])
    mark = QUEUE_COMMANDS[config.kind].mark
    options = [
        *_options(config, wanted, name, run),
        *config["directives"],
        *wanted["directives"],
    ]
    lines = ["#!/usr/bin/env bash", *(f"{mark} {option}" for option in options)]
    return "\n".join([*lines, *prologue(config), run_line]) + "\n"


def _options(config: Config, wanted: dict, name: str, run: Path) -> list[str]:
    """What every queue is asked for, in its words."""
    kind, cores = config.kind, wanted["cores"]
    queue = wanted["queue"] or config["queue"]
    limit = walltime_text(kind, wanted["walltime"] or config["walltime"])
    mebibytes = -(-wanted["memory"] // 2**20)
    if kind == "slurm":
        found = [f"-J {name}", f"-o {run}/job-%j.out", "-n 1", f"--cpus-per-task={cores}"]
        found += [f"--mem={mebibytes}M", f"-t {limit}"]
        return found + _given(("-p", queue), ("-A", config["account"]))
    if kind == "pbs":
        found = [f"-N {name}", f"-o {run}/job.out", "-j oe", f"-l walltime={limit}"]
        found += [f"-l select=1:ncpus={cores}:mem={mebibytes}mb"]
        return found + _given(("-q", queue), ("-A", config["account"]))
    if kind == "lsf":
        unit = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}[config["memory_unit"][0].lower()]
        found = [f"-J {name}", f"-o {run}/job-%J.out", f"-n {cores}", f"-W {limit}"]
        found += ['-R "span[hosts=1]"', f"-M {-(-wanted['memory'] // unit)}"]
        return found + _given(("-q", queue), ("-P", config["project"]))
    found = [f"-N {name}", f"-o {run}/job.out", "-j y", "-S /bin/bash", f"-l h_rt={limit}"]
    return found + _given(("-q", queue), ("-P", config["project"]))


def _given(*pairs: tuple[str, str | None]) -> list[str]:
    return [f"{option} {value}" for option, value in pairs if value is not None]


def _condor_script(config: Config, wanted: dict, name: str, run: Path, lines: Sequence[str]) -> str:
    """A submit description; what it runs is a script beside it."""
    script = run / "coordinator.sh"
    write_text(script, "\n".join(["#!/usr/bin/env bash", *lines]) + "\n")
    attributes = {
        "executable": "/bin/bash",
        "arguments": str(script),
        "batch_name": name,
        "output": f"{run}/job-$(ClusterId).out",
        "error": f"{run}/job-$(ClusterId).out",
        "log": f"{run}/condor.log",
        "request_cpus": str(wanted["cores"]),
        "request_memory": str(-(-wanted["memory"] // 2**20)),
        "getenv": "true",
        **config["directives"],
    }
    return "\n".join([*(f"{key} = {value}" for key, value in attributes.items()), "queue", ""])


def submit(config: Config, script: Path) -> str:
    """Hand a script to the queue; the job's number."""
    commands = QUEUE_COMMANDS[config.kind]
    make_private(config["log_directory"], config["shared_directory"])
    if config.kind == "lsf":  # reads directives only from its standard input
        with open(script, "rb") as stream:
            said = _call(commands.submit, stdin=stream)
    else:
        said = _call([*commands.submit, str(script)])
    found = re.search(commands.job, said)
    if found is None:
        raise ClusterError(f"The queue did not say which job it made ({said.strip()!r}).")
    return found[1]


def cancel(kind: str, job: str, workers: str | None = None) -> None:
    """End a coordinator, and its workers where the queue knows jobs by name."""
    _call([*QUEUE_COMMANDS[kind].cancel, job])
    if kind == "slurm" and workers is not None:
        _call(["scancel", f"--name={workers}"])


def state(kind: str, job: str) -> str | None:
    """What the queue says of a job in a word; None where it knows no such job (any more)."""
    try:
        said = _call([*QUEUE_COMMANDS[kind].state, job])
    except ClusterError:
        return None
    if kind in ("slurm", "lsf", "htcondor"):
        return said.strip().lower() or None
    return "in the queue" if said.strip() else None


def python() -> str:
    """The interpreter that jobs run, the one of this process."""
    return sys.executable


def _call(command: Sequence[str], **options: Any) -> str:
    if shutil.which(command[0]) is None:
        raise ClusterError(f"The command {command[0]} is not here; is this a machine of the queue?")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, **options
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{command[0]} did not answer within {SECONDS} s.") from None
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())
        raise ClusterError(f"{command[0]} failed: {reason or f'exit code {done.returncode}'}.")
    return done.stdout
