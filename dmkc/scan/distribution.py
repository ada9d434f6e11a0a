"""The scan of margin-distribution clustering: loss, gradient and Hessian of a batch of models.

Under a labeling y a row with score f has the margin y f and the loss (Zhang, Li and Jin 2022, eq 1)

    (1 - theta - y f)_+^2 + nu (y f - 1 - theta)_+^2,

which asks for margins near 1.  Two clusters have one score; several have one each, a row being +1
for its own cluster's and -1 for the others.  Free rows are labelled by a model; rows that
constraints tie have their labels in a table, and the scan returns their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from dmkc.compiled import compiled
from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.scan.base import leaves
from dmkc.scan.cuts import TILE_ROWS, row_hashes
from dmkc.scan.grid import Node, fold_leaves
from dmkc.scan.multiclass import Scores
from dmkc.scan.requests import SharedScan

STEPS = (0.5, 0.25, 0.1, 0.02)
"""Parts of a step at which losses are found beside those at its end."""
LOSS, OWN, CHANGED, TOTAL = range(4)
SHORTER = 4


@dataclass(frozen=True)
class LossShape:
    """The loss of a margin, and what a row counts for."""

    theta: float
    nu: float
    free: float
    """What a row of weight 1 counts for that no constraint names."""
    constrained: float
    """The same of a row that some constraint names."""

    def of(self, margins: np.ndarray) -> np.ndarray:
        """Losses of margins."""
        short = np.maximum(1.0 - self.theta - margins, 0.0)
        return short**2 + self.nu * np.maximum(margins - 1.0 - self.theta, 0.0) ** 2


@dataclass(frozen=True)
class DistributionRequest:
    """What is asked for at one model under one labeling."""

    label: Scores
    """Labels of the free rows."""
    constrained: np.ndarray
    """Labels of the constrained rows, in row order."""
    point: Scores
    """Where loss, gradient and Hessian are wanted."""
    before: Scores
    """Where the step that led to `point` began."""
    binary: bool
    """Whether the sign of one score decides between two clusters; else there is one for each."""
    shape: LossShape
    used: int
    """Stored values that features are made of; behind them are zeros."""
    curved: bool
    """Whether the Hessian is wanted."""

    @classmethod
    def shared_scan(
        cls, requests: Sequence[DistributionRequest], dtype: np.dtype
    ) -> DistributionScan:
        return DistributionScan.of(requests, dtype)


@dataclass(frozen=True)
class DistributionSums:
    """What a scan found at one model; sums over rows of what each counts for."""

    loss: float
    """Losses under the given labeling."""
    shorter: np.ndarray
    """The same at the parts of the step that `STEPS` lists."""
    slope: np.ndarray
    """(scores, columns): half the gradient of the losses with respect to the column weights."""
    bias_slope: np.ndarray
    """(scores,): the same for the biases."""
    square: np.ndarray | None
    """(scores, columns, columns): half their Hessian."""
    cross: np.ndarray | None
    """(scores, columns): its part between column weights and biases."""
    bias_square: np.ndarray | None
    own: float
    """Losses of the free rows under the model's own labeling."""
    counts: np.ndarray
    """Weights of the free rows by cluster under that labeling."""
    changed: float
    """Weight of the free rows that it relabels."""
    total: float
    """Weight of all rows."""
    constrained_scores: np.ndarray
    """(scores, constrained rows)."""
    label_hash: int
    """A hash of the free rows' own labels."""


