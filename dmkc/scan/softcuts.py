"""The scan of hard margin problems with two clusters: cuts with soft masks, and curvature.

A cut is valid for any mask c in [0, 1]^n, not just for c = [z f < 1].  The mask

    c = s((1 - z f) / width),   s(t) = 1 / (1 + exp(-t)),

is the slope of the smooth violation width log(1 + exp((1 - z f) / width)), so that one pass gives
Newton's method its gradient, and the master a cut that is nearly the best one where the smooth
problem is solved: its multiplier then is C.  Curvature is summed up over every `stride`-th row: it
decides how good a step is and not what is certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from dmkc.compiled import compiled
from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.scan.base import leaves
from dmkc.scan.cuts import (
    CHANGED,
    HINGE,
    MASKED,
    OWN_HINGE,
    POSITIVE,
    SCALARS,
    SCORE,
    SIGNED,
    TIE,
    TOTAL,
    Affine,
    CutSums,
    StackedModels,
    row_hashes,
    stacked,
)
from dmkc.scan.grid import Node, fold_leaves
from dmkc.scan.requests import GivenLabels, SharedScan

SMOOTH = SCALARS
FLAT = 1e-6
"""Part of the largest curvature that a row may have below which it is left out."""


@dataclass(frozen=True)
class SoftCutRequest:
    """Cuts at several models under one labeling, and how much they violate the margin smoothly."""

    label: Affine | GivenLabels
    models: tuple[Affine, ...]
    width: float
    """How wide the smooth part of the violation is."""
    curved: bool
    """Whether masks are soft and the curvature is wanted; else masks are as ever."""
    stride: int = 1
    """Curvature is that of every so manyth row."""

    @classmethod
    def shared_scan(cls, requests: Sequence[SoftCutRequest], dtype: np.dtype) -> SoftCutScan:
        return SoftCutScan.of(requests, dtype)


@dataclass(frozen=True)
class SoftCutSums(CutSums):
    """What a scan found at one model."""

    smooth: float
    """Sum of the smooth margin violations."""
    square: np.ndarray | None
    """Sum of the outer products of (row, 1) with itself by their curvature, which is that of the
    smooth violations; None where it was not asked for."""


@dataclass(frozen=True)
class SoftCutScan(StackedModels, SharedScan[list[SoftCutSums]]):
    """Cuts of a batch of models over several labelings."""

    widths: np.ndarray
    curved: np.ndarray
    strides: np.ndarray
    name = "cuts"

    @classmethod
    def of(cls, requests: Sequence[SoftCutRequest], dtype: np.dtype) -> SoftCutScan:
        """One scan for all requests."""
        each = [request for request in requests for _ in request.models]
        return cls(
            *stacked(requests, dtype),
            np.array([request.width for request in each]),
            np.array([request.curved for request in each]),
            np.array([request.stride for request in each], np.int64),
        )

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        parts = (self._leaf(leaf, at) for leaf, at in leaves(as_record(rows), first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _leaf(self, record: RowRecord, first: int) -> Node:
        n_models, d = len(self.owner), record.rows.shape[1]
        curved = np.flatnonzero(self.curved)
        sums, squares = np.zeros((n_models, d)), np.zeros((len(curved), d + 1, d + 1))
        scalars = np.zeros((n_models, SCALARS + 1))
        label_hashes = np.zeros(n_models, np.uint64)
        for start, tile, weights, scores in self.scored_tiles(record):
            mask = np.empty((n_models, len(tile)), tile.dtype)
            bend = np.zeros((n_models, len(tile)))
            _soft_masks(
                scores,
                weights,
                len(self.label_b),
                self.owner,
                self.widths,
                self.curved,
                first + start,
                mask,
                bend,
                scalars,
                label_hashes,
            )
            sums += mask @ tile
            for square, p in zip(squares, curved, strict=True):
                square += self._square(tile, weights, bend[p], first + start, int(p))
        upper = np.triu_indices(d + 1)  # symmetric matrices travel and are kept as half of them
        return sums, squares[:, upper[0], upper[1]], scalars, label_hashes

    def _square(
        self, tile: np.ndarray, weights: np.ndarray, bend: np.ndarray, first: int, p: int
    ) -> np.ndarray:
        """Half of the matrix: the upper triangle.

        In float64: what follows on the coordinator would magnify rounding errors.
        """
        stride = int(self.strides[p])
        here = np.arange(-first % stride, len(tile), stride)
        here = here[bend[here] * self.widths[p] > FLAT]
        rows = np.ones((len(here), tile.shape[1] + 1))
        rows[:, :-1] = tile[here]
        rows *= np.sqrt(stride * weights[here].astype(np.float64) * bend[here])[:, None]
        return dsyrk(1.0, rows.T) if len(here) else np.zeros((rows.shape[1], rows.shape[1]))

    def unpack(self, node: Node) -> list[list[SoftCutSums]]:
        sums, halves, scalars, label_hashes = node
        found: list[list[SoftCutSums]] = [[] for _ in self.label_b]
        size = sums.shape[1] + 1
        upper, squares = np.triu_indices(size), np.empty((len(halves), size, size))
        squares[:, upper[0], upper[1]] = squares[:, upper[1], upper[0]] = halves
        wholes = iter(squares)
        for p, k in enumerate(self.owner):
            *plain, smooth = scalars[p].tolist()
            square = next(wholes) if self.curved[p] else None
            found[k].append(
                SoftCutSums(sums[p], *plain, int(label_hashes[p]), smooth, square)  # type: ignore[call-arg]
            )
        return found


@compiled
def _soft_masks(
    scores, weight, n_labels, owner, widths, curved, first_row, mask, bend, scalars, label_hashes
):  # pragma: no cover - compiled
    """Signed masks of a tile from its scores, the curvature at its rows, and the scalar sums.

    Curvature is that of rows of weight 1.
    """
    n = scores.shape[1]
    hashes = row_hashes(first_row, n)
    for p in range(owner.shape[0]):
        label, own, width = scores[owner[p]], scores[n_labels + p], widths[p]
        for i in range(n):
            z = 1.0 if label[i] >= 0 else -1.0
            short = 1.0 - z * float(own[i])
            fall = np.exp(-abs(short) / width)
            part = 1.0 / (1.0 + fall) if short > 0 else fall / (1.0 + fall)
            bend[p, i] = part * (1.0 - part) / width
            if not curved[p]:
                part = 1.0 if short > TIE else 0.0
            mask[p, i] = weight[i] * z * part
        masked = signed = hinge = own_hinge = changed = positive = total = count = smooth = 0.0
        label_hash = np.uint64(0)
        for i in range(n):
            w, score, inside = float(weight[i]), float(own[i]), float(mask[p, i])
            z = 1.0 if label[i] >= 0 else -1.0
            side = 1.0 if score >= 0 else -1.0
            short = 1.0 - z * score
            masked += inside * z
            signed += inside
            hinge += w * max(short, 0.0)
            own_hinge += w * max(1.0 - side * score, 0.0)
            changed += w if side != z else 0.0
            positive += w if side > 0 else 0.0
            total += w * score
            count += w
            smooth += w * (max(short, 0.0) + width * np.log1p(np.exp(-abs(short) / width)))
        for i in range(n):
            label_hash += hashes[i] if own[i] >= 0 else np.uint64(0)
        out = scalars[p]
        out[MASKED] += masked
        out[SIGNED] += signed
        out[HINGE] += hinge
        out[OWN_HINGE] += own_hinge
        out[CHANGED] += changed
        out[POSITIVE] += positive
        out[SCORE] += total
        out[TOTAL] += count
        out[SMOOTH] += smooth
        label_hashes[p] += label_hash
