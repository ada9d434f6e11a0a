"""The first look at the rows: column moments, values that are not finite, and a sample.

One pass gives what scaling, kernel widths, landmarks and starts need.  Moments are merged as
(count, mean, squared deviations), which stays exact for columns with a large offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.compiled import compiled_exact
from dmkc.data import BlockRows, split_weights
from dmkc.data.blocks import Values
from dmkc.scan.base import Scan, leaves
from dmkc.scan.grid import fold_leaves

SHOWN = 5
LARGEST = 1e152
"""Values whose squares are numbers; larger ones are told of even where their rows weigh nothing."""


@dataclass(frozen=True)
class Survey:
    """What one pass over some rows found."""

    count: float
    """Rows, or the sum of their weights."""
    mean: np.ndarray
    """Column means."""
    deviation: np.ndarray
    """Column sums of squared deviations from the mean."""
    low: np.ndarray
    """Column minima."""
    high: np.ndarray
    """Column maxima."""
    bad: np.ndarray
    """How many values are NaN and how many infinite."""
    first_bad: tuple[tuple[int, int], ...]
    """The first rows and columns with such values."""
    sample: Any
    """The sampled rows, in row order."""
    sample_weights: np.ndarray
    """Weights of the sampled rows."""

    @property
    def spread(self) -> np.ndarray:
        """Column standard deviations."""
        return np.sqrt(self.deviation / self.count)


@dataclass(frozen=True)
class TakeScan(Scan):
    """The rows at some positions, with their weights, and nothing else."""

    positions: np.ndarray
    """Global numbers of the rows, ascending."""
    name = "take"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> tuple[Any, np.ndarray]:
        lo, hi = np.searchsorted(self.positions, [first_row, first_row + rows.shape[0]])
        rows, weights = split_weights(rows[self.positions[lo:hi] - first_row])
        return rows, np.ones(rows.shape[0]) if weights is None else weights

    def merge(self, left: Any, right: Any) -> tuple[Any, np.ndarray]:
        stack = sp.vstack if sp.issparse(left[0]) else np.concatenate
        return stack([left[0], right[0]]), np.concatenate([left[1], right[1]])


@dataclass(frozen=True)
class SurveyScan(Scan):
    """Column moments of all rows and the rows at the sampled positions."""

    positions: np.ndarray
    """Global numbers of the sampled rows, ascending."""
    name = "survey"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Survey:
        return fold_leaves(
            (self._leaf(leaf, first) for leaf, first in leaves(rows, first_row, leaf_rows)),
            self.merge,
        )

    def _leaf(self, rows: BlockRows, first_row: int) -> Survey:
        lo, hi = np.searchsorted(self.positions, [first_row, first_row + rows.shape[0]])
        here = self.positions[lo:hi] - first_row
        rows, weights = split_weights(rows)
        if weights is None:
            weights = np.ones(rows.shape[0])
        if sp.issparse(rows):
            mean, deviation, low, high, bad, first_bad = _sparse_moments(rows, weights, first_row)
        else:
            mean, deviation, low, high, bad = _moments(rows, weights)
            first_bad = _locate(rows, first_row) if bad.any() else ()
        total = float(weights.sum())
        return Survey(total, mean, deviation, low, high, bad, first_bad, rows[here], weights[here])

    def merge(self, left: Survey, right: Survey) -> Survey:
        count = left.count + right.count
        share = right.count / count if count > 0 else 0.5
        stack = sp.vstack if sp.issparse(left.sample) else np.concatenate
        # Values that are not finite, or too large, are reported later.
        with np.errstate(invalid="ignore", over="ignore"):
            step = right.mean - left.mean
            mean = left.mean + step * share
            between = step**2 * (left.count * share)
            deviation = left.deviation + right.deviation + between
        return Survey(
            count,
            mean,
            deviation,
            np.minimum(left.low, right.low),
            np.maximum(left.high, right.high),
            left.bad + right.bad,
            (left.first_bad + right.first_bad)[:SHOWN],
            stack([left.sample, right.sample]),
            np.concatenate([left.sample_weights, right.sample_weights]),
        )


@compiled_exact
def _moments(rows: np.ndarray, weights: np.ndarray) -> tuple:  # pragma: no cover - compiled
    n, d = rows.shape
    weight = 0.0
    shift = np.zeros(d)
    total = np.zeros(d)
    squares = np.zeros(d)
    low = np.full(d, np.inf)
    high = np.full(d, -np.inf)
    bad = np.zeros(2, np.int64)
    for j in range(d):
        first = 1.0 * rows[0, j]  # also turns booleans into numbers
        shift[j] = first if np.isfinite(first) else 0.0
    for i in range(n):
        w = weights[i]
        weight += w
        for j in range(d):
            x = 1.0 * rows[i, j]
            t = x - shift[j]
            total[j] += w * t
            squares[j] += w * t * t
            if w > 0.0 or abs(x) > LARGEST:
                low[j] = min(low[j], x)
                high[j] = max(high[j], x)
            if not np.isfinite(x):
                bad[0 if np.isnan(x) else 1] += 1
    weight = max(weight, 1e-300)
    for j in range(d):
        squares[j] = max(squares[j] - total[j] * total[j] / weight, 0.0)
        total[j] = shift[j] + total[j] / weight
    return total, squares, low, high, bad


def _locate(rows: np.ndarray, first_row: int) -> tuple[tuple[int, int], ...]:
    found = np.argwhere(~np.isfinite(rows))[:SHOWN]
    return tuple((int(i) + first_row, int(j)) for i, j in found)


def _sparse_moments(rows: Values, weights: np.ndarray, first_row: int) -> tuple:
    """The same of sparse rows; what is not stored is zero."""
    d = rows.shape[1]
    values = rows.astype(np.float64)
    data, indices = values.data, values.indices
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(values.indptr))
    bad = np.array([int(np.isnan(data).sum()), int(np.isinf(data).sum())])
    places = np.flatnonzero(~np.isfinite(data))[:SHOWN]
    first_bad = tuple(
        (int(i) + first_row, int(j)) for i, j in zip(row_of[places], indices[places], strict=True)
    )
    heavy, total = weights[row_of], max(float(weights.sum()), 1e-300)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.bincount(indices, heavy * data, minlength=d) / total
        stored = np.bincount(indices, heavy, minlength=d)
        inside = np.bincount(indices, heavy * (data - mean[indices]) ** 2, minlength=d)
        deviation = inside + np.maximum(total - stored, 0.0) * mean**2
    counting = weights > 0
    counting[row_of[np.abs(data) > LARGEST]] = True
    heavy_rows = values[np.flatnonzero(counting)]
    if heavy_rows.shape[0] == 0:
        return mean, deviation, np.full(d, np.inf), np.full(d, -np.inf), bad, first_bad
    low = np.asarray(heavy_rows.min(axis=0).todense()).ravel()
    high = np.asarray(heavy_rows.max(axis=0).todense()).ravel()
    return mean, deviation, low, high, bad, first_bad


def sample_positions(n_rows: int, size: int, seed: int) -> np.ndarray:
    """Global row numbers of a uniform sample, ascending; all rows when there are few."""
    if n_rows <= size:
        return np.arange(n_rows)
    rng = np.random.default_rng([seed, 1])
    return np.sort(rng.choice(n_rows, size=size, replace=False, shuffle=False))
