"""Kernels that are centred and then normalised by their true diagonal, as features of rows.

Centring k(x, y) by the mean over all rows and dividing by the square root of its diagonal gives a
kernel with k(x, x) = 1.  The centred diagonal is k(x, x) - 2 phi(x).mu + |mu|^2, where the first
term is the kernel's own value and not that of its Nyström features: for a narrow Gaussian the two
are far apart, and dividing by the latter would blow up rows that no landmark is near to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.data import parted
from dmkc.kernels.columns import ColumnMaker, padded
from dmkc.kernels.features import FeatureMap

SMALLEST = 1e-12
"""A row whose centred diagonal is below this part of its terms lies at the mean: it is left out."""


@dataclass(frozen=True)
class DiagonalMaker(ColumnMaker):
    """Raw kernel columns followed by k(x, x) of every kernel."""

    @property
    def diagonal_at(self) -> int:
        return self.offsets[-1]

    @property
    def width(self) -> int:
        return padded(super().width + len(self.kernels))

    @property
    def weight_at(self) -> int:
        return self.offsets[-1] + len(self.kernels) if self.weighted else -1

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> np.ndarray:
        out = super().__call__(rows, out)
        values, _ = parted(rows)
        step = min(1024, self.leaf_rows)
        for start in range(0, values.shape[0], step):
            part = values[start : start + step]
            squares, dense = self._squares(part)
            for p, kernel in enumerate(self.kernels):
                at = self.diagonal_at + p
                out[start : start + step, at] = kernel.diagonal(squares, dense)
        return out

    def _squares(self, rows: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Squared norms of the standardised rows, and those rows where a kernel needs them."""
        if sp.issparse(rows) and not any(kernel.needs_rows for kernel in self.kernels):
            return self.sparse_squares(rows.astype(np.float64)), None
        dense = self.scaling.apply(rows)
        return np.einsum("ij,ij->i", dense, dense), dense


