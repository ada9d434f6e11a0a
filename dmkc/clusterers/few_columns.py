"""Starts for wide rows of which few columns separate the clusters.

k-means of all columns drowns in the others.  Columns that look like a mixture come first: their
distribution is flat or two-humped, or leans to one side.  Where there are more columns than rows,
another start begins with columns that are correlated: each of them may hide its clusters, but
they move together (covariance thresholding; Deshpande and Montanari 2016).  Then k-means of a few
columns and the choice of the columns that its clusters differ in take turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmkc.clusterers.sampled import between_shares

FEW_COLUMNS = (8, 32)
"""How many columns are looked at, one start for each."""
WIDE_ROWS = 50
"""Rows with fewer columns have no use for such starts."""
MOST_TURNS = 10
MOST_PRODUCTS = 1e10
"""Products that the search for correlated columns may take, some seconds at most."""
SEEDS_AT_ONCE = 256
COLUMNS_AT_ONCE = 512
"""Columns whose powers are held at once: few enough to stay in the cache."""

Grouping = Callable[[np.ndarray], np.ndarray]
"""From rows to the cluster of each."""
Beginning = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""From rows, their shares and a number to so many columns."""


def mixed(rows: np.ndarray, shares: np.ndarray, count: int) -> np.ndarray:
    """The columns that look most like a mixture."""
    return _largest(_mixedness(rows, shares), count)


def correlated(rows: np.ndarray, shares: np.ndarray, count: int) -> np.ndarray:
    """A column and those that correlate with it: the group whose squared correlations are largest.

    Where all pairs would be too many, groups are sought around the columns that look most like a
    mixture.
    """
    n, d = rows.shape
    count = min(count, d)
    if count < 2:
        return mixed(rows, shares, count)
    centred = rows - shares @ rows
    spread = shares @ centred**2
    usable = np.where(spread > 0, spread, np.inf)
    unit = (centred * np.sqrt(shares[:, None] / usable)).astype(np.float32)
    seeds = mixed(rows, shares, max(count, int(MOST_PRODUCTS / (n * d))))
    best, found = -1.0, seeds[:count]
    for first in range(0, len(seeds), SEEDS_AT_ONCE):
        some = seeds[first : first + SEEDS_AT_ONCE]
        square = (unit[:, some].T @ unit) ** 2
        square[np.arange(len(some)), some] = 2.0  # a column belongs to its own group
        scores = np.partition(square, -count, axis=1)[:, -count:].sum(axis=1)
        at = int(scores.argmax())
        if scores[at] > best:
            best, found = float(scores[at]), _largest(square[at], count)
    return found


def few_columns(
    rows: np.ndarray,
    weights: np.ndarray,
    count: int,
    grouping: Grouping,
    beginning: Beginning = mixed,
) -> np.ndarray:
    """The clusters of standardised rows by a few of their columns."""
    shares = weights / weights.sum()
    chosen = beginning(rows, shares, count)
    labels = grouping(rows[:, chosen])
    for _ in range(MOST_TURNS):
        best = _largest(between_shares(rows, shares, labels)[0], count)
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
    parts = range(0, rows.shape[1], COLUMNS_AT_ONCE)
    each = [_mixedness_of(rows[:, a : a + COLUMNS_AT_ONCE], shares) for a in parts]
    return np.concatenate(each)


def _mixedness_of(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    centred = rows - shares @ rows
    square = centred**2
    spread = shares @ square
    lean, tails = shares @ (centred * square), shares @ square**2
    safe = np.where(spread > 0, spread, 1.0)
    found = (lean**2 / safe**3 + 1.0) / np.maximum(tails / safe**2, 1.0)
    return np.where(spread > 0, found, 0.0)
