"""The parts of a report as HTML, from the templates beside this file, and pictures inside it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import matplotlib
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes

from dmkc.plot.style import COLOURS

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
# What pictures of Matplotlib are drawn with, as colours of the page, which has a dark side.
GREYS = {
    "#000000": "ink", "#ffffff": "paper", "#555555": "soft", "#8a8a8a": "soft",
    "#bdbdbd": "faint", "#c4c4c4": "faint", "#cfcfcf": "faint", "#b0b0b0": "noise",
    "#ececec": "shade", "#f3f3f3": "shade",
}  # fmt: skip
CLUSTERS = {colour.lower(): f"c{k}" for k, colour in enumerate(COLOURS)}
TONES = {COLOURS[0].lower(): "tone", COLOURS[1].lower(): "tone-2"}


def macros(name: str) -> Any:
    """The macros of a template."""
    return _templates.get_template(name).module


def inline_svg(ax: Axes, name: str, says: str, of_clusters: bool = False) -> str:
    """The figure of `ax` as an <svg> element whose ids all begin with `name`.

    `says` is what a screen reader reads out.  Colours of clusters are for pictures of clusters.
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
    known = GREYS | (CLUSTERS if of_clusters else TONES)
    text = re.sub(
        r"(?<=: )#[0-9a-f]{6}\b",
        lambda found: f"var(--{known[found[0]]})" if found[0] in known else found[0],
        text,
    )
    label = escape(says, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()


def page(title: str, lead: Any, body: Iterable[Markup], foot: Any, data: Any = None) -> str:
    """A whole document; `data` are the rows that its script shows, as JSON can hold them."""
    whole = _templates.get_template("page.html")
    return whole.render(title=title, lead=lead, body=list(body), foot=foot, data=_json(data))


def _json(data: Any) -> Markup | None:
    """Data inside a script element, which no text of others can end."""
    if data is None:
        return None
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def section(title: str, *parts: Markup, name: str = "") -> Markup:
    """A heading and what belongs to it; nothing when there are no parts."""
    inside = [part for part in parts if part]
    return _parts.section(title, inside, name) if inside else Markup()


def heading(words: str) -> Markup:
    """A heading inside a section."""
    return _parts.heading(words)


def folded(title: str, *parts: Markup) -> Markup:
    """What is shown when it is asked for; nothing when there are no parts."""
    inside = [part for part in parts if part]
    return _parts.folded(title, inside) if inside else Markup()


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


def table(
    head: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    caption: str = "",
    clusters: Sequence[int] = (),
) -> Markup:
    """A table whose first column names the row and whose other columns are numbers.

    `clusters` are those that its rows belong to, if they do.
    """
    return _parts.table(head, rows, caption, list(clusters))


def bar(share: float, words: str) -> Markup:
    """A small bar that is as long as a share of 1, and words beside it."""
    return _parts.bar(share, words)


def sizes(clusters: Sequence[tuple[int, str, float, str]]) -> Markup:
    """Bars of clusters: number, name, how long the bar is, and words beside it."""
    return _parts.sizes(clusters)


def figure(picture: str, caption: Any, kind: str = "") -> Markup:
    """A picture, which is HTML, with a sentence below."""
    return _parts.figure(Markup(picture), caption, kind)


def gallery(figures: Sequence[Markup]) -> Markup:
    """Figures in two columns, or in one where the page is narrow."""
    return _parts.gallery(figures)


def stack(figures: Sequence[Markup]) -> Markup:
    """Low figures above each other in one place of a gallery."""
    return _parts.stack(figures)


def link(target: str, words: Any) -> Markup:
    """A link to a file beside this one."""
    return _parts.link(target, words)


def grid(parts: Sequence[Markup], kind: str) -> Markup:
    """Parts beside each other, as many as there is room for."""
    return _parts.grid(parts, kind) if parts else Markup()


def contents(links: Sequence[tuple[str, str]]) -> Markup:
    """Links to sections of this page."""
    return _parts.contents(links)


def verdict(question: str, answer: str, words: Any) -> Markup:
    """An answer in words, in a box."""
    return _parts.verdict(question, answer, words)


def picker(clusters: Sequence[tuple[int, str]]) -> Markup:
    """Buttons, each of which shows one cluster alone."""
    return _parts.picker(clusters)


def cluster(k: int, title: str, name: str, size: str, share: str, marks: Sequence[Any]) -> Markup:
    """A cluster in short: name, size, and the columns that mark it."""
    return _parts.cluster(k, title, name, size, share, marks)


def row(name: str, number: int) -> Markup:
    """The name of a row, by which all of its values are shown."""
    return _parts.row(name, number)


def rules(found: Sequence[Any]) -> Markup:
    """Rules, each with the colour of its cluster."""
    return _parts.rules(found)


def column(title: str, says: str, picture: Markup) -> Markup:
    """A column in short, and how it is spread."""
    return _parts.column(title, says, picture)


def live(words: str) -> Markup:
    """Words that are true only where the script runs."""
    return _parts.live(words)


def case(target: str, name: str, about: str, size: str, pictures: Sequence[Any]) -> Markup:
    """A data set, linked to its report, with pictures beside each other."""
    return _parts.case(target, name, about, size, pictures)
