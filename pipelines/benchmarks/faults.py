"""Random kills of fits: every one must survive or be resumed, with the labels of an unbroken one.

    python pipelines/benchmarks/faults.py [--cases 208] [--seed 0] [--methods mkc kmeans]
                                          [--folder DIR] [--no-page]

Every case is `dmkc fit` of a small set in a process of its own, in threads or on a cluster of a
scheduler and two nannies.  SIGKILL hits the client, a worker, all workers, a nanny, the scheduler
or everything at a random scan, record, file or time.  What has not survived by itself goes on with
`dmkc fit --resume`; a quarter of those are killed once more on the way.  The cases that are done
are kept in DIR/cases.json, so that a suite that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from common import table, write
from dmkc.modelfile import ESTIMATORS
from faults_processes import Cluster, context, wait_for
from faults_strike import Counts, Plan, perform

ROWS, COLUMNS, CHUNK = 20_000, 4, 4096
CHILD_SECONDS = 90.0
SECOND_KILLS = 0.25
WORDS = ("--clusters", "2", "--seed", "0", "--sample-rows", "400", "--no-report", "--quiet")
SCANS = ("before", "during", "after")
MOMENTS = {
    "before": "before a scan",
    "during": "during a scan",
    "after": "after a scan",
    "record": "in a record of the journal",
    "file": "at a file of the run",
    "labels": "while labels are written",
    "time": "at any time",
}
VICTIMS = {
    "client": (0.34, tuple(MOMENTS)),
    "worker": (0.2, (*SCANS, "record", "labels", "time")),
    "all workers": (0.12, (*SCANS, "labels", "time")),
    "nanny": (0.1, (*SCANS, "labels", "time")),
    "scheduler": (0.12, (*SCANS, "labels", "time")),
    "everything": (0.12, (*SCANS, "record", "labels", "time")),
}
"""How often each is killed, and when."""
GOOD = ("survived", "resumed")
OUTCOMES = (*GOOD, "wrong labels", "unreadable", "hung", "missed")
EXPLAINED = """\
- survived: the command ended by itself as if nothing had happened.
- resumed: `dmkc fit --resume` ended it.
- unreadable: `dmkc status` or `--resume` failed on what was left of the run.
- hung: a command did not end within {seconds:.0f} s.
- missed: the fit had ended before the blow fell; such a case is not counted as a kill.

Labels are compared bit for bit with those of an unbroken fit in threads."""


@dataclass(frozen=True)
class Case:
    """One fit and what befalls it."""

    number: int
    method: str
    on_cluster: bool
    plan: Plan
    again: Plan | None
    """A kill of the first resumption."""


def draw(number: int, seed: int, methods: list[str]) -> Case:
    """The case of a number; methods take turns, all else is random."""
    rng = np.random.default_rng([seed, number])
    names = list(VICTIMS)
    victim = names[rng.choice(len(names), p=[VICTIMS[name][0] for name in names])]
    moments = VICTIMS[victim][1]
    plan = Plan(victim, moments[rng.integers(len(moments))], rng.random(), rng.random())
    on_cluster = victim != "client" or bool(rng.random() < 0.4)
    again = replace(plan, victim="client", share=rng.random(), cut=rng.random())
    second = bool(rng.random() < SECOND_KILLS)
    return Case(number, methods[number % len(methods)], on_cluster, plan, again if second else None)


class Suite:
    """Runs cases in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster = folder, Cluster()
        self.rows = folder / "rows.zarr"
        self._known: dict[tuple[str, bool], Counts] = {}
        self._expected: dict[str, np.ndarray] = {}
        rng = np.random.default_rng(0)
        side = rng.random(ROWS) < 0.4
        X = rng.normal(size=(ROWS, COLUMNS)) + np.where(side, 1.5, -1.0)[:, None]
        shutil.rmtree(self.rows, ignore_errors=True)
        store = zarr.create_array(
            store=self.rows, shape=X.shape, chunks=(CHUNK, COLUMNS), dtype=X.dtype
        )
        store[:] = X

    def run(self, case: Case) -> dict[str, Any]:
        """What came of a case."""
        known = self.reference(case.method, case.on_cluster)
        out = self.folder / f"run-{case.number}"
        shutil.rmtree(out, ignore_errors=True)
        began = time.monotonic()
        found = self._outcome(case, known, out)
        seconds = round(time.monotonic() - began, 2)
        if found["outcome"] in GOOD:
            shutil.rmtree(out)
        return {**asdict(case), **found, "seconds": seconds}

    def _outcome(self, case: Case, known: Counts, out: Path) -> dict[str, Any]:
        fit = self._fit(case.method, out)
        code, kills, words = self._command(case.on_cluster, fit, case.plan, known)
        ends, said = [code], [words]
        for plan in (case.again, None, None):
            if code in (0, None):
                break
            state, _, words = self._command(False, ["status", str(out), "--json"], None, None)
            if state not in (0, 2):
                return {
                    "outcome": "unreadable",
                    "kills": kills,
                    "ends": ends,
                    "said": [*said, words],
                }
            begun = (out / "run.json").exists()
            more = ["fit", "--resume", str(out), "--quiet"] if begun else self._anew(fit)
            code, hit, words = self._command(case.on_cluster, more, plan, known)
            kills, ends, said = kills + hit, [*ends, code], [*said, words]
        if code is None:
            outcome = "hung"
        elif code != 0:
            outcome = "unreadable"
        elif not np.array_equal(self._labels(out), self._expected[case.method]):
            outcome = "wrong labels"
        elif not kills:
            outcome = "missed"
        else:
            outcome = "survived" if len(ends) == 1 else "resumed"
        return {"outcome": outcome, "kills": kills, "ends": ends, "said": said}

    def reference(self, method: str, on_cluster: bool) -> Counts:
        """The counts of an unbroken run, whose labels are the expected ones."""
        if (method, on_cluster) not in self._known:
            if on_cluster:
                self.reference(method, False)
            out = self.folder / f"whole-{method}"
            shutil.rmtree(out, ignore_errors=True)
            code, _, words = self._command(on_cluster, self._fit(method, out), None, Counts())
            if code != 0:
                raise RuntimeError(f"An unbroken fit of {method} ended with {code}: {words}")
            labels = self._labels(out)
            if not np.array_equal(self._expected.setdefault(method, labels), labels):
                raise RuntimeError(f"Unbroken fits of {method} differ between threads and cluster.")
            counts = Counts(**json.loads((self.folder / "tally.json").read_text()))
            if on_cluster:  # the first run on new workers is slow, and a blow must not come late
                counts.seconds = min(counts.seconds, self.reference(method, False).seconds)
            self._known[method, on_cluster] = counts
        return self._known[method, on_cluster]

    def _fit(self, method: str, out: Path) -> list[str]:
        rank = () if method == "kmeans" else ("--rank", "12")
        return ["fit", str(self.rows), "--method", method, *WORDS, *rank, "--out", str(out)]

    def _anew(self, words: list[str]) -> list[str]:
        """A run that was killed before it had written what it was to do."""
        return ["--resume" if word == "--out" else word for word in words]

    def _command(
        self, on_cluster: bool, words: list[str], plan: Plan | None, known: Counts | None
    ) -> tuple[int | None, int, str]:
        """Exit code, kills and last words of a command in a process of its own."""
        address = self.cluster.mend() if on_cluster else None
        pids = self.cluster.pids() if on_cluster else {}
        if address is not None:
            words = [*words, "--scheduler", address]
        said, tally = self.folder / "said.txt", self.folder / "tally.json"
        mark = self.folder / "tally.json.struck"
        for path in (said, tally, mark):
            path.unlink(missing_ok=True)
        process = context.Process(
            target=perform, args=(words, str(said), str(tally), address, pids, plan, known)
        )
        process.start()
        code = wait_for(process, CHILD_SECONDS)
        lines = said.read_text(errors="replace").splitlines() if said.exists() else []
        mistakes = [line for line in lines if "dmkc: " in line or "Error" in line]
        return code, int(mark.exists()), "\n".join(mistakes[-3:])

    def _labels(self, out: Path) -> np.ndarray:
        return np.asarray(zarr.open_array(store=out / "labels.zarr", mode="r")[:])


