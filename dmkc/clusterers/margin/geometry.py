"""What two and several clusters do differently: how a model scores rows, and what a cut is.

The cutting-plane loop works on points (v, b) of one long weight vector.  A geometry turns points
into scores on raw columns, the sums of a scan into cuts, and a model into the next labeling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np

from dmkc.kernels.features import FeatureMap
from dmkc.scan.cuts import Affine, CutRequest, CutSums
from dmkc.scan.multiclass import MulticlassRequest, MulticlassSums, Scores
from dmkc.scan.requests import Request

Point = tuple[np.ndarray, float]

MAX_CLUSTER_WEIGHT = 20.0
"""Rows of a tiny cluster weigh at most this many times the average row."""


@dataclass(frozen=True)
class CutValues:
    """One cut of the master problem."""

    loss: float
    sign: float
    slope: np.ndarray


@dataclass(frozen=True)
class WeightedLabeling:
    """A labeling of several clusters as a function of the columns, and what its rows weigh."""

    scores: Scores
    cluster_weights: np.ndarray


class MarginSums(Protocol):
    """What scans of two and of several clusters both say of a model."""

    @property
    def hinge(self) -> float:
        """Sum of the margin violations under the given labeling."""

    @property
    def changed(self) -> float:
        """Weight of the rows that the model relabels."""

    @property
    def total(self) -> float:
        """Weight of all rows."""

    @property
    def label_hash(self) -> int:
        """Hash of the model's own labeling."""


Labeling = TypeVar("Labeling")
Sums = TypeVar("Sums", bound=MarginSums)


class MarginGeometry(ABC, Generic[Labeling, Sums]):
    """How points, scores, cuts and labelings belong together."""

    features: FeatureMap
    offsets: tuple[int, ...]
    """Kernel blocks of the weight vector."""
    mean: np.ndarray
    """Mean feature row of the rows that are scanned."""
    has_bias: bool
    monotone: bool
    """Whether the objective is the same function from one labeling to the next."""

    def zero(self) -> Point:
        return np.zeros(self.offsets[-1]), 0.0

    def feasible(self, point: Point, balance: float | None) -> Point:
        """The point, moved to where the balance bound of these rows holds."""
        return point

    @abstractmethod
    def start(self, column: int, width: int, shares: np.ndarray) -> Labeling:
        """The labeling that a column of cluster numbers holds."""

    @abstractmethod
    def label(self, point: Point, shares: np.ndarray) -> Labeling:
        """A point's own labeling, given the shares of its clusters."""

    @abstractmethod
    def request(self, label: Labeling, points: Sequence[Point]) -> Request[list[Sums]]:
        """What to ask a scan for."""

    @abstractmethod
    def cut(self, sums: Sums) -> CutValues:
        """The cut that a scan found at a point."""

    @abstractmethod
    def own_hinge(self, sums: Sums) -> float:
        """Mean margin violation of a point under its own labeling."""

    @abstractmethod
    def shares(self, sums: Sums) -> np.ndarray:
        """Shares of the clusters under a point's own labeling."""


class BinaryMargin(MarginGeometry[Affine, CutSums]):
    """Two clusters: one score with a bias, whose sign decides (eqs 2.6-2.18)."""

    has_bias = True
    monotone = True

    def __init__(self, features: FeatureMap, mean: np.ndarray) -> None:
        self.features, self.mean = features, mean
        self.offsets = features.offsets

    def feasible(self, point: Point, balance: float | None) -> Point:
        v, b = point
        if balance is None:
            return point
        level = float(v @ self.mean)
        return v, float(np.clip(level + b, -balance, balance)) - level

    def start(self, column: int, width: int, shares: np.ndarray) -> Affine:
        w = np.zeros(width)
        w[column] = 2.0
        return Affine(w, -1.0)

    def label(self, point: Point, shares: np.ndarray) -> Affine:
        return self.features.to_columns(*point)

    def request(self, label: Affine, points: Sequence[Point]) -> CutRequest:
        return CutRequest(label, tuple(self.features.to_columns(*p) for p in points))

    def cut(self, sums: CutSums) -> CutValues:
        slope = self.features.slope(sums.row_sum, sums.signed) / sums.total
        return CutValues(sums.masked / sums.total, sums.signed / sums.total, slope)

    def own_hinge(self, sums: CutSums) -> float:
        return sums.own_hinge / sums.total

    def shares(self, sums: CutSums) -> np.ndarray:
        positive = sums.positive / sums.total
        return np.array([1.0 - positive, positive])


class MulticlassMargin(MarginGeometry[WeightedLabeling, MulticlassSums]):
    """Several clusters: one score each, the largest decides (eqs 4.33-4.35), no bias.

    The weight vector holds, kernel by kernel, the weights of all clusters.  Rows are weighted so
    that all clusters weigh the same: without it the rich get richer and clusters vanish.
    """

    has_bias = False
    monotone = False

    def __init__(self, features: FeatureMap, n_clusters: int) -> None:
        self.features, self.n_clusters = features, n_clusters
        self.offsets = tuple(n_clusters * edge for edge in features.offsets)
        self.mean = np.zeros(self.offsets[-1])

    def start(self, column: int, width: int, shares: np.ndarray) -> WeightedLabeling:
        # the score 2 r c - r^2 is largest at the cluster r that the column c holds
        number = np.arange(self.n_clusters, dtype=np.float64)
        w = np.zeros((self.n_clusters, width))
        w[:, column] = 2.0 * number
        return WeightedLabeling(Scores(w, -(number**2)), self._weights(shares))

    def label(self, point: Point, shares: np.ndarray) -> WeightedLabeling:
        return WeightedLabeling(self._scores(point), self._weights(shares))

    def request(self, label: WeightedLabeling, points: Sequence[Point]) -> MulticlassRequest:
        models = tuple(self._scores(p) for p in points)
        return MulticlassRequest(label.scores, label.cluster_weights, models)

    def cut(self, sums: MulticlassSums) -> CutValues:
        by_cluster = np.stack(
            [
                self.features.slope(row, float(pull))
                for row, pull in zip(sums.row_sum, sums.pull, strict=True)
            ]
        )
        return CutValues(sums.masked / sums.total, 0.0, self.stacked(by_cluster) / sums.total)

    def own_hinge(self, sums: MulticlassSums) -> float:
        weights = self._weights(self.shares(sums))
        return float(weights @ sums.own_hinge) / sums.total

    def shares(self, sums: MulticlassSums) -> np.ndarray:
        return sums.counts / sums.total

    def stacked(self, by_cluster: np.ndarray) -> np.ndarray:
        """One weight vector from a row of feature weights per cluster."""
        return np.concatenate(
            [by_cluster[:, a:b].ravel() for a, b in pairwise(self.features.offsets)]
        )

    def unstacked(self, v: np.ndarray) -> np.ndarray:
        """A row of feature weights per cluster from one weight vector."""
        return np.concatenate(
            [v[a:b].reshape(self.n_clusters, -1) for a, b in pairwise(self.offsets)], axis=1
        )

    def _scores(self, point: Point) -> Scores:
        parts = [self.features.to_columns(v, 0.0) for v in self.unstacked(point[0])]
        return Scores(np.stack([a.w for a in parts]), np.array([a.b for a in parts]))

    def _weights(self, shares: np.ndarray) -> np.ndarray:
        floor = 1.0 / (self.n_clusters * MAX_CLUSTER_WEIGHT)
        return 1.0 / (self.n_clusters * np.maximum(shares, floor))
