"""What the columns say of the clusters: which tell them apart, names, medoids and typical rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import euclidean_distances

from dmkc.report.columns import GAP, Column

BINS = 24
"""Of a histogram, at most."""
PIECES = 16
"""Of the values of a column, equally many rows in each, where it is asked what they tell."""
TELLING = 0.33
"""From which difference on a column gives a cluster its name."""
TAILS = (0.005, 0.995)
"""Shares of the rows between which histograms are drawn; the end bins hold those beyond."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the bars of a column stand."""

    numbers: np.ndarray
    """The bin of every row; -1 where the value is missing."""
    names: tuple[str, ...]
    ends: tuple[str, ...]
    """What the first, the middle and the last edge are, for an axis; nothing for categories."""

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """How some rows, given as a mask, spread over the bins."""
        inside = self.numbers[rows & (self.numbers >= 0)]
        return np.bincount(inside, minlength=len(self.names)) / max(len(inside), 1)


def bins_of(column: Column) -> Bins:
    """Bars for a histogram: one for each category or whole number, or some of equal width."""
    values, there = column.values, np.isfinite(column.values)
    numbers = np.full(len(values), -1)
    if column.is_words:
        numbers[there] = values[there].astype(int)
        return Bins(numbers, column.words, ())
    if not there.any():
        return Bins(numbers, (GAP,), ())
    low, high = np.quantile(column.present, TAILS)
    if column.is_whole and column.kind == "number" and high - low < BINS:
        low, high = np.floor(low), np.ceil(high)
        each = np.arange(low, high + 1)
        numbers[there] = np.clip(values[there], low, high) - low
        names = tuple(map(column.text, each))
        return Bins(numbers, names, _ends(column, (low, (low + high) / 2, high)))
    edges = np.linspace(low, high, BINS + 1)
    inner = np.searchsorted(edges, values[there], side="right") - 1
    numbers[there] = np.clip(inner, 0, BINS - 1)
    texts = [column.text(edge) for edge in edges]
    names = tuple(f"{a} to {b}" for a, b in itertools.pairwise(texts))
    return Bins(numbers, names, _ends(column, (low, (low + high) / 2, high)))


def told(column: Column, labels: np.ndarray) -> float:
    """The share of what is unknown of a row's cluster that this column tells by itself, 0 to 1.

    Mutual information of labels and values in pieces, divided by the entropy of the labels; what
    chance alone would add among so many pieces is taken off.
    """
    pieces = _pieces(column)
    _, clusters = np.unique(labels, return_inverse=True)
    table = np.zeros((clusters.max() + 1, pieces.max() + 1))
    np.add.at(table, (clusters, pieces), 1.0)
    table = table[:, table.any(axis=0)]
    entropy = _entropy(table.sum(axis=1))
    if entropy <= 0:
        return 0.0
    mutual = entropy + _entropy(table.sum(axis=0)) - _entropy(table.ravel())
    chance = (table.shape[0] - 1) * (table.shape[1] - 1) / (2 * len(labels))
    return float(np.clip((mutual - chance) / entropy, 0.0, 1.0))


@dataclass(frozen=True)
class Mark:
    """What is particular about a column in a cluster."""

    strength: float
    """0: as elsewhere; 1: as nowhere else."""
    words: str


def mark(column: Column, here: np.ndarray) -> Mark:
    """How the rows of a cluster, given as a mask, differ from the others in a column."""
    if not here.any() or here.all():
        return Mark(0.0, "")
    there = np.isfinite(column.values)
    inside, outside = column.values[here & there], column.values[~here & there]
    absent = float(np.mean(~there[here])) - float(np.mean(~there[~here]))
    known = Mark(abs(absent), f"{column.name} {'missing' if absent > 0 else 'known'}")
    if not len(inside) or not len(outside):
        return known
    if column.is_words:
        count = len(column.words)
        excess = np.bincount(inside.astype(int), minlength=count) / len(inside)
        excess = excess - np.bincount(outside.astype(int), minlength=count) / len(outside)
        most = int(np.argmax(excess))
        if column.kind == "boolean":
            words = column.name if most else f"not {column.name}"
        else:
            words = f"{column.name} {column.words[most]}"
        found = Mark(float(excess[most]), words)
    else:
        place = _ahead(inside, outside)
        high, low = ("late", "early") if column.kind == "date" else ("high", "low")
        found = Mark(abs(place), f"{high if place > 0 else low} {column.name}")
        middle = np.median(outside)
        spread = _ahead(np.abs(inside - middle), np.abs(outside - middle))
        if abs(spread) > abs(place) + 0.1:
            words = (
                f"{column.name} far from the middle" if spread > 0 else f"middling {column.name}"
            )
            found = Mark(abs(spread), words)
    return max(found, known, key=lambda each: each.strength)


def names_of(columns: Sequence[Column], labels: np.ndarray, n_clusters: int) -> list[str]:
    """A name for every cluster by the columns that set it apart, or nothing where none does.

    Where two would have the same one, it says more: a third column, or a value.
    """
    marks: list[list[tuple[Mark, Column]]] = []
    for cluster in range(n_clusters):
        found = [(mark(column, labels == cluster), column) for column in columns]
        found = [each for each in found if each[0].strength >= TELLING]
        marks.append(sorted(found, key=lambda each: -each[0].strength))

    def named(count: int) -> list[str]:
        return [", ".join(each.words for each, _ in found[:count]) for found in marks]

    short, long = named(2), named(3)
    names = [b if short.count(a) > 1 else a for a, b in zip(short, long, strict=True)]
    for cluster, found in enumerate(marks):
        numbers = [column for _, column in found if not column.is_words]
        if numbers and names.count(names[cluster]) > 1:
            there = numbers[0].values[labels == cluster]
            middle = numbers[0].text(float(np.nanmedian(there)))
            long[cluster] = f"{numbers[0].name} about {middle}"
        else:
            long[cluster] = names[cluster]
    return long


def typical(points: np.ndarray, count: int, first: int | None = None) -> np.ndarray:
    """Numbers of rows that stand for all: the medoid first, unless it is known.

    Each next one is the row that brings all rows nearest to one of those that are picked.
    """
    distances = euclidean_distances(points)
    picked = [] if first is None else [first]
    while len(picked) < min(count, len(points)):
        nearest = distances[:, picked].min(axis=1, initial=np.inf)
        totals = np.minimum(distances, nearest[:, None]).sum(axis=0)
        totals[picked] = np.inf
        picked.append(int(np.argmin(totals)))
    return np.array(picked, dtype=int)


def _ahead(inside: np.ndarray, outside: np.ndarray) -> float:
    """How much likelier a value inside is larger than one outside than the reverse, -1 to 1."""
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)]
    above = ranks.sum() - len(inside) * (len(inside) + 1) / 2
    return float(2 * above / (len(inside) * len(outside)) - 1)


def _pieces(column: Column) -> np.ndarray:
    """The values of a column as few numbers; a missing value is one of its own."""
    values, there = column.values, np.isfinite(column.values)
    found = np.zeros(len(values), dtype=int)
    if column.is_words:
        found[there] = values[there].astype(int) + 1
    elif there.any():
        inner = np.unique(np.quantile(column.present, np.linspace(0, 1, PIECES + 1)[1:-1]))
        found[there] = np.searchsorted(inner, values[there], side="right") + 1
    return found


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _ends(column: Column, places: Sequence[float]) -> tuple[str, ...]:
    return tuple(map(column.text, places))
