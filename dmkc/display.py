"""What is going on, while it goes on, on whatever surface it is drawn (`dmkc/surfaces.py`).

Whoever works says which stage it is in.  How far a pass over rows has come is looked up whenever it
is drawn, by a thread of its own, so that being shown costs the work next to nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from dmkc.showing import printable

TICK_SECONDS = 0.5
"""How often a display is drawn, whatever happens."""
LEAST_SHARE = 0.02
"""Before this share of a stage is done nothing is said of the time it will take."""
NAME = "dmkc: "
Count = Callable[[], tuple[int, int]]
"""Parts of a pass that are done, and all of them."""


def clock(seconds: float) -> str:
    """A time for people, in few characters."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(frozen=True)
class View:
    """What there is to draw."""

    stage: str
    share: float | None
    """Of the stage that is done."""
    seconds: float
    """Since the display was opened."""
    left: float | None
    """Seconds until the stage is done, roughly."""
    detail: str

    @property
    def percent(self) -> str:
        return "" if self.share is None else f"{int(100 * self.share)} %"

    @property
    def times(self) -> str:
        left = "" if self.left is None else f", about {clock(self.left)} left"
        return f"{clock(self.seconds)}{left}"

    def line(self) -> str:
        """All of it as plain text."""
        known = ", ".join(part for part in (self.percent, self.times, self.detail) if part)
        return f"{self.stage}: {known}"


class Surface(Protocol):
    """Where a display is drawn."""

    eager: bool
    """Whether it is drawn when there is news, and not by the clock alone."""

    def opened(self, lock: threading.RLock) -> contextlib.AbstractContextManager[None]:
        """Whatever must be so while it is drawn on; `lock` is held by whoever draws."""

    def prepare(self) -> None:
        """Whatever takes a while, before it is first drawn on; nobody waits for it."""

    def line(self, text: str) -> None:
        """A line that stays."""

    def begin(self, text: str) -> None:
        """A stage has begun."""

    def add(self, record: Mapping[str, Any]) -> None:
        """What is known of a scan."""

    def draw(self, view: View) -> None:
        """Show the newest state."""

    def clear(self) -> None:
        """Take away what does not stay."""


class Stage:
    """A part of the work: how far it has come, as far as that is known."""

    def __init__(self, display: Display | None, text: str) -> None:
        self.text, self.detail = text, ""
        self._display = display
        self.began = 0.0 if display is None else display.now()
        self.steps: tuple[float, float, bool] | None = None
        """Those done, all of them, and whether each is one pass over the rows."""
        self.end: float | None = None
        """When it may be over, where that was told."""
        self._pass: tuple[Count, float] | None = None
        """What counts the parts of a pass over rows that runs now, and when that began."""

    def advance(self, done: float, of: float, detail: str = "") -> None:
        """So many of so many steps are done."""
        self.tell(detail, steps=(done, of, False))

    @contextlib.contextmanager
    def counting(self, count: Count) -> Iterator[None]:
        """Have the parts of a pass looked up while it runs; the outermost counts."""
        if self._display is None or self._pass is not None:
            yield
            return
        self._pass = count, self._display.now()
        try:
            yield
        finally:
            self._pass = None

    def tell(
        self,
        detail: str,
        *,
        text: str | None = None,
        steps: tuple[float, float, bool] | None = None,
        left: float | None = None,
    ) -> None:
        """What is known now; all that is not given is not known."""
        if self._display is None:
            return
        with self._display.lock:
            self.detail, self.steps = printable(detail), steps
            self.text = self.text if text is None else printable(text)
            self.end = None if left is None else self._display.now() + left
            if self._display.surface.eager:
                self._display.tick()

    def view(self, now: float, since: float) -> View:
        """How far it has come by now: in steps, or else in the pass that runs."""
        running, steps, detail, began = self._pass, self.steps, self.detail, self.began
        parts, of_all = (0, 0) if running is None else running[0]()
        share = min(parts / of_all, 1.0) if of_all > 0 else None
        if steps is not None:
            done, of, passes = steps
            if passes:
                detail = f"{detail}, {parts} of {of_all} blocks" if of_all > 1 else detail
                done += share or 0.0
            share = min(done / max(of, 1e-9), 0.99 if passes else 1.0)
        elif running is not None:
            began = running[1]
        left = None if self.end is None else max(self.end - now, 0.0)
        spent = now - began
        if left is None and share is not None and share >= LEAST_SHARE and spent >= 1.0:
            left = spent * (1.0 - share) / share
        return View(self.text, share, now - since, left, detail)


