"""The panel of a fit in a notebook: its objective, gap and relabeled rows, redrawn as it runs.

It is one output of plain HTML that is replaced, so that it needs no widgets and stays in a saved
notebook as it was last drawn.
"""

from __future__ import annotations

import contextlib
import html
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS_BETWEEN = 0.25
"""How often it is redrawn at most."""
WIDTH, HEIGHT = 220, 32
MOST_POINTS = 200
"""Points of a curve; more would not be seen."""


@dataclass(frozen=True)
class Curve:
    """One line of the panel."""

    name: str
    """Of the value in a record."""
    title: str
    form: str
    logarithmic: bool = False
    a_round: bool = False
    """Whether there is one point a round, the last, and not one a scan."""


CURVES = (
    Curve("objective", "objective", "{:.6g}"),
    Curve("gap", "gap", "{:.1e}", logarithmic=True),
    Curve("changed", "relabeled, by round", "{:.2%}", a_round=True),
    Curve("moved", "centroids moved", "{:.2e}", logarithmic=True),
)


class Panel:
    """Draws the records of a fit into a display handle."""

    eager = True

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._text, self._view, self._stage = "", "", ("", "")
        self._stages: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        self._drawn = -math.inf

    def add(self, record: Mapping[str, Any]) -> None:
        """Remember one scan; it is drawn with what is said next."""
        self._stage = record["on"], record["start"]
        self._stages.setdefault(self._stage, []).append(record)

    def opened(self, lock: Any) -> contextlib.AbstractContextManager[None]:
        """Nothing has to be so while it is drawn."""
        return contextlib.nullcontext()

    def prepare(self) -> None:
        """There is nothing to prepare."""
        return

    def line(self, text: str) -> None:
        """Show a sentence above the curves, at once."""
        self._text, self._view = text, ""
        self._draw()

    def begin(self, text: str) -> None:
        """A stage is shown when it is drawn."""
        return

    def draw(self, view: Any) -> None:
        """Show the stage, how far it has come, and the curves of the rows that the fit is at."""
        if time.monotonic() - self._drawn >= SECONDS_BETWEEN:
            self._text = view.line()
            bar = "" if view.share is None else f'<progress max="1" value="{view.share:.3f}">'
            self._view = bar and f"{bar}</progress>"
            self._draw()

    def clear(self) -> None:
        """It stays as it was last drawn."""
        return

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._handle.update({"text/plain": self._text, "text/html": self.html()}, raw=True)

    def html(self) -> str:
        """The panel as it is now."""
        on, start = self._stage
        records = self._stages.get(self._stage, [])
        lines = [_line(curve, records) for curve in CURVES]
        head = f"{on} rows, from {start}" if records else ""
        return (
            '<div class="dmkc-panel" style="font-family:monospace;font-size:12px">'
            f"<div>{html.escape(self._text)} {self._view}</div>"
            f'<div style="opacity:0.6">{html.escape(head)}</div>'
            f"<table>{''.join(lines)}</table></div>"
        )


def _line(curve: Curve, records: Sequence[Mapping[str, Any]]) -> str:
    """A row of the table, or nothing where the method has no such value."""
    values = {
        (r["round"] if curve.a_round else i): r[curve.name]
        for i, r in enumerate(records)
        if curve.name in r and math.isfinite(r[curve.name])
    }
    if not values:
        return ""
    points = list(values.values())
    last = curve.form.format(points[-1])
    return (
        f'<tr><td style="text-align:left">{curve.title}</td>'
        f'<td style="text-align:right">{last}</td><td>{_curve(points, curve.logarithmic)}</td></tr>'
    )


def _curve(values: Sequence[float], logarithmic: bool) -> str:
    """The values from left to right, filling the height."""
    step = -(-len(values) // MOST_POINTS)
    heights = list(values[-1::-step])[::-1]
    if logarithmic:
        heights = [math.log10(max(value, 1e-12)) for value in heights]
    low, size = min(heights), (max(heights) - min(heights)) or 1.0
    across = WIDTH / max(len(heights) - 1, 1)
    points = " ".join(
        f"{i * across:.1f},{HEIGHT - 2 - (HEIGHT - 4) * (h - low) / size:.1f}"
        for i, h in enumerate(heights)
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}"><polyline points="{points}" fill="none" '
        'stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def open_panel() -> Panel | None:
    """A panel in the running notebook cell, or None outside of notebooks."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    if getattr(get_ipython(), "kernel", None) is None:  # imported, but this is no notebook
        return None
    handle = display({"text/plain": "dmkc"}, raw=True, display_id=True)
    return None if handle is None else Panel(handle)
