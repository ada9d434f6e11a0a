"""Run the commands of a Markdown page and write what they print into it.

    python pipelines/docs/tour.py            docs/tour.md
    python pipelines/docs/tour.py PAGE       another page

Every block marked ``sh`` or ``python`` is run, in order, in one empty folder; a block marked
``text`` right after it is replaced by what it printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.M)
SECONDS = 200


def run_blocks(page: str) -> list[str]:
    """What every block of a page prints; a block that fails raises with its output."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "bin").mkdir()
        (place / "work").mkdir()
        shutil.copytree(PROJECT / "cluster_configs", place / "work" / "cluster_configs")
        _command(place / "bin" / "dmkc")
        return [_run(kind, code, place) for kind, code, _ in BLOCK.findall(page)]


def filled(page: str, printed: list[str]) -> str:
    """The page with what its blocks printed."""
    outputs = iter(printed)

    def renewed(match: re.Match[str]) -> str:
        said, (kind, code, shown) = next(outputs), match.groups()
        block = f"```{kind}\n{code}```\n"
        return block if shown is None else f"{block}\n```text\n{said.rstrip()}\n```\n"

    return BLOCK.sub(renewed, page)


def _command(path: Path) -> None:
    """A `dmkc` of this project, whether or not it is installed."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dmkc "$@"\n')
    path.chmod(0o755)


def _run(kind: str, code: str, place: Path) -> str:
    environment = os.environ | {
        "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "90",
    }
    command = ["sh", "-e", "-c", code] if kind == "sh" else [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        cwd=place / "work",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"This block of the page failed:\n{code}\n{done.stdout}")
    return done.stdout.replace(str(place / "work") + "/", "").replace(str(place / "work"), ".")


def main(arguments: list[str]) -> None:
    path = Path(arguments[0]) if arguments else PROJECT / "docs" / "tour.md"
    page = path.read_text(encoding="utf-8")
    path.write_text(filled(page, run_blocks(page)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
