"""Does any fit stall?  Scans, seconds of the master and seconds in all, over sets, methods and C.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/stalls.py [--checkout DIR] [--sets wdbc ...] \\
        [--methods mkc ...] [--limit 60] [--out kept] [--page]

Every method that has a price C is fitted with its default C, a tenth of it, ten times as much and
10,000; the others with their defaults; all of them to columns scaled by their default and to raw
ones.  With --checkout the fits of another version of the library are made beside these, case by
case in turns.  A fit is one JSON line in OUT/stalls.jsonl, so that a run that was stopped goes on
where it was; one that takes longer than the limit is stopped and counts as that long.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from all_methods_sets import SETS
from common import table, write
from graphs_cells import Cell, Cells

HERE = Path(__file__).resolve()
THIS = HERE.parents[2]
PRICED, PRICELESS = ("mkc", "skmmc", "odm"), ("planes", "hmkkm", "mkkm", "kernel-kmeans")
PRICES = ("default", "tenth", "ten times", "10000")
HEAVY = (
    "normal 2000 20 2",
    "cauchy 2000 20 2",
    "lognormal 2000 20 2",
    "student 4600 57 2",
    "normal 10000 20 2",
    "cauchy 10000 20 2",
    "cauchy 2000 20 5",
    "lognormal 2000 20 20",
    "normal 2000 20 50",
    "normal 30 20 25",
)
"""Generated rows without clusters, many of them with heavy tails."""
LARGE = ("normal 1000000 20 2", "cauchy 1000000 20 2", "ringnorm 1000000 20 2")
"""The same and two real clusters, for `LARGE_METHODS` alone: does the master keep up?"""
LARGE_METHODS = ("mkc", "skmmc")
NAMES = [*SETS, *HEAVY, *LARGE]
ABOUT = """
Sets are {n_real} of those of [all-methods.md](all-methods.md), at most 2,000 rows of each, and
{n_made} generated ones: rows without clusters (kind, rows, columns, clusters asked for),
most of them with heavy tails.  A fit was stopped after {limit:g} s and counts as that long.
**certified**: the gap of the last convex problem is at most 0.01, or the fit says that it
converged.  **master**: seconds of the coordinator in masters and Newton's steps.  Both versions
run in turns, on {cores} core(s) each.
""".strip()


class Version:
    """A process that makes fits by one version of the library, begun anew after one that stalls."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE.with_name("stalls_fit.py"))],
            env=os.environ | {"PYTHONPATH": str(self.checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._process.stdout is not None
        place = json.loads(self._process.stdout.readline())["place"]
        if Path(place) != self.checkout:
            raise SystemExit(f"dmkc was imported from {place} and not from {self.checkout}.")

    def fit(self, case: Sequence[Any], limit: float) -> Cell:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self._process.kill()
        self._process.wait()
        self._begin()
        return {"failed": "too long", "seconds": limit}

    def end(self) -> None:
        self._process.communicate()


def cases(names: Sequence[str], methods: Sequence[str]) -> Iterator[Cell]:
    for name in names:
        large = name in LARGE
        for method in methods if not large else [m for m in methods if m in LARGE_METHODS]:
            for scale in ("default",) if large else ("default", "raw"):
                for price in PRICES if method in PRICED else PRICES[:1]:
                    yield {"set": name, "method": method, "scale": scale, "C": price}


def certified(cell: Cell) -> bool:
    return bool(cell.get("converged")) or (cell.get("gap") is not None and cell["gap"] <= 1e-2)


def summary(cells: list[Cell]) -> list[str]:
    """One line of the table: how many, how long, how sure."""
    seconds = np.array([c.get("seconds", np.nan) for c in cells])
    done = [c for c in cells if "failed" not in c]
    share = sum(certified(c) for c in done) / max(len(cells), 1)
    scans = np.array([c["scans"] for c in done] or [0])
    master = np.array([c["master"] for c in done] or [0.0])
    return [
        str(len(cells)),
        *(f"{np.nanpercentile(seconds, q):.2f}" for q in (50, 90, 99, 100)),
        str(int((seconds > 10).sum())),
        str(int(np.percentile(scans, 99))),
        f"{master.sum():.0f}",
        f"{np.nansum(seconds):.0f}",
        f"{100 * share:.1f}",
    ]


def write_page(cells: Cells, versions: Sequence[str], options: argparse.Namespace) -> None:
    """docs/results/stalls.md and .json."""
    header = (
        "fits", "median, s", "90 %, s", "99 %, s", "longest, s", "over 10 s", "scans, 99 %",
        "master, s", "all, s", "certified, %",
    )  # fmt: skip
    rows, worst = [], []
    for method in (*PRICED, *PRICELESS, "all"):
        for version in versions:
            where = {} if method == "all" else {"method": method}
            here = set(options.sets) - set(LARGE)
            some = [c for c in cells.where(version=version, **where) if c["set"] in here]
            if some:
                rows.append([method, version, *summary(some)])
    for version in versions:
        some = [c for c in cells.where(version=version) if c["set"] not in LARGE]
        some = sorted(some, key=lambda c: -c.get("seconds", 0))[:10]
        worst += [
            [version, c["set"], c["method"], c["scale"], c["C"], f"{c.get('seconds', 0):.1f}",
             c.get("scans", ""), f"{c.get('master', 0):.1f}", c.get("gap") or c.get("failed", "")]
            for c in some
        ]  # fmt: skip
    names = {c["set"] for c in cells.found.values()} - set(LARGE)
    methods = [m for m in (*PRICED, *PRICELESS) if cells.where(method=m)]
    failed = [c for c in cells.found.values() if c.get("failed", "too long") != "too long"]
    parts = [
        ABOUT.format(
            limit=options.limit,
            cores=len(os.sched_getaffinity(0)),
            n_real=len(names & set(SETS)),
            n_made=len(names - set(SETS)),
        ),
        table(("method", "version", *header), rows),
        "## The longest fits\n\n"
        + table(
            ("version", "set", "method", "columns", "C", "seconds", "scans", "master, s", "gap"),
            worst,
        ),
        *large_parts(cells, versions),
        "## Fits that failed\n\n"
        + (
            "\n".join(
                f"- {c['version']}: {c['set']}, {c['method']}, {c['scale']}, C {c['C']}: "
                f"{c['failed']}"
                for c in failed
            )
            or "None."
        ),
    ]
    stored: list[Any] = list(cells.found.values())
    write(
        "stalls",
        "Do fits stall?",
        f"python pipelines/benchmarks/stalls.py --checkout DIR --limit {options.limit:g} "
        f"--methods {' '.join(methods)} --sets ...",
        parts,
        stored,
    )


def large_parts(cells: Cells, versions: Sequence[str]) -> list[str]:
    """Masters beside scans at a million rows, if such fits were made."""
    rows = []
    for version in versions:
        for name in LARGE:
            for c in cells.where(version=version, set=name):
                done, whole = "failed" not in c, c.get("seconds", np.nan)
                master = c["master"] if done else np.nan
                rows.append(
                    [version, name, c["method"], c["C"], f"{whole:.1f}", c.get("scans", ""),
                     f"{master:.2f}", f"{master / max(whole - master, 1e-9):.2f}",
                     ("yes" if certified(c) else "no") if done else c["failed"]]
                )  # fmt: skip
    if not rows:
        return []
    header = (
        "version", "set", "method", "C", "seconds", "scans", "master, s", "master / the rest",
        "certified",
    )  # fmt: skip
    return ["## A million rows: the master beside the scans\n\n" + table(header, rows)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    methods = [*PRICED, *PRICELESS]
    parser.add_argument("--checkout", type=Path, help="another version, for the figures before")
    parser.add_argument("--sets", nargs="+", default=NAMES, metavar="SET")
    parser.add_argument("--methods", nargs="+", default=methods, choices=methods)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a fit")
    parser.add_argument("--out", type=Path, default=Path("stalls"), help="where fits are kept")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    cells = Cells(options.out / "stalls.jsonl", ("version", "set", "method", "scale", "C"))
    places = {"now": THIS} | ({"before": options.checkout.resolve()} if options.checkout else {})
    if not options.page:
        versions = {name: Version(place) for name, place in places.items()}
        for case in cases(options.sets, options.methods):
            for name, version in versions.items():
                if case | {"version": name} not in cells:
                    usual = cells.where(**case | {"version": name, "C": PRICES[0]})
                    known = usual[0].get("price") if usual else None
                    found = version.fit([*case.values(), known], options.limit)
                    cells.add(case | {"version": name} | found)
        for version in versions.values():
            version.end()
    there = [v for v in ("before", "now") if cells.where(version=v)]
    write_page(cells, there, options)


if __name__ == "__main__":
    main()
