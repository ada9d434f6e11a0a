"""What the scripts of the papers share: run the benchmarks that make a paper's tables.

The benchmarks do the work and write the pages; each keeps what is finished, so that the same
command goes on after a stop.  Data sets are those in the folder DMKC_DATA_DIR and those that come
with scikit-learn; a benchmark names the ones that are not there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dmkc.datasets import available

PROJECT = Path(__file__).resolve().parents[2]
FINISHED = "finished.txt"
"""In the folder of the pages: one line for every table that is whole."""
MADE_UP = "**A demonstration: the rows are made up and the figures mean nothing.**"
DEMO_ROWS, DEMO_COLUMNS = 60, 4


@dataclass(frozen=True)
class Table:
    """A table (or figure) of a paper and the benchmark that makes it."""

    what: str
    script: str
    page: str
    """Name of the page that the benchmark writes."""
    demo: tuple[str, ...] | None = None
    """Arguments of a run of seconds; None leaves the table out of the demonstration."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Files of the sets of a benchmark that does not itself leave out what is not there."""
    sets: Sequence[str] | None = None
    """All its sets, if it can be told some of them (--sets)."""

    def arguments(self, there: Collection[str]) -> list[str] | None:
        """What to run it with where these files are there, or None if it cannot be run."""
        absent = [name for name, file in self.needs.items() if file not in there]
        if not absent:
            return []
        print(f"== not in the folder of data sets: {', '.join(absent)}", flush=True)
        left = [name for name in self.sets or () if name not in absent]
        return ["--sets", *left] if left else None


def stand_ins(folder: Path, names: Sequence[str]) -> None:
    """Small made-up rows of two classes under the names of data sets."""
    rng = np.random.default_rng(0)
    y = np.arange(DEMO_ROWS, dtype=np.int32) % 2
    for name in names:
        X = rng.normal(size=(DEMO_ROWS, DEMO_COLUMNS)) + 2.0 * y[:, None]
        np.savez(folder / f"{name}.npz", X=X, y=y, classes=np.array(["a", "b"]))


def run(table: Table, arguments: Sequence[str], out: Path, data: Path | None = None) -> None:
    """Run one benchmark; its pages go to `out`."""
    script = PROJECT / "pipelines" / "benchmarks" / table.script
    environment = os.environ | {"DMKC_RESULTS_DIR": str(out)}
    environment["PYTHONPATH"] = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    if data is not None:
        environment["DMKC_DATA_DIR"] = str(data)
    print(f"== {table.what}: {table.script} {' '.join(arguments)}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, str(script), *arguments], env=environment, cwd=out)
    if done.returncode:
        raise SystemExit(f"{table.script} ended early; the same command goes on where it stopped.")
    with (out / FINISHED).open("a") as file:
        file.write(table.page + "\n")
    print(f"== written to {out}", flush=True)


def mark(pages: Path) -> None:
    """Say on the pages of a demonstration that their rows are made up."""
    for page in pages.glob("*.md"):
        text = page.read_text()
        if MADE_UP not in text:
            page.write_text(text.replace("\n", f"\n\n{MADE_UP}\n", 1))


def main(paper: str, tables: Sequence[Table], demo_sets: Sequence[str] = ()) -> None:
    """The command line of a paper's script."""
    listed = "\n".join(f"  {table.page}: {table.what}" for table in tables)
    parser = argparse.ArgumentParser(
        description=f"Make the tables of {paper}\n\n{listed}",
        epilog="DMKC_DATA_DIR names the folder of data sets. A run that was stopped goes on where "
        "it was; finished tables are kept unless --again is given.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("paper-results"), help="folder of pages")
    parser.add_argument("--tables", nargs="+", choices=[t.page for t in tables], help="only these")
    parser.add_argument("--again", action="store_true", help="make finished tables again")
    parser.add_argument(
        "--demo", action="store_true", help="seconds, on made-up rows: shows that it runs, no more"
    )
    options = parser.parse_args()
    out = options.out.absolute()
    chosen = [t for t in tables if options.tables is None or t.page in options.tables]
    if options.demo:
        with tempfile.TemporaryDirectory() as folder:
            stand_ins(Path(folder), demo_sets)
            for table in chosen:
                if table.demo is not None:
                    run(table, table.demo, out / "demo", Path(folder))
            if demo_sets:
                mark(out / "demo")
        return
    known = out / FINISHED
    finished = known.read_text().split() if known.exists() else []
    for table in chosen:
        if table.page in finished and not options.again:
            print(f"== {table.what}: {out / table.page}.md is finished (--again repeats it)")
            continue
        arguments = table.arguments(available()["folder"])
        if arguments is None:
            print(f"== {table.what}: left out", flush=True)
        else:
            run(table, arguments, out)
