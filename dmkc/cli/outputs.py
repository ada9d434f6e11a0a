"""Where results go, and what may be replaced: only what dmkc itself has written."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
from dask.system import CPU_COUNT

from dmkc.cli.errors import UserError
from dmkc.modelfile import is_model_file
from dmkc.modelfile.files import KEY
from dmkc.modelfile.staging import remove

FORMATS = ("dmkc-labels", "dmkc-dataset")
RUN_MARK = "# dmkc run\n"
LOG = "log.txt"
RESULTS = ("params.yaml", "model.zarr", "labels.zarr", "metrics.json", "report.html")


def mark(kind: str, **more: Any) -> dict[str, Any]:
    """The attributes by which a store of dmkc is known."""
    return {KEY: {"format": f"dmkc-{kind}", "version": 1, **more}}


def is_own_store(path: Path) -> bool:
    """Whether a folder is a Zarr store that dmkc wrote."""
    if is_model_file(path):
        return True
    try:
        stored = json.loads((path / "zarr.json").read_bytes())
        return stored["attributes"][KEY]["format"] in FORMATS
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_run_folder(path: Path) -> bool:
    """Whether a folder holds a run, finished or not."""
    try:
        with open(path / LOG, encoding="utf-8") as log:
            return log.readline() == RUN_MARK
    except (OSError, UnicodeDecodeError):
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


def run_target(text: str, force: bool) -> Path:
    """The path of a run folder to write, once it is known that it may be written."""
    path = _local(text)
    if not path.exists() and not path.is_symlink():
        return path
    if path.is_symlink() or not path.is_dir():
        raise UserError(f"{text} is not a folder; choose another --out.")
    if all(entry == _part(path / LOG) for entry in path.iterdir()):
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
    """Remove the results of an earlier run, and nothing else."""
    for name in RESULTS:
        remove(path / name)


def discard_run(path: Path) -> None:
    """Remove a run that came to nothing through a mistake of its user."""
    remove(path / LOG)
    if not any(path.iterdir()):
        path.rmdir()


def write_text(path: Path, text: str) -> None:
    """Write a file that appears when it is whole."""
    fresh = _part(path)
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def store(values: Any, array: Any) -> None:
    """Compute a Dask array into a Zarr array of the same chunks, block by block."""
    pool = ThreadPoolExecutor(CPU_COUNT)
    try:
        with dask.config.set(pool=pool):
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
