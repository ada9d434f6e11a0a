"""The parts of a report as HTML, from the templates beside this file, and pictures inside it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import matplotlib
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes

# Text stays text, so that it takes the page's font and can be searched; the salt makes the names
# of clip paths and markers the same in every run.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "dmkc"}
RASTER_DPI = 170
_templates = Environment(
    loader=PackageLoader("dmkc.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_parts: Any = _templates.get_template("parts.html").module


def inline_svg(ax: Axes, name: str, says: str) -> str:
    """The figure of `ax` as an <svg> element whose ids all begin with `name`.

    `says` is what a screen reader reads out.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    out = io.StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(out, format="svg", dpi=RASTER_DPI, transparent=True)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    # Without a size of its own the picture fills its card at every width.
    text = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?)\swidth="[^"]*"', r"\1", text, count=1)
    label = escape(says, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()


def page(title: str, lead: Any, body: Iterable[Markup], foot: Any) -> str:
    """A whole document."""
    whole = _templates.get_template("page.html")
    return whole.render(title=title, lead=lead, body=list(body), foot=foot)


def section(title: str, *parts: Markup) -> Markup:
    """A heading and what belongs to it; nothing when there are no parts."""
    inside = [part for part in parts if part]
    return _parts.section(title, inside) if inside else Markup()


def paragraph(words: Any, kind: str = "") -> Markup:
    return _parts.paragraph(words, kind)


def bullets(items: Sequence[Any], kind: str) -> Markup:
    """A list in a box, or nothing."""
    return _parts.bullets(items, kind) if items else Markup()


def code(source: str) -> Markup:
    return _parts.code(source)


def facts(pairs: Sequence[tuple[str, Any]]) -> Markup:
    """Names and values side by side."""
    return _parts.facts(pairs)


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = "") -> Markup:
    """A table whose first column names the row and whose other columns are numbers."""
    return _parts.table(head, rows, caption)


def bar(share: float) -> Markup:
    """A small bar from the middle of a cell, to the right when `share` (at most 1) is positive."""
    return _parts.bar(share)


def figure(picture: str, caption: str) -> Markup:
    """A picture, which is HTML, on a light card with a sentence below."""
    return _parts.figure(Markup(picture), caption)


def gallery(figures: Sequence[Markup]) -> Markup:
    """Figures in two columns, or in one where the page is narrow."""
    return _parts.gallery(figures)


def stack(figures: Sequence[Markup]) -> Markup:
    """Low figures above each other in one place of a gallery."""
    return _parts.stack(figures)


def link(target: str, words: Any) -> Markup:
    """A link to a file beside this one."""
    return _parts.link(target, words)
