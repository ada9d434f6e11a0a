"""The command line in a process that ends itself, or a part of its cluster, at a chosen instant.

Instants are counted: the seventh scan, the third record of the journal, the twentieth file.  All of
it is put around dmkc from the outside, in this process only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dmkc.cli.fit
import dmkc.cli.labels
import dmkc.cli.runs
import dmkc.clusters.opening
import dmkc.report
import dmkc.resume.journal
import dmkc.scan.cluster
import dmkc.scan.engine
import dmkc.scan.waiting
from dmkc.cli import main
from faults_processes import WORKERS, prepare

CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Events of the interpreter that stand for a change of the run's folder."""


@dataclass(frozen=True)
class Plan:
    """What to kill, and when."""

    victim: str
    """client, worker, all workers, nanny, scheduler or everything."""
    moment: str
    """before, during, after (a scan), record, file, labels or time."""
    share: float
    """Which of the instants of this kind, as a share of their number."""
    cut: float
    """How much of a record is written, and how far into the writing of labels."""


@dataclass
class Counts:
    """How many instants of every kind a run had, and how long it took."""

    instants: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    label_seconds: float = 0.0


def perform(
    words: list[str],
    said: str,
    tally: str,
    address: str | None,
    pids: dict[str, list[int]],
    plan: Plan | None,
    known: Counts | None,
) -> None:
    """Run a command line; what it says goes to the file `said`, its counts to `tally`.

    `known` are the counts of the unbroken command; without them nothing is counted.
    """
    prepare(said)
    if address is not None:
        pids = {**pids, "worker": _workers(address)}
    striker = Striker(plan, known or Counts(), pids, Path(tally + ".struck"))
    if known is not None:
        run = words[words.index("--out" if "--out" in words else "--resume") + 1]
        striker.watch(address is not None, run)
    began = time.perf_counter()
    code = main(words)
    striker.seen.seconds = time.perf_counter() - began
    Path(tally).write_text(json.dumps(asdict(striker.seen)))
    sys.exit(code)


def _workers(address: str) -> list[int]:
    """The processes of all workers, once all are there."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(WORKERS, timeout=60)
        return list(client.run(os.getpid).values())


class Striker:
    """Counts instants and kills at the planned one."""

    def __init__(
        self, plan: Plan | None, known: Counts, pids: dict[str, list[int]], mark: Path
    ) -> None:
        self.plan, self.known, self.seen = plan, known, Counts()
        self._pids, self._mark, self._lock = pids, mark, threading.Lock()
        self._struck = False

    def watch(self, on_cluster: bool, run: str) -> None:
        """Put the counting around dmkc."""
        engine = dmkc.scan.cluster.ClusterEngine if on_cluster else dmkc.scan.engine.ThreadEngine
        for name in ("scan", "hold"):
            self._around(engine, name)
        if on_cluster:
            self._ahead_of(dmkc.scan.cluster.Client, "gather", "during")
            self._ahead_of(dmkc.scan.waiting, "wait", "during")
        else:
            self._ahead_of(dmkc.scan.engine, "run_block", "during")
        self._torn_records()
        self._labels(on_cluster)
        self._files(run, () if on_cluster else ("labels",))
        if self.plan is not None and self.plan.moment == "time":
            self._later(self.plan.share * self.known.seconds)

    def reach(self, moment: str) -> None:
        """One more instant of a kind, at which the blow may fall."""
        if self._due(moment):
            self.strike()

    def _due(self, moment: str) -> bool:
        with self._lock:
            number = self.seen.instants[moment] = self.seen.instants.get(moment, 0) + 1
        if self.plan is None or self.plan.moment != moment:
            return False
        return number == 1 + int(self.plan.share * self.known.instants.get(moment, 1))

    def strike(self) -> None:
        """Kill, once."""
        with self._lock:
            if self._struck or self.plan is None:
                return
            self._struck = True
        os.close(os.open(self._mark, os.O_CREAT | os.O_WRONLY))
        victim, parts = self.plan.victim, self._pids
        targets = {
            "client": [],
            "worker": parts.get("worker", [])[:1],
            "all workers": parts.get("worker", []),
            "nanny": parts.get("nanny", [])[:1],
            "scheduler": parts.get("scheduler", []),
            "everything": [pid for some in parts.values() for pid in some],
        }[victim]
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if victim in ("client", "everything"):
            os.kill(os.getpid(), signal.SIGKILL)

    def _later(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self.strike)
        timer.daemon = True
        timer.start()

    def _around(self, owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.reach("before")
            found = inner(*args, **kwargs)
            self.reach("after")
            return found

        setattr(owner, name, counted)

    def _ahead_of(self, owner: Any, name: str, moment: str) -> None:
        inner = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.reach(moment)
            return inner(*args, **kwargs)

        setattr(owner, name, counted)

    def _torn_records(self) -> None:
        inner = dmkc.resume.journal._write_all

        def torn(handle: int, data: bytes) -> None:
            if self._due("record"):
                done = int(self.plan.cut * len(data)) if self.plan else 0
                inner(handle, data[:done])
                self.strike()
                data = data[done:]
            inner(handle, data)

        dmkc.resume.journal._write_all = torn

    def _labels(self, on_cluster: bool) -> None:
        """On a cluster labels are written by the workers: the blow falls while they do."""
        inner = dmkc.cli.runs.store

        def disturbed(*args: Any) -> None:
            if on_cluster and self._due("labels") and self.plan is not None:
                self._later(self.plan.cut * self.known.label_seconds)
            began = time.perf_counter()
            inner(*args)
            self.seen.label_seconds = time.perf_counter() - began

        dmkc.cli.runs.store = disturbed

    def _files(self, run: str, more: tuple[str, ...]) -> None:
        """Every file of the run that is opened for writing, renamed or removed."""

        def hear(event: str, args: tuple) -> None:
            if event not in CHANGES or not str(args[0]).startswith(run):
                return
            if event == "open" and not (args[2] or 0) & (os.O_WRONLY | os.O_RDWR):
                return
            self.reach("file")
            if more and "labels.zarr" in str(args[0]):
                self.reach("labels")

        sys.addaudithook(hear)
