"""What a fit learns: a feature map and one or more scores on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.clusterers.labelling import Decide, Pipeline, Scorer, Single, WeightedFeatures
from dmkc.data import Lazy, Rows
from dmkc.kernels import FeatureMap
from dmkc.scan.cuts import Affine


@dataclass(frozen=True)
class KernelModel:
    """Scores on kernel features: one (its sign decides) or one per cluster (the largest does)."""

    features: FeatureMap
    weights: np.ndarray
    """One row of feature weights per score; no row when there is a single cluster."""
    biases: np.ndarray
    kernel_weights: np.ndarray

    @property
    def n_features(self) -> int:
        return self.features.offsets[-1]

    def affines(self) -> list[Affine]:
        """The scores on raw columns."""
        pairs = zip(self.weights, self.biases, strict=True)
        return [self.features.to_columns(v, float(b)) for v, b in pairs]

    def reordered(self, shares: np.ndarray, rows: Rows) -> KernelModel:
        """The same clusters numbered by decreasing size, ties by first row."""
        order = np.argsort(-shares, kind="stable")
        if len(np.unique(shares)) < len(shares):
            order = np.lexsort((_first_rows(self.label_pipeline(), rows, len(shares)), -shares))
        if len(self.biases) > 1:
            return replace(self, weights=self.weights[order], biases=self.biases[order])
        sign = 1.0 if order[0] == 0 else -1.0
        return replace(self, weights=sign * self.weights, biases=sign * self.biases)

    def label_pipeline(self) -> Pipeline:
        return Pipeline(self.features.columns, Decide(self._scorer()))

    def score_pipeline(self) -> Pipeline:
        scorer = self._scorer()
        return Pipeline(self.features.columns, Single(scorer) if len(self.biases) == 1 else scorer)

    def feature_pipeline(self) -> Pipeline:
        sizes = np.diff(self.features.offsets)
        roots = np.repeat(np.sqrt(self.kernel_weights), sizes)
        return Pipeline(self.features.columns, WeightedFeatures(self.features, roots))

    def _scorer(self) -> Scorer:
        affines = self.affines() or [Affine(np.zeros(self.features.columns.width), -1.0)]
        return Scorer.of(affines, self.features.columns.dtype)


def _first_rows(pipeline: Pipeline, rows: Rows, n_clusters: int) -> np.ndarray:
    """The first row of every cluster, looked for leaf by leaf until all have been seen."""
    first = np.full(n_clusters, rows.n_rows)
    for block in rows.blocks(pipeline.columns.leaf_rows):
        values = block.delayed.compute() if isinstance(block, Lazy) else block.load()
        labels, at = np.unique(pipeline(values), return_index=True)
        first[labels] = np.minimum(first[labels], block.start + at)
        if first.max() < rows.n_rows:
            break
    return first
