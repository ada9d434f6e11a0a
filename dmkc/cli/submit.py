"""`dmkc submit`, `status`, `logs` and `cancel`: fits whose coordinator is a job of the queue."""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dmkc import clusters
from dmkc.cli import runs
from dmkc.cli.common import Failure, define, print_pairs, say
from dmkc.cli.fit import add_fit, estimator_of, ordered, resumed
from dmkc.clusters import batch
from dmkc.clusters.schema import QUEUES, Config
from dmkc.clusters.values import PLAIN
from dmkc.errors import UserError
from dmkc.resume.journal import in_use
from dmkc.showing import printable
from dmkc.writing import write_text

SCRIPT, CONFIG = "job.sh", "cluster.yaml"
EXAMPLE = "dmkc submit x.zarr --clusters 3 --out run --cluster cluster_configs/slurm.yaml"
ENDS = (
    "verdict",
    "method",
    "objective",
    "rows",
    "clusters",
    "cluster_sizes",
    "noise_rows",
    "seconds",
)
"""What is said of a finished run; `seconds` are those of its fit."""
SHOWN = ("round", "scans", "objective", "gap", "changed", "seconds")


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, _submit)
    add_fit(parser, "submit")


def add_status(parser: argparse.ArgumentParser) -> None:
    define(parser, "dmkc status run", _status)
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_run(parser)


def add_logs(parser: argparse.ArgumentParser) -> None:
    define(parser, "dmkc logs run -f", _logs)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    _add_run(parser)


def add_cancel(parser: argparse.ArgumentParser) -> None:
    define(parser, "dmkc cancel run", _cancel)
    _add_run(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="RUN", help="folder of the run")


def _submit(args: argparse.Namespace) -> None:
    if args.resume is not None:
        found = resumed(args)
        if found is None:
            return
        chosen, order, folder = found
    else:
        chosen, order = args, ordered(args)
        estimator_of(order)  # a mistake in the parameters is told now, and not by the job
        folder = runs.run_target(args.out, args.force)
    if in_use(folder):
        raise UserError(f"A process is working on {folder} already; see dmkc status.")
    if batch_state(folder) is not None:
        raise UserError(f"{folder} is in the queue already; see dmkc status.")
    config = _queue_config(chosen.cluster, folder)
    runs.make_run_folder(folder)
    if args.force:
        runs.forget(folder)
    log = folder / runs.LOG
    if not log.exists():
        write_text(log, runs.RUN_MARK)
    order.save(folder)
    token = f"dmkc-{uuid.uuid4().hex[:8]}"
    workers = f"{token}-worker"
    stored = {**config.given, "name": workers}
    write_text(folder / CONFIG, yaml.safe_dump(stored, sort_keys=False))
    words = ["-m", "dmkc", "fit", "--resume", str(folder), "--cluster", str(folder / CONFIG)]
    command = [config["python"] or batch.python(), *words, "--quiet"]
    script = batch.coordinator_script(config, token, folder, command)
    write_text(folder / SCRIPT, script)
    runs.write_status(folder, "queued")
    try:
        job = batch.submit(config, folder / SCRIPT)
    except clusters.ClusterError as problem:
        runs.write_status(folder, "ended early", reason=str(problem))
        raise Failure(str(problem)) from problem
    runs.write_job(folder, queue=config.kind, job=job, workers=workers)
    print(job)
    say(f"see how it does: dmkc status {folder}", args.quiet)


def _queue_config(given: str | None, folder: Path) -> Config:
    """The config that was chosen, or that of the earlier part of the run."""
    path = given or (str(folder / CONFIG) if (folder / CONFIG).exists() else None)
    if path is None:
        raise UserError("dmkc submit needs --cluster with a config of a batch queue.")
    config = clusters.read(path)
    if config.kind not in QUEUES:
        raise UserError(
            f"{path} is of kind {config.kind}, which has no queue; use dmkc fit --cluster instead."
        )
    return config


