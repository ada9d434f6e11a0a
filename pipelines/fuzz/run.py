"""All fuzzers: what they did, and what they found.

    python pipelines/fuzz/run.py [--short] [--seed 0] [--only fits models] [--out FOLDER]
    python pipelines/fuzz/run.py --case fits 123

Every case is drawn from the seed and its number alone.  What came of it is kept in FOLDER, so that
a run that was ended goes on where it was; the long run ends with docs/results/fuzz.md.  `--case`
plays one case again and says all about it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import breaks
import commands
import fits
import models
from children import Child
from common import table, write

GOOD = ("done", "refused", "resumed", "missed", "skipped")
MEANING = {
    "crash": "a process ended by itself: a segmentation fault, say",
    "hang": "no end within the bound of its kind",
    "memory": "more memory than the bound of its kind",
    "wrong": "wrong, lost or half-written results",
    "untrue": "a sentence that is not true, or what is in order refused, or the reverse",
    "unclear": "not one sentence",
    "leak": "an exception of a library, or a traceback",
    "warning": "a warning of NumPy that reached the user",
    "fuzzer": "a fault of the fuzzer",
}


@dataclass(frozen=True)
class Kind:
    """Cases of one kind."""

    text: str
    module: ModuleType
    long: int
    short: int
    part: str = ""
    """What a module of several kinds is told."""

    def plan(self, seed: int, number: int) -> dict[str, Any]:
        """The case of a number."""
        rng = np.random.default_rng([seed, number, *self.text.encode()])
        more = (self.part,) if self.part else ()
        return self.module.draw(rng, number, *more)


KINDS = {
    "fits": Kind("fits", fits, 2000, 120),
    "models": Kind("damaged or forged models", models, 600, 40),
    "commands": Kind("command lines", commands, 350, 30, "commands"),
    "documents": Kind("parameters and cluster configs", commands, 200, 20, "documents"),
    "rows": Kind("damaged or forged files of rows", commands, 150, 15, "rows"),
    "kills": Kind("kills inside the work", breaks, 120, 3, "kills"),
    "disks": Kind("full disks", breaks, 30, 2, "disks"),
    "pairs": Kind("pairs of commands on one folder", breaks, 30, 2, "pairs"),
}


def play(name: str, plan: dict[str, Any], child: Child) -> dict[str, Any]:
    """What came of a case, and how long it took."""
    kind = KINDS[name]
    began = time.monotonic()
    if kind.module is breaks:
        found = breaks.play(plan, breaks.folder_in(child.folder))
    else:
        found = child.play(plan, kind.module.SECONDS)
        if found["outcome"] in GOOD and found["grown"] > kind.module.GROWTH:
            found = {**found, "outcome": "memory", "said": f"{found['grown']} MiB: {found['said']}"}
    return {**found, "seconds": round(time.monotonic() - began, 2)}


def perform(name: str, count: int, seed: int, out: Path) -> list[dict[str, Any]]:
    """All cases of a kind, those of an earlier run included."""
    kept = out / f"{name}-{seed}.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    done = {case["number"]: case for case in map(json.loads, lines)}
    folder = out / name
    folder.mkdir(exist_ok=True)
    child = Child(KINDS[name].module.play, folder)
    try:
        with open(kept, "a", encoding="utf-8") as stream:
            for number in range(count):
                if number in done:
                    continue
                plan = KINDS[name].plan(seed, number)
                found = {"number": number, "plan": plan, **play(name, plan, child)}
                found["said"] = " ".join(found["said"].replace(str(folder), "FOLDER").split())
                done[number] = found
                stream.write(json.dumps(found, default=str) + "\n")
                stream.flush()
                if found["outcome"] not in GOOD:
                    print(name, number, found["outcome"], found["said"], plan, flush=True)
    finally:
        child.close()
    cases = [done[number] for number in range(count)]
    counts = Counter(case["outcome"] for case in cases)
    print(f"{name}: {dict(counts)}, {sum(case['seconds'] for case in cases):.0f} s", flush=True)
    return cases


def findings(cases: dict[str, list[dict]]) -> list[tuple[str, dict]]:
    """What should not have come about."""
    return [(n, c) for n, each in cases.items() for c in each if c["outcome"] not in GOOD]


def page(cases: dict[str, list[dict]]) -> list[str]:
    """The parts of the page."""
    rows = []
    for name, each in cases.items():
        counts = Counter(case["outcome"] for case in each)
        bad = sum(number for outcome, number in counts.items() if outcome not in GOOD)
        worst = max((case["seconds"] for case in each), default=0.0)
        grown = max((case.get("grown", 0) for case in each), default=0)
        rows.append(
            (
                KINDS[name].text,
                len(each),
                counts["done"] + counts["resumed"],
                counts["refused"],
                counts["missed"] + counts["skipped"],
                bad,
                f"{worst:.1f} s",
                f"{grown} MiB" if grown else "",
            )
        )
    head = ("what", "cases", "right result", "one sentence", "did not happen", "findings")
    parts = [EXPLAINED, table((*head, "longest", "most memory"), rows)]
    bad = findings(cases)
    parts.append(f"## Findings\n\nCases with a finding: {len(bad)}." if bad else "No findings.")
    if bad:
        lines = [
            f"- {name} {case['number']}: {case['outcome']} ({MEANING[case['outcome']]}). "
            f"{case['said']}"
            for name, case in bad
        ]
        parts[-1] += "\n\n" + "\n".join(lines)
    for name in cases:
        parts.append(
            f"## {KINDS[name].text[0].upper()}{KINDS[name].text[1:]}\n\n" + _by(cases[name])
        )
    return parts


EXPLAINED = """\
Cases are drawn at random from a seed. A case is right when it ends in the right result or in one
true sentence that says what is wrong:

