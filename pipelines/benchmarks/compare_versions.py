"""This version of dmkc beside another checkout of it: are labels the same, is it as fast?

    python pipelines/benchmarks/compare_versions.py --checkout DIR [--quick] [--parts labels speed]

Each version runs in a process of its own.  Labels are those of all estimators with their default
settings.  Times are taken in turns (the other, this one, the other, ...), so that what else the
machine does hits both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import table, write
from compare_versions_jobs import ESTIMATORS, FORMS, SETS
from subset_to_all import whole

HERE = Path(__file__).resolve().parents[2]
FORMED = "waveform"
"""The set that is given in all forms; the others are plain."""
QUICK_SETS = ("blobs", FORMED)
FEWEST = 10_000
"""Fewer rows are all in the sample of a fit, which is not scanned by the engine."""


@dataclass(frozen=True)
class Case:
    """A fit that both versions make."""

    estimator: str
    rows: str
    clusters: int
    form: str

    @property
    def given(self) -> tuple[str, str, int, str]:
        return (self.estimator, self.rows, self.clusters, self.form)


class Version:
    """A process with one version of the library."""

    def __init__(self, checkout: Path) -> None:
        if not (checkout / "dmkc" / "__init__.py").exists():
            raise SystemExit(f"{checkout} holds no folder dmkc: name a checkout of this project.")
        self.checkout = checkout
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("compare_versions_jobs.py"))],
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        place = self.ask("place")
        if Path(place) != checkout:
            raise SystemExit(f"dmkc was imported from {place} and not from {checkout}.")

    def ask(self, kind: str, given: Any = None) -> Any:
        """The answer of the process to one question."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, "given": given}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"The version in {self.checkout} failed; its error is above.")
        return json.loads(answer)

    def end(self) -> None:
        self._process.communicate()

    @property
    def commit(self) -> str:
        words = ["git", "-C", str(self.checkout), "log", "-1", "--format=%h of %cs"]
        found = subprocess.run(words, capture_output=True, text=True)
        return found.stdout.strip() or "no commit"


def cases(sets: Sequence[str]) -> Iterator[Case]:
    for estimator in ESTIMATORS:
        for rows in sets:
            for form in FORMS if rows == FORMED else FORMS[:1]:
                for clusters in (2, 4):
                    yield Case(estimator, rows, clusters, form)


def outcome(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What became of one fit: "equal", "refused" by both, or how it differs."""
    if "refused" in old or "refused" in new:
        both = "refused" in old and "refused" in new
        return {"what": "refused" if both else "refused by one", "rows": 0, "objective": 0.0}
    rows = int(np.sum(np.array(old["labels"]) != np.array(new["labels"])))
    a, b = old["objective"], new["objective"]
    apart = 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))
    return {"what": "different" if rows else "equal", "rows": rows, "objective": apart}


def labels_part(old: Version, new: Version, sets: Sequence[str]) -> tuple[str, Any]:
    data: dict[Case, dict[str, Any]] = {}
    for case in cases(sets):
        data[case] = outcome(old.ask("labels", case.given), new.ask("labels", case.given))
        print(*case.given, data[case], flush=True)
    lines = []
    for name in ESTIMATORS:
        own = [found for case, found in data.items() if case.estimator == name]
        count = Counter(found["what"] for found in own)
        apart = max(found["objective"] for found in own)
        row = [name, len(own) - count["refused"], count["equal"]]
        lines.append([*row, count["refused"], f"{apart:.1e}" if apart else "0"])
    header = ("method", "fits", "labels equal to the bit", "refused by both")
    parts = [
        "## Labels",
        f"Default settings, `random_state=0`, 2 and 4 clusters, on {', '.join(sets)}. {FORMED} is "
        "given with weights, trained on 150 of its rows with two rounds on all of them, as a "
        "sparse matrix and as a Dask array as well (`KMeans` does not train on a part of the "
        "rows).",
        table((*header, "largest relative difference of `objective_`"), lines),
    ]
    others = {case: f for case, f in data.items() if f["what"] not in ("equal", "refused")}
    if others:
        rows = [(*case.given, found["what"], found["rows"]) for case, found in others.items()]
        parts += ["Fits that are not the same:"]
        parts += [table(("method", "data", "clusters", "form", "outcome", "rows"), rows)]
    stored = [[*case.given, found] for case, found in data.items()]
    return "\n\n".join(parts), stored


def speed_part(
    old: Version, new: Version, rows: int, small: int, repeats: int
) -> tuple[str, dict[str, Any]]:
    versions = (old, new)
    names = old.ask("prepare", (rows, small))
    new.ask("prepare", (rows, small))
    lines, data = [], {}
    for name in names:
        for version in versions:
            version.ask("time", name)  # loads code and fills caches
        times = np.array([[v.ask("time", name) for v in versions] for _ in range(repeats)])
        (before, now), each = np.median(times, axis=0), times[:, 1] / times[:, 0]
        data[name] = times.tolist()
        span = f"{each.min():.2f} to {each.max():.2f}"
        size = small if name == "small fit" else rows
        seconds = [f"{value:.4f}" if value < 0.1 else f"{value:.2f}" for value in (before, now)]
        lines.append((name, f"{size:,}", *seconds, f"{now / before:.2f}", span))
        print(lines[-1], flush=True)
    header = ("what", "rows", "other, s", "this, s", "this / other", "of single turns")
    text = (
        f"## Speed\n\nMedians of {repeats} turns after one that does not count; in every turn the "
        "other version goes first. `MultipleKernelClustering` on ringnorm rows with 20 columns; a "
        "scan is the median of those in one fit.\n\n"
    )
    return text + table(header, lines), data


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, required=True, help="folder of the other version")
    parser.add_argument("--quick", action="store_true", help="few and small, and no page")
    parser.add_argument(
        "--parts", nargs="+", default=["labels", "speed"], choices=["labels", "speed"]
    )
    parser.add_argument("--rows", type=whole, default=1_000_000)
    parser.add_argument("--small-rows", type=whole, default=1000, help="rows of the small fit")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if options.rows < FEWEST:
        parser.error(f"--rows is {options.rows}: give at least {FEWEST}, so that rows are scanned.")
    sets, rows, repeats = list(SETS), options.rows, options.repeats
    if options.quick:
        sets, rows, repeats = list(QUICK_SETS), min(rows, 20_000), min(repeats, 3)
    old, new = Version(options.checkout.resolve()), Version(HERE)
    made = {
        "labels": lambda: labels_part(old, new, sets),
        "speed": lambda: speed_part(old, new, rows, options.small_rows, repeats),
    }
    parts = [f"This version ({new.commit}) beside another one ({old.commit})."]
    data = {}
    for name in options.parts:
        text, data[name] = made[name]()
        parts.append(text)
    for version in (old, new):
        version.end()
    if options.quick:
        print("\n\n".join(parts))
        return
    command = "python pipelines/benchmarks/compare_versions.py --checkout ..."
    given = {"rows": rows, "small_rows": options.small_rows, "repeats": repeats}
    for name, value in given.items():
        if value != parser.get_default(name):
            command += f" --{name.replace('_', '-')} {value}"
    if options.parts != parser.get_default("parts"):
        command += " --parts " + " ".join(options.parts)
    write("versions", "This version beside another one", command, parts, data)


if __name__ == "__main__":
    main()
