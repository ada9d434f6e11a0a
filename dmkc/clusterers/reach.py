"""Where the rows of a fit were, in a few numbers, so that rows from elsewhere are noticed.

Some rows of the fit are kept as points, along a few random directions of the standardised columns.
How far other rows of the same fit are from the nearest point says how far rows usually are: new
rows of the same kind are exchangeable with them, whatever the tails, so that about one in a hundred
is farther than 99 of 100 of them.  Where many are, columns were not scaled as then, have other
units, or come from somewhere else.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from dmkc.data import BlockRows, Rows
from dmkc.errors import UserError
from dmkc.scan.engine import ThreadEngine

POINTS = 128
DIRECTIONS = 8
HELD_OUT = 1000
"""Other rows of the fit, at most, from which usual distances are known."""
FEWEST_ROWS = 100
"""Rows of a fit from which on they are."""
MOST_COLUMNS = 20_000
MOST_VALUES = 1 << 22
"""Numbers of these rows, about: sparse ones become dense."""
USUAL = 0.99
MANY = 0.2
"""Share of new rows that is worth a word ..."""
FEWEST_FAR = 5
"""... and how many of them there must be."""
BLOCKS, PER_BLOCK = 8, 128
"""New rows that are looked at: some of a few blocks, evenly spread."""
NAMES = ("shift", "factor", "points", "limit")


@dataclass(frozen=True, eq=False)
class Reach:
    """How far rows may be from where rows of the fit were."""

    shift: np.ndarray
    factor: np.ndarray
    points: np.ndarray
    limit: float

    @classmethod
    def of(cls, rows: BlockRows, weights: np.ndarray) -> Reach | None:
        """From sampled rows; None where they are few, or too wide for a file."""
        heavy = np.flatnonzero(weights > 0)
        if len(heavy) < FEWEST_ROWS or rows.shape[1] > MOST_COLUMNS:
            return None
        size = min(len(heavy), POINTS + HELD_OUT, max(FEWEST_ROWS, MOST_VALUES // rows.shape[1]))
        some = rows[heavy[np.linspace(0, len(heavy) - 1, size).astype(int)]]
        dense = np.asarray(some.todense() if hasattr(some, "todense") else some, dtype=np.float64)
        points = np.zeros(size, dtype=bool)
        points[np.linspace(0, size - 1, min(POINTS, size // 2)).astype(int)] = True
        # of the points alone, so that no other row has had a say in its own distance
        spread = dense[points].std(axis=0)
        factor = 1.0 / np.where(spread > 0, spread, 1.0)
        plain = cls(dense[points].mean(axis=0), factor, np.zeros((1, 1)), 0.0)
        kept = np.round(plain.along(dense[points]), 6)
        held = plain.along(dense[~points])
        limit = float(np.quantile(_nearest(held, kept), USUAL, method="higher"))
        return cls(plain.shift, factor, kept, limit)

    def along(self, rows: BlockRows) -> np.ndarray:
        """Standardised rows along a few directions."""
        d = len(self.shift)
        matrix = self.factor[:, None] * (np.eye(d) if d <= DIRECTIONS else _signs(d))
        return np.asarray(rows @ matrix, dtype=np.float64) - self.shift @ matrix

    def far(self, rows: BlockRows) -> np.ndarray:
        """Which rows are farther from all points than nearly all rows of the fit."""
        return _nearest(self.along(rows), self.points) > self.limit

    def stored(self) -> dict[str, Any]:
        """As a model file holds it."""
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def read(cls, stored: Any, n_columns: int) -> Reach:
        """From a model file; a sentence where that holds something else."""
        fine = isinstance(stored, dict) and set(stored) == set(NAMES)
        width = min(n_columns, DIRECTIONS)
        shapes = {"shift": (n_columns,), "factor": (n_columns,)}
        arrays = {n: stored[n] for n in NAMES[:3]} if fine else {}
        for name, array in arrays.items():
            good = isinstance(array, np.ndarray) and array.dtype == np.float64
            good = good and array.ndim == (2 if name == "points" else 1) and array.size > 0
            fine = fine and good and array.shape[-1] == shapes.get(name, (width,))[0]
        fine = fine and isinstance(stored["limit"], float)
        if not fine:
            raise UserError("what it says of where its rows were is malformed.")
        return cls(**stored)


def warn_of_far(stored: Any, rows: Rows) -> None:
    """Say so where many new rows lie far from all rows of the fit."""
    if stored is None:
        return
    reach = Reach.read(stored, rows.n_columns)
    blocks = rows.blocks(max(PER_BLOCK, -(-rows.n_rows // (8 * BLOCKS))))
    few = [blocks[i] for i in np.unique(np.linspace(0, len(blocks) - 1, BLOCKS).astype(int))]

    def look(values: BlockRows) -> np.ndarray:
        count = min(PER_BLOCK, values.shape[0])
        return reach.far(values[np.linspace(0, values.shape[0] - 1, count).astype(int)])

    far = np.concatenate(ThreadEngine().collect(look, few, "far rows"))
    if far.sum() >= max(FEWEST_FAR, MANY * len(far)):
        warnings.warn(
            f"{far.mean():.0%} of the rows lie farther from all rows of the fit than nearly all of "
            "those do from each other: are their columns scaled as then, and in the same units?",
            stacklevel=3,
        )


def _nearest(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    return euclidean_distances(rows, points).min(axis=1)


def _signs(d: int) -> np.ndarray:
    """Directions that are the same everywhere: signs from the bits of a mixed number."""
    with np.errstate(over="ignore"):
        number = np.arange(d * DIRECTIONS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    signs = np.where(number >> np.uint64(63), 1.0, -1.0)
    return signs.reshape(d, DIRECTIONS) / np.sqrt(DIRECTIONS)
