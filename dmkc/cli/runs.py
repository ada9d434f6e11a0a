"""The folder of a run: what was asked for, how far it has come, and its log."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import socket
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dmkc.cli import outputs
from dmkc.cli.errors import UserError
from dmkc.cli.interrupts import heed
from dmkc.modelfile.staging import remove
from dmkc.progress import listening
from dmkc.resume.journal import NAME as JOURNAL

ORDER, STATUS, JOB = "run.json", "status.json", "job.json"
DONE = "finished"
FORMAT = "dmkc-run"
SECONDS_BETWEEN = 1.0
"""How often the status is written at most."""


@dataclass(frozen=True)
class Order:
    """What a run is to do, so that it can be taken up again."""

    words: list[str]
    """The command line, from "fit" on."""
    folder: str
    """Where it was given, which its paths are relative to."""
    parameters: dict[str, Any]
    """The parameters that it came to, the seed among them."""

    def save(self, run: Path) -> None:
        stored = {"format": FORMAT, "version": 1, **asdict(self)}
        outputs.write_text(run / ORDER, json.dumps(stored, indent=2) + "\n")


def read_order(run: Path) -> Order | None:
    """The order of a run, or None where there is none (yet)."""
    try:
        stored = json.loads((run / ORDER).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise UserError(f"{run / ORDER} is damaged; start the run anew with --force.") from None
    try:
        if stored["format"] != FORMAT or stored["version"] != 1:
            raise KeyError
        found = Order(stored["words"], stored["folder"], stored["parameters"])
        fine = all(isinstance(word, str) for word in found.words) and found.words[0] == "fit"
    except (KeyError, TypeError, IndexError):
        fine = False
    if not fine:
        raise UserError(f"{run / ORDER} is not of this version of dmkc.")
    return found


def is_begun(run: Path) -> bool:
    """Whether there is something to go on from."""
    return (run / ORDER).exists() and not is_finished(run)


def is_finished(run: Path) -> bool:
    """Whether all results are there, and none of a later attempt to replace them."""
    replaced = (run / JOURNAL).exists() or read_status(run).get("state", DONE) != DONE
    return (run / "metrics.json").exists() and not replaced


def tidy(run: Path) -> None:
    """Remove what an earlier attempt left half written."""
    for leftover in run.glob(".*.part"):
        remove(leftover)


def forget(run: Path) -> None:
    """Remove what a run would be continued from."""
    for name in (JOURNAL, ORDER, STATUS, JOB):
        remove(run / name)


def write_status(run: Path, state: str, **more: Any) -> None:
    """Say how a run is doing; what is not said again stays as it was."""
    found = {**read_status(run), "state": state, "updated": _now(), **more}
    outputs.write_text(run / STATUS, json.dumps(found, indent=2) + "\n")


def read_status(run: Path, name: str = STATUS) -> dict[str, Any]:
    try:
        found = json.loads((run / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_job(run: Path, **about: Any) -> None:
    """Say which job of a queue works on the run."""
    outputs.write_text(run / JOB, json.dumps(about, indent=2) + "\n")


@contextlib.contextmanager
def reported(run: Path, log: logging.Logger) -> Iterator[None]:
    """Write every scan to the log, and the newest to the status, while a fit runs."""
    last = 0.0

    def tell(known: dict[str, Any]) -> None:
        nonlocal last
        heed()
        said = json.dumps(known, default=float)
        log.info("scan %s", said)
        if time.monotonic() - last > SECONDS_BETWEEN:
            last = time.monotonic()
            write_status(run, "running", scan=json.loads(said))

    where = {"host": socket.gethostname(), "process": os.getpid(), "started": _now()}
    write_status(run, "running", **where)
    with listening(tell):
        yield


class RunLog:
    """The log of a run: what the library logs, warnings, and what the command adds."""

    def __init__(self, run: Path) -> None:
        self._path = run / outputs.LOG
        self._logger = logging.getLogger("dmkc")

    def __enter__(self) -> logging.Logger:
        if not self._path.exists():
            outputs.write_text(self._path, outputs.RUN_MARK)
        self._handler = logging.FileHandler(self._path, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._level, self._show = self._logger.level, warnings.showwarning
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)
        self._logger.info("started %s", _now())
        shown = self._show

        def show(message: Any, *args: Any, **kwargs: Any) -> None:
            self._logger.info("warning: %s", " ".join(str(message).split()))
            shown(message, *args, **kwargs)

        warnings.showwarning = show
        return self._logger

    def __exit__(self, *_: Any) -> None:
        warnings.showwarning = self._show
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
        self._handler.close()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
