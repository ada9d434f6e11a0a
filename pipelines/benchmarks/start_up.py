"""What starting costs: user seconds and imported modules of commands and imports.

    python pipelines/benchmarks/start_up.py [--checkout DIR] [--repeats N] [--quick]

Every start is a process of its own.  Starts take turns, those of the other checkout among them, so
that what else the machine does hits all alike; user seconds of the processor are taken and not
those of the clock.  Bytecode is made by a first round that is not counted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import table, write

HERE = Path(__file__).resolve().parents[2]
PEERS = "import sklearn.cluster, dask"
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
    found = measured(checkouts, 1 if options.quick else options.repeats)
    if options.quick:
        print(page(found))
        return
    told = "python pipelines/benchmarks/start_up.py"
    if options.checkout is not None:
        told += " --checkout ..."
    if options.repeats != parser.get_default("repeats"):
        told += f" --repeats {options.repeats}"
    text = (
        f"Medians of {options.repeats} starts, each a process of its own, in turns. Modules are "
        f"all that Python has imported at the end. `{PEERS}` is what any library on both takes."
    )
    data = {n: {v: vars(one) for v, one in starts.items()} for n, starts in found.items()}
    write("start-up", "What starting costs", told, [text, page(found)], data)


if __name__ == "__main__":
    main()