def pages(done: list[dict[str, Any]]) -> list[str]:
    """The tables of the page."""
    kills = sum(case["kills"] for case in done)
    count = Counter(case["outcome"] for case in done)
    bad = [case for case in done if case["outcome"] not in (*GOOD, "missed")]
    summary = (
        f"{kills} kills in {len(done)} fits: "
        + ", ".join(f"{count[name]} {name}" for name in OUTCOMES)
        + "."
    )
    parts = [summary, EXPLAINED.format(seconds=CHILD_SECONDS)]
    headings = {
        "What was killed, and when": lambda c: (
            f"{c['plan']['victim']}{'' if c['on_cluster'] else ' (threads)'}",
            MOMENTS[c["plan"]["moment"]],
        ),
        "By method": lambda c: (c["method"], "cluster" if c["on_cluster"] else "threads"),
    }
    for heading, key in headings.items():
        rows = Counter((key(case), case["outcome"]) for case in done)
        lines = [
            (
                *group,
                sum(rows[group, name] for name in OUTCOMES),
                *(rows[group, n] for n in OUTCOMES),
            )
            for group in sorted({group for group, _ in rows})
        ]
        first = ("killed", "when") if "when" in heading else ("method", "where")
        parts.append(f"## {heading}\n\n" + table((*first, "fits", *OUTCOMES), lines))
    if bad:
        lines = [f"- case {c['number']}: {c['outcome']}, exits {c['ends']}" for c in bad]
        parts.append("## What went wrong\n\n" + "\n".join(lines))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=208)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--folder", default=f"{tempfile.gettempdir()}/dmkc-faults")
    parser.add_argument("--no-page", action="store_true", help="write cases.json and nothing else")
    options = parser.parse_args()
    folder = Path(options.folder).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept, order = folder / "cases.json", {"seed": options.seed, "methods": options.methods}
    state = json.loads(kept.read_text()) if kept.exists() else {**order, "cases": {}}
    if {name: state[name] for name in order} != order:
        parser.error(f"{kept} is of another --seed or other --methods; choose another --folder.")
    suite = Suite(folder)
    try:
        for number in range(options.cases):
            if str(number) in state["cases"]:
                continue
            found = suite.run(draw(number, options.seed, options.methods))
            state["cases"][str(number)] = found
            fresh = kept.with_suffix(".part")
            fresh.write_text(json.dumps(state, indent=1) + "\n")
            fresh.replace(kept)
            plan = found["plan"]
            words = (found["method"], plan["victim"], MOMENTS[plan["moment"]], found["outcome"])
            print(number, *words, found["ends"], f"{found['seconds']} s", flush=True)
    finally:
        suite.cluster.close()
    done = [state["cases"][str(number)] for number in range(options.cases)]
    if not options.no_page:
        command = f"python pipelines/benchmarks/faults.py --cases {options.cases}"
        write(
            "faults", "Fits that are killed", f"{command} --seed {options.seed}", pages(done), done
        )
    sys.exit(any(case["outcome"] not in (*GOOD, "missed") for case in done))


if __name__ == "__main__":
    main()
