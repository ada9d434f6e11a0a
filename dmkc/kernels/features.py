"""From stored values to features, on the coordinator only.

Features of kernel k are ``scale_k (stored_k W_k - mean_k)``: mapped by the fitted kernel, centred,
and of mean squared norm 1, so that kernel weights measure usefulness and not units.  Rows are never
multiplied by W: a model is carried back to stored values instead (`to_stored`), and sums of stored
values are carried forward (`slope`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.kernels.base import Kernel, StoredMap
from dmkc.kernels.loops import products
from dmkc.kernels.plan import KernelPlan
from dmkc.scan.cuts import Affine

CONSTANT = 1e-11
"""A kernel is constant when its features vary by less than this share of their squared size."""
CUT_OFF = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}


@dataclass(frozen=True)
class FeatureMap:
    """The stored map from rows to weighted kernel features."""

    plan: KernelPlan
    maps: tuple[StoredMap, ...]
    """Per kernel, stored values to features."""
    mean: tuple[np.ndarray, ...]
    """Per kernel, mean of the mapped values over all rows."""
    scale: tuple[float, ...]
    """Per kernel, the factor that gives mean squared norm 1 (0: the kernel is degenerate)."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.plan.kernels

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each kernel's features begin; the last entry is their number."""
        return (0, *np.cumsum([len(m) for m in self.mean]).tolist())

    @classmethod
    def build(cls, plan: KernelPlan) -> FeatureMap:
        """Mapped features, not yet centred or scaled."""
        cut_off = CUT_OFF[np.dtype(plan.dtype)]
        maps = tuple(fitted.feature_map(cut_off) for fitted in plan.fitted)
        return cls(plan, maps, tuple(np.zeros(m.n_features) for m in maps), (1.0,) * len(maps))

    def normalised(
        self,
        stored_mean: np.ndarray,
        sample: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> FeatureMap:
        """Centred by the mean of all rows, scaled by the spread of a sample's features."""
        means = tuple(self.maps[k].forward(stored_mean[a:b]) for k, a, b in self._slices())
        scales = []
        for k, a, b in self._slices():
            raw = self.maps[k].forward(sample[:, a:b].astype(np.float64))
            part = raw - means[k]
            power, whole = (
                float(np.average(np.einsum("ij,ij->i", x, x), weights=weights)) for x in (part, raw)
            )
            scales.append(power**-0.5 if power > CONSTANT * whole else 0.0)
        return replace(self, mean=means, scale=tuple(scales))

    def to_stored(self, v: np.ndarray, b: float) -> Affine:
        """The model v.Phi(x) + b as a score on stored values."""
        w, bias = self.each_to_stored(v[None, :], np.array([float(b)]))
        return Affine(w[0], float(bias[0]))

    def each_to_stored(self, v: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of a model a line."""
        w, bias = np.zeros((len(v), self.plan.width)), np.array(b, dtype=np.float64)
        edges = self.offsets
        for k, start, stop in self._slices():
            part = np.ascontiguousarray(self.scale[k] * v[:, edges[k] : edges[k + 1]])
            w[:, start:stop] = self.maps[k].back_exactly(part)
            bias -= products(self.mean[k][None, :], part)[:, 0]
        return w, bias

    def slope(self, row_sum: np.ndarray, weight: float) -> np.ndarray:
        """The sum of features from the sum of stored values over rows of total `weight`."""
        return self.slopes(row_sum[None, :], np.array([weight]))[0]

    def slopes(self, row_sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same of several sums, a line each."""
        parts = [
            self.scale[k]
            * (self.maps[k].forward(row_sums[:, a:b]) - weights[:, None] * self.mean[k])
            for k, a, b in self._slices()
        ]
        return np.concatenate(parts, axis=1)

    def squares(self, row_square: np.ndarray, row_sum: np.ndarray, weight: float) -> np.ndarray:
        """The sum of outer products of features from the same sums of stored values."""
        shift = -self.slope(np.zeros_like(row_sum), 1.0)
        tilt = np.outer(self.slope(row_sum, 0.0), shift)
        both = self._linear(self._linear(row_square).T)
        return both - tilt - tilt.T + weight * np.outer(shift, shift)

    def features(self, stored: np.ndarray) -> np.ndarray:
        """Whitened, centred, scaled features of what is stored of some rows, in float64."""
        return np.concatenate(
            [
                self.scale[k]
                * (self.maps[k].forward(stored[:, a:b].astype(np.float64)) - self.mean[k])
                for k, a, b in self._slices()
            ],
            axis=1,
        )

    def _linear(self, stored: np.ndarray) -> np.ndarray:
        """Features of stored rows without the centring."""
        parts = [
            scale * forward.forward(stored[:, a:b])
            for scale, forward, (_, a, b) in zip(self.scale, self.maps, self._slices(), strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def _slices(self) -> list[tuple[int, int, int]]:
        edges = self.plan.offsets
        return [(k, edges[k], edges[k + 1]) for k in range(len(self.kernels))]
