"""What a fit learns: a feature map and one or more scores on it; and where such scores live."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.labelling import (
    Decide,
    Known,
    Nearest,
    Nearness,
    Pipeline,
    Scorer,
    Single,
    SomeFeatures,
    WeightedFeatures,
    for_block,
)
from dmkc.clusterers.losses import Then, nearest_square, nothing, shortfall
from dmkc.data import Lazy, Rows
from dmkc.kernels import FeatureMap
from dmkc.scan.cuts import Affine
from dmkc.scan.multiclass import Scores

CLUSTERS = {"none": 1, "sign": 2}
"""Clusters by decision, where these are not as many as scores."""


@dataclass(frozen=True)
class KernelModel:
    """Scores on kernel features, and how they decide between clusters."""

    features: FeatureMap
    weights: np.ndarray
    """One row of feature weights per score; no row when there is a single cluster."""
    biases: np.ndarray
    kernel_weights: np.ndarray
    decision: str
    """The "sign" of the only score decides between two clusters; of one score per cluster the
    "largest" does, or, where scores are planes, the one "nearest" to zero; "none": there is one
    cluster and nothing to decide."""

    @property
    def n_scores(self) -> int:
        """Columns of the decision function."""
        two_planes = self.decision == "nearest" and self.n_clusters == 2
        return 1 if two_planes or self.decision in ("none", "sign") else self.n_clusters

    @property
    def n_features(self) -> int:
        return self.features.offsets[-1]

    def __repr__(self) -> str:
        n_kernels = len(self.features.kernels)
        return shown_model(self, f"{self.n_features} features of {n_kernels} kernel", n_kernels)

    @classmethod
    def of_one_cluster(cls, features: FeatureMap, norm: float) -> KernelModel:
        """A model without scores, and kernel weights of that norm that are all the same."""
        n_kernels = len(features.kernels)
        weights = np.full(n_kernels, n_kernels ** (-1.0 / norm))
        return cls(features, np.zeros((0, features.offsets[-1])), np.zeros(0), weights, "none")

    @classmethod
    def of_scores(
        cls,
        features: FeatureMap,
        weights: np.ndarray,
        biases: np.ndarray,
        kernel_weights: np.ndarray,
    ) -> KernelModel:
        """The largest of one score per cluster decides; of two it is the sign of their difference.

        The kernels' weights are what `transform` and reports know of them.
        """
        if len(biases) == 2:
            weights, biases = weights[1:] - weights[:1], biases[1:] - biases[:1]
            return cls(features, weights, biases, kernel_weights, "sign")
        return cls(features, weights, biases, kernel_weights, "largest")

    @property
    def n_clusters(self) -> int:
        return CLUSTERS.get(self.decision, len(self.biases))

    def affines(self) -> list[Affine]:
        """The scores on raw columns."""
        w, b = self.features.each_to_stored(self.weights, self.biases)
        return [Affine(one, float(bias)) for one, bias in zip(w, b, strict=True)]

    def reordered(self, shares: np.ndarray, rows: Rows) -> KernelModel:
        """The same clusters numbered by decreasing size, ties by first row."""
        return self.in_order(self.order(shares, rows))

    def order(self, shares: np.ndarray, rows: Rows, known: Known | None = None) -> np.ndarray:
        """Clusters by decreasing size, ties by first row; some rows' labels may be known."""
        return size_order(shares, self.label_pipeline(), rows, known)

    def in_order(self, order: np.ndarray) -> KernelModel:
        """The same clusters numbered in another order."""
        if self.decision == "sign":
            sign = 1.0 if order[0] == 0 else -1.0
            return replace(self, weights=sign * self.weights, biases=sign * self.biases)
        return replace(self, weights=self.weights[order], biases=self.biases[order])

    def label_pipeline(self) -> Pipeline:
        if self.decision == "nearest":
            return Pipeline(self.features.plan, Nearest(self._distances()))
        return Pipeline(self.features.plan, Decide(self._scorer()))

    def score_pipeline(self) -> Pipeline:
        if self.decision == "nearest":
            return Pipeline(self.features.plan, Nearness(self._distances()))
        scorer = self._scorer()
        one = self.decision in ("none", "sign")
        return Pipeline(self.features.plan, Single(scorer) if one else scorer)

    def shortfall_pipeline(self) -> Pipeline:
        """How far the margin of every row falls short of 1; nothing where there is one cluster."""
        scores = self.score_pipeline()
        short = nothing if self.decision == "none" else shortfall
        return Pipeline(scores.plan, Then(scores.answer, short))

    def distance_pipeline(self) -> Pipeline:
        """The squared distance of every row to the nearest plane."""
        if self.decision == "none":
            return self.shortfall_pipeline()
        return Pipeline(self.features.plan, Then(self._distances(), nearest_square))

    def feature_pipeline(self) -> Pipeline:
        sizes = np.diff(self.features.offsets)
        roots = np.repeat(np.sqrt(self.kernel_weights), sizes)
        return Pipeline(self.features.plan, WeightedFeatures(self.features, roots))

    def component_pipeline(self, chosen: np.ndarray) -> Pipeline:
        """Some of the features, each scaled as it is learned on."""
        return Pipeline(self.features.plan, SomeFeatures(self.features, chosen))

    def _distances(self) -> Scorer:
        """Signed distances to planes; a plane without weights is far from everything."""
        size = np.linalg.norm(self.weights, axis=1)
        unit = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
        far = np.where(size > 0, self.biases * unit, np.finfo(np.float32).max)
        w, b = self.features.each_to_stored(self.weights * unit[:, None], far)
        return Scorer(w.astype(self.features.plan.dtype), b.astype(self.features.plan.dtype))

    def _scorer(self) -> Scorer:
        affines = self.affines() or [Affine(np.zeros(self.features.plan.width), -1.0)]
        return Scorer.of(affines, self.features.plan.dtype)


