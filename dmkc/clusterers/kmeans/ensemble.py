"""Many clusterings of the same rows, joined through the graph of rows and clusters.

A row is tied to the clusters that it is in, one of every clustering.  The walk row -> cluster ->
row on this graph is the one of neighbour graphs (`kernels/neighbours.py`) with clusters in the
place of anchors: one scan counts how many rows any two clusters share, and the leading directions
place every row by its clusters alone (Fern and Brodley, 2004; Huang et al., 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.kmeans.nearest import DistanceEmbedded, NearestEmbedded
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.members import Agreement, MemberClusters
from dmkc.clusterers.model import shown_model
from dmkc.compiled import compiled
from dmkc.data import RowRecord, as_record
from dmkc.kernels.anchors import combine
from dmkc.kernels.neighbours import walk_of
from dmkc.scan.base import LeafScan, Scan, leaves
from dmkc.scan.grid import Node, fold_leaves

BINS = 1000
EDGES = np.arange(BINS + 1) / BINS
"""Steps in which agreement is counted, to find the rows with the least of it."""


@compiled
def _count_pairs(codes, weights, out):  # pragma: no cover - compiled
    """Weights of the rows that any two clusters share, those of the lower triangle left out."""
    n, members = codes.shape
    for i in range(n):
        w = weights[i] if weights.size else 1.0
        for a in range(members):
            row = out[codes[i, a]]
            for b in range(a, members):
                row[codes[i, b]] += w


@dataclass(frozen=True)
class SharedRowsScan(Scan):
    """The weight of the rows that any two clusters share, and that of all rows."""

    n_clusters: int
    name = "shared rows"

    def block(self, rows: Any, first_row: int, leaf_rows: int) -> Node:
        record = as_record(rows)
        if record.weights is None:  # whole numbers: their sum has the same bits in any order
            return self._counted(record)
        parts = (self._counted(leaf) for leaf, _ in leaves(record, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _counted(self, record: RowRecord) -> Node:
        weights = np.empty(0) if record.weights is None else record.weights.astype(np.float64)
        sums = np.zeros((self.n_clusters, self.n_clusters))
        _count_pairs(record.rows, weights, sums)
        total = weights.sum() if record.weights is not None else float(len(record))
        return sums, np.array([total])


@dataclass(frozen=True, eq=False)
class ClusterEmbedding:
    """Rows as the mean of vectors that belong to their clusters, less an offset, of length 1."""

    plan: MemberClusters
    values: np.ndarray
    """Clusters of all clusterings x dimensions."""
    offset: np.ndarray

    @property
    def n_dimensions(self) -> int:
        return len(self.offset)

    @classmethod
    def of(cls, plan: MemberClusters, node: Node, most: int) -> tuple[ClusterEmbedding, np.ndarray]:
        """The leading directions, with rows of variance 1, and eigenvalues of the Laplacian."""
        shared, (total,) = node
        both = shared + np.triu(shared, 1).T
        walk = walk_of(both / (total * plan.width**2), most)
        eigenvalues = np.concatenate([[0.0], np.maximum(1.0 - walk.singular, 0.0)])
        unit = cls(plan, walk.values / walk.singular, walk.offset / walk.singular)
        return unit, eigenvalues

    def weighted(self, weights: np.ndarray) -> ClusterEmbedding:
        """The leading dimensions, each with a weight."""
        few = np.ascontiguousarray(self.values[:, : len(weights)] * weights)
        return replace(self, values=few, offset=self.offset[: len(weights)] * weights)

    def __call__(self, stored: RowRecord) -> np.ndarray:
        codes = stored.rows
        out = np.empty((len(codes), self.n_dimensions))
        share = np.full(codes.shape, 1.0 / self.plan.width)
        combine(codes, share, self.values, self.offset, out, 0)
        size = np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        return out / np.where(size > 0, size, 1.0)


@dataclass(frozen=True, eq=False)
class JointLabels:
    """The joint cluster of every row; -1 where clusterings agree too little about it."""

    nearest: NearestEmbedded
    agreement: Agreement
    least: float

    def __call__(self, stored: RowRecord) -> np.ndarray:
        labels = self.nearest(stored)
        if self.least > 0:
            own = self.agreement(stored)[np.arange(len(labels)), labels]
            labels[own < self.least] = -1
        return labels


@dataclass(frozen=True, eq=False)
class OwnAgreement:
    """How far the clusterings agree that a row belongs to its cluster."""

    nearest: NearestEmbedded
    agreement: Agreement

    def __call__(self, stored: RowRecord) -> np.ndarray:
        labels = self.nearest(stored)
        return self.agreement(stored)[np.arange(len(labels)), labels]


@dataclass(frozen=True)
class JointShareScan(LeafScan):
    """The weight of every joint cluster in every cluster of the clusterings."""

    nearest: NearestEmbedded
    n_clusters: int
    name = "joint clusters"

    def leaf(self, record: RowRecord) -> Node:
        labels, weights = self.nearest(record), record.weights_in(np.dtype(np.float64))
        k = len(self.nearest.centres)
        places = record.rows.astype(np.int64) * k + labels[:, None]
        each = np.repeat(weights, record.rows.shape[1])
        sums = np.bincount(places.ravel(), each, minlength=self.n_clusters * k)
        return (sums.reshape(self.n_clusters, k),)


@dataclass(frozen=True)
class AgreementScan(LeafScan):
    """Of every joint cluster its weight and its summed agreement; and how agreement is spread."""

    own: OwnAgreement
    name = "agreement"

    def leaf(self, record: RowRecord) -> Node:
        weights = record.weights_in(np.dtype(np.float64))
        labels, own = self.own.nearest(record), self.own(record)
        k = len(self.own.nearest.centres)
        # by the edges themselves: a row is below one of them here if it is when it is labelled
        bins = np.clip(np.searchsorted(EDGES, own, side="right") - 1, 0, BINS - 1)
        return (
            np.bincount(labels, weights, minlength=k),
            np.bincount(labels, weights * own, minlength=k),
            np.bincount(bins, weights, minlength=BINS),
        )


@dataclass(frozen=True)
class ConsensusModel:
    """Joint clusters of many clusterings."""

    embedding: ClusterEmbedding
    centres: np.ndarray
    """Joint clusters x dimensions."""
    shares: np.ndarray
    """Clusters of all clusterings x joint clusters: how their rows are divided."""
    least_agreement: float
    """Rows with less agreement are noise."""

    @property
    def n_clusters(self) -> int:
        return len(self.centres)

    @property
    def n_features(self) -> int:
        return self.embedding.n_dimensions

    @property
    def nearest(self) -> NearestEmbedded:
        return NearestEmbedded(self.embedding, self.centres)

    @property
    def agreement(self) -> Agreement:
        return Agreement(self.shares)

    def without_noise(self) -> ConsensusModel:
        """The same with every row in a cluster."""
        return replace(self, least_agreement=0.0)

    def in_order(self, order: np.ndarray) -> ConsensusModel:
        """The same clusters in another order."""
        return replace(self, centres=self.centres[order], shares=self.shares[:, order])

    def label_pipeline(self) -> Pipeline:
        labels = JointLabels(self.nearest, self.agreement, self.least_agreement)
        return Pipeline(self.embedding.plan, labels)

    def feature_pipeline(self) -> Pipeline:
        return Pipeline(self.embedding.plan, self.embedding)

    def distance_pipeline(self) -> Pipeline:
        """The squared distance of every row to the nearest centroid."""
        return Pipeline(self.embedding.plan, DistanceEmbedded(self.nearest))

    def __repr__(self) -> str:
        members = self.embedding.plan.width
        return shown_model(self, f"joined from {members} clustering", members)

    def share_pipeline(self) -> Pipeline:
        """The share of every joint cluster in a row's clusters."""
        return Pipeline(self.embedding.plan, self.agreement)

    def agreement_pipeline(self) -> Pipeline:
        """How far the clusterings agree about a row."""
        return Pipeline(self.embedding.plan, OwnAgreement(self.nearest, self.agreement))
