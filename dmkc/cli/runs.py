"""Where results go: the folder of a run, how far it has come, its log; what may be replaced.

Only what dmkc itself has written is replaced.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
from dask.system import CPU_COUNT

from dmkc.cli.interrupts import heed
from dmkc.data import passes
from dmkc.documents import read_bytes
from dmkc.errors import UserError
from dmkc.modelfile import is_model_file
from dmkc.modelfile.files import KEY
from dmkc.modelfile.folder import MOST_DESCRIPTION
from dmkc.progress import listening
from dmkc.resume.journal import NAME as JOURNAL
from dmkc.showing import printable
from dmkc.writing import remove, write_text

FORMATS = ("dmkc-labels", "dmkc-dataset")
RUN_MARK = "# dmkc run\n"
LOG = "log.txt"
MODEL = "model.zarr"
STORES = (MODEL, "labels.zarr", "membership.zarr")
TABLES = ("labels.parquet", "labels.csv")
"""Labels as tables; a run has one of them at most."""
RESULTS = ("metrics.json", "params.yaml", *STORES, *TABLES, "report.html")
"""Those of an earlier run are removed in this order; the first says that all are there."""
ORDER, STATUS, JOB = "run.json", "status.json", "job.json"
BEFORE = (JOURNAL, ORDER, STATUS)
"""What is there before the log."""
DONE = "finished"
FORMAT = "dmkc-run"
SECONDS_BETWEEN = 1.0
"""How often the status is written at most."""


def mark(kind: str, **more: Any) -> dict[str, Any]:
    """The attributes by which a store of dmkc is known."""
    return {KEY: {"format": f"dmkc-{kind}", "version": 1, **more}}


def marks(attributes: Any) -> dict[str, Any]:
    """What dmkc wrote into the attributes of a store; nothing where it did not."""
    found = dict(attributes).get(KEY)
    return found if isinstance(found, dict) else {}


def is_own_store(path: Path) -> bool:
    """Whether a folder is a Zarr store that dmkc wrote."""
    if is_model_file(path):
        return True
    try:
        stored = json.loads(read_bytes(path / "zarr.json", MOST_DESCRIPTION))
        return stored["attributes"][KEY]["format"] in FORMATS
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def is_run_folder(path: Path) -> bool:
    """Whether a folder holds a run, finished or not."""
    try:
        if not (path / LOG).is_file():
            return False
        with open(path / LOG, "rb") as log:
            return log.read(len(RUN_MARK)) == RUN_MARK.encode()
    except OSError:
        return False


def store_target(text: str, force: bool) -> Path:
    """The path of a Zarr store to write, once it is known that it may be written."""
    path = _local(text)
    if path.exists() or path.is_symlink():
        if not force:
            raise UserError(f"{text} exists; replace it with --force or choose another --out.")
        if path.is_symlink() or not is_own_store(path):
            raise UserError(f"{text} was not written by dmkc, so --force does not replace it.")
    return path


def file_target(text: str, force: bool, is_own: Callable[[Path], bool]) -> Path:
    """The path of a file to write, once it is known that it may be written."""
    path = _local(text)
    if path.exists() or path.is_symlink():
        if not force:
            raise UserError(f"{text} exists; replace it with --force or choose another --out.")
        if path.is_symlink() or not path.is_file() or not is_own(path):
            raise UserError(f"{text} was not written by dmkc, so --force does not replace it.")
    return path


def run_target(text: str, force: bool) -> Path:
    """The path of a run folder to write, once it is known that it may be written."""
    path = _local(text)
    if not path.exists() and not path.is_symlink():
        return path
    if path.is_symlink() or not path.is_dir():
        raise UserError(f"{text} is not a folder; choose another --out.")
    if all(_is_early(entry) for entry in path.iterdir()):
        return path  # empty, or left by a run that was killed at once
    if not is_run_folder(path):
        raise UserError(f"{text} holds files that are not a run of dmkc; choose another --out.")
    if not force:
        raise UserError(
            f"{text} holds an earlier run; go on with it with --resume, or replace it with --force."
        )
    return path


def make_run_folder(path: Path) -> bool:
    """Create a folder for its owner alone; return whether it is new."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    path.chmod(0o700)
    return True


