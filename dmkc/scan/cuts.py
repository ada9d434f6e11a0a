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

from dmkc.data import RowRecord, as_record
from dmkc.scan import fused
from dmkc.scan.base import leaves
from dmkc.scan.grid import Node, fold_leaves, fold_stack
from dmkc.scan.requests import GivenLabels, SharedScan

FUSED_MODELS = 1
"""Up to this many models a row is read once for all; beyond, a blocked matrix product wins."""
TILE_ROWS = 512
NO_LABELS = np.empty((0, 0), np.int32)


@dataclass(frozen=True)
class Affine:
    """A score x.w + b on raw feature columns."""

    w: np.ndarray
    b: float


@dataclass(frozen=True)
class CutRequest:
    """Cuts asked for at several models under one labeling."""

    label: Affine | GivenLabels
    models: tuple[Affine, ...]

    @classmethod
    def shared_scan(cls, requests: Sequence[CutRequest], dtype: np.dtype) -> CutScan:
        return CutScan.of(requests, dtype)


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
    given: np.ndarray
    """The column of given labels of each labeling; -1: it is a model's."""
    name = "cuts"

    @classmethod
    def of(cls, requests: Sequence[CutRequest], dtype: np.dtype) -> CutScan:
        """One scan for all requests."""
        owner = [k for k, r in enumerate(requests) for _ in r.models]
        models = [m for r in requests for m in r.models]
        nothing = Affine(np.zeros_like(models[0].w), 0.0)
        labels = [nothing if isinstance(r.label, GivenLabels) else r.label for r in requests]
        return cls(
            np.array([label.w for label in labels], dtype),
            np.array([label.b for label in labels], dtype),
            np.array([m.w for m in models], dtype),
            np.array([m.b for m in models], dtype),
            np.array(owner, np.int64),
            given_columns([r.label for r in requests]),
        )

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Node:
        record = as_record(rows)
        if len(self.owner) <= FUSED_MODELS:
            return self._fused(record, first_row, leaf_rows)
        parts = (self._product(leaf, at) for leaf, at in leaves(record, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _fused(self, record: RowRecord, first: int, leaf_rows: int) -> Node:
        columns = record.rows
        n_leaves, n_models = -(-len(columns) // leaf_rows), len(self.owner)
        sums = np.zeros((n_leaves, n_models, columns.shape[1]))
        scalars = np.zeros((n_leaves, n_models, fused.SCALARS))
        label_hashes = np.zeros((n_leaves, n_models), np.uint64)
        fused.cuts_of_leaves(
            columns,
            np.empty(0, columns.dtype) if record.weights is None else record.weights,
            NO_LABELS if record.labels is None else record.labels,
            self.given,
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

    def _product(self, record: RowRecord, first: int) -> Node:
        leaf, weights = record.rows, record.weights_in(record.rows.dtype)
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
            for s in np.flatnonzero(self.given >= 0):
                assert record.labels is not None
                side = record.labels[start : start + TILE_ROWS, self.given[s]] > 0
                scores[s] = np.where(side, 1.0, -1.0)
            mask = np.empty((n_models, len(tile)), leaf.dtype)
            fused.masks_of_scores(
                scores,
                weights[start : start + TILE_ROWS],
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


def given_columns(labels: Sequence[Any]) -> np.ndarray:
    """The columns of given labels, -1 where a labeling is a model's."""
    return np.array([x.column if isinstance(x, GivenLabels) else -1 for x in labels], np.int64)
