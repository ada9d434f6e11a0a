"""How far labelings agree, which of them differ clearly, and rows in units that can be compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dmkc.kernels.tiles import mixed_units

MOST_COMPONENTS = 100
SURE = 0.8
"""Confidence from which on a choice stands alone."""
DIFFERENT = 0.5
"""Clusterings that are offered agree with each other less than this (adjusted Rand index)."""
MOST_OFFERED = 3


def agreements(labelings: np.ndarray) -> np.ndarray:
    """Adjusted Rand index of every pair of labelings (one a row), all from one matrix product."""
    parts = [_members(labels) for labels in labelings]
    n = labelings.shape[1]
    edges = np.cumsum([0, *(part.shape[1] for part in parts)])[:-1]
    together = np.concatenate(parts, axis=1)
    tables = together.T @ together
    squares = np.add.reduceat(np.add.reduceat(tables**2, edges, axis=0), edges, axis=1)
    pairs = (squares - n) / 2.0
    own = (np.array([np.sum(part.sum(axis=0) ** 2) for part in parts]) - n) / 2.0
    expected = np.outer(own, own) / max(n * (n - 1) / 2.0, 1.0)
    room = (own[:, None] + own[None, :]) / 2.0 - expected
    return np.where(room > 1e-9, (pairs - expected) / np.where(room > 1e-9, room, 1.0), 1.0)


def clearly_different(
    order: Iterable[int], together: np.ndarray, most: int = MOST_OFFERED
) -> list[int]:
    """The first of some candidates, and those after it that differ from all that are kept."""
    kept: list[int] = []
    for i in order:
        if len(kept) < most and np.all(together[i, kept] < DIFFERENT):
            kept.append(int(i))
    return kept


def _members(labels: np.ndarray) -> np.ndarray:
    _, numbers = np.unique(labels, return_inverse=True)
    return np.eye(numbers.max() + 1)[numbers]


def standardised(rows: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1; constant ones are 0."""
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def in_units(rows: np.ndarray) -> np.ndarray:
    """Rows as they are where columns seem to share a unit, else standardised."""
    spread = rows.std(axis=0)
    return standardised(rows) if mixed_units(spread[spread > 0]) else rows - rows.mean(axis=0)
