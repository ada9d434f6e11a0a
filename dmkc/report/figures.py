"""Matplotlib axes as SVG that can stand inside an HTML page beside others."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes

# Text stays text, so that it takes the page's font and can be searched; the salt makes the names
# of clip paths and markers the same in every run.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "dmkc"}
RASTER_DPI = 170


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
