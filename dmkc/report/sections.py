"""The sections about trust and about columns."""

from __future__ import annotations

import numpy as np

from dmkc.contingency import cluster_name
from dmkc.report import charts, page
from dmkc.report.advice import made_by_one
from dmkc.report.choice import choice_parts
from dmkc.report.columns import Column, share
from dmkc.report.facts import Comparison, with_truth
from dmkc.report.page import Markup
from dmkc.report.rules import surrogate
from dmkc.report.subject import Subject, shuffled
from dmkc.report.trust import SURE_ROW
from dmkc.report.view import IN_TABLES, LISTED, View, middle
from dmkc.showing import printable
from dmkc.typing import PerRow, TableLike

SHOWN_CLASSES = 30
DRAWN = 12
"""Columns whose distributions are drawn."""
SHUFFLED_ROWS, REPEATS = 500, 2
GOOD, MUCH = 0.8, 0.1
"""From which fidelity on a tree is worth reading, and from which share on a column tells much."""
METRIC_NAMES = {
    "accuracy": "accuracy (best one-to-one matching)",
    "majority_accuracy": "accuracy (majority class)",
    "balanced_error": "balanced error (lower is better)",
    "rand_index": "Rand index",
    "adjusted_rand_index": "adjusted Rand index",
    "fowlkes_mallows": "Fowlkes-Mallows index",
    "normalized_mutual_info": "normalised mutual information",
}


def moves_of(subject: Subject) -> list[float]:
    """How many rows move to another cluster when a column is shuffled, for the first columns."""
    if subject.n_clusters == 1:
        return []
    return shuffled(subject, LISTED, SHUFFLED_ROWS, REPEATS)


def trust_parts(view: View, X: TableLike, truth: PerRow) -> list[Markup]:
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


def _sureness(view: View) -> list[Markup]:
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


def column_parts(view: View, moves: list[float], pictures: list[Markup]) -> list[Markup]:
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
        "share of some sampled rows that move to another cluster of the model when the values of "
        "the column are shuffled among them (permutation importance); then medians, or the most "
        "frequent value with its share."
    )
    alone = made_by_one(subject, moves)
    if alone is not None:
        words += (
            f" {alone} alone makes these clusters: if that was not meant, leave it out, or let "
            'columns count alike (scale="standard").'
        )
    if subject.tells and max(subject.tells) < MUCH:
        words += (
            " No column tells much alone here: the clusters differ in shape, or in several columns "
            "together, which is what k-means cannot see."
        )
    parts.append(page.paragraph(words, "small"))
    clusters = view.shown_clusters
    heads = [f"in {cluster_name(k)}" for k in clusters[:IN_TABLES]]
    rows = [
        (
            column.name,
            page.bar(tells, share(tells)),
            "" if np.isnan(moved) else page.bar(moved, share(moved)),
            *(middle(column, labels == k) for k in clusters[:IN_TABLES]),
        )
        for column, tells, moved in zip(seen, subject.tells, moves, strict=False)
    ]
    parts.append(page.table(("column", "tells alone", "shuffled moves", *heads), rows))
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
            "Bars are shares of the rows of a cluster; numbers on the left are clusters, each "
            "drawn to its own highest bar.",
            "small",
        )
    )
    parts.append(page.grid(cards, "columns"))
    return [*parts, page.gallery(pictures)] if pictures else parts


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
        f"A tree of {len(found.rules)} leaves gives {share(found.fidelity)} of rows that it has "
        f"not seen the label of the model (always the largest cluster: {share(found.largest)})."
    )
    if silent:
        words += f" No rule leads to {', '.join(map(cluster_name, silent))}."
    if found.fidelity < GOOD:
        words += " That is not much: no few thresholds say what these clusters are."
    return [page.heading("In words"), page.paragraph(words), page.rules(rules)]
