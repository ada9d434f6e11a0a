"""What a fit says while it runs: one live line in a terminal, a panel in a notebook, or nothing.

The same numbers, one record per scan, are kept as the estimator's `history_`.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from dmkc.panel import open_panel
from dmkc.showing import printable
from dmkc.typing import NamedValues


@dataclass(frozen=True)
class Record:
    """One scan of one fit."""

    start: str
    """Which start this fit began from."""
    on: str
    """Whether the scan went over "sample" or "all" rows."""
    round: int
    """Outer iteration: how often the rows have been relabeled."""
    step: int
    """Scan within the outer iteration."""
    objective: float
    """Best value found so far for the current labeling."""
    bound: float
    """Lower bound of that value from the master problem."""
    gap: float
    """Relative distance between the two."""
    changed: float
    """Share of the rows that the newest model would relabel."""
    cuts: int
    """Cuts in the master problem."""
    scans: int
    """Scans over these rows so far."""
    seconds: float
    """Time since the fit began."""
    rows_per_second: float
    """Rows scanned a second, counted over the last scan."""


_listener: ContextVar[Callable[[dict[str, Any]], None]] = ContextVar(
    "dmkc_listener", default=lambda known: None
)


@contextlib.contextmanager
def listening(tell: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Have `tell` called with what is known of every scan of the fits inside the `with` block."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


class Progress:
    """Collects records and shows the newest one."""

    def __init__(self, verbose: int, tol: float, stream: Any = None) -> None:
        self.records: list[Record] = []
        self.notes: list[NamedValues] = []
        self.began = time.perf_counter()
        self._tol = tol
        self._panel = open_panel() if verbose == 1 else None
        self._show = self._panel.say if self._panel else _shower(verbose, stream or sys.stderr)
        self._last = self.began
        self._rounds: dict[tuple[str, str, int], tuple[Record, int]] = {}
        """The first record of every round of every fit, and how many came after it."""

    def say(self, text: str) -> None:
        """A sentence about the stage the fit is in."""
        self._show(f"dmkc: {text}", True)

    def reporter(self, start: str, on: str, rows: Any) -> Callable[[Any], None]:
        """The function a fit calls after each of its scans."""

        def tell(step: Any) -> None:
            now = time.perf_counter()
            speed = rows.n_rows / max(now - self._last, 1e-9)
            self._last = now
            record = Record(
                start,
                on,
                **vars(step),
                scans=rows.n_scans,
                seconds=now - self.began,
                rows_per_second=speed,
            )
            self.records.append(record)
            _listener.get()(asdict(record))
            if self._panel is not None:
                self._panel.add(asdict(record))
            self._show(self._line(record), False)

        return tell

    def note(self, text: str, **values: Any) -> None:
        """A line about a scan of another kind, and the values to remember of it."""
        self.notes.append({**values, "seconds": time.perf_counter() - self.began})
        _listener.get()(self.notes[-1])
        if self._panel is not None:
            self._panel.add(values)
        self._show(f"dmkc: {text}", False)

    def end(self, text: str) -> None:
        """The last line, which stays."""
        self._show(f"dmkc: {text}", True)

    def history(self) -> list[NamedValues]:
        """All records as plain dictionaries."""
        return [*(asdict(r) for r in self.records), *self.notes]

    def _line(self, r: Record) -> str:
        left = self._time_left(r)
        return (
            f"dmkc: {r.on} rows, round {r.round}, scan {r.scans}: objective {r.objective:.5g}, "
            f"gap {r.gap:.1e}, {100 * r.changed:.2f} % relabeled, "
            f"{r.rows_per_second:.2g} rows/s, {r.seconds:.1f} s{left}"
        )

    def _time_left(self, r: Record) -> str:
        """A rough guess: the gap falls geometrically within a round."""
        first, before = self._rounds.get((r.start, r.on, r.round), (r, -1))
        steps = before + 1
        self._rounds[r.start, r.on, r.round] = first, steps
        if steps < 2 or not 0 < r.gap < first.gap or r.gap <= self._tol:
            return ""
        rate = math.log(first.gap / r.gap) / steps
        each = (r.seconds - first.seconds) / steps
        return f", about {each * math.log(r.gap / self._tol) / rate:.0f} s left in this round"


def _shower(verbose: int, stream: Any) -> Callable[[str, bool], None]:
    if not verbose:
        return lambda text, keep: None
    live = verbose == 1 and getattr(stream, "isatty", lambda: False)()
    width = [0]

    def show(text: str, keep: bool) -> None:
        text = printable(text)
        if live:
            text = text if keep else text[: shutil.get_terminal_size().columns - 1]
            stream.write("\r" + text.ljust(width[0]) + ("\n" if keep else ""))
            width[0] = 0 if keep else len(text)
        elif keep or verbose > 1:
            stream.write(text + "\n")
        stream.flush()

    return show
