"""Rows in, stored values out: what workers hold or recompute.

A plan puts the fitted kernels of a bank side by side.  Kernels that see the same columns share the
shifted and scaled rows, and those that share landmarks the inner products with them.  Nothing is
whitened or centred here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from dmkc.data import RowRecord, as_record
from dmkc.kernels.base import FittedKernel, Kernel
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import TILE_ROWS, Scaling, Tiles, View

LANES = 16
"""Rows are padded to a multiple of this many numbers, which keeps the loops vectorised."""


def padded(width: int) -> int:
    return -(-width // LANES) * LANES


@dataclass(frozen=True, eq=False)
class KernelPlan:
    """A pure function from a block of rows to what is stored of it."""

    scaling: Scaling
    views: tuple[View, ...]
    """The sets of columns that kernels see."""
    fitted: tuple[FittedKernel, ...]
    view_of: tuple[int, ...]
    """Which view each kernel sees."""
    dtype: np.dtype
    leaf_rows: int
    """Leaves of the rows this plan is for: tiles never straddle two leaves."""
    diagonals: bool = False
    """Whether stored values are followed by every kernel's k(x, x)."""

    @classmethod
    def on(
        cls,
        scaling: Scaling,
        kernels: Sequence[Kernel],
        landmarks: np.ndarray,
        dtype: np.dtype,
        leaf_rows: int,
        **options: bool,
    ) -> KernelPlan:
        """Kernels with widths, of all columns, on given (standardised) landmarks."""
        sample = KernelSample(landmarks, landmark_choice=landmarks, scaling=scaling)
        fitted = tuple(kernel.fit(sample) for kernel in kernels)
        views, view_of = (View.of(None, scaling),), (0,) * len(fitted)
        return cls(scaling, views, fitted, view_of, np.dtype(dtype), leaf_rows, **options)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels with their widths."""
        return tuple(fitted.kernel for fitted in self.fitted)

    @property
    def n_columns(self) -> int:
        """Columns of the rows."""
        return len(self.scaling.shift)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each kernel's stored values begin; the last entry is where they end."""
        return (0, *accumulate(fitted.stored_width for fitted in self.fitted))

    @property
    def width(self) -> int:
        """Numbers that are stored of a row, with some zeros behind them."""
        return padded(self.offsets[-1])

    @property
    def n_landmarks(self) -> int:
        """Vectors that a row is compared with."""
        found = [fitted.state().get("landmarks") for fitted in self.fitted]
        return sum(len(points) for points in {id(p): p for p in found if p is not None}.values())

    def stored_mean(self) -> np.ndarray | None:
        """The mean of what is stored of all rows, where every kernel knows it."""
        parts = [part for fitted in self.fitted if (part := fitted.stored_mean()) is not None]
        if len(parts) < len(self.fitted):
            return None
        return np.concatenate([*parts, np.zeros(self.width - self.offsets[-1])])

    def room(self, n_rows: int) -> np.ndarray:
        """Where what is stored of so many rows may be written."""
        return np.empty((n_rows, self.width), self.dtype)

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> RowRecord:
        """What is stored of a block, tile by tile within each leaf: bits never depend on blocks.

        Stored values are written to the first rows of `out`, if that is given.
        """
        record = as_record(rows)
        if out is None:
            out = self.room(len(record))
        out = out[: len(record)]
        out[:, self.offsets[-1] :] = 0
        diagonals = np.empty((len(record), len(self.fitted))) if self.diagonals else None
        for number, view in enumerate(self.views):
            self._fill_view(number, view, record.rows, out, diagonals)
        weights = None if record.weights is None else record.weights.astype(self.dtype)
        return RowRecord(out, weights, record.constrained, diagonals)

    def _fill_view(
        self, number: int, view: View, rows: Any, out: np.ndarray, diagonals: np.ndarray | None
    ) -> None:
        """The stored values of the kernels that see this view."""
        edges = self.offsets
        here = [k for k, seen in enumerate(self.view_of) if seen == number]
        tiles = Tiles(view, self.dtype, min(TILE_ROWS, self.leaf_rows))
        for place, tile in tiles.of(rows):
            for k in here:
                self.fitted[k].fill(tile, out[place], edges[k])
                if diagonals is not None:
                    diagonals[place, k] = self.fitted[k].diagonal(tile)
