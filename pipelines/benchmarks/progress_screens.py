"""What a terminal shows of a fit while it runs: a pane of tmux, captured at some seconds.

    python pipelines/benchmarks/progress_screens.py [--rows N] [--columns N]

A table of customers is generated and fitted twice, by `dmkc fit` as it is and by one method, each
in a pane of 80 x 16 characters.  A third fit, into a pipe, shows the lines that a log has.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import write

HERE = Path(__file__).resolve().parents[2]
SECONDS = (0, 2, 10, 15, 20, 30)
WIDTH, HEIGHT = 80, 16
LONGEST = 600.0
FITS = {
    "dmkc fit, which chooses among all methods": ["--seed", "0"],
    "one method": ["--method", "mkc", "--clusters", "3", "--seed", "0", "--tol", "1e-4"],
}


def customers(n_rows: int, n_columns: int, seed: int = 0) -> pd.DataFrame:
    """Three groups of customers, with an id, a country and a date."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n_rows)
    frame = pd.DataFrame({"customer": [f"c{i:08d}" for i in range(n_rows)]})
    for j in range(n_columns):
        frame[f"v{j}"] = np.round(rng.normal(2.0 * (group == j % 3), 1.0), 4)
    frame["country"] = np.array(["DE", "FR", "IT"])[rng.integers(3, size=n_rows)]
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        rng.integers(2000, size=n_rows), unit="D"
    )
    return frame


class Pane:
    """A terminal of a server of tmux of its own."""

    def __init__(self, folder: Path) -> None:
        self._tmux = ["tmux", "-L", f"dmkc-{os.getpid()}", "-f", "/dev/null"]
        self._folder = folder

    def tell(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def run(self, command: str) -> dict[str, str]:
        """Captured text at some seconds, and at the end."""
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        self.tell("new-session", "-d", "-s", "fit", *size, "-c", str(self._folder), "sh")
        try:
            done = self._folder / "done"
            done.unlink(missing_ok=True)
            self.tell("send-keys", "-t", "fit", f"PS1='$ '; clear; {command}; touch done", "Enter")
            began, found = time.monotonic(), {}
            for second in SECONDS:
                time.sleep(max(began + second - time.monotonic(), 0.2))
                if done.exists():
                    break
                found[f"after {second} s"] = self._screen()
            while not done.exists() and time.monotonic() - began < LONGEST:
                time.sleep(0.5)
            found["at the end"] = self._screen()
            return found
        finally:
            self.tell("kill-session", "-t", "fit")

    def _screen(self) -> str:
        return self.tell("capture-pane", "-p", "-t", "fit").rstrip()


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", type=int, default=500_000)
    words.add_argument("--columns", type=int, default=8)
    asked = words.parse_args()
    if shutil.which("tmux") is None:
        raise SystemExit("tmux is missing: install it, for example by apt-get install tmux.")
    parts, data = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        customers(asked.rows, asked.columns).to_csv(folder / "customers.csv", index=False)
        pane = Pane(folder)
        for number, (title, options) in enumerate(FITS.items()):
            shown = ["dmkc", "fit", "customers.csv", "--index-column", "customer"]
            shown += [*options, "--out", f"run{number}", "--no-report"]
            screens = pane.run(f"{_setting()} {_real(shown)}")
            data[title] = {moment: _plain(text) for moment, text in screens.items()}
            parts += [f"## {title}", f"`{shlex.join(shown)}`", *_screens(data[title])]
        piped = _piped(folder)
        data["into a pipe"] = piped
        parts += ["## Into a pipe", f"The same with `2> log.txt`:\n\n```text\n{piped}\n```"]
    lead = (
        f"A table of {asked.rows:,} rows in a terminal of {WIDTH} x {HEIGHT} characters. Seconds "
        "count from the moment at which the command was entered."
    )
    write(
        "progress",
        "What is shown while a fit runs",
        "python pipelines/benchmarks/progress_screens.py",
        [lead, *parts],
        data,
    )


def _setting() -> str:
    return f"PYTHONPATH={shlex.quote(str(HERE))}"


def _real(shown: list[str]) -> str:
    """The command as it can be run from a checkout."""
    return shlex.join([sys.executable, "-m", *shown])


def _piped(folder: Path) -> str:
    words = ["-m", "dmkc", "fit", "customers.csv", "--index-column", "customer"]
    words += [*FITS["one method"], "--out", "piped", "--no-report"]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stderr.rstrip()


def _screens(found: dict[str, Any]) -> list[str]:
    return [f"{moment}:\n\n```text\n{text}\n```" for moment, text in found.items()]


def _plain(text: str) -> str:
    """A screen without the command that was entered, which names folders of this machine."""
    lines = text.splitlines()
    last = max((i for i, line in enumerate(lines) if "--no-report" in line), default=-1)
    end = next((i for i, line in enumerate(lines) if line.startswith("results ")), len(lines))
    return "\n".join(line for line in lines[last + 1 : end] if line.strip() != "$")


if __name__ == "__main__":
    main()
