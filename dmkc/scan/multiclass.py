"""The scan of margin clustering with several clusters: the cuts of a batch of models.

A model has one score per cluster; a row belongs to the largest.  Under a labeling z a row violates
the margin of a model f when f_z - max_{r != z} f_r < 1 (Zhao, Kwok and Zhang 2009, theorem 4.3):
it is then added to its cluster's sum and subtracted from the runner-up's.  Rows are weighted by
their cluster, so that large clusters do not swallow small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmkc.compiled import compiled
from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.scan.base import leaves
from dmkc.scan.cuts import TIE, TILE_ROWS, given_columns, row_hashes
from dmkc.scan.grid import Node, fold_leaves
from dmkc.scan.requests import GivenLabels, SharedScan

MASKED, HINGE, CHANGED, TOTAL = range(4)
SCALARS = 4


@dataclass(frozen=True)
class Scores:
    """One score per cluster on raw feature columns."""

    w: np.ndarray
    """(clusters, columns)"""
    b: np.ndarray


@dataclass(frozen=True)
class MulticlassRequest:
    """Cuts asked for at several models under one labeling."""

    label: Scores | GivenLabels
    cluster_weights: np.ndarray
    """Weight of a row by its cluster under the labeling."""
    models: tuple[Scores, ...]

    @classmethod
    def shared_scan(cls, requests: Sequence[MulticlassRequest], dtype: np.dtype) -> MulticlassScan:
        return MulticlassScan.of(requests, dtype)


@dataclass(frozen=True)
class MulticlassSums:
    """What a scan found at one model."""

    row_sum: np.ndarray
    """(clusters, columns): weighted sums of the rows that pull and, negative, push a cluster."""
    pull: np.ndarray
    """(clusters,): the same sums of ones."""
    own_hinge: np.ndarray
    """(clusters,): margin violations under the model's own labeling, by cluster, unweighted."""
    counts: np.ndarray
    """(clusters,): rows of each cluster under the model's own labeling."""
    masked: float
    """Weight of the violating rows."""
    hinge: float
    """RowRecord sum of the margin violations under the given labeling."""
    changed: float
    """Rows whose own cluster differs from the given one."""
    total: float
    """Rows."""
    label_hash: int
    """A hash of the model's own labeling."""


