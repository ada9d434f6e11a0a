"""What the new user of `new_user.py` has and does: a messy table, and steps that are checked."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

PROJECT = Path(__file__).resolve().parents[1]
SECONDS = 3600
GOOD = 0.9
"""The adjusted Rand index with the planted groups from which on they count as found."""
USED = ["age", "visits", "spend (EUR)", "plan", "newsletter", "since"]
"""Columns that say something of the groups, or at least of the customers."""


def customers(n: int, seed: int = 0) -> pd.DataFrame:
    """A table such as people have it."""
    rng = np.random.default_rng(seed)
    kind, every = rng.choice(3, n, p=[0.5, 0.3, 0.2]), np.arange(n)

    def of_kind(values: Sequence[Any]) -> np.ndarray:
        return np.array(values)[kind]

    days = rng.integers(0, 900, n) + of_kind([0, 700, 1200])
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{number:07d}" for number in rng.permutation(every)],
            "age": rng.normal(of_kind([27, 46, 68]), 4.0).round(),
            "visits": rng.poisson(of_kind([2, 14, 6])),
            "spend (EUR)": np.exp(rng.normal(of_kind([3.0, 5.0, 4.0]), 0.3)).round(2),
            "plan": np.where(rng.random(n) < 0.85, of_kind(["free", "team", "family"]), "trial"),
            "country": rng.choice(["DE", "FR", "PL", "IT"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "newsletter": rng.random(n) < of_kind([0.2, 0.5, 0.7]),
            "since": (pd.Timestamp("2019-01-01") + pd.to_timedelta(days, "D")).strftime("%Y-%m-%d"),
            "currency": "EUR",
            "segment": of_kind(["young", "busy", "loyal"]),
        }
    )
    frame.loc[rng.random(n) < 0.02, "age"] = np.nan
    frame.loc[rng.random(n) < 0.01, "plan"] = None
    frame.loc[rng.random(n) < 0.005, "since"] = None
    return frame


@dataclass
class Done:
    """A step that was taken."""

    title: str
    command: str
    seconds: float
    code: int
    printed: str
    wrong: list[str] = field(default_factory=list)


@dataclass
class Walk:
    """The steps of one user in one folder."""

    place: Path
    table: pd.DataFrame
    done: list[Done] = field(default_factory=list)

    @property
    def truth(self) -> pd.Series:
        return self.table.set_index("customer_id")["segment"]

    @property
    def holed(self) -> pd.Index:
        """Customers of whom something is missing."""
        gaps = self.table[USED].isna().any(axis=1)
        return pd.Index(self.table.loc[gaps, "customer_id"])

    def sh(
        self,
        title: str,
        words: str,
        *says: str,
        code: int = 0,
        typed: str | None = None,
        check: Callable[[str], list[str]] | None = None,
    ) -> None:
        """Run `dmkc` with some words; what it prints must hold what is given."""
        command = [sys.executable, "-m", "dmkc", *shlex.split(words)]
        self._take(title, f"dmkc {words}", command, says, code, typed, check)

    def python(self, title: str, lines: str, check: Callable[[str], list[str]]) -> None:
        """Run some lines of Python."""
        self._take(title, lines.strip(), [sys.executable, "-c", lines], (), 0, None, check)

    def _take(
        self,
        title: str,
        shown: str,
        command: list[str],
        says: Sequence[str],
        code: int,
        typed: str | None,
        check: Callable[[str], list[str]] | None,
    ) -> None:
        began = time.perf_counter()
        ended = subprocess.run(
            command,
            cwd=self.place,
            env=environment(),
            input=typed,
            stdin=subprocess.DEVNULL if typed is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        seconds, printed = time.perf_counter() - began, ended.stdout
        said = printed.lower()
        wrong = [f"{words!r} is not said" for words in says if words.lower() not in said]
        if ended.returncode != code:
            wrong.append(f"it ended with {ended.returncode}, not {code}")
        if "Traceback" in printed:
            wrong.append("a traceback was printed")
        if not wrong and check is not None:
            try:
                wrong += check(printed)
            except Exception as problem:
                wrong.append(f"what it wrote cannot be used: {type(problem).__name__}: {problem}")
        short = printed.replace(f"{self.place}/", "").replace(str(self.place), ".")
        self.done.append(Done(title, shown, seconds, ended.returncode, short, wrong))
        print(f"{seconds:7.1f} s  {title}: {'; '.join(wrong) or 'right'}", flush=True)

    def killed(self, title: str, words: str, folder: str) -> None:
        """Run `dmkc` and kill it as soon as it has computed something."""
        command = [sys.executable, "-m", "dmkc", *shlex.split(words)]
        began, journal = time.perf_counter(), self.place / folder / "journal.dmkc"
        child = subprocess.Popen(
            command,
            cwd=self.place,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while child.poll() is None and not _holds(journal) and time.perf_counter() - began < 600:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        code = child.wait()
        wrong = [] if code == -signal.SIGKILL else [f"it had ended with {code} before the kill"]
        shown = f"dmkc {words}    # kill -9 while it runs"
        self.done.append(Done(title, shown, time.perf_counter() - began, code, "", wrong))
        print(f"{self.done[-1].seconds:7.1f} s  {title}: {'; '.join(wrong) or 'right'}", flush=True)

    def labels(self, name: str, dropped: bool, groups: bool = True) -> list[str]:
        """What is wrong with a file of labels: joined by id, all there, and the planted groups."""
        path = self.place / name
        found = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        if "customer_id" not in found.columns:
            found = found.reset_index()
        joined = self.truth.to_frame().join(found.set_index("customer_id")["cluster"])
        return self._judged(joined, dropped, groups)

    def _judged(self, joined: pd.DataFrame, dropped: bool, groups: bool) -> list[str]:
        wrong = []
        without = joined.index[joined["cluster"].isna()]
        expected = self.holed if dropped else pd.Index([])
        if len(joined) != len(self.table):
            wrong.append(f"{len(joined)} rows were joined, not {len(self.table)}")
        if set(without) != set(expected):
            wrong.append(f"{len(without)} ids have no label, not the {len(expected)} expected")
        there = joined.dropna(subset="cluster")
        index = adjusted_rand_score(there["segment"], there["cluster"])
        if groups and index < GOOD:
            wrong.append(f"the adjusted Rand index with the planted groups is {index:.3f}")
        return wrong


def environment() -> dict[str, str]:
    """This project's code, and a terminal of ordinary width."""
    path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "90"}


def _holds(journal: Path) -> bool:
    """Whether a run has written something into its journal."""
    try:
        return journal.stat().st_size > 100
    except FileNotFoundError:
        return False
