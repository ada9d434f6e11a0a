"""The clusters as a few rules on the user's columns: a small decision tree, read out loud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from dmkc.report.columns import Column, date, number

LEAST_ROWS = 0.01
"""Share of the rows that a rule must hold for."""
SPARE = 3
"""Leaves beyond the number of clusters, at most."""
MOST_LEAVES = 14
GAIN = 0.01
"""A larger tree must be right about so many more of the rows."""
LOOSE = 0.0025
"""Share of the rows that a threshold may move over to have fewer digits."""
KEPT_ASIDE = 3
"""One row of so many is not shown to the tree, and asked afterwards."""


@dataclass(frozen=True)
class Question:
    """A question that the tree may put to a row."""

    column: Column
    about: str = "value"
    """value, word or gap."""
    word: int = 0

    def values(self) -> np.ndarray:
        values = self.column.values
        if self.about == "gap":
            return (~np.isfinite(values)).astype(np.float64)
        if self.about == "word":
            return (values == self.word).astype(np.float64)
        middle = float(np.median(self.column.present)) if len(self.column.present) else 0.0
        return np.where(np.isfinite(values), values, middle)

    def words(self, low: float, high: float) -> str:
        """What it means that the value is above `low` and at most `high`."""
        name, yes = self.column.name, np.isfinite(low)
        if self.about == "gap":
            return f"{name} is missing" if yes else f"{name} is not missing"
        if self.about == "word":
            if self.column.kind == "boolean":
                return name if yes else f"not {name}"
            word = self.column.words[self.word]
            return f"{name} is {word}" if yes else f"{name} is not {word}"
        over, under = (">", "≤") if self.column.kind != "date" else ("after", "until")
        if np.isinf(high):
            return f"{name} {over} {self._at(low)}"
        if np.isinf(low):
            return f"{name} {under} {self._at(high)}"
        if self.column.kind == "date":
            return f"{name} after {self._at(low)} and until {self._at(high)}"
        return f"{self._at(low)} < {name} ≤ {self._at(high)}"

    def _at(self, threshold: float) -> str:
        """A threshold with the digits that it has."""
        if self.column.kind == "date":
            return date(threshold, 1.0 if threshold == round(threshold) else 0.0)
        digits = next((d for d in range(13) if round(threshold, d) == threshold), 13)
        shown = number(threshold, 10.0**-digits)
        return f"{shown} days" if self.column.kind == "duration" else shown


@dataclass(frozen=True)
class Rule:
    """One leaf of the tree."""

    text: str
    cluster: int
    holds: float
    """Share of all rows that it holds for."""
    right: float
    """Share of these that are in the cluster."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A tree that says nearly the same as a clustering."""

    rules: list[Rule]
    fidelity: float
    """Share of the rows that it was not shown and puts where the clustering does."""
    largest: float
    """The same, if it put all rows into the largest cluster."""
    tree: Any
    tests: list[Question]


def surrogate(columns: Sequence[Column], labels: np.ndarray) -> Surrogate | None:
    """The smallest tree that is nearly as good as larger ones; None where there is one cluster."""
    tests = [test for column in columns for test in _tests(column)]
    clusters = np.unique(labels)
    if len(clusters) < 2 or not tests:
        return None
    # In the precision that trees compare in, so that rules mean what the tree does.
    X = np.column_stack([test.values() for test in tests]).astype(np.float32).astype(np.float64)
    aside = np.arange(len(labels)) % KEPT_ASIDE == 0
    aside = np.random.default_rng(0).permutation(aside)
    if len(np.unique(labels[~aside])) < len(clusters):
        aside[:] = False
    shown, asked = ~aside, aside if aside.any() else ~aside
    least = max(2, round(LEAST_ROWS * shown.sum()))
    best: Any = None
    score = -1.0
    most = max(len(clusters), min(len(clusters) + SPARE, MOST_LEAVES))
    for leaves in range(len(clusters), most + 1):
        tree = DecisionTreeClassifier(
            max_leaf_nodes=max(leaves, 2), min_samples_leaf=least, random_state=0
        ).fit(X[shown], labels[shown])
        found = float(np.mean(tree.predict(X[asked]) == labels[asked]))
        if best is None or found > score + GAIN:
            best, score = tree, found
    largest = float(np.max(np.bincount(labels[asked] - labels.min())) / asked.sum())
    simple = _shortened(best, X, tests)
    fidelity = float(np.mean(simple.predict(X[asked]) == labels[asked]))
    return Surrogate(_rules(simple, X, labels, tests), fidelity, largest, simple, tests)


