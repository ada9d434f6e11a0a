"""What `score` adds up: a loss for every row, summed leaf by leaf so that no bit depends on blocks.

Methods say what the loss of a row is by a pipeline from rows to losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.labelling import Pipeline
from dmkc.data import BlockRows, RowRecord, Rows, check_weights, split_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.scan.base import Scan, leaves
from dmkc.scan.engine import Engine, one_blas_thread
from dmkc.scan.grid import Node, fold_leaves
from dmkc.typing import PerRow


@dataclass(frozen=True)
class Then:
    """What a function makes of an answer."""

    answer: Callable[[RowRecord], np.ndarray]
    function: Callable[[np.ndarray], np.ndarray]

    def __call__(self, stored: RowRecord) -> np.ndarray:
        return self.function(self.answer(stored))


def margins(scores: np.ndarray) -> np.ndarray:
    """How far every row is from changing its cluster: the score, or the lead of the largest."""
    if scores.ndim == 1:
        return np.abs(scores)
    top = np.partition(scores, -2, axis=1)
    return top[:, -1] - top[:, -2]


def shortfall(scores: np.ndarray) -> np.ndarray:
    """How far the margin of every row falls short of 1."""
    return np.maximum(1.0 - margins(scores.astype(np.float64)), 0.0)


def nothing(scores: np.ndarray) -> np.ndarray:
    """No loss at all."""
    return np.zeros(len(scores))


def nearest_square(distances: np.ndarray) -> np.ndarray:
    """The smallest of several signed distances, squared."""
    return np.min(distances.astype(np.float64) ** 2, axis=1)


@dataclass(frozen=True)
class LossScan(Scan):
    """Sums of weighted losses and of weights."""

    pipeline: Pipeline
    name = "score"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        parts = (self._leaf(leaf) for leaf, _ in leaves(rows, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _leaf(self, leaf: Any) -> Node:
        values, weights = split_weights(leaf)
        losses = self.pipeline(values).astype(np.float64)
        if weights is None:
            return np.array([losses.sum()]), np.array([float(len(losses))])
        return np.array([losses @ weights]), np.array([float(np.sum(weights))])


def total_loss(
    rows: Rows, engine: Engine, pipeline: Pipeline, sample_weight: PerRow
) -> tuple[float, float]:
    """The weighted losses of all rows, and the weights."""
    grid = engine.grid(rows.n_rows, scan_width(rows), pipeline.plan.leaf_rows)
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, rows.n_rows))
    with one_blas_thread():
        losses, weights = engine.scan(LossScan(pipeline), blocks, grid)
    return float(losses[0]), float(weights[0])
