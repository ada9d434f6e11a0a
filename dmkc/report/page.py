"""The parts of a report as HTML, from the templates beside this file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_templates = Environment(
    loader=PackageLoader("dmkc.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_parts: Any = _templates.get_template("parts.html").module


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
