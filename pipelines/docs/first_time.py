"""Walk a newcomer's path: clone, and run every command of the first pages, in an empty folder.

    python pipelines/docs/first_time.py [--skip "make test" ...] [--pages README.md ...]

The commands are taken from the fenced blocks of the pages, so that they cannot drift from what is
printed there.  Each shell command and each Python block is run by itself and timed.  The outcome is
written to docs/results/first-time.md.  What is not committed is not seen.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tour import BLOCK, PROJECT

sys.path.insert(0, str(PROJECT / "pipelines" / "benchmarks"))
from common import table, write

PAGES = ("README.md", "docs/install.md", "docs/tour.md")
SECONDS = 1800
SHOWN = 90
"""Characters of a command on the page."""
CLEAN = ("PATH", "HOME", "LANG", "TMPDIR")
"""All that is kept of the environment, besides settings of pip and the network."""


@dataclass(frozen=True)
class Step:
    """One thing that a page tells to do."""

    page: str
    kind: str
    code: str

    @property
    def shown(self) -> str:
        first = (
            self.code.strip().splitlines()[0] if self.kind == "sh" else "Python: " + self._what()
        )
        return first if len(first) <= SHOWN else first[: SHOWN - 3] + "..."

    def _what(self) -> str:
        lines = [line for line in self.code.splitlines() if line and "import" not in line]
        return lines[0] if lines else ""


def steps(page: str, text: str) -> Iterator[Step]:
    """The commands of a page, in order; a line that ends in a backslash goes on."""
    for kind, code, _ in BLOCK.findall(text):
        if kind == "python":
            yield Step(page, kind, code)
            continue
        for command in re.split(r"(?<!\\)\n", code):
            if command.strip() and not command.lstrip().startswith("#"):
                yield Step(page, kind, command)


def environment(clone: Path) -> dict[str, str]:
    """That of a new account: nothing of this project, and no other virtual environment."""
    wanted = re.compile(r"^(pip_.*|.*_proxy|ssl_cert.*|requests_ca.*)$", re.I)
    kept = {k: v for k, v in os.environ.items() if k in CLEAN or wanted.match(k)}
    here = Path(sys.prefix) / "bin"
    others = [p for p in kept["PATH"].split(os.pathsep) if Path(p) != here]
    # Pages after the first are read with the environment active.
    return kept | {"PATH": os.pathsep.join([str(clone / ".venv" / "bin"), *others])}


def run(step: Step, clone: Path) -> tuple[str, float]:
    """What became of a step, and its seconds."""
    python = str(clone / ".venv" / "bin" / "python")
    command = ["sh", "-e", "-c", step.code] if step.kind == "sh" else [python, "-c", step.code]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=clone,
            env=environment(clone),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {SECONDS} s", time.perf_counter() - began
    seconds = time.perf_counter() - began
    if done.returncode == 0:
        return "works", seconds
    print(done.stdout[-3000:], flush=True)
    last = (done.stdout.strip().splitlines() or [""])[-1].replace("|", "/")
    return f"**fails** ({done.returncode}): {last.replace(str(clone), '.')[:160]}", seconds


def walk(source: Path, folder: Path, pages: Sequence[str], skip: Sequence[str]) -> list[list[str]]:
    """Clone, and take every step."""
    clone = folder / "dmkc"
    began = time.perf_counter()
    subprocess.run(["git", "clone", "-q", str(source), str(clone)], check=True)
    rows = [["", "git clone", f"{time.perf_counter() - began:.1f}", "works"]]
    for page in pages:
        for step in steps(page, (clone / page).read_text(encoding="utf-8")):
            left_out = any(words in step.code for words in skip)
            said, seconds = ("not run (--skip)", 0.0) if left_out else run(step, clone)
            rows.append([page, f"`{step.shown}`", "" if left_out else f"{seconds:.1f}", said])
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, default=PROJECT, help="repository to clone")
    parser.add_argument("--pages", nargs="+", default=list(PAGES))
    parser.add_argument("--skip", nargs="+", default=[], help="commands to leave out, by words")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = walk(options.source, Path(folder), options.pages, options.skip)
    failed = sum("works" not in row[3] and "not run" not in row[3] for row in rows)
    skipped = sum("not run" in row[3] for row in rows)
    summary = (
        f"{len(rows)} commands in an empty folder, in the order of the pages: "
        f"{len(rows) - failed - skipped} work, {failed} fail, {skipped} were not run. The "
        "first `make` also makes the virtual environment and downloads the libraries. Seconds are "
        "those of a machine that did other things, too."
    )
    command = "python pipelines/docs/first_time.py"
    command += "".join(f' --skip "{words}"' for words in options.skip)
    parts = [summary, table(("page", "command", "seconds", "outcome"), rows)]
    write("first-time", "A newcomer's path", command, parts, rows)


if __name__ == "__main__":
    main()
