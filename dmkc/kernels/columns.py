"""Rows in, raw kernel columns out: what workers hold or recompute.

The columns of a row are k(x, z) for every kernel of the bank and every landmark z; the linear
kernel's are the standardised columns themselves unless there are very many.  All kernels share
the landmarks, so one inner product serves the whole bank.  Nothing is whitened or centred here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import numbers_of, parted
from dmkc.errors import UserError
from dmkc.kernels import loops
from dmkc.kernels.kernels import Columns, Kernel, Linear, Tile

WIDE = 2048
"""Beyond this many columns the linear kernel goes through landmarks like the others."""
LANES = 16
"""Rows are padded to a multiple of this many numbers, which keeps the loops vectorised."""
TILE_ROWS = 1024


@dataclass(frozen=True)
class Scaling:
    """How raw columns are shifted and scaled before any kernel sees them."""

    shift: np.ndarray
    factor: np.ndarray

    def apply(self, rows: Any) -> np.ndarray:
        """Standardised rows in float64 (for samples; sparse rows become dense)."""
        dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return (dense.astype(np.float64) - self.shift) * self.factor


def column_offsets(kernels: tuple[Kernel, ...], d: int, n_landmarks: int) -> tuple[int, ...]:
    """Where each kernel's raw columns begin; the last entry is where they end."""
    edges = [0]
    for kernel in kernels:
        edges.append(edges[-1] + (d if is_direct(kernel, d) else n_landmarks))
    return tuple(edges)


def is_direct(kernel: Kernel, d: int) -> bool:
    """Whether a kernel's features are the columns themselves."""
    return isinstance(kernel, Columns) or (isinstance(kernel, Linear) and d <= WIDE)


def check_finite(squares: np.ndarray) -> None:
    """Refuse rows with values that are not finite, which new rows may have."""
    bad = int(np.sum(~np.isfinite(squares)))
    if bad:
        raise UserError(
            f"Input X contains NaN or infinite (inf) values in {bad} of {len(squares)} rows that "
            "were looked at: fill in or drop these rows first."
        )


def padded(width: int) -> int:
    return -(-width // LANES) * LANES


@dataclass(frozen=True)
class ColumnMaker:
    """A pure function from a block of rows to its raw kernel columns."""

    scaling: Scaling
    kernels: tuple[Kernel, ...]
    landmarks: np.ndarray
    """Standardised landmarks in float64, one a row."""
    dtype: np.dtype
    leaf_rows: int
    """Leaves of the rows this map is for: tiles never straddle two leaves."""
    weighted: bool = False
    """Whether rows come with weights, which become one more column."""
    tied: bool = False
    """Whether some rows come with numbers, which become the column after that."""

    @property
    def offsets(self) -> tuple[int, ...]:
        return column_offsets(self.kernels, len(self.scaling.shift), len(self.landmarks))

    @property
    def width(self) -> int:
        return padded(self.offsets[-1] + self.weighted + self.tied)

    @property
    def weight_at(self) -> int:
        """The column that holds the weights, or -1."""
        return self.offsets[-1] if self.weighted else -1

    @property
    def tie_at(self) -> int:
        """The column that holds the numbers of tied rows (0: not tied), or -1."""
        return self.offsets[-1] + self.weighted if self.tied else -1

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Columns of a block, tile by tile within each leaf so that bits never depend on blocks.

        They are written to the first rows of `out`, if that is given.
        """
        numbers = numbers_of(rows)
        rows, weights = parted(rows)
        if out is None:
            out = np.empty((rows.shape[0], self.width), self.dtype)
        out = out[: rows.shape[0]]
        self._fill_columns(rows, out)
        if self.weighted:
            out[:, self.weight_at] = 1.0 if weights is None else weights
        if self.tied and numbers is not None:
            out[:, self.tie_at] = numbers
        return out

    def _fill_columns(self, rows: Any, out: np.ndarray) -> None:
        marks = self.landmarks.astype(self.dtype)
        mark_squares = np.einsum("ij,ij->i", self.landmarks, self.landmarks).astype(self.dtype)
        step = min(TILE_ROWS, self.leaf_rows)
        if sp.issparse(rows):
            product, base = self._sparse_product()
            for start in range(0, rows.shape[0], step):
                tile = self._sparse_tile(rows[start : start + step], marks, product, base)
                self._fill(tile, out[start : start + step])
            return
        d = rows.shape[1]
        direct = np.empty((step, d), self.dtype)
        squares = np.empty(step, self.dtype)
        dots = np.empty((step, len(marks)), self.dtype)
        marks_t = marks.T
        shift, factor = self.scaling.shift, self.scaling.factor
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            n = len(part)
            loops.standardise(part, shift, factor, direct[:n], squares[:n])
            check_finite(squares[:n])
            np.dot(direct[:n], marks_t, out=dots[:n])
            tile = Tile(direct[:n], dots[:n], squares[:n], mark_squares, marks)
            self._fill(tile, out[start : start + step])

    def _fill(self, tile: Tile, out: np.ndarray) -> None:
        edges = self.offsets
        for kernel, at, stop in zip(self.kernels, edges[:-1], edges[1:], strict=True):
            if is_direct(kernel, len(self.scaling.shift)):
                assert tile.rows is not None
                out[:, at:stop] = tile.rows
            else:
                kernel.fill(tile, out, at)
        out[:, edges[-1] :] = 0

    def _sparse_product(self) -> tuple[np.ndarray, np.ndarray]:
        """x.z of standardised rows as a product with the raw sparse rows less a constant."""
        product = np.ascontiguousarray((self.landmarks * self.scaling.factor).T)
        return product, self.scaling.shift @ product

    def _sparse_tile(
        self, rows: Any, marks: np.ndarray, product: np.ndarray, base: np.ndarray
    ) -> Tile:
        values = rows.astype(np.float64)
        dots = values @ product - base
        squares = self.sparse_squares(values)
        check_finite(squares)
        needs = any(k.needs_rows or is_direct(k, rows.shape[1]) for k in self.kernels)
        dense = self.scaling.apply(values).astype(self.dtype) if needs else None
        mark_squares = np.einsum("ij,ij->i", self.landmarks, self.landmarks)
        kind = self.dtype
        return Tile(
            dense, dots.astype(kind), squares.astype(kind), mark_squares.astype(kind), marks
        )

    def sparse_squares(self, values: Any) -> np.ndarray:
        """Squared norms of the standardised rows, from the raw sparse ones."""
        factor, shift = self.scaling.factor**2, self.scaling.shift
        squares = values.multiply(values) @ factor - 2.0 * (values @ (factor * shift))
        return np.maximum(squares + factor @ shift**2, 0.0)