def _run_folder(args: argparse.Namespace) -> Path:
    folder = Path(args.run_folder).expanduser().absolute()
    if not runs.is_run_folder(folder):
        raise UserError(f"There is no run at {args.run_folder}.")
    return folder


def batch_state(folder: Path) -> str | None:
    """What the queue says of a run's coordinator."""
    about = _job(folder)
    return batch.state(about["queue"], about["job"]) if about else None


def _job(folder: Path) -> dict[str, str]:
    """Queue, number and workers' name of the job that works on a run, or nothing."""
    about = runs.read_status(folder, runs.JOB)
    known = about.get("queue") in QUEUES
    words = [about.get(name) for name in ("job", "workers")]
    fine = known and all(isinstance(word, str) and PLAIN.fullmatch(word) for word in words)
    return about if fine else {}


def _status(args: argparse.Namespace) -> None:
    folder = _run_folder(args)
    found = _found(folder, args.run_folder)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print_pairs([(name.replace("_", " "), _plain(value)) for name, value in found.items()])


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _found(folder: Path, shown: str) -> dict[str, Any]:
    status, job = runs.read_status(folder), _job(folder)
    queued = batch_state(folder)
    state = "finished" if runs.is_finished(folder) else status.get("state", "not started")
    alive = in_use(folder) or queued is not None
    found: dict[str, Any] = {"run": str(folder), "state": state}
    if state in ("queued", "running") and not alive:
        found["state"] = "killed"
    if found["state"] in ("killed", "ended early"):
        found["advice"] = f"go on with it: dmkc {'submit' if job else 'fit'} --resume {shown}"
    if job:
        found["job"] = job["job"]
    over = found["state"] == runs.DONE
    for name in ("reason", "host", "started", "updated"):
        if name in status and not (over and name == "reason"):
            found["ended" if over and name == "updated" else name] = status[name]
    if queued is not None:
        found["queue says"] = queued
    if found["state"] == runs.DONE:
        return found | _end_of(folder, shown)
    scan = status.get("scan", {})
    found |= {name: scan[name] for name in SHOWN if name in scan}
    return found


def _end_of(folder: Path, shown: str) -> dict[str, Any]:
    """What a finished run has come to, and where it is."""
    metrics = runs.read_status(folder, runs.RESULTS[0])
    found = {name: metrics[name] for name in ENDS if name in metrics}
    there = (name for name in (*runs.TABLES, "labels.zarr") if (folder / name).exists())
    for name, file in (("labels", next(there, None)), ("report", "report.html")):
        if file is not None and (folder / file).exists():
            found[name] = str(Path(shown) / file)
    return found


def _logs(args: argparse.Namespace) -> None:
    folder = _run_folder(args)
    for line in _lines(folder, args.follow):
        end = "\n" if line.endswith("\n") else ""
        print(printable(line.rstrip("\n")), end=end, flush=args.follow)


def _lines(folder: Path, follow: bool) -> Iterator[str]:
    """The lines of the log and of the jobs' output, and those to come."""
    places: dict[Path, int] = {}
    while True:
        ending = not follow or _found(folder, "")["state"] not in ("queued", "running")
        for path in [folder / runs.LOG, *sorted(folder.glob("job*.out"))]:
            if not path.is_file():
                continue
            with open(path, encoding="utf-8", errors="replace") as stream:
                stream.seek(places.get(path, 0))
                yield from stream.readlines()
                places[path] = stream.tell()
        if ending:
            return
        time.sleep(1)


def _cancel(args: argparse.Namespace) -> None:
    folder = _run_folder(args)
    job = _job(folder)
    if batch_state(folder) is None:
        raise UserError(f"{args.run_folder} is not in the queue; dmkc status says how it is doing.")
    try:
        batch.cancel(job["queue"], job["job"], job["workers"])
    except clusters.ClusterError as problem:
        raise Failure(str(problem)) from problem
    say(f"job {job['job']} is cancelled; dmkc submit --resume {args.run_folder} goes on with it")
