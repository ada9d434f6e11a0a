"""Putting a report together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from dmkc import plot
from dmkc.contingency import cluster_name
from dmkc.data import as_rows
from dmkc.errors import UserError
from dmkc.plot.rows import sizes_and_noise
from dmkc.report import facts, page
from dmkc.report.choice import choice_parts
from dmkc.report.facts import Comparison, Contrast, contrasts, with_truth
from dmkc.report.page import Markup, inline_svg
from dmkc.showing import printable
from dmkc.typing import PerRow, TableLike
from dmkc.writing import write_text

SAMPLE = 4000
TOP_COLUMNS = 8
SHOWN_CLUSTERS, SHOWN_CLASSES = 12, 30
SURE_ROW = 0.75
"""A row with a smaller chance of its label is called unsure."""
METRIC_NAMES = {
    "accuracy": "accuracy (best one-to-one matching)",
    "majority_accuracy": "accuracy (majority class)",
    "balanced_error": "balanced error (lower is better)",
    "rand_index": "Rand index",
    "adjusted_rand_index": "adjusted Rand index",
    "fowlkes_mallows": "Fowlkes-Mallows index",
    "normalized_mutual_info": "normalised mutual information",
}

DRAWINGS: dict[str, Callable[[Any, Any, Any], Axes]] = {
    "embedding": lambda model, rows, labels: plot.embedding(model, rows),
    "margins": lambda model, rows, labels: plot.margins(model, rows),
    "membership": lambda model, rows, labels: plot.membership(model, rows),
    "layers": lambda model, rows, labels: plot.layers(model),
    "convergence": lambda model, rows, labels: plot.convergence(model),
    "kernel_weights": lambda model, rows, labels: plot.kernel_weights(model),
    "feature_importances": lambda model, rows, labels: plot.feature_importances(model),
    "eigenvalues": lambda model, rows, labels: plot.eigenvalues(model),
    "anchor_graph": lambda model, rows, labels: plot.anchor_graph(model, rows),
    "sizes": lambda model, rows, labels: plot.sizes(model, labels),
}
"""How a picture that an estimator names is drawn, from it, sampled rows and the labels of all."""
SAMPLED = ("embedding", "margins", "membership")
"""Pictures of sampled rows, whose captions say how many."""


def write_report(
    model: Any,
    X: TableLike,
    path: str | os.PathLike[str],
    *,
    title: str,
    truth: PerRow = None,
    seconds: float | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Write what a fitted model found in `X` as one HTML file, and return its path.

    `truth` (one class per row) adds a comparison with k-means; `seconds` is the time of the fit,
    and `notes` are sentences to show at the top.  Figures and column summaries use a sample.

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
    check_is_fitted(model)
    rows = as_rows(X)
    labels = model._fitted("labels_")
    if labels is None:  # of a model from a file
        labels = model.predict(X)
    sizes, noise = sizes_and_noise(labels, model.n_clusters_)
    _, drawn = plot.sample(X, SAMPLE)
    names = [*map(printable, rows.column_names or ())]
    names = names or [f"column {j}" for j in range(rows.n_columns)]
    verdict = model._verdict()
    body = [
        *([] if verdict is None else [page.paragraph(verdict, "verdict")]),
        page.bullets(facts.cautions(model, sizes), "warnings"),
        page.bullets(notes, "notes"),
        page.section("What was found", _pictures(model, drawn, labels)),
    ]
    choice = model._choice()
    if choice is not None:
        body.append(page.section("What else was tried", *choice_parts(model, choice, drawn)))
    if truth is not None:
        body.append(_against_truth(with_truth(X, truth, labels, model.n_clusters_)))
    body += [
        page.section("How sure the labels are", *_sureness(model, drawn)),
        page.section("What sets the clusters apart", *_columns(model, drawn, names)),
        page.section(
            "What was run",
            page.facts(facts.run_facts(model, rows.n_rows, rows.n_columns, seconds)),
            *_kernels(model),
        ),
        page.section(
            "Running it again",
            page.code(facts.snippet(model, rows.n_rows, rows.n_columns)),
            page.paragraph(facts.versions(), "small"),
        ),
    ]
    lead = (
        f"{rows.n_rows:,} rows of {rows.n_columns:,} columns in {model.n_clusters_} "
        f"cluster{'s' if model.n_clusters_ != 1 else ''}"
        f"{f' and {noise:,} rows of noise' if noise else ''}, by {_by(model)}"
    )
    target = Path(path)
    write_text(target, page.page(printable(title), lead, body, "Written by dmkc."))
    return target


def _by(model: Any) -> str:
    """The name of the method, and of the one that it has chosen."""
    own, chosen = type(model).__name__, type(model._shown).__name__
    return own if chosen == own else f"{own}, which has chosen {chosen}"


def _kernels(model: Any) -> list[Markup]:
    rows = facts.kernel_rows(model)
    return [page.table(("kernel", "gamma", "weight"), rows)] if rows else []


def _pictures(model: Any, drawn: Any, labels: PerRow) -> Markup:
    wide: list[Markup] = []
    beside: list[Markup] = []
    for picture in model._pictures():
        ax = (picture.draw or DRAWINGS[picture.name])(model, drawn, labels)
        words = picture.caption
        if picture.name in SAMPLED:
            words = f"{drawn.shape[0]:,} rows. {words}"
        says = f"{ax.get_title(loc='left')}. {words}"
        card = page.figure(inline_svg(ax, picture.name, says), words)
        (beside if picture.beside else wide).append(card)
    return page.gallery([*wide, page.stack(beside)])


def _against_truth(found: Comparison) -> Markup:
    rows = [
        (METRIC_NAMES[name], f"{value:.4f}", f"{found.k_means[name]:.4f}")
        for name, value in found.ours.items()
    ]
    on = "all rows" if found.k_means_rows == found.table.table.sum() else "a sample"
    about = (
        "k-means: standardised columns, best of ten starts, "
        f"fitted to and measured on {on} ({found.k_means_rows:,})."
    )
    if -1 in found.table.clusters:
        about += " Noise counts as one more cluster."
    parts = [page.table(("against the given classes", "dmkc", "k-means"), rows)]
    parts.append(page.paragraph(about, "small"))
    if len(found.table.classes) <= SHOWN_CLASSES and len(found.table.clusters) <= SHOWN_CLASSES:
        head = ("rows of class", *(f"in {cluster_name(k)}" for k in found.table.clusters))
        counts = [
            (name, *(f"{n:,.0f}" for n in row))
            for name, row in zip(found.table.classes, found.table.table, strict=True)
        ]
        parts.append(page.table(head, counts))
    return page.section("Agreement with the given classes", *parts)


def _sureness(model: Any, drawn: Any) -> list[Markup]:
    """How often fits of other rows give the same label, cluster by cluster."""
    try:
        chances = model._chances(drawn)
    except UserError:  # too few rows, or too many alike, for fits of some of them
        return []
    if chances is None:
        return []
    labels, chances = np.asarray(model.predict(drawn)), np.asarray(chances)
    own = np.where(labels >= 0, chances[np.arange(len(labels)), labels], np.nan)
    rows = []
    for cluster in range(min(model.n_clusters_, SHOWN_CLASSES)):
        there = own[labels == cluster]
        if len(there):
            unsure = float(np.mean(there < SURE_ROW))
            rows.append((f"cluster {cluster}", f"{there.mean():.2f}", f"{100 * unsure:.1f} %"))
    words = (
        f"The chance that a fit of other rows would give a row the same label, of {len(own):,} "
        f"rows; a row is unsure where it is below {SURE_ROW:g}. Rows of clusters that are "
        "really there have a chance near 1."
    )
    head = ("", "mean chance", "unsure rows")
    return [page.paragraph(words), page.table(head, rows)]


def _columns(model: Any, drawn: Any, names: list[str]) -> list[Markup]:
    if model.n_clusters_ == 1:
        return []
    labels = np.asarray(model.predict(drawn))
    drawn, labels = facts.plain(drawn)[np.flatnonzero(labels >= 0)], labels[labels >= 0]
    # Two clusters mirror each other, so that one table says it all.
    shown = [0] if model.n_clusters_ == 2 else range(min(model.n_clusters_, SHOWN_CLUSTERS))
    tables = []
    strongest = 0.0
    for cluster in shown:
        found = contrasts(drawn, labels, cluster, names, TOP_COLUMNS)
        strongest = max([strongest, *(abs(c.difference) for c in found)])
        if found:
            tables.append(_contrast_table(found, cluster, model.n_clusters_ == 2))
    words = (
        f"The columns whose means differ most, from {drawn.shape[0]:,} rows. Differences are in "
        "standard deviations of the column; the spread is the standard deviation in the cluster "
        "divided by that outside."
    )
    if strongest < 0.5:
        words += (
            " No mean differs much here: the clusters differ in spread or shape rather than in "
            "place, which is what k-means cannot see."
        )
    return [page.paragraph(words), *tables] if tables else []


def _contrast_table(found: list[Contrast], cluster: int, two: bool) -> Markup:
    other = "cluster 1" if two else "elsewhere"
    head = ("column", f"cluster {cluster}", other, "difference", "spread")
    scale = max(max(abs(c.difference) for c in found), 1.0)
    rows = [
        (
            c.column,
            f"{c.inside:.4g}",
            f"{c.outside:.4g}",
            Markup(f"{page.bar(c.difference / scale)}{c.difference:+.2f}"),
            f"{c.spread:.2f}" if np.isfinite(c.spread) else "",
        )
        for c in found
    ]
    return page.table(head, rows)
