"""Starts for wide rows of which few columns separate the clusters.

k-means of all columns drowns in the others.  Columns that look like a mixture come first: their
distribution is flat or two-humped, or leans to one side.  Then k-means of a few columns and the
choice of the columns that its clusters differ in take turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FEW_COLUMNS = (8, 32)
"""How many columns are looked at, one start for each."""
WIDE_ROWS = 50
"""Rows with fewer columns have no use for such starts."""
MOST_TURNS = 10

Grouping = Callable[[np.ndarray], np.ndarray]
"""From rows to the cluster of each."""


def few_columns(
    rows: np.ndarray, weights: np.ndarray, count: int, grouping: Grouping
) -> np.ndarray:
    """The clusters of standardised rows by a few of their columns."""
    shares = weights / weights.sum()
    chosen = _largest(_mixedness(rows, shares), count)
    labels = grouping(rows[:, chosen])
    for _ in range(MOST_TURNS):
        best = _largest(_separation(rows, shares, labels), count)
        if np.array_equal(best, chosen):
            break
        chosen = best
        labels = grouping(rows[:, chosen])
    return labels


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the largest values are, in ascending order; the first of those that are equal."""
    return np.sort(np.argsort(-values, kind="stable")[:count])


def _mixedness(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Sarle's coefficient of bimodality of every column: 5/9 if uniform, 1/3 if normal."""
    centred = rows - shares @ rows
    square = centred**2
    spread = shares @ square
    lean, tails = shares @ (centred * square), shares @ square**2
    safe = np.where(spread > 0, spread, 1.0)
    found = (lean**2 / safe**3 + 1.0) / np.maximum(tails / safe**2, 1.0)
    return np.where(spread > 0, found, 0.0)


def _separation(rows: np.ndarray, shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The part of every column's spread that lies between the clusters."""
    whole = shares @ rows
    spread = shares @ (rows - whole) ** 2
    between = np.zeros(rows.shape[1])
    for label in np.unique(labels):
        inside = labels == label
        share = shares[inside].sum()
        if share > 0:
            between += share * (shares[inside] @ rows[inside] / share - whole) ** 2
    return np.where(spread > 0, between / np.where(spread > 0, spread, 1.0), 0.0)