def _tests(column: Column) -> list[Question]:
    found = []
    if np.isfinite(column.values).mean() not in (0.0, 1.0):
        found.append(Question(column, "gap"))
    if column.kind == "boolean":
        found.append(Question(column, "word", 1))
    elif column.is_words:
        found += [Question(column, "word", number) for number in range(len(column.words))]
    else:
        found.append(Question(column))
    return found


def _shortened(tree: Any, X: np.ndarray, tests: list[Question]) -> Any:
    """The tree with thresholds of few digits, which nearly part the rows as they did."""
    inner = tree.tree_
    for node in range(inner.node_count):
        j = inner.feature[node]
        if j < 0:
            continue
        values, at = np.sort(X[:, j]), inner.threshold[node]
        place, loose = int(np.searchsorted(values, at, side="right")), int(LOOSE * len(values))
        below, above = (
            values[max(place - 1 - loose, 0)],
            values[min(place + loose, len(values) - 1)],
        )
        inner.threshold[node] = between(below, above, at, tests[j].column.kind == "date")
    return tree


def between(below: float, above: float, at: float, whole: bool = False) -> float:
    """The number of fewest digits, at least `whole` ones, from `below` to less than `above`."""
    if not (np.isfinite(below) and np.isfinite(above)):
        return at
    size = int(np.floor(np.log10(max(abs(below), abs(above), 1e-300))))
    for digits in range(0 if whole else -size, 13 - min(size, 0)):
        for found in (round(at, digits), round(at - 0.5 * 10.0**-digits, digits)):
            if below <= found < above:
                return found
    return at


def _rules(tree: Any, X: np.ndarray, labels: np.ndarray, tests: list[Question]) -> list[Rule]:
    """The paths to the leaves, with what they say of all rows."""
    inner, leaf = tree.tree_, tree.apply(X)
    found: list[Rule] = []

    def walk(node: int, bounds: dict[int, tuple[float, float]]) -> None:
        j = inner.feature[node]
        if j >= 0:
            low, high = bounds.get(j, (-np.inf, np.inf))
            at = float(inner.threshold[node])
            walk(inner.children_left[node], bounds | {j: (low, min(high, at))})
            walk(inner.children_right[node], bounds | {j: (max(low, at), high)})
            return
        here = leaf == node
        cluster = int(tree.classes_[np.argmax(inner.value[node][0])])
        right = float(np.mean(labels[here] == cluster)) if here.any() else 0.0
        parts = _said([(tests[j], *ends) for j, ends in bounds.items()])
        found.append(Rule(" and ".join(parts), cluster, float(here.mean()), right))

    walk(0, {})
    return sorted(found, key=lambda rule: (rule.cluster, -rule.holds * rule.right))


def _said(asked: list[tuple[Question, float, float]]) -> list[str]:
    """The answers of a path in words, without those that follow from others.

    Where it is said what a row is, what it is not goes without saying; a value that is missing is
    neither large nor small, and one that is large or small is not missing.
    """
    yes = {(id(q.column), q.about) for q, low, _ in asked if np.isfinite(low)}
    valued = {id(q.column) for q, _, _ in asked if q.about == "value"}

    def follows(question: Question, low: float) -> bool:
        column = id(question.column)
        if question.about == "word":
            return not np.isfinite(low) and (column, "word") in yes
        if question.about == "gap":
            return not np.isfinite(low) and column in valued
        return (column, "gap") in yes

    return [q.words(low, high) for q, low, high in asked if not follows(q, low)]
