"""What starting costs: imports and commands, and the first fit of a process beside the second.

    python pipelines/benchmarks/start_up.py [--checkout DIR] [--repeats N] [--quick]

Every start is a process of its own.  Starts take turns, those of the other checkout among them, so
that what else the machine does hits all alike; seconds of the processor are taken, and on workers
those of the clock.  Bytecode and compiled loops are made by a first round that is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import table, write
from start_up_fits import METHODS

HERE = Path(__file__).resolve().parents[2]
PEERS = "import sklearn.cluster, dask"
ON_WORKERS = ("kmeans", "mkc", "spectral")
"""Methods that are fitted on two worker processes as well."""
EMPTY = ("kmeans", "mkc")
"""Methods that are fitted where no loop was ever compiled."""
COUNT = "import sys; print(len(sys.modules), file=sys.stderr)"


def command(*words: str) -> str:
    """A command of dmkc as code, so that its modules can be counted."""
    return f"from dmkc.cli import main; main({list(words)})"


STARTS = {
    PEERS: PEERS,
    "import dmkc": "import dmkc",
    "from dmkc import KMeans": "from dmkc import KMeans",
    "from dmkc import MultipleKernelClustering": "from dmkc import MultipleKernelClustering",
    "dmkc --version": command("--version"),
    "dmkc --help": command("--help"),
    "dmkc fit --help": command("fit", "--help"),
}


@dataclass(frozen=True)
class Start:
    """What one start took."""

    seconds: float
    """User time."""
    modules: int


def start(code: str, checkout: Path) -> Start:
    """Run code in a process of its own, with dmkc from a checkout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{COUNT}"],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if done.returncode != 0:
        raise SystemExit(f"{code!r} failed in {checkout}: {done.stderr}")
    return Start(after - before, int(done.stderr.split()[-1]))


def measured(checkouts: dict[str, Path], repeats: int) -> dict[str, dict[str, Start]]:
    """The median start of every kind in every checkout."""
    found: dict[tuple[str, str], list[Start]] = {}
    for turn in range(repeats + 1):
        for name, code in STARTS.items():
            for version, checkout in checkouts.items():
                one = start(code, checkout)
                if turn > 0:
                    found.setdefault((name, version), []).append(one)
        print(f"round {turn} of {repeats}", file=sys.stderr, flush=True)
    return {
        name: {version: _median(found[name, version]) for version in checkouts} for name in STARTS
    }


def first_fits(
    checkouts: dict[str, Path], methods: Iterable[str], where: str, clock: str, repeats: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Medians of the first and of the later fits of fresh processes."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for turn in range(repeats + 1):
        for method in methods:
            for version, checkout in checkouts.items():
                fits = _fits(method, where, checkout)
                if turn > 0:
                    found.setdefault((method, version), []).append([f[clock] for f in fits])
        print(f"first fits {where}, round {turn} of {repeats}", file=sys.stderr, flush=True)
    return {
        method: {
            version: {
                "first": float(np.median([first for first, *_ in found[method, version]])),
                "later": float(np.median([t for _, *more in found[method, version] for t in more])),
            }
            for version in checkouts
        }
        for method in methods
    }


def never_compiled(checkouts: dict[str, Path]) -> dict[str, dict[str, dict[str, float]]]:
    """One first fit each where no loop was ever compiled."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for method in EMPTY:
        for version, checkout in checkouts.items():
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(
                    checkout / "dmkc",
                    Path(folder, "dmkc"),
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
                first, *more = _fits(method, "here", Path(folder), {"HOME": folder})
                later = float(np.median([fit["processor"] for fit in more]))
                found.setdefault(method, {})[version] = {
                    "first": first["processor"],
                    "later": later,
                }
    return found


def _fits(
    method: str, where: str, checkout: Path, more: dict[str, str] | None = None
) -> list[dict[str, float]]:
    script = Path(__file__).with_name("start_up_fits.py")
    done = subprocess.run(
        [sys.executable, str(script), method, where],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)} | (more or {}),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{method} failed in {checkout}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def fits_page(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """A table of first and later fits."""
    versions = list(next(iter(found.values())))
    header = ["method", *(f"first / later / more, {version}" for version in versions)]
    lines = []
    for method, by_version in found.items():
        cells = [
            f"{by_version[v]['first']:.2f} / {by_version[v]['later']:.2f} / "
            f"**{by_version[v]['first'] - by_version[v]['later']:.2f}**"
            for v in versions
        ]
        lines.append([f"`{method}`", *cells])
    return table(header, lines)


def _median(starts: list[Start]) -> Start:
    return Start(float(np.median([one.seconds for one in starts])), starts[-1].modules)


def page(found: dict[str, dict[str, Start]]) -> str:
    """The table: seconds and modules, of every version."""
    versions = list(found[PEERS])
    header = ["start", *(f"user s, {v}" for v in versions), *(f"modules, {v}" for v in versions)]
    lines: list[list[Any]] = []
    for name, by_version in found.items():
        seconds = [f"{by_version[v].seconds:.2f}" for v in versions]
        lines.append([f"`{name}`", *seconds, *(by_version[v].modules for v in versions)])
    return table(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, help="another checkout to compare with")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one repeat, and no page")
    options = parser.parse_args()
    checkouts = {"this version": HERE}
    if options.checkout is not None:
        if not (options.checkout / "dmkc" / "__init__.py").exists():
            parser.error(f"{options.checkout} holds no folder dmkc: name a checkout.")
        checkouts = {"the other": options.checkout.resolve(), **checkouts}
    repeats = 1 if options.quick else options.repeats
    found = measured(checkouts, repeats)
    few = -(-repeats // 3)
    methods = ON_WORKERS[:1] if options.quick else list(METHODS)
    on_workers = ON_WORKERS[:1] if options.quick else ON_WORKERS
    here = first_fits(checkouts, methods, "here", "processor", few)
    there = first_fits(checkouts, on_workers, "workers", "clock", few)
    if options.quick:
        print("\n\n".join([page(found), fits_page(here), fits_page(there)]))
        return
    empty = never_compiled(checkouts)
    told = "python pipelines/benchmarks/start_up.py"
    if options.checkout is not None:
        told += " --checkout ..."
    if options.repeats != parser.get_default("repeats"):
        told += f" --repeats {options.repeats}"
    text = (
        f"Medians of {options.repeats} starts, each a process of its own, in turns. Modules are "
        f"all that Python has imported at the end. `{PEERS}` is what any library on both takes. "
        "Aims: `--version` and `--help` below 0.5 s, estimators at most 0.3 s above the first line."
    )
    about = (
        f"Seconds of the first fit of a process and of later ones, and the difference: rows in "
        f"memory, threads; medians of {few} processes. Imports of the estimator are not counted. "
        "Aim: at most 1.0 s more."
    )
    about_workers = (
        f"The same by the clock on a fresh LocalCluster of two processes, labels computed; medians "
        f"of {few}. Aim: at most 2 s more."
    )
    about_empty = (
        "The same on threads where no loop was ever compiled, as after an installation; one run. "
        "This is paid once per machine, and `dmkc warm` pays it beforehand."
    )
    parts = [text, page(found), "## First fits", about, fits_page(here)]
    parts += ["## On worker processes", about_workers, fits_page(there)]
    parts += ["## Once per machine", about_empty, fits_page(empty)]
    data = {
        "starts": {n: {v: vars(one) for v, one in starts.items()} for n, starts in found.items()},
        "first fits": here,
        "on workers": there,
        "never compiled": empty,
    }
    write("start-up", "What starting costs", told, parts, data)


if __name__ == "__main__":
    main()
