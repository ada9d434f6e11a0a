"""The scan behind all kernel k-means: inner products of the features of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.scan.base import Scan, leaves
from dmkc.scan.cuts import weights_of
from dmkc.scan.grid import Node, fold_leaves


@dataclass(frozen=True)
class GramScan(Scan):
    """Sums over rows of outer products of features, of the kernels' own k(x, x), of weights."""

    make: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """From a leaf of columns to its features and the kernels' values k(x, x)."""
    weight_at: int = -1
    """The column that holds the rows' weights; negative: every row weighs 1."""
    name = "gram"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Node:
        return fold_leaves(
            (self._leaf(leaf) for leaf, _ in leaves(rows, first_row, leaf_rows)), self.merge
        )

    def _leaf(self, leaf: np.ndarray) -> Node:
        features, own = self.make(leaf)
        weights = weights_of(leaf, self.weight_at).astype(np.float64)
        if self.weight_at >= 0:
            features = features * np.sqrt(weights)[:, None]
        return features.T @ features, weights @ own, np.array([weights.sum()])
