"""What two and several clusters do differently: how a model scores rows, and what a cut is.

The cutting-plane loop works on points (v, b) of one long weight vector.  A geometry turns points
into scores on raw columns, the sums of a scan into cuts, and a model into the next labeling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from dmkc.clusterers.model import ScoreSpace
from dmkc.kernels.features import FeatureMap
from dmkc.scan.cuts import Affine, CutRequest, CutSums
from dmkc.scan.multiclass import MulticlassRequest, MulticlassSums, Scores
from dmkc.scan.requests import GivenLabels, Request
from dmkc.scan.softcuts import SoftCutRequest

Point = tuple[np.ndarray, float]

CURVED_ROWS = 20_000
"""Rows, or up to twice as many, whose curvature stands for that of all."""
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
    """A labeling of several clusters, by scores or given, and what its rows weigh."""

    scores: Scores | GivenLabels
    cluster_weights: np.ndarray


Labeling = TypeVar("Labeling")
Sums = TypeVar("Sums", bound=CutSums | MulticlassSums)


class MarginGeometry(ABC, Generic[Labeling, Sums]):
    """How points, cuts and labelings belong together; what scores are is the space's to say."""

    space: ScoreSpace
    offsets: tuple[int, ...]
    """Kernel blocks of the weight vector."""
    mean: np.ndarray
    """Mean feature row of the rows that are scanned."""
    has_bias: bool
    calibration: float
    """C times the size of a k-means start's separation, when C is left open."""
    monotone: bool
    """Whether the objective is the same function from one labeling to the next."""

    def zero(self) -> Point:
        return np.zeros(self.offsets[-1]), 0.0

    def feasible(self, point: Point, balance: float | None) -> Point:
        """The point, moved to where the balance bound of these rows holds."""
        return point

    @abstractmethod
    def by_score(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """A row of feature weights and a bias for every score."""

    @abstractmethod
    def separation(self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How far a labeling of weighted feature rows pulls clusters apart, as a weight vector."""

    def first_points(self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> list[Point]:
        """Where the first cuts of a labeling are made; none: at zero."""
        return []

    @abstractmethod
    def start(self, given: GivenLabels, shares: np.ndarray) -> Labeling:
        """A labeling that the rows carry."""

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


class BinaryMargin(MarginGeometry[Affine | GivenLabels, CutSums]):
    """Two clusters: one score with a bias, whose sign decides (eqs 2.6-2.18)."""

    has_bias = True
    monotone = True
    calibration = 6.0

    def __init__(self, features: FeatureMap, mean: np.ndarray, n_rows: int) -> None:
        self.space, self.mean = ScoreSpace(features, 2, "sign"), mean
        self.offsets = features.offsets
        self.stride = max(1, n_rows // CURVED_ROWS)

    def feasible(self, point: Point, balance: float | None) -> Point:
        v, b = point
        if balance is None:
            return point
        level = float(v @ self.mean)
        return v, float(np.clip(level + b, -balance, balance)) - level

    def by_score(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        v, b = point
        return v[None, :], np.array([b])

    def separation(self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (weights * (2.0 * labels - 1.0)) @ phi / weights.sum()

    def start(self, given: GivenLabels, shares: np.ndarray) -> Affine | GivenLabels:
        return given

    def label(self, point: Point, shares: np.ndarray) -> Affine | GivenLabels:
        return self.space.features.to_stored(*point)

    def request(self, label: Affine | GivenLabels, points: Sequence[Point]) -> CutRequest:
        return CutRequest(label, tuple(self.space.features.to_stored(*p) for p in points))

    def soft_request(
        self, label: Affine | GivenLabels, points: Sequence[Point], width: float, curved: bool
    ) -> SoftCutRequest:
        """What to ask a scan for where a problem is hard; see `dmkc.scan.softcuts`."""
        models = tuple(self.space.features.to_stored(*p) for p in points)
        return SoftCutRequest(label, models, width, curved, self.stride)

    def curvature(self, square: np.ndarray) -> np.ndarray:
        """Sums of outer products of (stored values, 1) as those of (features, 1)."""
        features, total = self.space.features, float(square[-1, -1])
        found = np.empty((self.offsets[-1] + 1,) * 2)
        found[:-1, :-1] = features.squares(square[:-1, :-1], square[-1, :-1], total)
        found[-1, :-1] = found[:-1, -1] = features.slope(square[-1, :-1], total)
        found[-1, -1] = total
        return found

    def cut(self, sums: CutSums) -> CutValues:
        slope = self.space.features.slope(sums.row_sum, sums.signed) / sums.total
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
    calibration = 3.0

    def __init__(self, features: FeatureMap, n_clusters: int) -> None:
        self.space, self.n_clusters = ScoreSpace(features, n_clusters, "largest"), n_clusters
        self.offsets = tuple(n_clusters * edge for edge in features.offsets)
        self.mean = np.zeros(self.offsets[-1])

    def by_score(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        return self.unstacked(point[0]), np.zeros(self.n_clusters)

    def separation(self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return self.stacked(self._centred_means(phi, weights, labels)) / self.n_clusters

    def first_points(self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> list[Point]:
        centres = self._centred_means(phi, weights, labels)
        size = float(np.mean(np.einsum("ij,ij->i", centres, centres)))
        return [(self.stacked(centres) / max(size, 1e-12), 0.0)]

    def start(self, given: GivenLabels, shares: np.ndarray) -> WeightedLabeling:
        return WeightedLabeling(given, self._weights(shares))

    def label(self, point: Point, shares: np.ndarray) -> WeightedLabeling:
        return WeightedLabeling(self._scores(point), self._weights(shares))

    def request(self, label: WeightedLabeling, points: Sequence[Point]) -> MulticlassRequest:
        models = tuple(self._scores(p) for p in points)
        return MulticlassRequest(label.scores, label.cluster_weights, models)

    def cut(self, sums: MulticlassSums) -> CutValues:
        by_cluster = self.space.features.slopes(sums.row_sum, sums.pull)
        return CutValues(sums.masked / sums.total, 0.0, self.stacked(by_cluster) / sums.total)

    def own_hinge(self, sums: MulticlassSums) -> float:
        weights = self._weights(self.shares(sums))
        return float(weights @ sums.own_hinge) / sums.total

    def shares(self, sums: MulticlassSums) -> np.ndarray:
        return sums.counts / sums.total

    def stacked(self, by_cluster: np.ndarray) -> np.ndarray:
        """One weight vector from a row of feature weights per cluster."""
        return np.concatenate(
            [by_cluster[:, a:b].ravel() for a, b in pairwise(self.space.features.offsets)]
        )

    def unstacked(self, v: np.ndarray) -> np.ndarray:
        """A row of feature weights per cluster from one weight vector."""
        return np.concatenate(
            [v[a:b].reshape(self.n_clusters, -1) for a, b in pairwise(self.offsets)], axis=1
        )

    def _scores(self, point: Point) -> Scores:
        return self.space.scores(*self.by_score(point))

    def _centred_means(
        self, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        """Mean features of the clusters, less their average."""
        members = [labels == r for r in range(self.n_clusters)]
        means = np.stack([np.average(phi[i], axis=0, weights=weights[i]) for i in members])
        return means - means.mean(axis=0)

    def _weights(self, shares: np.ndarray) -> np.ndarray:
        floor = 1.0 / (self.n_clusters * MAX_CLUSTER_WEIGHT)
        return 1.0 / (self.n_clusters * np.maximum(shares, floor))
