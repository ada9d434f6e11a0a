"""Kernels that are centred and then normalised by their true diagonal, as features of rows.

Centring k(x, y) by the mean over all rows and dividing by the square root of its diagonal gives a
kernel with k(x, x) = 1.  The centred diagonal is k(x, x) - 2 phi(x).mu + |mu|^2, where the first
term is the kernel's own value and not that of its Nyström features: for a narrow Gaussian the two
are far apart, and dividing by the latter would blow up rows that no landmark is near to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from dmkc.data import RowRecord
from dmkc.kernels.features import FeatureMap
from dmkc.kernels.plan import KernelPlan

SMALLEST = 1e-12
"""A row whose centred diagonal is below this part of its terms lies at the mean: it is left out."""


@dataclass(frozen=True)
class RowScales:
    """What each kernel's centred features of a row are multiplied by."""

    plan: KernelPlan
    tilts: np.ndarray
    """For every stored value, its part in the inner product of features with their mean."""
    squares: np.ndarray
    """Per kernel, squared norm of the mean of the features."""
    factors: np.ndarray
    """Per kernel, a constant factor; 0 leaves a kernel out."""
    cosine: bool
    """Whether rows are divided by the root of the centred diagonal, too."""

    @classmethod
    def of(cls, features: FeatureMap, sample: RowRecord, weights: np.ndarray, cosine: bool):
        """The scales of a centred feature map; with `cosine` off, kernels have mean diagonal 1."""
        plan = features.plan
        edges = plan.offsets
        tilts = np.zeros(edges[-1])
        for p, (mean, stored) in enumerate(zip(features.mean, features.maps, strict=True)):
            tilts[edges[p] : edges[p + 1]] = stored.back(mean)
        squares = np.array([mean @ mean for mean in features.mean])
        alive = np.array([scale > 0 for scale in features.scale], dtype=np.float64)
        scales = cls(plan, tilts, squares, alive, cosine)
        if not cosine:
            mean = weights @ scales.diagonal(sample) / weights.sum()
            scales = replace(scales, factors=alive / np.sqrt(np.where(mean > 0, mean, 1.0)))
        return scales

    def diagonal(self, stored: RowRecord) -> np.ndarray:
        """The centred k(x, x) of every row and kernel; 0 for rows at a kernel's mean."""
        edges, columns, own = self.plan.offsets, stored.rows, stored.diagonals
        assert own is not None
        out = own + self.squares
        terms = np.abs(own) + self.squares
        for p in range(len(self.squares)):
            part = slice(edges[p], edges[p + 1])
            out[:, p] -= 2.0 * (columns[:, part] @ self.tilts[part])
        return np.where(out > SMALLEST * terms, out, 0.0) * (self.factors > 0)

    def of_rows(self, stored: RowRecord) -> np.ndarray:
        """The factor of every row and kernel."""
        if not self.cosine:
            return np.broadcast_to(self.factors, (len(stored), len(self.factors)))
        return self(stored)[0]

    def __call__(self, stored: RowRecord) -> tuple[np.ndarray, np.ndarray]:
        """The factor of every row and kernel, and the k(x, x) that it leads to."""
        diagonal = self.diagonal(stored)
        if not self.cosine:
            return np.broadcast_to(self.factors, diagonal.shape), diagonal * self.factors**2
        there = diagonal > 0
        return there / np.sqrt(np.where(there, diagonal, 1.0)), there.astype(np.float64)


@dataclass(frozen=True)
class UnitFeatures:
    """From stored values to the scaled, centred features of all kernels."""

    features: FeatureMap
    scales: RowScales

    @property
    def offsets(self) -> tuple[int, ...]:
        return self.features.offsets

    def __call__(self, stored: RowRecord) -> tuple[np.ndarray, np.ndarray]:
        """Features of some rows and the kernels' values k(x, x)."""
        scales, own = self.scales(stored)
        edges, inner = self.features.plan.offsets, self.offsets
        out = np.empty((len(stored), inner[-1]))
        for p, (mean, forward) in enumerate(
            zip(self.features.mean, self.features.maps, strict=True)
        ):
            part = stored.rows[:, edges[p] : edges[p + 1]].astype(np.float64, copy=False)
            target = out[:, inner[p] : inner[p + 1]]
            np.subtract(forward.forward(part), mean, out=target)
            target *= scales[:, p : p + 1]
        return out, own

    def compressed(self, sample: RowRecord, weights: np.ndarray, most: int) -> UnitFeatures:
        """At most `most` features in all: of every kernel those that vary most in a sample.

        Kernels with fewer features than their share keep them all.
        """
        if self.offsets[-1] <= most:
            return self
        features, _ = self(sample)
        features *= np.sqrt(weights)[:, None]
        sizes = np.diff(self.offsets)
        keep = _shares(sizes, most)
        maps, means = [], []
        for p, (start, stop) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            stored, mean = self.features.maps[p], self.features.mean[p]
            if keep[p] < sizes[p]:
                part = features[:, start:stop]
                _, vectors = np.linalg.eigh(part.T @ part)
                lead = vectors[:, ::-1][:, : keep[p]]
                stored, mean = stored.then(lead), mean @ lead
            maps.append(stored)
            means.append(mean)
        small = replace(self.features, maps=tuple(maps), mean=tuple(means))
        return replace(self, features=small)

    def embedding(self, projection: np.ndarray, unit_rows: bool) -> Embedding:
        """Rows as their features times `projection`, without ever forming the features."""
        edges, inner = self.features.plan.offsets, self.offsets
        matrix = np.zeros((edges[-1], projection.shape[1]))
        offsets = np.zeros((len(edges) - 1, projection.shape[1]))
        for p, (mean, stored) in enumerate(
            zip(self.features.mean, self.features.maps, strict=True)
        ):
            part = projection[inner[p] : inner[p + 1]]
            matrix[edges[p] : edges[p + 1]] = stored.back(part)
            offsets[p] = mean @ part
        return Embedding(self.scales, matrix, offsets, unit_rows)


@dataclass(frozen=True)
class Embedding:
    """From stored values to a few coordinates: sum_p scale_p(x) (columns_p M_p - offset_p)."""

    scales: RowScales
    matrix: np.ndarray
    offsets: np.ndarray
    unit_rows: bool
    """Whether every row is divided by its length."""

    @property
    def plan(self) -> KernelPlan:
        return self.scales.plan

    @property
    def n_dimensions(self) -> int:
        return self.matrix.shape[1]

    def turned(self, sample: RowRecord, weights: np.ndarray) -> Embedding:
        """The same with every coordinate's sign such that a sample's third moment is positive.

        Eigenvectors have no sign of their own.
        """
        sides = np.where(weights @ self(sample) ** 3 < 0, -1.0, 1.0)
        return replace(self, matrix=self.matrix * sides, offsets=self.offsets * sides)

    @cached_property
    def _used(self) -> list[tuple[int, int, int]]:
        """Kernels that have a part in it, and where the stored values that count begin and end."""
        edges, found = self.plan.offsets, []
        for p, (start, stop) in enumerate(pairwise(edges)):
            counts = start + np.flatnonzero(self.matrix[start:stop].any(axis=1))
            if len(counts):
                found.append((p, int(counts[0]), int(counts[-1]) + 1))
        return found

    def __call__(self, stored: RowRecord) -> np.ndarray:
        scales = self.scales.of_rows(stored)
        out = -(scales @ self.offsets)
        for p, start, stop in self._used:
            part = stored.rows[:, start:stop].astype(np.float64)
            out += scales[:, p : p + 1] * (part @ self.matrix[start:stop])
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