@dataclass(frozen=True)
class MulticlassScan(SharedScan[list[MulticlassSums]]):
    """Cuts of a batch of models over several labelings."""

    label_w: np.ndarray
    """(labelings x clusters, columns)"""
    label_b: np.ndarray
    model_w: np.ndarray
    """(models x clusters, columns)"""
    model_b: np.ndarray
    cluster_weights: np.ndarray
    """(labelings, clusters)"""
    owner: np.ndarray
    """Which labeling each model belongs to."""
    given: np.ndarray
    """The column of given labels of each labeling; -1: it is a model's."""
    name = "cuts"

    @classmethod
    def of(cls, requests: Sequence[MulticlassRequest], dtype: np.dtype) -> MulticlassScan:
        owner = [k for k, r in enumerate(requests) for _ in r.models]
        models = [m for r in requests for m in r.models]
        nothing = Scores(np.zeros_like(models[0].w), np.zeros_like(models[0].b))
        labels = [nothing if isinstance(r.label, GivenLabels) else r.label for r in requests]
        return cls(
            np.concatenate([label.w for label in labels]).astype(dtype),
            np.concatenate([label.b for label in labels]).astype(dtype),
            np.concatenate([m.w for m in models]).astype(dtype),
            np.concatenate([m.b for m in models]).astype(dtype),
            np.array([r.cluster_weights for r in requests], dtype),
            np.array(owner, np.int64),
            given_columns([r.label for r in requests]),
        )

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        all_w = np.concatenate([self.label_w, self.model_w]).T
        all_b = np.concatenate([self.label_b, self.model_b])
        parts = (
            self._leaf(leaf, first, all_w, all_b)
            for leaf, first in leaves(as_record(rows), first_row, leaf_rows)
        )
        return fold_leaves(parts, self.merge)

    def _leaf(self, record: RowRecord, first: int, all_w: np.ndarray, all_b: np.ndarray) -> Node:
        leaf, weights = record.rows, record.weights_in(record.rows.dtype)
        n_models, m = len(self.owner), self.cluster_weights.shape[1]
        sums = np.zeros((n_models, m, leaf.shape[1]))
        by_cluster = np.zeros((n_models, 3, m))
        scalars = np.zeros((n_models, SCALARS))
        label_hashes = np.zeros(n_models, np.uint64)
        for start in range(0, len(leaf), TILE_ROWS):
            tile = leaf[start : start + TILE_ROWS]
            scores = tile @ all_w
            scores += all_b
            for s in np.flatnonzero(self.given >= 0):
                assert record.labels is not None
                label = record.labels[start : start + TILE_ROWS, self.given[s]]
                scores[:, s * m : (s + 1) * m] = label[:, None] == np.arange(m)
            _accumulate(
                tile,
                scores,
                weights[start : start + TILE_ROWS],
                self.cluster_weights,
                self.owner,
                row_hashes(first + start, len(tile)),
                sums,
                by_cluster,
                scalars,
                label_hashes,
            )
        return sums, by_cluster, scalars, label_hashes

    def unpack(self, node: Node) -> list[list[MulticlassSums]]:
        sums, by_cluster, scalars, label_hashes = node
        found: list[list[MulticlassSums]] = [[] for _ in self.cluster_weights]
        for p, k in enumerate(self.owner):
            pull, own_hinge, counts = by_cluster[p]
            masked, hinge, changed, total = scalars[p].tolist()
            found[k].append(
                MulticlassSums(
                    row_sum=sums[p],
                    pull=pull,
                    own_hinge=own_hinge,
                    counts=counts,
                    masked=masked,
                    hinge=hinge,
                    changed=changed,
                    total=total,
                    label_hash=int(label_hashes[p]),
                )
            )
        return found


@compiled
def _accumulate(
    tile, scores, weight, cluster_weights, owner, hashes, sums, by_cluster, scalars, label_hashes
):  # pragma: no cover - compiled
    """Masks of a tile from its scores, and the rows added where they pull and push."""
    n, d = tile.shape
    n_labels, m = cluster_weights.shape
    n_models = owner.shape[0]
    kind = tile.dtype.type
    zero, one, tie = kind(0), kind(1), kind(TIE)
    partial = np.zeros((m, d), tile.dtype)
    for p in range(n_models):
        partial[:] = zero
        out = scalars[p]
        at_label, at_model = owner[p] * m, (n_labels + p) * m
        for i in range(n):
            w = weight[i]
            z = 0
            for r in range(1, m):
                if scores[i, at_label + r] > scores[i, at_label + z]:
                    z = r
            own, rival = 0, -1
            for r in range(1, m):
                if scores[i, at_model + r] > scores[i, at_model + own]:
                    own = r
            for r in range(m):
                if r != z and (
                    rival < 0 or scores[i, at_model + r] > scores[i, at_model + rival] + tie
                ):
                    rival = r
            second = rival
            if own != z:  # the runner-up of the own cluster may be z itself
                second = -1
                for r in range(m):
                    if r != own and (
                        second < 0 or scores[i, at_model + r] > scores[i, at_model + second]
                    ):
                        second = r
                out[CHANGED] += w
            lead = scores[i, at_model + own] - scores[i, at_model + second]
            by_cluster[p, 1, own] += w * max(one - lead, zero)
            by_cluster[p, 2, own] += w
            out[TOTAL] += w
            label_hashes[p] += hashes[i] * np.uint64(own + 1)
            short = one - scores[i, at_model + z] + scores[i, at_model + rival]
            if short > tie:
                step = w * cluster_weights[owner[p], z]
                out[MASKED] += step
                out[HINGE] += step * short
                by_cluster[p, 0, z] += step
                by_cluster[p, 0, rival] -= step
                for j in range(d):
                    partial[z, j] += step * tile[i, j]
                for j in range(d):
                    partial[rival, j] -= step * tile[i, j]
        for r in range(m):
            for j in range(d):
                sums[p, r, j] += partial[r, j]
