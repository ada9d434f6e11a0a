"""The quick tests several times in a row beside busy loops: is the outcome the same each time?

    python pipelines/benchmarks/steady.py [--runs 3] [--loops 2] [--out FOLDER]

Logs are kept in FOLDER; runs that have ended are not made again, so that a series that was stopped
goes on where it was.  Ends with docs/results/steady.md.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import table, write

ROOT = Path(__file__).resolve().parents[2]
SUITE = ["-m", "pytest", "-m", "not slow", "-n", "2", "--dist", "loadfile", "-q"]
LAST_LINE = re.compile(r"^=*\s*(\d+ (?:passed|failed).*) in ([\d.]+)s", re.MULTILINE)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Processes that do nothing but keep cores busy."""
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in made:
            loop.kill()
            loop.wait()


def outcome(log: Path) -> tuple[str, float] | None:
    """What pytest said at the end, and the seconds that it took."""
    found = LAST_LINE.search(log.read_text()) if log.exists() else None
    return None if found is None else (re.sub(r", \d+ warnings?", "", found[1]), float(found[2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loops", type=int, default=2, help="busy loops beside the tests")
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "steady")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True)
    found = []
    for number in range(1, args.runs + 1):
        log = args.out / f"{commit.strip()}-{number}.log"
        if outcome(log) is None:
            with busy(args.loops), log.open("w") as stream:
                subprocess.run([sys.executable, *SUITE], cwd=ROOT, stdout=stream, check=False)
        ended = outcome(log)
        if ended is None:
            raise SystemExit(f"Run {number} did not end: see {log}.")
        print(f"run {number}: {ended[0]} in {ended[1]:.0f} s", flush=True)
        found.append(ended)
    same = len({said for said, _ in found}) == 1
    rows = [(i, said, f"{seconds / 60:.1f}") for i, (said, seconds) in enumerate(found, 1)]
    suite = shlex.join(["python", *SUITE])
    parts = [
        f"`{suite}` of commit {commit.strip()}, {args.runs} times in a row beside {args.loops} "
        "busy loops.",
        table(["run", "outcome", "minutes"], rows),
        f"The outcome is {'the same each time' if same else 'NOT the same each time'}.",
    ]
    data = [{"outcome": said, "seconds": seconds} for said, seconds in found]
    command = "python pipelines/benchmarks/steady.py"
    write("steady", "The quick tests beside busy loops", command, parts, data)
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
