"""Scores on kernel features, as solvers move them about, scans read them and models keep them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.clusterers.model import KernelModel
from dmkc.kernels import FeatureMap
from dmkc.scan.multiclass import Scores


@dataclass(frozen=True)
class ScoreSpace:
    """Where the scores of a method live, and how they decide between clusters."""

    features: FeatureMap
    n_clusters: int
    decision: str
    """As in `KernelModel`."""

    @classmethod
    def of(cls, features: FeatureMap, n_clusters: int) -> ScoreSpace:
        """One score whose sign decides between two clusters; one each for more."""
        return cls(features, n_clusters, "sign" if n_clusters == 2 else "largest")

    @property
    def n_scores(self) -> int:
        return 1 if self.decision == "sign" else self.n_clusters

    @property
    def scored_clusters(self) -> np.ndarray:
        """The cluster that every score speaks for."""
        return np.array([1]) if self.decision == "sign" else np.arange(self.n_clusters)

    @property
    def n_features(self) -> int:
        return self.features.offsets[-1]

    def scores(self, weights: np.ndarray, biases: np.ndarray) -> Scores:
        """Scores on raw columns, from a row of feature weights and a bias for each."""
        pairs = zip(weights, biases, strict=True)
        parts = [self.features.to_stored(v, float(b)) for v, b in pairs]
        return Scores(np.stack([a.w for a in parts]), np.array([a.b for a in parts]))

    def model(
        self, weights: np.ndarray, biases: np.ndarray, kernel_weights: np.ndarray
    ) -> KernelModel:
        """The scores in the form that labels rows."""
        return KernelModel(self.features, weights, biases, kernel_weights, self.decision)

    def on(self, features: FeatureMap) -> ScoreSpace:
        """The same on another map, such as one for rows that come without weights."""
        return replace(self, features=features)
