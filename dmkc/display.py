"""What is going on, while it goes on: a live line in a terminal, a panel in a notebook, else lines.

Whoever works says which stage it is in.  How far a pass over rows has come is looked up whenever it
is drawn, by a thread of its own, so that being shown costs the work next to nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from dmkc.showing import printable

TICK_SECONDS = 0.5
"""How often a display is drawn, whatever happens."""
DELAY_SECONDS = 0.5
"""A terminal shows nothing of what takes less."""
LINE_SECONDS = 5.0
"""Between two lines about the same stage, at least."""
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
        self.count: Count | None = None

    def advance(
        self,
        done: float,
        of: float,
        detail: str = "",
        *,
        passes: bool = False,
        left: float | None = None,
    ) -> None:
        """So many of so many steps are done; `left` are the seconds that it will take, if known."""
        self.tell(detail, steps=(done, of, passes), left=left)

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

    def share(self) -> float | None:
        parts, all_parts = (0, 0) if self.count is None else self.count()
        within = None if all_parts <= 0 else min(parts / all_parts, 1.0)
        if self.steps is None:
            return within
        done, of, passes = self.steps
        part = within if passes and within is not None else 0.0
        return min((done + part) / max(of, 1e-9), 0.99 if passes else 1.0)

    def view(self, now: float, since: float) -> View:
        share, left = self.share(), None if self.end is None else max(self.end - now, 0.0)
        spent = now - self.began
        if left is None and share is not None and share >= LEAST_SHARE and spent >= 1.0:
            left = spent * (1.0 - share) / share
        detail = self.detail
        if self.count is not None and self.steps is not None and self.steps[2]:
            done, of = self.count()
            detail = f"{detail}, {done} of {of} blocks" if of > 1 else detail
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
        while not self._over.wait(TICK_SECONDS):
            try:
                self.tick()
            except (OSError, ValueError):  # the terminal is gone
                return

    def close(self) -> None:
        """Nothing is written from now on."""
        with self.lock:
            if not self._over.is_set():
                self._over.set()
                with contextlib.suppress(OSError, ValueError):
                    self.surface.clear()


class Plain:
    """Lines for a file or a pipe: one a stage, and now and then how far it has come."""

    eager = False

    def __init__(self, stream: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._now = stream, now
        self._last, self._said = now(), ""

    def line(self, text: str) -> None:
        self._last = self._now()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def begin(self, text: str) -> None:
        self.line(f"{NAME}{text}")

    def add(self, record: Mapping[str, Any]) -> None:
        return

    def draw(self, view: View) -> None:
        if self._now() - self._last >= LINE_SECONDS:
            self.line(f"{NAME}{view.line()}")

    def clear(self) -> None:
        return


class Terminal:
    """Two live lines by rich; whatever else is printed appears above them."""

    eager = False

    def __init__(self, stream: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._now, self._began = stream, now, now()
        self._live: Any = None
        self._console: Any = None
        self.is_mid_line = False
        """Whether something was printed that is no whole line yet."""

    def line(self, text: str) -> None:
        self.clear()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def begin(self, text: str) -> None:
        return

    def add(self, record: Mapping[str, Any]) -> None:
        return

    def draw(self, view: View) -> None:
        if self.is_mid_line or self._now() - self._began < DELAY_SECONDS:
            return
        if self._live is None:
            from rich.live import Live

            self._console = self._console or _console(self._stream)
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._live.update(_drawn(view, self._console.width), refresh=True)

    def clear(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def _console(stream: Any) -> Any:
    from rich.console import Console

    class Steady(Console):
        """A console that leaves the cursor alone: a process that is killed could not restore it."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    return Steady(
        file=stream,
        force_terminal=True,
        force_jupyter=False,
        highlight=False,
        emoji=False,
        markup=False,
    )


def _drawn(view: View, width: int) -> Any:
    """Stage, bar and times; below them what is known beside."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = ProgressBar(
        total=1.0,
        completed=view.share or 0.0,
        width=20 if width >= 70 else 10,
        complete_style="cyan",
        finished_style="cyan",
    )
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for _ in range(3):
        grid.add_column(no_wrap=True)
    share: list[Any] = [Text(""), Text("")] if view.share is None else [bar, Text(view.percent)]
    grid.add_row(Text(f"{NAME}{view.stage}"), *share, Text(view.times))
    if not view.detail:
        return grid
    return Group(grid, Text(f"  {view.detail}", style="dim", no_wrap=True, overflow="ellipsis"))


class _Above:
    """A stream of this process whose text appears above the live lines of a terminal."""

    def __init__(self, stream: Any, display: Display, surface: Terminal) -> None:
        self._stream, self._display, self._surface = stream, display, surface

    def write(self, text: str) -> int:
        with self._display.lock:
            self._surface.clear()
            if text:
                self._surface.is_mid_line = not text.endswith("\n")
            return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_current: ContextVar[Display | None] = ContextVar("dmkc_display", default=None)


def current() -> Display | None:
    """The display that is open, if the work that is done now is shown."""
    return _current.get()


def is_live(stream: Any) -> bool:
    """Whether a stream is a terminal that lines can be redrawn in."""
    return bool(getattr(stream, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def shown_on(surface: Surface) -> Iterator[Display]:
    """Show what is done inside the `with` block."""
    display, streams = Display(surface), (sys.stdout, sys.stderr)
    if isinstance(surface, Terminal):
        sys.stdout, sys.stderr = (
            _Above(each, display, surface) if is_live(each) else each for each in streams
        )
    token = _current.set(display)
    display.run()
    try:
        yield display
    finally:
        display.close()
        _current.reset(token)
        if isinstance(surface, Terminal):
            sys.stdout, sys.stderr = streams


def surface_of(stream: Any) -> Surface:
    """A terminal, or plain lines."""
    return Terminal(stream) if is_live(stream) else Plain(stream)


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


@contextlib.contextmanager
def counting(count: Count) -> Iterator[None]:
    """Have the parts of a pass over rows looked up while it runs; the outermost pass counts."""
    display = _current.get()
    shown = display.stages[-1] if display is not None and display.stages else None
    if shown is None or shown.count is not None:
        yield
        return
    shown.count = count
    try:
        yield
    finally:
        shown.count = None