@dataclass(frozen=True)
class RowScales:
    """What each kernel's centred features of a row are multiplied by."""

    columns: DiagonalMaker
    tilts: np.ndarray
    """For every raw column, its part in the inner product of features with their mean."""
    squares: np.ndarray
    """Per kernel, squared norm of the mean of the features."""
    factors: np.ndarray
    """Per kernel, a constant factor; 0 leaves a kernel out."""
    cosine: bool
    """Whether rows are divided by the root of the centred diagonal, too."""

    @classmethod
    def of(cls, features: FeatureMap, sample: np.ndarray, weights: np.ndarray, cosine: bool):
        """The scales of a centred feature map; with `cosine` off, kernels have mean diagonal 1."""
        columns: Any = features.columns
        edges = columns.offsets
        tilts = np.zeros(edges[-1])
        for p, (mean, white) in enumerate(zip(features.mean, features.whitening, strict=True)):
            tilts[edges[p] : edges[p + 1]] = mean if white is None else white @ mean
        squares = np.array([mean @ mean for mean in features.mean])
        alive = np.array([scale > 0 for scale in features.scale], dtype=np.float64)
        scales = cls(columns, tilts, squares, alive, cosine)
        if not cosine:
            mean = weights @ scales.diagonal(sample) / weights.sum()
            scales = replace(scales, factors=alive / np.sqrt(np.where(mean > 0, mean, 1.0)))
        return scales

    def diagonal(self, columns: np.ndarray) -> np.ndarray:
        """The centred k(x, x) of every row and kernel; 0 for rows at a kernel's mean."""
        edges, at = self.columns.offsets, self.columns.diagonal_at
        own = columns[:, at : at + len(self.squares)].astype(np.float64)
        out = own + self.squares
        terms = np.abs(own) + self.squares
        for p in range(len(self.squares)):
            part = slice(edges[p], edges[p + 1])
            out[:, p] -= 2.0 * (columns[:, part] @ self.tilts[part])
        return np.where(out > SMALLEST * terms, out, 0.0) * (self.factors > 0)

    def __call__(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factor of every row and kernel, and the k(x, x) that it leads to."""
        diagonal = self.diagonal(columns)
        if not self.cosine:
            return np.broadcast_to(self.factors, diagonal.shape), diagonal * self.factors**2
        there = diagonal > 0
        return there / np.sqrt(np.where(there, diagonal, 1.0)), there.astype(np.float64)


@dataclass(frozen=True)
class UnitFeatures:
    """From raw columns to the scaled, centred features of all kernels."""

    features: FeatureMap
    scales: RowScales

    @property
    def offsets(self) -> tuple[int, ...]:
        return self.features.offsets

    def __call__(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of some rows and the kernels' values k(x, x)."""
        scales, own = self.scales(columns)
        edges, inner = self.features.columns.offsets, self.offsets
        out = np.empty((len(columns), inner[-1]))
        for p, (mean, white) in enumerate(
            zip(self.features.mean, self.features.whitening, strict=True)
        ):
            part = columns[:, edges[p] : edges[p + 1]].astype(np.float64, copy=False)
            target = out[:, inner[p] : inner[p + 1]]
            np.subtract(part if white is None else part @ white, mean, out=target)
            target *= scales[:, p : p + 1]
        return out, own

    def compressed(self, columns: np.ndarray, weights: np.ndarray, most: int) -> UnitFeatures:
        """At most `most` features in all: of every kernel those that vary most in a sample.

        Kernels with fewer features than their share keep them all.
        """
        if self.offsets[-1] <= most:
            return self
        features, _ = self(columns)
        features *= np.sqrt(weights)[:, None]
        sizes = np.diff(self.offsets)
        keep = _shares(sizes, most)
        whitening: list[np.ndarray | None] = []
        means = []
        for p, (start, stop) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            white, mean = self.features.whitening[p], self.features.mean[p]
            if keep[p] < sizes[p]:
                part = features[:, start:stop]
                _, vectors = np.linalg.eigh(part.T @ part)
                lead = vectors[:, ::-1][:, : keep[p]]
                white = lead if white is None else white @ lead
                mean = mean @ lead
            whitening.append(white)
            means.append(mean)
        small = replace(self.features, whitening=tuple(whitening), mean=tuple(means))
        return replace(self, features=small)

    def embedding(self, projection: np.ndarray, unit_rows: bool) -> Embedding:
        """Rows as their features times `projection`, without ever forming the features."""
        edges, inner = self.features.columns.offsets, self.offsets
        matrix = np.zeros((edges[-1], projection.shape[1]))
        offsets = np.zeros((len(edges) - 1, projection.shape[1]))
        for p, (mean, white) in enumerate(
            zip(self.features.mean, self.features.whitening, strict=True)
        ):
            part = projection[inner[p] : inner[p + 1]]
            matrix[edges[p] : edges[p + 1]] = part if white is None else white @ part
            offsets[p] = mean @ part
        return Embedding(self.scales, matrix, offsets, unit_rows)


@dataclass(frozen=True)
class Embedding:
    """From raw columns to a few coordinates: sum_p scale_p(x) (columns_p M_p - offset_p)."""

    scales: RowScales
    matrix: np.ndarray
    offsets: np.ndarray
    unit_rows: bool
    """Whether every row is divided by its length."""

    @property
    def columns(self) -> DiagonalMaker:
        return self.scales.columns

    @property
    def n_dimensions(self) -> int:
        return self.matrix.shape[1]

    def turned(self, columns: np.ndarray, weights: np.ndarray) -> Embedding:
        """The same with every coordinate's sign such that a sample's third moment is positive.

        Eigenvectors have no sign of their own.
        """
        sides = np.where(weights @ self(columns) ** 3 < 0, -1.0, 1.0)
        return replace(self, matrix=self.matrix * sides, offsets=self.offsets * sides)

    def unweighted(self) -> Embedding:
        """The same for rows that come without weights."""
        bare = replace(self.columns, weighted=False)
        return replace(self, scales=replace(self.scales, columns=bare))

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        scales, _ = self.scales(columns)
        edges = self.columns.offsets
        out = -(scales @ self.offsets)
        for p in range(len(self.offsets)):
            part = columns[:, edges[p] : edges[p + 1]].astype(np.float64, copy=False)
            out += scales[:, p : p + 1] * (part @ self.matrix[edges[p] : edges[p + 1]])
        if self.unit_rows:
            size = np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
            out /= np.where(size > 0, size, 1.0)
        return out


def _shares(sizes: np.ndarray, most: int) -> np.ndarray:
    """How many features every kernel keeps: an equal share, and what others leave over."""
    keep = np.zeros(len(sizes), np.int64)
    left, waiting = most, np.argsort(sizes, kind="stable")
    for count, p in enumerate(waiting):
        keep[p] = min(sizes[p], max(left // (len(waiting) - count), 1))
        left -= keep[p]
    return keep