@dataclass(frozen=True)
class DistributionScan(SharedScan[DistributionSums]):
    """Losses, gradients and Hessians of a batch of models."""

    weights: np.ndarray
    """(3 x models x scores, columns): label, point and before, model by model."""
    biases: np.ndarray
    constrained: np.ndarray
    """(models, constrained rows)"""
    shapes: np.ndarray
    """(models, 4): theta, nu, and what free and constrained rows count for."""
    n_scores: int
    binary: bool
    used: int
    curved: bool
    name = "losses"

    @classmethod
    def of(cls, requests: Sequence[DistributionRequest], dtype: np.dtype) -> DistributionScan:
        parts = [s for r in requests for s in (r.label, r.point, r.before)]
        shapes = [(r.shape.theta, r.shape.nu, r.shape.free, r.shape.constrained) for r in requests]
        first = requests[0]
        return cls(
            np.concatenate([p.w for p in parts]).astype(dtype),
            np.concatenate([p.b for p in parts]).astype(dtype),
            np.array([r.constrained for r in requests], np.int16),
            np.array(shapes, np.float64),
            len(first.label.b),
            first.binary,
            first.used,
            any(r.curved for r in requests),
        )

    @property
    def n_clusters(self) -> int:
        return 2 if self.binary else self.n_scores

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        all_w = np.ascontiguousarray(self.weights.T)
        record = as_record(rows)
        parts = (self._leaf(x, at, all_w) for x, at in leaves(record, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def merge(self, left: Node, right: Node) -> Node:
        sums = tuple(a + b for a, b in zip(left[:-1], right[:-1], strict=True))
        return (*sums, np.concatenate([left[-1], right[-1]], axis=1))

    def _leaf(self, record: RowRecord, first: int, all_w: np.ndarray) -> Node:
        leaf, weights = record.rows, record.weights_in(np.dtype(np.float64))
        numbers = record.constrained
        if numbers is None:
            numbers = np.zeros(len(leaf), np.int64)
        n_models, s, d = len(self.shapes), self.n_scores, self.used
        many = n_models * s
        slope, cross = np.zeros((2, many, d))
        biases = np.zeros((2, many))
        square = np.zeros((many, d, d) if self.curved else (many, 0, 0))
        scalars = np.zeros((n_models, SHORTER + len(STEPS)))
        counts = np.zeros((n_models, self.n_clusters))
        label_hashes = np.zeros(n_models, np.uint64)
        constrained_scores = []
        for start in range(0, len(leaf), TILE_ROWS):
            tile = leaf[start : start + TILE_ROWS]
            scores = (tile @ all_w).astype(np.float64)
            scores += self.biases
            tie = numbers[start : start + TILE_ROWS]
            pull, curve = np.zeros((2, many, len(tile)))
            _pulls(
                scores,
                weights[start : start + TILE_ROWS],
                tie,
                self.constrained,
                self.shapes,
                s,
                self.binary,
                np.array(STEPS),
                row_hashes(first + start, len(tile)),
                pull,
                curve,
                scalars,
                counts,
                label_hashes,
            )
            biases[0] += pull.sum(axis=1)
            if self.curved:
                biases[1] += curve.sum(axis=1)
                self._curvature(tile[:, :d].astype(np.float64), pull, curve, slope, cross, square)
            else:
                slope += pull.astype(tile.dtype) @ tile[:, :d]
            at_point = [(3 * p + 1) * s + k for p in range(n_models) for k in range(s)]
            constrained_scores.append(scores[np.flatnonzero(tie)][:, at_point].T)
        return (
            slope,
            cross,
            biases,
            square,
            scalars,
            counts,
            label_hashes,
            np.hstack(constrained_scores),
        )

    def _curvature(
        self,
        tile: np.ndarray,
        pull: np.ndarray,
        curve: np.ndarray,
        slope: np.ndarray,
        cross: np.ndarray,
        square: np.ndarray,
    ) -> None:
        """Rows inside the flat part of the loss add nothing and are left out.

        In float64: the whitening that follows on the coordinator would magnify rounding errors.
        """
        for k in range(len(pull)):
            some = np.flatnonzero(curve[k])
            rows, c = tile[some], curve[k, some]
            slope[k] += pull[k, some] @ rows
            cross[k] += c @ rows
            # the upper triangle only; the transposed view is in the order that BLAS wants
            square[k] += dsyrk(1.0, (np.sqrt(c)[:, None] * rows).T)

    def unpack(self, node: Node) -> list[DistributionSums]:
        return [self._one(node, p) for p in range(len(self.shapes))]

    def _one(self, node: Node, p: int) -> DistributionSums:
        """The sums at the model of one request."""
        slope, cross, biases, square, scalars, counts, label_hashes, constrained_scores = node
        part = slice(p * self.n_scores, (p + 1) * self.n_scores)
        upper = square[part]
        whole = upper + np.swapaxes(np.triu(upper, 1), 1, 2) if self.curved else None
        return DistributionSums(
            loss=float(scalars[p, LOSS]),
            shorter=scalars[p, SHORTER:],
            slope=slope[part],
            bias_slope=biases[0, part],
            square=whole,
            cross=cross[part] if self.curved else None,
            bias_square=biases[1, part] if self.curved else None,
            own=float(scalars[p, OWN]),
            counts=counts[p],
            changed=float(scalars[p, CHANGED]),
            total=float(scalars[p, TOTAL]),
            constrained_scores=constrained_scores[part],
            label_hash=int(label_hashes[p]),
        )


@compiled
def _pulls(
    scores,
    weight,
    tie,
    constrained,
    shapes,
    s,
    binary,
    steps,
    hashes,
    pull,
    curve,
    scalars,
    counts,
    label_hashes,
):  # pragma: no cover - compiled
    """Half the first and second derivatives of every row's losses, and the scalar sums."""
    n = scores.shape[0]
    for p in range(shapes.shape[0]):
        theta, nu = shapes[p, 0], shapes[p, 1]
        label_at, point_at, before_at = 3 * p * s, (3 * p + 1) * s, (3 * p + 2) * s
        out = scalars[p]
        for i in range(n):
            if binary:
                own = 1 if scores[i, point_at] >= 0.0 else 0
                label = 1 if scores[i, label_at] >= 0.0 else 0
            else:
                own, label = 0, 0
                for k in range(1, s):
                    if scores[i, point_at + k] > scores[i, point_at + own]:
                        own = k
                    if scores[i, label_at + k] > scores[i, label_at + label]:
                        label = k
            out[TOTAL] += weight[i]
            if tie[i] > 0:
                label = constrained[p, tie[i] - 1]
                count = weight[i] * shapes[p, 3]
            else:
                count = weight[i] * shapes[p, 2]
                counts[p, own] += weight[i]
                label_hashes[p] += hashes[i] * np.uint64(own + 1)
                if own != label:
                    out[CHANGED] += weight[i]
            for k in range(s):
                cluster = 1 if binary else k
                y = 1.0 if label == cluster else -1.0
                f, f_before = scores[i, point_at + k], scores[i, before_at + k]
                short = 1.0 - theta - y * f
                over = y * f - 1.0 - theta
                if short > 0.0:
                    out[LOSS] += count * short * short
                    pull[p * s + k, i] = -count * y * short
                    curve[p * s + k, i] = count
                elif over > 0.0:
                    out[LOSS] += count * nu * over * over
                    pull[p * s + k, i] = count * y * nu * over
                    curve[p * s + k, i] = count * nu
                for t in range(len(steps)):
                    margin = y * (f_before + steps[t] * (f - f_before))
                    lack = max(1.0 - theta - margin, 0.0)
                    excess = max(margin - 1.0 - theta, 0.0)
                    out[SHORTER + t] += count * (lack * lack + nu * excess * excess)
                if tie[i] == 0:
                    margin = f if own == cluster else -f
                    lack = max(1.0 - theta - margin, 0.0)
                    excess = max(margin - 1.0 - theta, 0.0)
                    out[OWN] += count * (lack * lack + nu * excess * excess)