- fits: labels of the right length, kind and range, which `predict` gives again and which are the
  same for every form of the same numbers; features that are finite; no warning of NumPy;
- models: the labels of the undamaged file, or one `ModelFileError`; forged ones, whose checksum
  fits, may give other labels, but no crash;
- command lines and files: exit code 0, or a line and exit code 1 or 2, never a traceback;
- kills (SIGKILL, SIGINT, SIGTERM), full disks and pairs of commands: whatever is there can be read
  and is whole, and once the work has been taken up again or repeated its labels are those of an
  unbroken run. "Did not happen": the work had ended before the blow fell.

Memory is what a case added to its process; commands that are killed are not measured."""


def _by(cases: list[dict]) -> str:
    """Outcomes by what was done."""
    groups = Counter((case["plan"].get("group") or case["plan"]["method"]) for case in cases)
    outcomes = sorted({case["outcome"] for case in cases}, key=[*GOOD, *MEANING].index)
    rows = []
    for group, number in sorted(groups.items()):
        ours = Counter(
            c["outcome"] for c in cases if (c["plan"].get("group") or c["plan"]["method"]) == group
        )
        rows.append((group, number, *(ours[outcome] for outcome in outcomes)))
    return table(("", "cases", *outcomes), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="about a minute, and no page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--out", default=f"{tempfile.gettempdir()}/dmkc-fuzz")
    parser.add_argument("--case", nargs=2, metavar=("KIND", "NUMBER"), help="play one case again")
    options = parser.parse_args()
    out = Path(options.out).absolute()
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if options.case:
        name, number = options.case
        plan = KINDS[name].plan(options.seed, int(number))
        folder = out / f"{name}-again"
        folder.mkdir(exist_ok=True)
        child = Child(KINDS[name].module.play, folder)
        print(json.dumps({"plan": plan, **play(name, plan, child)}, indent=1, default=str))
        child.close()
        return
    cases = {}
    for name in options.only:
        count = KINDS[name].short if options.short else KINDS[name].long
        cases[name] = perform(name, count, options.seed, out)
    if not options.short and len(cases) == len(KINDS):
        bad = [{"kind": name, **case} for name, case in findings(cases)]
        counts = {name: Counter(case["outcome"] for case in each) for name, each in cases.items()}
        command = f"python pipelines/fuzz/run.py --seed {options.seed}"
        write("fuzz", "Fuzzers", command, page(cases), {"counts": counts, "findings": bad})
    sys.exit(bool(findings(cases)))


if __name__ == "__main__":
    main()
