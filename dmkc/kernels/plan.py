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

from dmkc.data import numbers_of, parted
from dmkc.kernels.base import FittedKernel, Kernel
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import Scaling, Tiles, View

LANES = 16
"""Rows are padded to a multiple of this many numbers, which keeps the loops vectorised."""
TILE_ROWS = 1024


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
    weighted: bool = False
    """Whether rows come with weights, which become one more column."""
    tied: bool = False
    """Whether some rows come with numbers, which become the column after that."""
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
        extra = self.weighted + self.tied + self.diagonals * len(self.fitted)
        return padded(self.offsets[-1] + extra)

    @property
    def diagonal_at(self) -> int:
        """The first of the columns that hold k(x, x)."""
        return self.offsets[-1]

    @property
    def weight_at(self) -> int:
        """The column that holds the weights, or -1."""
        return self.offsets[-1] + self.diagonals * len(self.fitted) if self.weighted else -1

    @property
    def tie_at(self) -> int:
        """The column that holds the numbers of tied rows (0: not tied), or -1."""
        before = self.offsets[-1] + self.diagonals * len(self.fitted)
        return before + self.weighted if self.tied else -1

    @property
    def n_landmarks(self) -> int:
        """Vectors that a row is compared with."""
        found = [fitted.state().get("landmarks") for fitted in self.fitted]
        return sum(len(points) for points in {id(p): p for p in found if p is not None}.values())

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Stored values of a block, tile by tile within each leaf: bits never depend on blocks.

        They are written to the first rows of `out`, if that is given.
        """
        numbers = numbers_of(rows)
        rows, weights = parted(rows)
        if out is None:
            out = np.empty((rows.shape[0], self.width), self.dtype)
        out = out[: rows.shape[0]]
        out[:, self.offsets[-1] :] = 0
        for number, view in enumerate(self.views):
            self._fill_view(number, view, rows, out)
        if self.weighted:
            out[:, self.weight_at] = 1.0 if weights is None else weights
        if self.tied and numbers is not None:
            out[:, self.tie_at] = numbers
        return out

    def _fill_view(self, number: int, view: View, rows: Any, out: np.ndarray) -> None:
        """The stored values of the kernels that see this view."""
        edges = self.offsets
        here = [k for k, seen in enumerate(self.view_of) if seen == number]
        tiles = Tiles(view, self.dtype, min(TILE_ROWS, self.leaf_rows))
        for place, tile in tiles.of(rows):
            for k in here:
                self.fitted[k].fill(tile, out[place], edges[k])
                if self.diagonals:
                    out[place, self.diagonal_at + k] = self.fitted[k].diagonal(tile)
