"""What a fit says while it runs, to whatever display there is (`dmkc/display.py`).

The same numbers, one record per scan, are kept as the estimator's `history_`.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from dmkc import display, surfaces
from dmkc.panel import open_panel
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
        self._verbose, self._tol, self._stream = verbose, tol, stream
        self._display: display.Display | None = None
        self._stage: display.Stage | None = None
        self._on = ""
        """The rows that the stage is about."""
        self._last = self.began
        self._scans: Counter[tuple[str, str]] = Counter()
        """How many every fit has had."""
        self._rounds: dict[tuple[str, str, int], tuple[Record, int]] = {}
        """The first record of every round of every fit, and how many came after it."""

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the fit inside the `with` block on the display that is open, or on one of its own.

        Nothing is shown of a fit that says nothing, whatever is open.
        """
        with contextlib.ExitStack() as stack:
            if not self._verbose:
                stack.enter_context(display.hidden())
            elif display.current() is None:
                stack.enter_context(display.shown_on(self._surface()))
            self._display = display.current()
            try:
                yield
            finally:
                self._end_stage()
                self._display = None

    def _surface(self) -> display.Surface:
        stream = self._stream or sys.stderr
        if self._verbose > 1:
            return surfaces.Plain(stream)
        return open_panel() or surfaces.surface_of(stream)

    def begin(self, text: str) -> None:
        """The fit is in another stage now."""
        self._end_stage()
        if self._display is not None:
            self._stage = self._display.begin(text)

    def _end_stage(self) -> None:
        if self._display is not None and self._stage is not None:
            self._display.end(self._stage)
        self._stage, self._on = None, ""

    def say(self, text: str) -> None:
        """A sentence that stays."""
        if self._display is not None:
            self._display.line(text)

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
            self._tell(
                asdict(record),
                f"{on} rows, round {record.round}, scan {record.scans}",
                f"objective {record.objective:.5g}, gap {record.gap:.1e}, "
                f"{100 * record.changed:.2f} % relabeled, {speed:.2g} rows/s",
                self._time_left(record),
            )

        return tell

    def note(self, text: str, **values: Any) -> None:
        """A scan of another kind, such as "step 3: inertia 5", and the values to remember of it."""
        self.notes.append({**values, "seconds": time.perf_counter() - self.began})
        what, _, detail = text.partition(": ")
        self._tell(self.notes[-1], what, detail, None)

    def _tell(self, known: NamedValues, text: str, detail: str, left: float | None) -> None:
        """Tell listeners and the display of a scan."""
        _listener.get()(known)
        start, on = known.get("start", ""), known.get("on", "all")
        self._scans[start, on] += 1
        if self._display is None:
            return
        if self._on != on:
            self.begin(f"fitting to {on} rows" if on == "all" else f"fitting to a {on} of the rows")
            self._on = on
        self._display.add(known)
        # On all rows a fit takes about as many scans as it took on a sample, and mostly fewer.
        done = self._scans[start, on]
        before = max((n for (_, rows), n in self._scans.items() if rows != on), default=0)
        steps = (done, max(before, done + 1), True) if before and on == "all" else None
        assert self._stage is not None
        self._stage.tell(detail, text=text, steps=steps, left=None if steps else left)
        if self._verbose > 1:
            rest = "" if left is None else f", about {left:.0f} s left in this round"
            shown = ", ".join(part for part in (detail, f"{known['seconds']:.1f} s") if part)
            self._display.line(f"{text}: {shown}{rest}")

    def history(self) -> list[NamedValues]:
        """All records as plain dictionaries."""
        return [*(asdict(r) for r in self.records), *self.notes]

    def _time_left(self, r: Record) -> float | None:
        """A rough guess: the gap falls geometrically within a round."""
        first, before = self._rounds.get((r.start, r.on, r.round), (r, -1))
        steps = before + 1
        self._rounds[r.start, r.on, r.round] = first, steps
        if steps < 2 or not 0 < r.gap < first.gap or r.gap <= self._tol:
            return None
        rate = math.log(first.gap / r.gap) / steps
        each = (r.seconds - first.seconds) / steps
        return each * math.log(r.gap / self._tol) / rate
