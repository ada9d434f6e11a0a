"""What the report says of a choice without labels: scores, and the other clusterings offered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dmkc import plot
from dmkc.clusterers.estimator import Choice, RowClusterer
from dmkc.report import page
from dmkc.report.page import Markup, inline_svg
from dmkc.typing import NamedValues

SHOWN = 12
"""Candidates in the table; the picture has all of them."""
MADE_OF = ("scale", "kernels", "C", "balance", "start")
ABOUT = ("score", "contradictions", "alternative", "n_clusters", "chosen")
"""What is known of a candidate besides the criteria and what it is made of."""


def choice_parts(model: RowClusterer, choice: Choice, drawn: Any) -> list[Markup]:
    """Parts of a section about what was tried."""
    records = choice.records
    numbers = "chosen" in records[0]
    words = (
        choice.score
        if numbers
        else "Score of every candidate on a sample of the rows; those with a number are offered as "
        "choices, and the first was refined on all rows."
    )
    cards = [_card("candidates", plot.candidates(model), words, of_clusters=False)]
    if len(choice.alternatives) > 1:
        offered = "Which rows each choice puts together, on two principal components."
        for i, ax in enumerate(plot.alternatives(model, drawn)):
            cards.append(_card(f"choice{i + 1}", ax, offered))
    made = _numbers if numbers else _methods if "candidate" in records[0] else _candidates
    return [page.gallery(cards), *made(records)]


def _card(name: str, ax: Any, words: str, of_clusters: bool = True) -> Markup:
    title = ax.get_title(loc="left")
    return page.figure(inline_svg(ax, name, f"{title}. {words}", of_clusters), words)


def _criteria(records: list[NamedValues]) -> list[str]:
    return [name for name in records[0] if name not in (*MADE_OF, *ABOUT)]


def _numbers(records: list[NamedValues]) -> list[Markup]:
    names = _criteria(records)
    rows = [
        (
            f"{r['n_clusters']} clusters" + (" (chosen)" if r["chosen"] else ""),
            *(_number(r[name]) for name in names),
            _number(r["score"]),
        )
        for r in records
    ]
    return [page.table(("number", *names, "score"), rows)]


def _candidates(records: list[NamedValues]) -> list[Markup]:
    names = _criteria(records)
    asked = any(r["contradictions"] for r in records)
    moves = ("rows that answers would move",) if asked else ()
    head = ("start", "choice", "score", *moves, *names, "scale", "balance", "kernels")
    rows = []
    for r in records[:SHOWN]:
        choice = "" if r["alternative"] is None else r["alternative"] + 1
        moved = (r["contradictions"],) if asked else ()
        found = (_number(r[name]) for name in names)
        balance = "" if r["balance"] is None else f"{r['balance']:g}"
        made = (r["scale"] or "none", balance, _bank(r["kernels"]))
        rows.append((_start(r["start"]), choice, _number(r["score"]), *moved, *found, *made))
    words = (
        f"The best of {len(records)} candidates; larger is better in all criteria. What they ask "
        "is on the page about choosing without labels."
    )
    return [page.paragraph(words, "small"), page.table(head, rows)]


def _methods(records: list[NamedValues]) -> list[Markup]:
    """Candidates of all methods."""
    names = ("agreement", "neighbours", "clearness")
    head = ("method", "choice", "score", *names)
    rows = [
        (
            r["candidate"],
            "" if r["alternative"] is None else r["alternative"] + 1,
            _number(r["score"]),
            *(_number(r[name]) for name in names),
        )
        for r in records[:SHOWN]
    ]
    words = (
        f"The best of {len(records)} candidates. Agreement: how far other families of methods find "
        "the same clusters (adjusted Rand index). Neighbours: the share of rows whose nearest rows "
        "tell their cluster. Clearness: the share of edges to nearest rows that stay inside a "
        "cluster, beyond what chance leaves there."
    )
    return [page.paragraph(words, "small"), page.table(head, rows)]


def _bank(kernels: list[Any]) -> str:
    """The kinds of kernels, and how many of each."""
    counts = Counter(type(kernel).__name__.lower() for kernel in kernels)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.items())


def _start(name: str) -> str:
    """The start without the numbers of its kernel."""
    return name.split("(")[0].replace(", ", " of ", 1) if "(" in name else name


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}" if np.isfinite(value) else ""
