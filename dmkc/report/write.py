"""Putting a report together: what the clusters are, whether to trust them, what sets them apart,
and what to do next; details of the fit are folded away at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from dmkc import plot
from dmkc.clusterers.estimator import Picture
from dmkc.report import facts, page
from dmkc.report.advice import Command, next_steps
from dmkc.report.page import Markup, inline_svg
from dmkc.report.sections import column_parts, moves_of, trust_parts
from dmkc.report.subject import Subject, subject_of
from dmkc.report.trust import trust_of
from dmkc.report.view import View
from dmkc.showing import printable
from dmkc.typing import PerRow, TableLike
from dmkc.writing import write_text

QUESTIONS = (
    ("clusters", "What are my clusters?"),
    ("trust", "Can I trust them?"),
    ("columns", "What distinguishes them?"),
    ("next", "What next?"),
)

DRAWINGS: dict[str, Callable[[Any, Any, Any], Axes]] = {
    "margins": lambda model, rows, labels: plot.margins(model, rows),
    "layers": lambda model, rows, labels: plot.layers(model),
    "convergence": lambda model, rows, labels: plot.convergence(model),
    "kernel_weights": lambda model, rows, labels: plot.kernel_weights(model),
    "feature_importances": lambda model, rows, labels: plot.feature_importances(model),
    "eigenvalues": lambda model, rows, labels: plot.eigenvalues(model),
    "anchor_graph": lambda model, rows, labels: plot.anchor_graph(model, rows),
}
"""How a picture that an estimator names is drawn, from it, sampled rows and the labels of all."""
ELSEWHERE = ("embedding", "sizes", "membership")
"""Pictures that are charts of the page itself."""
OF_CLUSTERS = ("margins", "anchor_graph")
"""Pictures whose colours are those of clusters."""
OF_COLUMNS = ("feature_importances",)


def write_report(
    model: Any,
    X: TableLike,
    path: str | os.PathLike[str],
    *,
    title: str,
    truth: PerRow = None,
    seconds: float | None = None,
    notes: Sequence[str] = (),
    command: Command | None = None,
) -> Path:
    """Write what a fitted model found in `X` as one HTML file, and return its path.

    `model` is a clusterer or a Pipeline that ends in one.  `truth` (one class per row) adds a
    comparison with k-means; `seconds` is the time of the fit, `notes` are sentences to show at the
    top, and `command` is the command line that was run, from which those to run next are made.
    Sizes are of all rows; everything else is seen on a sample.

    Examples
    --------
    >>> import tempfile
    >>> from dmkc import KMeans
    >>> from dmkc.datasets import make_blobs
    >>> from dmkc.report import write_report
    >>> X, y = make_blobs(200, centers=2, seed=0)
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, X, f"{folder}/report.html", title="Blobs", truth=y)
    ...     path.read_text()[:15]
    '<!DOCTYPE html>'
    """
    subject = subject_of(model, X)
    estimator = subject.estimator
    trust = trust_of(subject)
    moves = moves_of(subject)
    view = View(subject, trust)
    titles = dict(QUESTIONS)
    own = [_picture(subject, p) for p in estimator._pictures() if p.name in OF_COLUMNS]
    words = " ".join([trust.summary, *trust.sentences[:1]])
    body = [
        page.verdict(titles["trust"], trust.answer, words),
        page.bullets(facts.cautions(estimator, subject.sizes), "warnings"),
        page.bullets(notes, "notes"),
        page.contents(QUESTIONS),
        page.section(titles["clusters"], *view.clusters(), name="clusters"),
        page.section(titles["trust"], *trust_parts(view, X, truth), name="trust"),
        page.section(titles["columns"], *column_parts(view, moves, own), name="columns"),
        page.section(titles["next"], *_next(subject, command, moves), name="next"),
        page.folded("Details of the fit", *_details(subject, seconds)),
    ]
    noise = f" and {subject.noise:,} rows of noise" if subject.noise else ""
    lead = (
        f"{subject.n_rows:,} rows of {subject.n_columns:,} columns in {subject.n_clusters} "
        f"cluster{'s' if subject.n_clusters != 1 else ''}{noise}, by {_by(estimator)}"
    )
    target = Path(path)
    foot = "Written by dmkc."
    write_text(target, page.page(printable(title), lead, body, foot, view.data()))
    return target


def _next(subject: Subject, command: Command | None, moves: list[float]) -> list[Markup]:
    parts = []
    for step in next_steps(subject, command, moves):
        parts += [page.heading(step.title), page.code(step.code)]
    return parts


def _details(subject: Subject, seconds: float | None) -> list[Markup]:
    """What was run, and pictures of the fit."""
    estimator = subject.estimator
    n_columns = estimator.n_features_in_
    kernels = facts.kernel_rows(estimator)
    wide: list[Markup] = []
    beside: list[Markup] = []
    for picture in estimator._pictures():
        if picture.name not in (*ELSEWHERE, *OF_COLUMNS) or picture.draw is not None:
            (beside if picture.beside else wide).append(_picture(subject, picture))
    return [
        page.facts(facts.run_facts(estimator, subject.n_rows, n_columns, seconds)),
        page.table(("kernel", "gamma", "weight"), kernels) if kernels else Markup(),
        page.gallery([*wide, *([page.stack(beside)] if beside else [])]),
        page.heading("Running it again"),
        page.code(facts.snippet(estimator, subject.n_rows, n_columns)),
        page.paragraph(facts.versions(), "small"),
    ]


def _picture(subject: Subject, picture: Picture) -> Markup:
    draw = picture.draw or DRAWINGS[picture.name]
    ax = draw(subject.estimator, subject.numbers, subject.labels)
    says = f"{ax.get_title(loc='left')}. {picture.caption}"
    svg = inline_svg(ax, picture.name, says, picture.name in OF_CLUSTERS)
    return page.figure(svg, picture.caption)


def _by(model: Any) -> str:
    """The name of the method, and of the one that it has chosen."""
    own, chosen = type(model).__name__, type(model._shown).__name__
    return own if chosen == own else f"{own}, which has chosen {chosen}"
