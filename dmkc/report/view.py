"""The sampled rows as the page shows them: on the map, in tables, on cards, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmkc.contingency import cluster_name
from dmkc.plot.clusters import Places, places
from dmkc.report import charts, page
from dmkc.report.columns import Column, share
from dmkc.report.page import Markup
from dmkc.report.profiles import mark, names_of, typical
from dmkc.report.subject import Subject
from dmkc.report.trust import Trust

SHOWN_CLUSTERS = 12
"""Those with a card and a colour of their own, the largest."""
MARKS, TYPICAL, UNSURE = 4, 3, 8
"""Columns on the card of a cluster, typical rows of it, and unsure rows of all."""
ON_MAP = 1200
"""Rows on the map, whose values can be looked at."""
LISTED, IN_TABLES = 24, 6
"""Columns whose values a row shows, and those in tables of rows."""
NEAR = 400
"""Rows of a cluster among which medoids are looked for."""


class View:
    """The sampled rows as the page shows them: on the map, in tables, one by one."""

    def __init__(self, subject: Subject, trust: Trust) -> None:
        self.subject, self.trust = subject, trust
        self.labels = subject.sampled
        self.where = _places(subject)
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
            parts.append(
                page.paragraph(
                    f"{left} smaller clusters have no card, and are grey on the map.", "small"
                )
            )
        hollow = " Hollow points are unsure." if len(self.trust.unsure) else ""
        across = f"Left to right: {self.where.across}; bottom to top: {self.where.up}."
        by = "" if subject.n_columns == 2 else ", placed by what the model has learned"
        words = Markup("{}{}{}{}").format(
            f"{len(self.shown):,} of {subject.n_rows:,} rows{by}. {across}",
            hollow,
            page.live(" Click on a point for the values of its row, or move with the arrow keys."),
            page.live(" A button above shows one cluster in all charts.") if len(named) > 1 else "",
        )
        parts.append(page.heading("A map of the rows"))
        beside = Markup("\n").join([self._sizes(), page.paragraph(words, "small")])
        parts.append(page.grid([page.figure(self.map, ""), page.grid([beside], "aside")], "two"))
        parts.append(page.heading("Typical rows"))
        about = (
            "The medoid of a cluster is its most central row as the model sees them; the next rows "
            "stand for what it leaves out."
        )
        order = [(k, row) for k in self.shown_clusters for row in self.typical[k]]
        stands = ["medoid" if row == self.typical[k][0] else "typical" for k, row in order]
        parts.append(page.paragraph(about, "small"))
        parts.append(self.rows_table(order, "row", [("is", stands)]))
        return parts

    def _sizes(self) -> Markup:
        """How many of all rows every cluster has."""
        subject, found = self.subject, []
        longest = max(int(subject.sizes.max()), subject.noise, 1)
        for k in self.with_noise:
            size = subject.noise if k < 0 else int(subject.sizes[k])
            part = share(size / max(subject.n_rows, 1))
            found.append((k, cluster_name(k), size / longest, f"{size:,} ({part})"))
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


def _places(subject: Subject) -> Places:
    """Where the rows stand: by their own columns where these are two, or what was learned."""
    two = [c for c in subject.columns if not c.is_words and len(c.present) == len(c.values)]
    if len(two) == subject.n_columns == 2:
        across, up = sorted(two, key=lambda column: column.places)
        return Places(np.column_stack([across.values, up.values]), across.name, up.name)
    return places(subject.estimator, subject.numbers)


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
    medoid = subject.medoids.get(cluster)
    if medoid is not None:
        some = np.union1d(some, [medoid])
    first = None if medoid is None else int(np.searchsorted(some, medoid))
    numbers = subject.numbers
    rows = numbers.iloc[some] if hasattr(numbers, "iloc") else numbers[some]
    features = subject.estimator.transform(rows)
    if not features.shape[1]:  # no column is selected
        return some[:TYPICAL]
    features = features.toarray() if hasattr(features, "toarray") else features
    return some[typical(np.asarray(features, dtype=np.float64), TYPICAL, first)]
