"""Processes in which cases are played, all forked from one that has imported dmkc.

A long-lived child plays case after case, so that a crash ends it and nothing else; commands that
are to be killed have a process each.  Whoever waits has a bound of time and of memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.2
BEGIN_SECONDS = 60.0
"""A command that has not begun by then is struck all the same."""
MOST_BYTES = 3 << 30
"""A child that holds more is ended: the machine is not to be filled."""
PAGE = os.sysconf("SC_PAGE_SIZE")

# The fork server looks for modules where the environment says, and not where this process does.
os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
os.environ["DASK_LOGGING__DISTRIBUTED"] = "critical"
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["fits", "models", "commands", "breaks"])


class Child:
    """A process that plays cases one after the other; a new one takes over when it ends."""

    def __init__(self, play: Callable[[dict, Path], dict], folder: Path) -> None:
        self._play, self.folder = play, folder
        self._process: Any = None
        self._pipe: Any = None

    def play(self, plan: dict, seconds: float) -> dict[str, Any]:
        """What came of a case: its own words, or that it crashed, hung or took all memory."""
        if self._process is None:
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(
                target=_serve, args=(theirs, self._play, str(self.folder))
            )
            self._process.start()
            theirs.close()
        self._pipe.send(plan)
        end = time.monotonic() + seconds
        while not self._pipe.poll(LOOK_SECONDS):
            held = resident(self._process.pid)
            if held > MOST_BYTES or time.monotonic() > end:
                self.close()
                if held > MOST_BYTES:
                    return {"outcome": "memory", "said": f"{held >> 20} MiB were held"}
                return {"outcome": "hang", "said": f"no end within {seconds:.0f} s"}
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            code, self._process = self._process.exitcode, None
            return {"outcome": "crash", "said": f"the process ended with {code}"}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(pipe: Any, play: Callable[[dict, Path], dict], folder: str) -> None:
    """Play what is sent until nobody sends any more."""
    follow_parent()
    while True:
        try:
            plan = pipe.recv()
        except EOFError:
            return
        before = _restart_peak()
        try:
            found = play(plan, Path(folder))
        except Exception:  # a fault of the fuzzer or of dmkc: either is to be looked at
            found = {"outcome": "fuzzer", "said": traceback.format_exc()[-2000:]}
        pipe.send({**found, "grown": max(0, _peak() - before) >> 20})


def run_command(words: list[str], said: str, room: int | None, answers: Any = None) -> None:
    """`dmkc WORDS` in this process; no file may grow beyond `room`, `answers` is its input."""
    follow_parent()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # which shells ignore for what runs behind
    from dmkc.cli import main

    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.dup2(handle, 2)
    os.dup2(handle if answers is None else answers[1].fileno(), 1)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    if answers is not None:
        os.dup2(answers[0].fileno(), 0)
        sys.stdin = os.fdopen(0, "r", closefd=False)
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    sys.exit(main(words))


class Command:
    """A command line in a process of its own."""

    def __init__(self, words: list[str], said: Path, room: int | None = None) -> None:
        self.said = said
        said.unlink(missing_ok=True)
        self.process: Any = context.Process(target=run_command, args=(words, str(said), room))
        self.process.start()

    def strike(self, after: float, kind: signal.Signals) -> bool:
        """Send a signal so many seconds after the command began; whether it came in time."""
        began_by = time.monotonic() + BEGIN_SECONDS
        while not self.said.exists() and time.monotonic() < began_by:
            self.process.join(LOOK_SECONDS / 100)
        self.process.join(after)
        return hit(self.process, kind)

    def end(self, seconds: float) -> tuple[int | None, str]:
        """The exit code, None for one that had to be ended, and what was said."""
        self.process.join(seconds)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        text = self.said.read_text(errors="replace") if self.said.exists() else ""
        return code, text


def hit(process: Any, kind: signal.Signals) -> bool:
    """Send a signal to a process, if it is still there."""
    if process.exitcode is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, kind)
    return True


def follow_parent() -> None:
    """End with the fuzzer, however that ends."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            connection.wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def resident(pid: int) -> int:
    """Bytes of memory that a process holds now."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def _restart_peak() -> int:
    """Begin to measure the peak anew; what is held now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return resident(os.getpid())


def _peak() -> int:
    """The most that was held since."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(x.split()[1]) << 10 for x in lines if x.startswith("VmHWM")), 0)
