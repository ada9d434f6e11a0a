"""The scan of margin clustering: the cuts of a batch of models.

A *label model* fixes every row's side z = sign(x.w + b); a *cut model* f has the mask
c = [z f < 1] of the rows inside its margin.  The scan returns, for each cut model, the sums over
masked rows that the master needs, and a few scalars.  It works on raw feature columns: whitening
and centring are the coordinator's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.scan import fused
from dmkc.scan.base import leaves
from dmkc.scan.grid import Node, fold_leaves, fold_stack
from dmkc.scan.requests import RowForm, SharedScan

FUSED_MODELS = 1
"""Up to this many models a row is read once for all; beyond, a blocked matrix product wins."""
TILE_ROWS = 512


@dataclass(frozen=True)
class Affine:
    """A score x.w + b on raw feature columns."""

    w: np.ndarray
    b: float


@dataclass(frozen=True)
class CutRequest:
    """Cuts asked for at several models under one labeling."""

    label: Affine
    models: tuple[Affine, ...]

    def widened(self, width: int) -> CutRequest:
        models = tuple(widened(m, width) for m in self.models)
        return CutRequest(widened(self.label, width), models)

    @classmethod
    def shared_scan(cls, requests: Sequence[CutRequest], rows: RowForm) -> CutScan:
        wide = [request.widened(rows.width) for request in requests]
        return CutScan.of(wide, rows.dtype, rows.weight_at)


@dataclass(frozen=True)
class CutSums:
    """What a scan found at one model."""

    row_sum: np.ndarray
    """Sum of side x row over masked rows."""
    masked: float
    """Weight of the masked rows."""
    signed: float
    """Sum of the sides of masked rows."""
    hinge: float
    """Sum of the margin violations under the given labeling."""
    own_hinge: float
    """The same under the model's own labeling."""
    changed: float
    """Weight of the rows whose own side differs from the given one."""
    positive: float
    """Weight of the rows on the positive side."""
    score: float
    """Sum of the scores."""
    total: float
    """Weight of all rows."""
    label_hash: int
    """A hash of the model's own labeling."""


@dataclass(frozen=True)
class CutScan(SharedScan[list[CutSums]]):
    """Cuts of a batch of models over several labelings."""

    label_w: np.ndarray
    label_b: np.ndarray
    model_w: np.ndarray
    model_b: np.ndarray
    owner: np.ndarray
    """Which labeling each model belongs to."""
    weight_at: int = -1
    """The column that holds the rows' weights; negative: every row weighs 1."""
    name = "cuts"

    @classmethod
    def of(cls, requests: Sequence[CutRequest], dtype: np.dtype, weight_at: int = -1) -> CutScan:
        """One scan for all requests."""
        owner = [k for k, r in enumerate(requests) for _ in r.models]
        models = [m for r in requests for m in r.models]
        return cls(
            np.array([r.label.w for r in requests], dtype),
            np.array([r.label.b for r in requests], dtype),
            np.array([m.w for m in models], dtype),
            np.array([m.b for m in models], dtype),
            np.array(owner, np.int64),
            weight_at,
        )

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Node:
        if len(self.owner) <= FUSED_MODELS:
            return self._fused(rows, first_row, leaf_rows)
        parts = (self._product(leaf, at) for leaf, at in leaves(rows, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _fused(self, columns: np.ndarray, first: int, leaf_rows: int) -> Node:
        n_leaves, n_models = -(-len(columns) // leaf_rows), len(self.owner)
        sums = np.zeros((n_leaves, n_models, columns.shape[1]))
        scalars = np.zeros((n_leaves, n_models, fused.SCALARS))
        label_hashes = np.zeros((n_leaves, n_models), np.uint64)
        fused.cuts_of_leaves(
            columns,
            self.weight_at,
            self.label_w,
            self.label_b,
            self.model_w,
            self.model_b,
            self.owner,
            first,
            leaf_rows,
            sums,
            scalars,
            label_hashes,
        )
        return fold_stack(sums), fold_stack(scalars), fold_stack(label_hashes)

    def _product(self, leaf: np.ndarray, first: int) -> Node:
        n_labels, n_models = len(self.label_b), len(self.owner)
        all_w = np.ascontiguousarray(np.concatenate([self.label_w, self.model_w]).T)
        all_b = np.concatenate([self.label_b, self.model_b])[:, None]
        sums = np.zeros((n_models, leaf.shape[1]))
        scalars = np.zeros((n_models, fused.SCALARS))
        label_hashes = np.zeros(n_models, np.uint64)
        for start in range(0, len(leaf), TILE_ROWS):
            tile = leaf[start : start + TILE_ROWS]
            scores = np.ascontiguousarray((tile @ all_w).T)
            scores += all_b
            mask = np.empty((n_models, len(tile)), leaf.dtype)
            fused.masks_of_scores(
                scores,
                weights_of(tile, self.weight_at),
                n_labels,
                self.owner,
                first + start,
                mask,
                scalars,
                label_hashes,
            )
            sums += mask @ tile
        return sums, scalars, label_hashes

    def unpack(self, node: Node) -> list[list[CutSums]]:
        sums, scalars, label_hashes = node
        found: list[list[CutSums]] = [[] for _ in self.label_b]
        for p, k in enumerate(self.owner):
            one = CutSums(sums[p], *scalars[p].tolist(), int(label_hashes[p]))  # type: ignore[call-arg]
            found[k].append(one)
        return found


def weights_of(tile: np.ndarray, weight_at: int) -> np.ndarray:
    """The weights of a tile's rows."""
    return np.ones(len(tile), tile.dtype) if weight_at < 0 else tile[:, weight_at].copy()


def widened(affine: Affine, width: int) -> Affine:
    """The same score on rows that have further columns."""
    missing = width - len(affine.w)
    return affine if missing == 0 else Affine(np.pad(affine.w, (0, missing)), affine.b)
