"""From raw columns to features, on the coordinator only.

Features of kernel k are ``scale_k (columns_k W_k - mean_k)``: whitened (Nyström), centred, and of
mean squared norm 1, so that kernel weights measure usefulness and not units.  Rows are never
multiplied by W: a model is carried back to the columns instead (`to_columns`), and sums of
columns are carried forward (`slope`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.kernels.columns import ColumnMaker, is_direct
from dmkc.kernels.kernels import Kernel
from dmkc.kernels.loops import products
from dmkc.scan.cuts import Affine

CONSTANT = 1e-11
"""A kernel is constant when its features vary by less than this share of their squared size."""
CUT_OFF = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}


@dataclass(frozen=True)
class FeatureMap:
    """The stored map from rows to weighted kernel features."""

    columns: ColumnMaker
    whitening: tuple[np.ndarray | None, ...]
    """Per kernel, columns to features; None where the columns are the features."""
    mean: tuple[np.ndarray, ...]
    """Per kernel, mean of the whitened columns over all rows."""
    scale: tuple[float, ...]
    """Per kernel, the factor that gives mean squared norm 1 (0: the kernel is degenerate)."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.columns.kernels

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each kernel's features begin; the last entry is their number."""
        return (0, *np.cumsum([len(m) for m in self.mean]).tolist())

    @classmethod
    def build(cls, columns: ColumnMaker) -> FeatureMap:
        """Whitened features, not yet centred or scaled."""
        cut_off = CUT_OFF[np.dtype(columns.dtype)]
        d = len(columns.scaling.shift)
        whitening: list[np.ndarray | None] = []
        sizes = []
        for kernel in columns.kernels:
            if is_direct(kernel, d):
                whitening.append(None)
                sizes.append(d)
            else:
                whitening.append(
                    whiten(kernel.matrix(columns.landmarks, columns.landmarks), cut_off)
                )
                sizes.append(whitening[-1].shape[1])  # type: ignore[union-attr]
        return cls(
            columns, tuple(whitening), tuple(np.zeros(r) for r in sizes), tuple(1.0 for _ in sizes)
        )

    def normalised(
        self,
        column_mean: np.ndarray,
        sample_columns: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> FeatureMap:
        """Centred by the mean of all rows, scaled by the spread of a sample's features."""
        means = tuple(self._forward(k, column_mean[a:b]) for k, a, b in self._column_slices())
        scales = []
        for k, a, b in self._column_slices():
            raw = self._forward(k, sample_columns[:, a:b].astype(np.float64))
            part = raw - means[k]
            power, whole = (
                float(np.average(np.einsum("ij,ij->i", x, x), weights=weights)) for x in (part, raw)
            )
            scales.append(power**-0.5 if power > CONSTANT * whole else 0.0)
        return replace(self, mean=means, scale=tuple(scales))

    def unweighted(self) -> FeatureMap:
        """The same map for rows that come without weights and numbers."""
        return replace(self, columns=replace(self.columns, weighted=False, tied=False))

    def to_columns(self, v: np.ndarray, b: float) -> Affine:
        """The model v.Phi(x) + b as a score on raw columns."""
        w = np.zeros(self.columns.width)
        bias = float(b)
        edges = self.offsets
        for k, start, stop in self._column_slices():
            part = self.scale[k] * v[edges[k] : edges[k + 1]]
            white = self.whitening[k]
            w[start:stop] = part if white is None else products(white, part)
            bias -= float(products(self.mean[k][None, :], part)[0])
        return Affine(w, bias)

    def slope(self, row_sum: np.ndarray, weight: float) -> np.ndarray:
        """The sum of features from the sum of raw columns over rows of total `weight`."""
        return np.concatenate(
            [
                self.scale[k] * (self._forward(k, row_sum[a:b]) - weight * self.mean[k])
                for k, a, b in self._column_slices()
            ]
        )

    def squares(self, row_square: np.ndarray, row_sum: np.ndarray, weight: float) -> np.ndarray:
        """The sum of outer products of features from the same sums of raw columns."""
        shift = -self.slope(np.zeros_like(row_sum), 1.0)
        tilt = np.outer(self.slope(row_sum, 0.0), shift)
        both = self._linear(self._linear(row_square).T)
        return both - tilt - tilt.T + weight * np.outer(shift, shift)

    def features(self, columns: np.ndarray) -> np.ndarray:
        """Whitened, centred, scaled features of some rows' columns, in float64."""
        return np.concatenate(
            [
                self.scale[k]
                * (self._forward(k, columns[:, a:b].astype(np.float64)) - self.mean[k])
                for k, a, b in self._column_slices()
            ],
            axis=1,
        )

    def _linear(self, columns: np.ndarray) -> np.ndarray:
        """Features of rows of columns without the centring."""
        parts = [
            self.scale[k] * self._forward(k, columns[:, a:b]) for k, a, b in self._column_slices()
        ]
        return np.concatenate(parts, axis=1)

    def _forward(self, k: int, part: np.ndarray) -> np.ndarray:
        white = self.whitening[k]
        return part if white is None else part @ white

    def _column_slices(self) -> list[tuple[int, int, int]]:
        edges = self.columns.offsets
        return [(k, edges[k], edges[k + 1]) for k in range(len(self.kernels))]


def whiten(gram: np.ndarray, cut_off: float) -> np.ndarray:
    """W with W W^T the pseudo-inverse of a kernel matrix, small eigenvalues cut off."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    keep = values > cut_off * max(values[-1], 0.0)
    if values[-1] <= 0:
        return np.zeros((len(gram), 1))
    order = np.flatnonzero(keep)[::-1]
    vectors = vectors[:, order]
    sides = np.sign((vectors**3).sum(axis=0))  # eigenvectors have no sign of their own
    return np.ascontiguousarray(vectors * np.where(sides == 0, 1.0, sides) / np.sqrt(values[order]))