class Display:
    """What is going on in this process; the innermost stage is shown."""

    def __init__(self, surface: Surface, now: Callable[[], float] = time.monotonic) -> None:
        self.surface, self.now = surface, now
        self.lock = threading.RLock()
        self.began = now()
        self.stages: list[Stage] = []
        self._over = threading.Event()

    def begin(self, text: str, *, told: bool = True) -> Stage:
        """A new innermost stage; one that is not told of makes no line."""
        with self.lock:
            stage = Stage(self, printable(text))
            self.stages.append(stage)
            if told and not self._over.is_set():
                self.surface.begin(stage.text)
            return stage

    def end(self, stage: Stage) -> None:
        """Go back to the stage around this one."""
        with self.lock:
            if stage in self.stages:
                del self.stages[self.stages.index(stage) :]

    def line(self, text: str) -> None:
        """A line that stays."""
        with self.lock:
            if not self._over.is_set():
                self.surface.line(printable(f"{NAME}{text}"))

    def add(self, record: Mapping[str, Any]) -> None:
        """What is known of a scan."""
        with self.lock:
            self.surface.add(record)

    def tick(self) -> None:
        """Draw the state of now."""
        with self.lock:
            if self.stages and not self._over.is_set():
                self.surface.draw(self.stages[-1].view(self.now(), self.began))

    def run(self) -> None:
        """Draw again and again from a thread that ends with the display or the process."""
        context = contextvars.copy_context()  # in which a notebook knows its cell
        threading.Thread(target=context.run, args=(self._ticking,), daemon=True).start()

    def _ticking(self) -> None:
        # A terminal that is gone is none of the work's business, which goes on unseen.
        with contextlib.suppress(Exception):
            if not self._over.wait(TICK_SECONDS):
                self.surface.prepare()
            while not self._over.is_set():
                self.tick()
                self._over.wait(TICK_SECONDS)

    def close(self) -> None:
        """Nothing is written from now on."""
        with self.lock:
            if not self._over.is_set():
                self._over.set()
                with contextlib.suppress(OSError, ValueError):
                    self.surface.clear()


_current: ContextVar[Display | None] = ContextVar("dmkc_display", default=None)


def current() -> Display | None:
    """The display that is open, if the work that is done now is shown."""
    return _current.get()


@contextlib.contextmanager
def shown_on(surface: Surface) -> Iterator[Display]:
    """Show what is done inside the `with` block."""
    display = Display(surface)
    token = _current.set(display)
    try:
        with surface.opened(display.lock):
            display.run()
            try:
                yield display
            finally:
                display.close()
    finally:
        _current.reset(token)


def close() -> None:
    """Show nothing more, such as before somebody is asked something."""
    display = _current.get()
    if display is not None:
        display.close()


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Show nothing of what is done inside the `with` block."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def stage(text: str) -> Iterator[Stage]:
    """Work that is shown under a name, where anything is shown."""
    display = _current.get()
    if display is None:
        yield Stage(None, text)
        return
    begun = display.begin(text)
    try:
        yield begun
    finally:
        display.end(begun)


def advance(done: float, of: float, detail: str = "") -> None:
    """So many of so many steps of the innermost stage are done."""
    display = _current.get()
    if display is not None and display.stages:
        display.stages[-1].advance(done, of, detail)


def counting(count: Count) -> contextlib.AbstractContextManager[None]:
    """Have the parts of a pass over rows looked up while it runs, for the innermost stage."""
    display = _current.get()
    if display is None or not display.stages:
        return contextlib.nullcontext()
    return display.stages[-1].counting(count)
