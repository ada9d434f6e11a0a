"""The scan behind all kernel k-means: inner products of the features of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.data import RowRecord, as_record
from dmkc.scan.base import Scan, leaves
from dmkc.scan.grid import Node, fold_leaves


@dataclass(frozen=True)
class GramScan(Scan):
    """Sums over rows of outer products of features, of the kernels' own k(x, x), of weights."""

    make: Callable[[RowRecord], tuple[np.ndarray, np.ndarray]]
    """From what is stored of a leaf to its features and the kernels' values k(x, x)."""
    name = "gram"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Node:
        return fold_leaves(
            (self._leaf(leaf) for leaf, _ in leaves(as_record(rows), first_row, leaf_rows)),
            self.merge,
        )

    def _leaf(self, leaf: RowRecord) -> Node:
        features, own = self.make(leaf)
        weights = leaf.weights_in(np.dtype(np.float64))
        if leaf.weights is not None:
            features = features * np.sqrt(weights)[:, None]
        return features.T @ features, weights @ own, np.array([weights.sum()])
