"""The scan of margin clustering: the cuts of a batch of models.

A *label model* fixes every row's side z = sign(x.w + b); a *cut model* f has the mask
c = [z f < 1] of the rows inside its margin.  The scan returns, for each cut model, the sums over
masked rows that the master needs, and a few scalars.  It works on raw feature columns: whitening
and centring are the coordinator's business.

The loops read each row once: while it is in cache its scores are formed, the mask is decided and
the row is added to the sums of the cut.  Partial sums of a few rows are kept in the feature
precision and added up in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.compiled import compiled, inlined
from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.scan.base import leaves
from dmkc.scan.grid import Node, fold_leaves, fold_stack
from dmkc.scan.requests import GivenLabels, SharedScan

MASKED, SIGNED, HINGE, OWN_HINGE, CHANGED, POSITIVE, SCORE, TOTAL = range(8)
SCALARS = 8
ROWS_PER_PARTIAL = 64
NARROW = 64
"""Up to this many stored values adding a row is cheaper than asking whether it counts."""
TIE = 1e-9
"""Margin violations below this count as none: masters put rows exactly on the margin, and rounding
must not decide which cut is made.  Any mask makes a valid cut."""
FUSED_MODELS = 1
"""Up to this many models a row is read once for all; beyond, a blocked matrix product wins."""
TILE_ROWS = 512
NO_LABELS = np.empty((0, 0), np.int32)


@inlined
def row_hash(row):  # pragma: no cover - compiled
    """64 well-mixed bits of a global row number."""
    x = np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(29))


@compiled
def row_hashes(first_row, n):  # pragma: no cover - compiled
    """Hashes of consecutive global row numbers."""
    out = np.empty(n, np.uint64)
    for i in range(n):
        out[i] = row_hash(first_row + i)
    return out


@compiled
def cuts_of_leaves(
    columns,
    weights,
    labels,
    given,
    label_w,
    label_b,
    model_w,
    model_b,
    owner,
    first_row,
    leaf_rows,
    sums,
    scalars,
    label_hashes,
):  # pragma: no cover - compiled
    """Cuts of a few models, one leaf after the other, into sums[leaf, model] and the like.

    All rows weigh 1 where there are no weights.  A labeling is a column of `labels` where `given`
    says which, and else the sign of a score.
    """
    n, d = columns.shape
    n_labels, n_models = label_w.shape[0], model_w.shape[0]
    kind = columns.dtype.type
    zero, one, tie = kind(0), kind(1), kind(TIE)
    partial = np.zeros((n_models, d), columns.dtype)
    sides = np.empty((n_labels, ROWS_PER_PARTIAL), columns.dtype)
    scores = np.empty(ROWS_PER_PARTIAL, columns.dtype)
    steps = np.empty(ROWS_PER_PARTIAL, columns.dtype)
    weight = np.ones(ROWS_PER_PARTIAL, columns.dtype)
    hashes = np.empty(ROWS_PER_PARTIAL, np.uint64)
    weighted, narrow = weights.shape[0] > 0, d <= NARROW
    for leaf in range(sums.shape[0]):
        stop = min(n, (leaf + 1) * leaf_rows)
        for first in range(leaf * leaf_rows, stop, ROWS_PER_PARTIAL):
            count = min(ROWS_PER_PARTIAL, stop - first)
            tile = columns[first : first + count]
            for i in range(count):
                hashes[i] = row_hash(first_row + first + i)
            for i in range(count if weighted else 0):
                weight[i] = weights[first + i]
            both = n_labels == 1 and given[0] < 0
            if both:  # the label and the first model in one go
                for i in range(count):
                    side_score, score, row = label_b[0], model_b[0], tile[i]
                    for j in range(d):
                        side_score += row[j] * label_w[0, j]
                        score += row[j] * model_w[0, j]
                    sides[0, i] = one if side_score >= zero else -one
                    scores[i] = score
            for s in range(1 if both else 0, n_labels):
                if given[s] >= 0:
                    for i in range(count):
                        sides[s, i] = one if labels[first + i, given[s]] > 0 else -one
                    continue
                for i in range(count):
                    score, row = label_b[s], tile[i]
                    for j in range(d):
                        score += row[j] * label_w[s, j]
                    sides[s, i] = one if score >= zero else -one
            for p in range(n_models):
                for i in range(count if p or not both else 0):
                    score, row = model_b[p], tile[i]
                    for j in range(d):
                        score += row[j] * model_w[p, j]
                    scores[i] = score
                side = sides[owner[p]]
                masked = signed = hinge = own_hinge = changed = positive = zero
                score_sum = total = zero
                label_hash = np.uint64(0)
                for i in range(count):
                    short = one - side[i] * scores[i]
                    steps[i] = weight[i] * side[i] if short > tie else zero
                for i in range(count):  # without branches, so that it vectorises
                    w, score, z = weight[i], scores[i], side[i]
                    own = one if score >= zero else -one
                    inside = steps[i] * z
                    masked += inside
                    signed += steps[i]
                    hinge += inside * (one - z * score)
                    own_hinge += w * max(one - own * score, zero)
                    changed += w if own != z else zero
                    positive += w if own > zero else zero
                    score_sum += w * score
                    total += w
                for i in range(count):
                    label_hash += hashes[i] if scores[i] >= zero else np.uint64(0)
                out, sum_of = scalars[leaf, p], partial[p]
                out[MASKED] += masked
                out[SIGNED] += signed
                out[HINGE] += hinge
                out[OWN_HINGE] += own_hinge
                out[CHANGED] += changed
                out[POSITIVE] += positive
                out[SCORE] += score_sum
                out[TOTAL] += total
                label_hashes[leaf, p] += label_hash
                for i in range(count):
                    step = steps[i]
                    if narrow or step != zero:
                        row = tile[i]
                        for j in range(d):
                            sum_of[j] += step * row[j]
                for j in range(d):
                    sums[leaf, p, j] += sum_of[j]
                    sum_of[j] = zero


@compiled
def masks_of_scores(
    scores, weight, n_labels, owner, first_row, signed_mask, scalars, label_hashes
):  # pragma: no cover - compiled
    """For many models: turn a tile's scores (labels first, a row per model) into signed masks.

    Written without branches over contiguous rows, so that it vectorises.
    """
    n = scores.shape[1]
    kind = scores.dtype.type
    zero, one, tie = kind(0), kind(1), kind(TIE)
    hashes = row_hashes(first_row, n)
    for p in range(owner.shape[0]):
        label = scores[owner[p]]
        own = scores[n_labels + p]
        masked = signed = hinge = own_hinge = changed = positive = total = count = zero
        label_hash = np.uint64(0)
        mask = signed_mask[p]
        for i in range(n):
            z = one if label[i] >= zero else -one
            mask[i] = weight[i] * z if one - z * own[i] > tie else zero
        for i in range(n):
            w, score = weight[i], own[i]
            z = one if label[i] >= zero else -one
            side = one if score >= zero else -one
            inside = mask[i] * z
            masked += inside
            signed += mask[i]
            hinge += inside * (one - z * score)
            own_hinge += w * max(one - side * score, zero)
            changed += w if side != z else zero
            positive += w if side > zero else zero
            total += w * score
            count += w
        for i in range(n):
            label_hash += hashes[i] if own[i] >= zero else np.uint64(0)
        out = scalars[p]
        out[MASKED] += masked
        out[SIGNED] += signed
        out[HINGE] += hinge
        out[OWN_HINGE] += own_hinge
        out[CHANGED] += changed
        out[POSITIVE] += positive
        out[SCORE] += total
        out[TOTAL] += count
        label_hashes[p] += label_hash


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
class StackedModels:
    """The labelings and models of several requests."""

    label_w: np.ndarray
    label_b: np.ndarray
    model_w: np.ndarray
    model_b: np.ndarray
    owner: np.ndarray
    """Which labeling each model belongs to."""
    given: np.ndarray
    """The column of given labels of each labeling; -1: it is a model's."""

    def scored_tiles(
        self, record: RowRecord
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Where a few rows begin, they, their weights, and their scores: a line a labeling, then
        a line a model; given labels count as scores of 1 and -1."""
        rows, weights = record.rows, record.weights_in(record.rows.dtype)
        all_w = np.ascontiguousarray(np.concatenate([self.label_w, self.model_w]).T)
        all_b = np.concatenate([self.label_b, self.model_b])[:, None]
        for start in range(0, len(rows), TILE_ROWS):
            here = slice(start, start + TILE_ROWS)
            scores = np.ascontiguousarray((rows[here] @ all_w).T)
            scores += all_b
            for s in np.flatnonzero(self.given >= 0):
                assert record.labels is not None
                scores[s] = np.where(record.labels[here, self.given[s]] > 0, 1.0, -1.0)
            yield start, rows[here], weights[here], scores


@dataclass(frozen=True)
class CutScan(StackedModels, SharedScan[list[CutSums]]):
    """Cuts of a batch of models over several labelings."""

    name = "cuts"

    @classmethod
    def of(cls, requests: Sequence[CutRequest], dtype: np.dtype) -> CutScan:
        """One scan for all requests."""
        return cls(*stacked(requests, dtype))

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        record = as_record(rows)
        if len(self.owner) <= FUSED_MODELS:
            return self._fused(record, first_row, leaf_rows)
        parts = (self._product(leaf, at) for leaf, at in leaves(record, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _fused(self, record: RowRecord, first: int, leaf_rows: int) -> Node:
        columns = record.rows
        n_leaves, n_models = -(-len(columns) // leaf_rows), len(self.owner)
        sums = np.zeros((n_leaves, n_models, columns.shape[1]))
        scalars = np.zeros((n_leaves, n_models, SCALARS))
        label_hashes = np.zeros((n_leaves, n_models), np.uint64)
        cuts_of_leaves(
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
        n_models = len(self.owner)
        sums = np.zeros((n_models, record.rows.shape[1]))
        scalars = np.zeros((n_models, SCALARS))
        label_hashes = np.zeros(n_models, np.uint64)
        for start, tile, weights, scores in self.scored_tiles(record):
            mask = np.empty((n_models, len(tile)), tile.dtype)
            masks_of_scores(
                scores,
                weights,
                len(self.label_b),
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


def stacked(
    requests: Sequence[Any], dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Labelings, models, which labeling each model belongs to, and columns of given labels."""
    owner = [k for k, request in enumerate(requests) for _ in request.models]
    models = [model for request in requests for model in request.models]
    nothing = Affine(np.zeros_like(models[0].w), 0.0)
    labels = [nothing if isinstance(r.label, GivenLabels) else r.label for r in requests]
    return (
        np.array([label.w for label in labels], dtype),
        np.array([label.b for label in labels], dtype),
        np.array([model.w for model in models], dtype),
        np.array([model.b for model in models], dtype),
        np.array(owner, np.int64),
        given_columns([request.label for request in requests]),
    )


def given_columns(labels: Sequence[Any]) -> np.ndarray:
    """The columns of given labels, -1 where a labeling is a model's."""
    return np.array([x.column if isinstance(x, GivenLabels) else -1 for x in labels], np.int64)
