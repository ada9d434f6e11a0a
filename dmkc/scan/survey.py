"""The first look at the rows: column moments, values that are not finite, and a sample.

One pass gives what scaling, kernel widths, landmarks and starts need.  Moments are merged as
(count, mean, squared deviations), which stays exact for columns with a large offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.scan.base import Scan, leaves
from dmkc.scan.compiled import compiled_exact
from dmkc.scan.grid import fold_leaves

SHOWN = 5


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

    @property
    def spread(self) -> np.ndarray:
        """Column standard deviations."""
        return np.sqrt(self.deviation / max(self.count, 1.0))


@dataclass(frozen=True)
class SurveyScan(Scan):
    """Column moments of all rows and the rows at the sampled positions."""

    positions: np.ndarray
    """Global numbers of the sampled rows, ascending."""
    name = "survey"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Survey:
        return fold_leaves(
            (self._leaf(leaf, first) for leaf, first in leaves(rows, first_row, leaf_rows)),
            self.merge,
        )

    def _leaf(self, rows: Any, first_row: int) -> Survey:
        lo, hi = np.searchsorted(self.positions, [first_row, first_row + rows.shape[0]])
        taken = rows[self.positions[lo:hi] - first_row]
        if sp.issparse(rows):
            return _sparse_leaf(rows, first_row, taken)
        mean, deviation, low, high, bad = _moments(rows)
        first_bad = _locate(rows, first_row) if bad.any() else ()
        return Survey(float(len(rows)), mean, deviation, low, high, bad, first_bad, taken)

    def merge(self, left: Survey, right: Survey) -> Survey:
        count = left.count + right.count
        stack = sp.vstack if sp.issparse(left.sample) else np.concatenate
        with np.errstate(invalid="ignore"):  # values that are not finite are reported later
            step = right.mean - left.mean
            mean = left.mean + step * (right.count / count)
            between = step**2 * (left.count * right.count / count)
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
        )


@compiled_exact
def _moments(rows: np.ndarray) -> tuple:  # pragma: no cover - compiled
    n, d = rows.shape
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
        for j in range(d):
            x = 1.0 * rows[i, j]
            t = x - shift[j]
            total[j] += t
            squares[j] += t * t
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
            if not np.isfinite(x):
                bad[0 if np.isnan(x) else 1] += 1
    for j in range(d):
        squares[j] = max(squares[j] - total[j] * total[j] / n, 0.0)
        total[j] = shift[j] + total[j] / n
    return total, squares, low, high, bad


def _locate(rows: np.ndarray, first_row: int) -> tuple[tuple[int, int], ...]:
    found = np.argwhere(~np.isfinite(rows))[:SHOWN]
    return tuple((int(i) + first_row, int(j)) for i, j in found)


def _sparse_leaf(rows: Any, first_row: int, taken: Any) -> Survey:
    n, _ = rows.shape
    values = rows.astype(np.float64)
    data = values.data
    finite = np.isfinite(data)
    bad = np.array([int(np.isnan(data).sum()), int(np.isinf(data).sum())])
    first_bad: tuple[tuple[int, int], ...] = ()
    if not finite.all():
        places = np.flatnonzero(~finite)[:SHOWN]
        where = np.searchsorted(values.indptr, places, side="right") - 1
        columns = values.indices[places]
        first_bad = tuple((int(i) + first_row, int(j)) for i, j in zip(where, columns, strict=True))
    d = values.shape[1]
    stored = np.bincount(values.indices, minlength=d)
    mean = np.bincount(values.indices, weights=data, minlength=d) / n
    with np.errstate(invalid="ignore"):
        gap = data - mean[values.indices]
        inside = np.bincount(values.indices, weights=gap * gap, minlength=d)
        squares = inside + (n - stored) * mean**2  # what is not stored is zero
    return Survey(
        float(n),
        mean,
        squares,
        np.asarray(values.min(axis=0).todense()).ravel(),
        np.asarray(values.max(axis=0).todense()).ravel(),
        bad,
        first_bad,
        taken,
    )


def sample_positions(n_rows: int, size: int, seed: int) -> np.ndarray:
    """Global row numbers of a uniform sample, ascending; all rows when there are few."""
    if n_rows <= size:
        return np.arange(n_rows)
    rng = np.random.default_rng([seed, 1])
    return np.sort(rng.choice(n_rows, size=size, replace=False, shuffle=False))
