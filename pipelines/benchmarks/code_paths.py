"""How much code rows pass, and how much code there is; beside another version if one is named.

python pipelines/benchmarks/code_paths.py [--checkout DIR]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from code_paths_trace import COLUMNS, ROWS, RUNS, SAMPLED
from common import table, write

HERE = Path(__file__).resolve()
PROBES = ("hasattr", "getattr")


@dataclass(frozen=True)
class Size:
    """How much code a folder has."""

    files: int = 0
    lines: int = 0
    anys: int = 0
    """Mentions of `Any` outside of imports."""
    probes: int = 0
    """Calls of `hasattr` and `getattr`."""

    def __add__(self, other: Size) -> Size:
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return Size(*(a + b for a, b in pairs))


@dataclass(frozen=True)
class Version:
    """What was measured in one checkout."""

    commit: str
    entered: dict[str, list[tuple[str, str]]]
    """File and name of the functions that every run enters."""
    sizes: dict[str, Size]

    def counts(self, run: str) -> tuple[int, int]:
        """Files and functions."""
        return len({file for file, _ in self.entered[run]}), len(self.entered[run])

    def summary(self) -> dict[str, Any]:
        """What is kept beside the page: names of files, but only the number of functions."""
        passed = {
            run: {"functions": len(names), "files": sorted({file for file, _ in names})}
            for run, names in self.entered.items()
        }
        folders = {name: asdict(size) for name, size in self.sizes.items()}
        return {"commit": self.commit, "passed": passed, "folders": folders}


def measured(checkout: Path) -> Version:
    with tempfile.TemporaryDirectory() as folder:
        entered = {run: _entered(run, checkout, folder) for run in RUNS}
    head = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True).stdout.strip()
    return Version(commit or "unknown", entered, sizes(checkout / "dmkc"))


def _entered(run: str, checkout: Path, folder: str) -> list[tuple[str, str]]:
    script = HERE.with_name("code_paths_trace.py")
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        done = subprocess.run(
            [sys.executable, str(script), run],
            cwd=empty,
            # Only Python functions can be watched, so that compiled ones run as such.
            env=os.environ | {"PYTHONPATH": str(checkout), "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise SystemExit(f"{run} has failed in {checkout}: {done.stderr}")
    print(f"{checkout.name}: {run}", file=sys.stderr, flush=True)
    return [(file, name) for file, name in json.loads(done.stdout)]


def sizes(package: Path) -> dict[str, Size]:
    """The size of every folder of a package; files outside of folders count as one."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        folder = f"{package.name}/{parts[0]}" if len(parts) > 1 else f"{package.name}/*.py"
        found[folder] = found.get(folder, Size()) + size(path.read_text("utf-8"))
    return found


def size(source: str) -> Size:
    nodes = list(ast.walk(ast.parse(source)))
    called = [n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return Size(
        files=1,
        lines=len(source.splitlines()),
        anys=sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes),
        probes=sum(name in PROBES for name in called),
    )


def _cells(versions: list[Version], name: str) -> Iterator[str]:
    """The measures of a folder, or of all where `name` is "all", in every version."""
    found = [
        sum(v.sizes.values(), Size()) if name == "all" else v.sizes.get(name, Size())
        for v in versions
    ]
    for measure in ("files", "lines", "anys", "probes"):
        yield _change([asdict(one)[measure] for one in found])


def _change(numbers: list[int]) -> str:
    return " → ".join(f"{number:,}" for number in numbers)


def page(versions: list[Version]) -> list[str]:
    """The parts of the page, the older version first."""
    paths = [
        (f"`{run}`", *map(_change, zip(*(v.counts(run) for v in versions), strict=True)))
        for run in RUNS
    ]
    folders = sorted({name for v in versions for name in v.sizes})
    commits = " → ".join(v.commit for v in versions)
    return [
        f"Commit {commits}." + (" Before → after." if len(versions) > 1 else ""),
        "## What rows pass",
        f"Python files and functions of dmkc that are entered from the moment the input ({ROWS} "
        f"rows of {COLUMNS} columns) is there, which is the call of `fit` or `select` or the first "
        "opening of the file, until the call or the command returns, in all threads. Settings are "
        f"the defaults, with {SAMPLED} sampled rows. Functions are those with a name (lambdas and "
        "comprehensions belong to the function they stand in), compiled ones too; what runs while "
        "a module is imported does not count.",
        table(("run", "files", "functions"), paths),
        "## How much there is",
        "Lines include comments and docstrings. `Any` is counted where it is used and not where it "
        "is imported; probes are calls of `hasattr` and `getattr`.",
        table(
            ("folder", "files", "lines", "`Any`", "probes"),
            [(f"`{n}`" if n != "all" else n, *_cells(versions, n)) for n in (*folders, "all")],
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, help="folder of another version to compare with")
    options = parser.parse_args()
    checkouts = [] if options.checkout is None else [options.checkout.resolve()]
    versions = [measured(checkout) for checkout in (*checkouts, HERE.parents[2])]
    data = [v.summary() for v in versions]
    command = "python pipelines/benchmarks/code_paths.py" + (" --checkout DIR" * len(checkouts))
    write("code-paths", "Code that rows pass", command, page(versions), data)


if __name__ == "__main__":
    main()
