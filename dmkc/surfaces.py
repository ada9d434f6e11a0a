"""Where a display is drawn outside of notebooks: live lines in a terminal, else plain ones."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dmkc.display import NAME, Surface, View

DELAY_SECONDS = 0.5
"""A terminal shows nothing of what takes less."""
LINE_SECONDS = 5.0
"""Between two lines about the same stage, at least."""


class Plain:
    """Lines for a file or a pipe: one a stage, and now and then how far it has come."""

    eager = False

    def __init__(self, stream: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._now = stream, now
        self._last = now()

    def opened(self, lock: threading.RLock) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def prepare(self) -> None:
        return

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

    @contextlib.contextmanager
    def opened(self, lock: threading.RLock) -> Iterator[None]:
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (
            _Above(each, self, lock) if is_live(each) else each for each in streams
        )
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams

    def prepare(self) -> None:
        # Not while the display's lock is held: the thread that works may wait for it in an import.
        for name in ("console", "live", "progress_bar", "table", "text"):
            importlib.import_module(f"rich.{name}")

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
        width=20 if width >= 100 else 12,
        complete_style="cyan",
        finished_style="cyan",
    )
    # Ctrl-C, which a terminal shows as ^C, still has a place at the end of the line.
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.width = max(width - 3, 20)
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

    def __init__(self, stream: Any, surface: Terminal, lock: threading.RLock) -> None:
        self._stream, self._surface, self._lock = stream, surface, lock

    def write(self, text: str) -> int:
        with self._lock:
            self._surface.clear()
            if text:
                self._surface.is_mid_line = not text.endswith("\n")
            return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def is_live(stream: Any) -> bool:
    """Whether a stream is a terminal that lines can be redrawn in."""
    return bool(getattr(stream, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def surface_of(stream: Any) -> Surface:
    """A terminal, or plain lines."""
    return Terminal(stream) if is_live(stream) else Plain(stream)
