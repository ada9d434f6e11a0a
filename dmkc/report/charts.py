"""Charts as SVG inside the page.

They are drawn here and not by a chart library in the browser: Bokeh's script alone is 1.2 MB of a
report, draws on a canvas, which neither takes the colours of a dark page nor is there without a
script or on paper, and needs a script that is larger than a whole report.  A few macros and 150
lines of script (templates/charts.html, charts.js) give the same hover, click and filter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from dmkc.contingency import cluster_name
from dmkc.plot.clusters import Places
from dmkc.report.columns import Column, share, shortened
from dmkc.report.page import macros
from dmkc.report.profiles import Bins, bins_of

WIDTH, HEIGHT, EDGE = 640, 420, 10
LEFT, RIGHT, TALL = 22.0, 320.0, 28.0
MOST_GROUPS = 6
"""Categories with bars of their own."""
_charts: Any = macros("charts.html")


def dot(cluster: int) -> Markup:
    """The colour of a cluster."""
    return _charts.dot(cluster)


def on_map(points: np.ndarray, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Places in the units of a map; the few rows far outside stand at its edge."""
    low, high = np.quantile(points, [0.002, 0.998], axis=0)
    size = np.where(high > low, high - low, 1.0)
    at = np.clip((points - low) / size, -0.02, 1.02)
    inside = np.array([width - 2 * EDGE, height - 2 * EDGE])
    found = EDGE + np.clip(at, 0.0, 1.0) * inside
    found[:, 1] = height - found[:, 1]
    return np.round(found, 1)


def map_of(
    where: Places, shown: np.ndarray, labels: np.ndarray, unsure: np.ndarray, says: str
) -> tuple[Markup, np.ndarray]:
    """The map of some rows, and the places of these."""
    at = on_map(where.points[shown])
    points = [
        (int(labels[row]), bool(unsure[row]), i, *at[i].tolist()) for i, row in enumerate(shown)
    ]
    low, high = np.quantile(where.points[shown][:, 0], [0.002, 0.998])
    lines = [
        (round(EDGE + (x - low) / (high - low) * (WIDTH - 2 * EDGE), 1), x != 0)
        for x in where.lines
        if low < x < high
    ]
    return _charts.map(points, lines, WIDTH, HEIGHT, says), at


def thumbnail(points: np.ndarray, labels: np.ndarray, says: str) -> Markup:
    """A small map."""
    width, height = 240, 160
    at = on_map(points, width, height).tolist()
    return _charts.thumbnail(
        [(int(k), x, y) for k, (x, y) in zip(labels, at, strict=True)], width, height, says
    )


def side_by_side(column: Column, labels: np.ndarray, clusters: Sequence[int]) -> Markup:
    """How the values of a column spread in every cluster."""
    bins = bins_of(column)
    spread = {k: bins.shares(labels == k) for k in clusters}
    says = f"{column.name}: distribution in every cluster."
    if column.is_words:
        return _charts.words(_groups(bins, spread), says)
    return _lanes(bins, spread, says)


def chances(own: np.ndarray, labels: np.ndarray, clusters: Sequence[int]) -> Markup:
    """How sure the labels of every cluster are."""
    edges = np.linspace(0, 1, 21)
    numbers = np.clip(np.searchsorted(edges, np.nan_to_num(own), side="right") - 1, 0, 19)
    numbers = np.where(np.isnan(own), -1, numbers)
    names = tuple(f"{share(a)} to {share(b)}" for a, b in itertools.pairwise(edges))
    bins = Bins(numbers, names, ("0 %", "50 %", "100 %"))
    spread = {k: bins.shares(labels == k) for k in clusters}
    return _lanes(bins, spread, "Chance of the label of every row, by cluster.")


def spark(column: Column, labels: np.ndarray, cluster: int) -> Markup:
    """A column in a cluster, in front of all rows."""
    bins = bins_of(column)
    every, own = bins.shares(np.ones(len(labels), dtype=bool)), bins.shares(labels == cluster)
    names = f"{column.name} in cluster {cluster}, in front of all rows."
    return _charts.spark(cluster, _small(every), _small(own), names)


def _lanes(bins: Bins, spread: dict[int, np.ndarray], says: str) -> Markup:
    width = (RIGHT - LEFT) / len(bins.names)
    lanes = []
    for k, shares in spread.items():
        peak = max(float(shares.max(initial=0.0)), 1e-12)
        bars = [
            (
                round(LEFT + j * width, 1),
                round(max(width - 1, 0.8), 1),
                round(TALL * part / peak, 1),
                f"{cluster_name(k)}, {bins.names[j]}: {share(part)} of its rows",
            )
            for j, part in enumerate(shares)
            if part > 0
        ]
        lanes.append({"k": k, "short": "–" if k < 0 else str(k), "bars": bars})
    return _charts.lanes(lanes, bins.ends, says)


def _groups(bins: Bins, spread: dict[int, np.ndarray]) -> list[dict[str, Any]]:
    """The categories with most rows, in the order that they have; the others in one."""
    total = np.sum(list(spread.values()), axis=0)
    most = np.sort(np.argsort(-total, kind="stable")[:MOST_GROUPS])
    rest = np.setdiff1d(np.arange(len(total)), most)
    groups = [(bins.names[j], {k: float(s[j]) for k, s in spread.items()}) for j in most]
    if len(rest) and total[rest].sum() > 0:
        name = f"{len(rest)} others" if len(rest) > 1 else bins.names[rest[0]]
        groups.append((name, {k: float(s[rest].sum()) for k, s in spread.items()}))
    return [
        {
            "name": shortened(name),
            "bars": [
                (k, round(320 * part, 1), f"{cluster_name(k)}: {share(part)}")
                for k, part in parts.items()
            ],
        }
        for name, parts in groups
    ]


def _small(shares: np.ndarray) -> list[tuple[float, float, float]]:
    width, peak = 120 / len(shares), max(float(shares.max(initial=0.0)), 1e-12)
    return [
        (round(j * width, 1), round(max(width - 0.6, 0.6), 1), round(24 * part / peak, 1))
        for j, part in enumerate(shares)
        if part > 0
    ]
