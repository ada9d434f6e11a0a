"""The HTML of a report: escaping, tables, figures, and the frame around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from string import Template
from typing import Any

from dmkc.report.style import STYLE

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
<main>
<header>
<h1>$title</h1>
<p class="lead">$lead</p>
</header>
$body
<footer>$foot</footer>
</main>
</body>
</html>
""")


class Markup(str):
    """Text that is HTML already; everything else is escaped where it enters the page."""


def text(value: Any) -> Markup:
    """`value` as HTML."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=True))


def page(title: str, lead: Any, body: Iterable[Markup], foot: Any) -> str:
    """A whole document."""
    return _PAGE.substitute(
        title=text(title), style=STYLE, lead=text(lead), body="\n".join(body), foot=text(foot)
    )


def section(title: str, *parts: Markup) -> Markup:
    """A heading and what belongs to it; nothing when there are no parts."""
    inside = "\n".join(part for part in parts if part)
    return Markup(f"<section>\n<h2>{text(title)}</h2>\n{inside}\n</section>" if inside else "")


def paragraph(words: Any, kind: str = "") -> Markup:
    return Markup(f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>")


def bullets(items: Sequence[Any], kind: str) -> Markup:
    """A list in a box, or nothing."""
    inside = "".join(f"<li>{text(item)}</li>" for item in items)
    return Markup(f'<ul class="{kind}">{inside}</ul>' if items else "")


def code(source: str) -> Markup:
    return Markup(f'<pre tabindex="0"><code>{text(source)}</code></pre>')


def facts(pairs: Sequence[tuple[str, Any]]) -> Markup:
    """Names and values side by side."""
    inside = "\n".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in pairs)
    return Markup(f'<dl class="facts">\n{inside}\n</dl>')


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = "") -> Markup:
    """A table whose first column names the row and whose other columns are numbers.

    Where it is wider than the page it scrolls, by keyboard too.
    """
    top = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
    lines = [
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    ]
    name = f"<caption>{text(caption)}</caption>" if caption else ""
    body = "\n".join(lines)
    return Markup(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption or head[0])}">'
        f"<table>{name}\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def bar(share: float) -> Markup:
    """A small bar from the middle of a cell, to the right when `share` (at most 1) is positive."""
    width = 50 * min(abs(share), 1.0)
    left = 50.0 if share >= 0 else 50.0 - width
    side = "up" if share >= 0 else "down"
    return Markup(
        f'<span class="bar"><i class="{side}" '
        f'style="left:{left:.1f}%;width:{width:.1f}%"></i></span>'
    )


def figure(picture: str, caption: str) -> Markup:
    """A picture on a light card with a sentence below."""
    return Markup(f"<figure><div>{picture}</div><figcaption>{text(caption)}</figcaption></figure>")


def gallery(figures: Sequence[Markup]) -> Markup:
    """Figures in two columns, or in one where the page is narrow."""
    inside = "\n".join(figures)
    return Markup(f'<div class="gallery">\n{inside}\n</div>')


def stack(figures: Sequence[Markup]) -> Markup:
    """Low figures above each other in one place of a gallery."""
    return Markup(f'<div class="stack">{"".join(figures)}</div>')


def link(target: str, words: Any) -> Markup:
    """A link to a file beside this one."""
    return Markup(f'<a href="{text(target)}">{text(words)}</a>')