def size_order(
    sizes: np.ndarray, pipeline: Pipeline, rows: Rows, known: Known | None = None
) -> np.ndarray:
    """The clusters by decreasing size, ties by first row; some rows' labels may be known."""
    if len(np.unique(sizes)) == len(sizes):
        return np.argsort(-sizes, kind="stable")
    return np.lexsort((_first_rows(pipeline, rows, len(sizes), known), -sizes))


def _first_rows(pipeline: Pipeline, rows: Rows, n_clusters: int, known: Known | None) -> np.ndarray:
    """The first row of every cluster, looked for leaf by leaf until all have been seen."""
    first = np.full(n_clusters, rows.n_rows)
    for block in rows.blocks(pipeline.plan.leaf_rows):
        values = block.delayed.compute() if isinstance(block, Lazy) else block.load()
        found = for_block(pipeline, known, block)(values)
        labels, at = np.unique(found, return_index=True)
        first[labels] = np.minimum(first[labels], block.start + at)
        if first.max() < rows.n_rows:
            break
    return first


def shown_model(model: Any, what: str, count: int) -> str:
    """A model in one line: its kind, its clusters, and something else that there are some of."""
    clusters = f"{model.n_clusters} cluster{'s' if model.n_clusters != 1 else ''}"
    return f"<{type(model).__name__}: {clusters}, {what}{'s' if count != 1 else ''}>"


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
        return Scores(*self.features.each_to_stored(weights, biases))

    def model(
        self, weights: np.ndarray, biases: np.ndarray, kernel_weights: np.ndarray
    ) -> KernelModel:
        """The scores in the form that labels rows."""
        return KernelModel(self.features, weights, biases, kernel_weights, self.decision)

    def on(self, features: FeatureMap) -> ScoreSpace:
        """The same on another map, such as one for rows that come without weights."""
        return replace(self, features=features)
