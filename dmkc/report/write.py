"""Putting a report together: what the clusters are, whether to trust them, what sets them apart,
and what to do next; details of the fit are folded away at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dmkc import plot
from dmkc.clusterers.estimator import Picture
from dmkc.contingency import cluster_name
from dmkc.plot.clusters import places
from dmkc.report import charts, facts, page
from dmkc.report.advice import Command, next_steps
from dmkc.report.choice import choice_parts
from dmkc.report.columns import Column, share
from dmkc.report.facts import Comparison, with_truth
from dmkc.report.page import Markup, inline_svg
from dmkc.report.profiles import mark, names_of, typical
from dmkc.report.rules import surrogate
from dmkc.report.subject import Subject, shuffled, subject_of
from dmkc.report.trust import SURE_ROW, Trust, trust_of
from dmkc.showing import printable
from dmkc.typing import PerRow, TableLike
from dmkc.writing import write_text

SHOWN_CLUSTERS, SHOWN_CLASSES = 12, 30
MARKS, TYPICAL, UNSURE = 4, 3, 8
"""Columns on the card of a cluster, typical rows of it, and unsure rows of all."""
ON_MAP = 1200
"""Rows on the map, whose values can be looked at."""
LISTED, DRAWN, IN_TABLES = 24, 12, 6
"""Columns whose values a row shows, whose distributions are drawn, and in tables of rows."""
SHUFFLED_ROWS, REPEATS = 500, 2
NEAR = 400
"""Rows of a cluster among which medoids are looked for."""
METRIC_NAMES = {
    "accuracy": "accuracy (best one-to-one matching)",
    "majority_accuracy": "accuracy (majority class)",
    "balanced_error": "balanced error (lower is better)",
    "rand_index": "Rand index",
    "adjusted_rand_index": "adjusted Rand index",
    "fowlkes_mallows": "Fowlkes-Mallows index",
    "normalized_mutual_info": "normalised mutual information",
}
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
    moves = _moves(subject)
    view = _View(subject, trust)
    titles = dict(QUESTIONS)
    words = " ".join([trust.summary, *trust.sentences[:1]])
    body = [
        page.verdict(titles["trust"], trust.answer, words),
        page.bullets(facts.cautions(estimator, subject.sizes), "warnings"),
        page.bullets(notes, "notes"),
        page.contents(QUESTIONS),
        page.section(titles["clusters"], *view.clusters(), name="clusters"),
        page.section(titles["trust"], *_trust(view, X, truth), name="trust"),
        page.section(titles["columns"], *_columns(view, moves), name="columns"),
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


class _View:
    """The sampled rows as the page shows them: on the map, in tables, one by one."""

    def __init__(self, subject: Subject, trust: Trust) -> None:
        self.subject, self.trust = subject, trust
        self.labels = subject.sampled
        self.where = places(subject.estimator, subject.numbers)
        self.shown_clusters = [*range(min(subject.n_clusters, SHOWN_CLUSTERS))]
        self.with_noise = [*self.shown_clusters, *([-1] if (self.labels < 0).any() else [])]
        self.names = names_of(subject.columns[:LISTED], self.labels, subject.n_clusters)
        self.typical = {k: _typical(subject, k) for k in self.shown_clusters}
        self.least_sure = trust.unsure[:UNSURE]
        some = np.linspace(0, len(self.labels) - 1, min(ON_MAP, len(self.labels))).astype(int)
        named = [*self.typical.values(), self.least_sure]
        self.shown = np.unique(np.concatenate([some, *named]).astype(int))
        self.columns = subject.columns[:LISTED]
        unsure = np.zeros(len(self.labels), dtype=bool)
        unsure[trust.unsure] = True
        says = f"Map of {len(self.shown):,} rows, coloured by cluster."
        self.map, self.at = charts.map_of(self.where, self.shown, self.labels, unsure, says)

    def clusters(self) -> list[Markup]:
        """What the clusters are."""
        subject = self.subject
        named = [(k, cluster_name(k).capitalize()) for k in self.with_noise]
        parts = [page.picker(named)] if len(named) > 1 else []
        parts.append(page.grid([self._card(k) for k in self.with_noise], "clusters"))
        left = subject.n_clusters - len(self.shown_clusters)
        if left > 0:
            parts.append(page.paragraph(f"{left} smaller clusters are not shown.", "small"))
        hollow = " Hollow points are unsure." if len(self.trust.unsure) else ""
        across = f"Left to right: {self.where.across}; bottom to top: {self.where.up}."
        words = (
            f"{len(self.shown):,} of {subject.n_rows:,} rows, placed by what the model has learned. "
            f"{across}{hollow} Click on a point for the values of its row, or move with the arrow "
            "keys."
        )
        parts.append(page.heading("A map of the rows"))
        beside = Markup("\n").join([self._sizes(), page.paragraph(words, "small")])
        parts.append(page.grid([page.figure(self.map, ""), page.grid([beside], "aside")], "two"))
        parts.append(page.heading("Typical rows"))
        about = (
            "The medoid of a cluster is the row with the smallest distances to its others, as the "
            "model sees them; the next rows stand for what it leaves out."
        )
        order = [(k, row) for k in self.shown_clusters for row in self.typical[k]]
        stands = ["medoid" if row == self.typical[k][0] else "typical" for k, row in order]
        parts.append(page.paragraph(about, "small"))
        parts.append(self.rows_table(order, "row", [("is", stands)]))
        return parts

    def _sizes(self) -> Markup:
        """How many of all rows every cluster has."""
        subject, found = self.subject, []
        for k in self.with_noise:
            size = subject.noise if k < 0 else int(subject.sizes[k])
            part = size / max(subject.n_rows, 1)
            found.append((k, cluster_name(k), part, f"{size:,} ({share(part)})"))
        return page.sizes(found)

    def rows_table(
        self, order: list[tuple[int, int]], head: str, more: Sequence[tuple[str, Any]] = ()
    ) -> Markup:
        """Some rows with their clusters, what else is known of them, and their first columns."""
        shown = self.columns[:IN_TABLES]
        first = {int(row): i for i, row in enumerate(self.shown)}
        lines = [
            (
                page.row(self.subject.ids[row], first[int(row)]),
                Markup("{}{}").format(charts.dot(k), cluster_name(k)),
                *(values[i] for _, values in more),
                *(column.text(column.values[row]) for column in shown),
            )
            for i, (k, row) in enumerate(order)
        ]
        names = (head, "cluster", *(name for name, _ in more), *(c.name for c in shown))
        return page.table(names, lines, clusters=[k for k, _ in order])

    def data(self) -> dict[str, Any]:
        """What the script shows of a row."""
        own = self.trust.own
        sure = [None if own is None or np.isnan(own[i]) else share(own[i]) for i in self.shown]
        clusters = range(self.subject.n_clusters)
        return {
            "width": charts.WIDTH,
            "height": charts.HEIGHT,
            "x": self.at[:, 0].tolist(),
            "y": self.at[:, 1].tolist(),
            "k": self.labels[self.shown].tolist(),
            "ids": [self.subject.ids[i] for i in self.shown],
            "sure": sure,
            "columns": [column.name for column in self.columns],
            "values": [[c.text(v) for v in c.values[self.shown]] for c in self.columns],
            "middle": [[middle(c, self.labels == k) for k in clusters] for c in self.columns],
        }

    def _card(self, k: int) -> Markup:
        subject = self.subject
        size = subject.noise if k < 0 else int(subject.sizes[k])
        part = share(size / max(subject.n_rows, 1))
        if k < 0:
            words = "rows that belong to no cluster"
            return page.cluster(k, "Noise", words, f"{size:,}", part, [])
        here, every = self.labels == k, np.ones(len(self.labels), dtype=bool)
        strong = sorted(self.columns, key=lambda column: -mark(column, here).strength)[:MARKS]
        if subject.n_clusters == 1:
            strong = self.columns[:MARKS]
        marks = [
            (
                column.name,
                middle(column, here),
                f"all: {middle(column, every)}" if subject.n_clusters > 1 else "",
                charts.spark(column, self.labels, k),
            )
            for column in strong
            if here.any()
        ]
        name = self.names[k]
        if not name and subject.n_clusters > 1:
            name = "like the others in every single column"
        return page.cluster(k, f"Cluster {k}", name, f"{size:,}", part, marks)


def middle(column: Column, here: np.ndarray) -> str:
    """The median of some rows, or the most frequent category with its share."""
    found = column.values[here & np.isfinite(column.values)]
    if not len(found):
        return column.text(np.nan)
    if not column.is_words:
        return column.text(float(np.median(found)))
    counts = np.bincount(found.astype(int))
    return f"{column.words[counts.argmax()]} ({share(counts.max() / len(found))})"


def _typical(subject: Subject, cluster: int) -> np.ndarray:
    """The medoid and typical rows of a cluster in the space of the model."""
    inside = np.flatnonzero(subject.sampled == cluster)
    if not len(inside):
        return inside
    some = inside[np.linspace(0, len(inside) - 1, min(NEAR, len(inside))).astype(int)]
    numbers = subject.numbers
    rows = numbers.iloc[some] if hasattr(numbers, "iloc") else numbers[some]
    features = subject.estimator.transform(rows)
    features = features.toarray() if hasattr(features, "toarray") else features
    return some[typical(np.asarray(features, dtype=np.float64), TYPICAL)]


def _moves(subject: Subject) -> list[float]:
    """How many rows move to another cluster when a column is shuffled, for the first columns."""
    if subject.n_clusters == 1:
        return []
    return shuffled(subject, LISTED, SHUFFLED_ROWS, REPEATS)


def _trust(view: _View, X: TableLike, truth: PerRow) -> list[Markup]:
    subject, trust = view.subject, view.trust
    parts = [
        page.verdict("In short:", trust.answer, trust.summary),
        page.bullets(trust.sentences, "said"),
    ]
    if trust.own is not None:
        parts += [page.heading("Where it is unsure"), *_sureness(view)]
    choice = subject.estimator._choice()
    if choice is not None:
        tried = choice_parts(subject.estimator, choice, subject.numbers)
        parts.append(page.folded("What else was tried", *tried))
    if truth is not None:
        rows = subject.numbers if subject.is_pipeline else X
        parts.append(_against_truth(with_truth(rows, truth, subject)))
    return parts


def _sureness(view: _View) -> list[Markup]:
    """How often fits of other rows give the same label, cluster by cluster."""
    own, chances, labels = view.trust.own, view.trust.chances, view.labels
    assert own is not None and chances is not None
    rows = []
    for k in view.shown_clusters:
        there = own[labels == k]
        if not len(there):
            continue
        unsure = there < SURE_ROW
        rival = chances[labels == k][unsure].sum(axis=0)
        rival[k] = -1.0
        towards = cluster_name(int(np.argmax(rival))) if unsure.any() else ""
        name = Markup("{}{}").format(charts.dot(k), cluster_name(k))
        mean = page.bar(there.mean(), share(there.mean()))
        rows.append((name, mean, share(float(unsure.mean())), towards))
    head = ("", "mean chance", "unsure rows", "mostly towards")
    table = page.table(head, rows, clusters=[k for k in view.shown_clusters if (labels == k).any()])
    words = (
        f"The chance that a fit of other rows would give a row the same label, of {len(own):,} "
        f"rows; a row is unsure, near a boundary, where it is below {share(SURE_ROW)}."
    )
    picture = page.figure(charts.chances(own, labels, view.shown_clusters), words, "plain")
    parts = [page.grid([table, picture], "two")]
    if len(view.least_sure):
        order = [(int(labels[row]), int(row)) for row in view.least_sure]
        second = [_rivals(chances[row], int(labels[row])) for row in view.least_sure]
        sure = [share(own[row]) for row in view.least_sure]
        more = (("chance", sure), ("or", second))
        parts.append(page.paragraph("The least sure of these rows:", "small"))
        parts.append(view.rows_table(order, "row", more))
    return parts


def _rivals(chances: np.ndarray, own: int) -> str:
    """The cluster that a row would be in otherwise."""
    other = chances.copy()
    other[own] = -1.0
    return f"{cluster_name(int(np.argmax(other)))} ({share(float(other.max()))})"


def _against_truth(found: Comparison) -> Markup:
    rows = [
        (METRIC_NAMES[name], f"{value:.3f}", f"{found.k_means[name]:.3f}")
        for name, value in found.ours.items()
    ]
    on = "all rows" if found.k_means_rows == found.table.table.sum() else "a sample"
    about = (
        "k-means: standardised columns, best of ten starts, "
        f"fitted to and measured on {on} ({found.k_means_rows:,})."
    )
    if -1 in found.table.clusters:
        about += " Noise counts as one more cluster."
    parts = [page.heading("Agreement with the given classes")]
    parts.append(page.table(("against the given classes", "dmkc", "k-means"), rows))
    parts.append(page.paragraph(about, "small"))
    if len(found.table.classes) <= SHOWN_CLASSES and len(found.table.clusters) <= SHOWN_CLASSES:
        head = ("rows of class", *(f"in {cluster_name(k)}" for k in found.table.clusters))
        counts = [
            (printable(name), *(f"{n:,.0f}" for n in row))
            for name, row in zip(found.table.classes, found.table.table, strict=True)
        ]
        parts.append(page.table(head, counts))
    return Markup("\n").join(parts)


def _columns(view: _View, moves: list[float]) -> list[Markup]:
    """What sets the clusters apart: rules, columns in order, and how they are spread."""
    subject = view.subject
    if subject.n_clusters == 1:
        return []
    inside = np.flatnonzero(view.labels >= 0)
    labels = view.labels[inside]
    seen = [column.taken(inside) for column in subject.columns[:LISTED]]
    parts = [*_rules(seen, labels)]
    parts.append(page.heading("Columns, the most telling first"))
    words = (
        "How much of a row's cluster a column tells by itself (0 %: nothing, 100 %: all), and the "
        f"share of {min(SHUFFLED_ROWS, len(view.labels)):,} rows that move to another cluster of "
        "the model when the values of the column are shuffled among them (permutation importance)."
    )
    if subject.tells and max(subject.tells) < 0.1:
        words += (
            " No column tells much alone here: the clusters differ in shape, or in several columns "
            "together, which is what k-means cannot see."
        )
    parts.append(page.paragraph(words, "small"))
    clusters = view.shown_clusters
    heads = [f"median in {k}" for k in clusters[:IN_TABLES]]
    rows = [
        (
            column.name,
            page.bar(tells, share(tells)),
            "" if np.isnan(moved) else page.bar(moved, share(moved)),
            *(middle(column, labels == k) for k in clusters[:IN_TABLES]),
        )
        for column, tells, moved in zip(seen, subject.tells, moves, strict=False)
    ]
    parts.append(page.table(("column", "tells alone", "moves when shuffled", *heads), rows))
    if len(subject.columns) > len(seen) or subject.n_columns > len(subject.columns):
        rest = f"The first {len(seen)} of {subject.n_columns:,} columns."
        parts.append(page.paragraph(rest, "small"))
    every = [column.taken(np.arange(len(view.labels))) for column in subject.columns[:DRAWN]]
    cards = [
        page.column(
            column.name,
            _spoken(column, tells),
            charts.side_by_side(column, view.labels, view.with_noise),
        )
        for column, tells in zip(every, subject.tells, strict=False)
    ]
    parts.append(page.heading("Distributions side by side"))
    parts.append(
        page.paragraph(
            "Bars are shares of the rows of a cluster; numbers on the left are clusters, each drawn "
            "to its own highest bar.",
            "small",
        )
    )
    parts.append(page.grid(cards, "columns"))
    pictures = [p for p in subject.estimator._pictures() if p.name in OF_COLUMNS]
    if pictures:
        parts.append(page.gallery([_picture(subject, each) for each in pictures]))
    return parts


def _spoken(column: Column, tells: float) -> str:
    gaps = float(np.mean(~np.isfinite(column.values)))
    missing = f"; missing in {share(gaps)} of the rows" if gaps else ""
    return f"tells {share(tells)} alone{missing}"


def _rules(seen: list[Column], labels: np.ndarray) -> list[Markup]:
    found = surrogate(seen, labels)
    if found is None:
        return []
    rules = [
        {
            "text": rule.text or "every row",
            "cluster": rule.cluster,
            "says": f"cluster {rule.cluster}: holds for {share(rule.holds)} of the rows, of which "
            f"{share(rule.right)} are in this cluster",
        }
        for rule in found.rules
    ]
    silent = sorted(set(np.unique(labels).tolist()) - {rule.cluster for rule in found.rules})
    words = (
        f"A tree of {len(found.rules)} leaves gives {share(found.fidelity)} of rows that it has not "
        f"seen the label of the model (always the largest cluster: {share(found.largest)})."
    )
    if silent:
        words += f" No rule leads to {', '.join(map(cluster_name, silent))}."
    if found.fidelity < 0.8:
        words += " That is not much: no few thresholds say what these clusters are."
    return [page.heading("In words"), page.paragraph(words), page.rules(rules)]


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