def clear_results(path: Path) -> None:
    """Remove the results of an earlier run but for its model, which is replaced in one step."""
    for name in RESULTS:
        if name != MODEL or not is_model_file(path / name):
            remove(path / name)


def discard_run(path: Path) -> None:
    """Remove a run that came to nothing through a mistake of its user."""
    remove(path / LOG)
    if not any(path.iterdir()):
        path.rmdir()


def _is_early(path: Path) -> bool:
    """Whether this is there, or half written, before a folder is known as a run."""
    return path.name in BEFORE or any(_is_part(path, name) for name in (LOG, *BEFORE))


def _is_part(path: Path, name: str) -> bool:
    """Whether this is what a killed process has left of a file of that name."""
    return path.name.startswith(f".{name}.") and path.name.endswith(".part")


def store(values: Any, array: Any) -> None:
    """Compute a Dask array into a Zarr array of the same chunks, block by block."""
    pool = ThreadPoolExecutor(CPU_COUNT)
    try:
        with dask.config.set(pool=pool), passes.counted():
            values.store(array, lock=False)
    finally:
        # A thread left writing after an interruption would bring a removed folder back.
        pool.shutdown(wait=True, cancel_futures=True)


def _local(text: str) -> Path:
    if "://" in text:
        raise UserError(f"{text} is an address; results are written to local folders.")
    path = Path(os.path.abspath(os.path.expanduser(text)))
    if not path.parent.is_dir():
        raise UserError(f"The folder {path.parent} does not exist; create it first.")
    return path


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
        write_text(run / ORDER, json.dumps(stored, indent=2) + "\n")


def read_order(run: Path) -> Order | None:
    """The order of a run, or None where there is none (yet)."""
    try:
        stored = json.loads(read_bytes(run / ORDER, MOST_DESCRIPTION))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise UserError(f"{run} is not a folder; name the folder of a run.") from None
    except (OSError, ValueError, RecursionError):
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


def tidy(run: Path) -> list[str]:
    """Remove what an earlier attempt left half written; return its names."""
    found = sorted(run.glob(".*.part"))
    for leftover in found:
        remove(leftover)
    return [leftover.name for leftover in found]


def forget(run: Path, besides: str | None = None) -> None:
    """Remove what a run would be continued from."""
    for name in (JOURNAL, ORDER, STATUS, JOB):
        if name != besides:
            remove(run / name)


def write_status(run: Path, state: str, **more: Any) -> None:
    """Say how a run is doing; what is not said again stays as it was."""
    found = {**read_status(run), "state": state, "updated": _now(), **more}
    write_text(run / STATUS, json.dumps(found, indent=2) + "\n")


def read_status(run: Path, name: str = STATUS) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(run / name, MOST_DESCRIPTION))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_job(run: Path, **about: Any) -> None:
    """Say which job of a queue works on the run."""
    write_text(run / JOB, json.dumps(about, indent=2) + "\n")


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
            with contextlib.suppress(OSError):  # a full disk does not end what could go on
                write_status(run, "running", scan=json.loads(said))

    where = {"host": socket.gethostname(), "process": os.getpid(), "started": _now()}
    write_status(run, "running", **where)
    with listening(tell):
        yield


class _OneLine(logging.Formatter):
    """Every record as one line, whatever the names in it are made of."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class LogFile(logging.FileHandler):
    """A file of log lines that ends where it cannot be written any more, without a word."""

    _is_broken = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_broken:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        if isinstance(sys.exc_info()[1], OSError):
            self._is_broken = True
        else:
            super().handleError(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


class RunLog:
    """The log of a run: what the library logs, warnings, and what the command adds."""

    def __init__(self, run: Path) -> None:
        self._path = run / LOG
        self._logger = logging.getLogger("dmkc")

    def __enter__(self) -> logging.Logger:
        if not self._path.exists():
            write_text(self._path, RUN_MARK)
        self._handler = LogFile(self._path, encoding="utf-8")
        self._handler.setFormatter(_OneLine("%(asctime)s %(message)s"))
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


def model_path(text: str) -> str:
    """A model's path, given as itself or as the run folder it is in."""
    if "://" not in text and is_run_folder(Path(text)):
        return str(Path(text) / MODEL)
    return text
