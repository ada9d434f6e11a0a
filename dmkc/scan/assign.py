"""The scans of k-means: sums of the rows nearest to each centroid, costs, far-away rows; Gram sums.

A scan takes the centroids of a batch of starts.  Everything is formed leaf by leaf, so that no bit
depends on how rows are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dmkc.data import BlockRows, RowRecord, split_weights
from dmkc.data.blocks import Values
from dmkc.scan import nearest as loops
from dmkc.scan.base import LeafScan, Scan, leaves
from dmkc.scan.cuts import row_hashes
from dmkc.scan.grid import Node, fold_leaves, fold_stack
from dmkc.scan.requests import SharedScan

STACK_BYTES = 8 << 20
"""Sums of several leaves that are formed at once."""


@dataclass(frozen=True)
class Frame:
    """How k-means sees rows: shifted and scaled, in a precision.

    Both arrays are empty where rows are used as they are, which saves a pass through a buffer.
    """

    shift: np.ndarray
    factor: np.ndarray
    dtype: np.dtype

    def values(self, rows: Values) -> Values:
        """The rows in the precision of this frame, not yet moved."""
        if sp.issparse(rows):
            return rows if rows.dtype == np.float64 else rows.astype(np.float64)
        return np.ascontiguousarray(rows, self.dtype)

    def moved(self, rows: Values) -> np.ndarray:
        """Dense shifted and scaled rows in float64, for a few rows."""
        some = (rows.toarray() if sp.issparse(rows) else np.asarray(rows)).astype(np.float64)
        if self.shift.size:
            some -= self.shift
        return some * self.factor if self.factor.size else some

    def original(self, points: np.ndarray) -> np.ndarray:
        """Points of this frame in the units of the rows; columns that are left out stay put."""
        if self.factor.size:
            used = self.factor != 0
            points = points / np.where(used, self.factor, 1.0) * used
        return points + self.shift if self.shift.size else points.copy()


PLAIN = Frame(np.empty(0), np.empty(0), np.dtype(np.float64))
"""Rows as they are."""


@dataclass(frozen=True)
class Centroids:
    """Centroids of several starts, ready for the compiled loops."""

    frame: Frame
    centres: np.ndarray
    """Starts x clusters x columns, in the frame, float64."""

    def _operands(self, rows: Values) -> tuple[np.ndarray, np.ndarray]:
        """-2 c and |c|^2 of all centroids of all starts, as the loops take them."""
        if not sp.issparse(rows):
            return loops.operands(self.centres, rows.dtype)
        flat = self.centres.reshape(-1, self.centres.shape[2])
        return np.ascontiguousarray(-2.0 * flat.T), np.einsum("ij,ij->i", flat, flat)

    def sums(self, rows: BlockRows, leaf_rows: int) -> Node:
        """Sums, weights and lowest scores of an aligned run of leaves."""
        rows, weights = split_weights(rows)
        rows = self.frame.values(rows)
        n_starts, k, d = self.centres.shape
        n_leaves = -(-rows.shape[0] // leaf_rows)
        weights, units = _in_units(weights, n_leaves, leaf_rows)
        sums = np.zeros((n_leaves, n_starts * k, d))
        totals, scored = np.zeros((n_leaves, n_starts * k)), np.zeros((n_leaves, n_starts))
        product, squares = self._operands(rows)
        rest = (product, squares, n_starts, leaf_rows, sums, totals, scored)
        shift, factor = self.frame.shift, self.frame.factor
        if sp.issparse(rows):
            loops.sparse_sums_of_leaves(
                rows.data, rows.indices, rows.indptr, weights, factor, *rest
            )
        else:
            kind = rows.dtype
            loops.sums_of_leaves(rows, weights, shift.astype(kind), factor.astype(kind), *rest)
        if len(weights):
            sums *= units[:, None, None]
            totals *= units[:, None]
            scored *= units[:, None]
        shape = (n_starts, k, d)
        return (
            fold_stack(sums).reshape(shape),
            fold_stack(totals).reshape(shape[:2]),
            fold_stack(scored),
        )

    def nearest(self, rows: BlockRows) -> tuple[np.ndarray, np.ndarray]:
        """Labels under the first start's centroids, and squared distances to them."""
        rows = self.frame.values(rows)
        centres = self.centres[0]
        product, squares = self._operands(rows)
        labels, distances = np.empty(rows.shape[0], np.int32), np.empty(rows.shape[0])
        shift, factor = self.frame.shift, self.frame.factor
        if sp.issparse(rows):
            stored = (rows.data, rows.indices, rows.indptr)
            loops.sparse_nearest(*stored, factor, product, squares, labels, distances)
        else:
            kind = rows.dtype
            moves = (shift.astype(kind), factor.astype(kind))
            loops.nearest(rows, *moves, product, squares, centres, labels, distances)
        return labels, distances


@dataclass(frozen=True)
class CentroidRequest:
    """What a step of Lloyd's algorithm asks for: sums of the rows nearest to each centroid."""

    frame: Frame
    centres: np.ndarray
    """Clusters x columns, in the frame."""

    @classmethod
    def shared_scan(cls, requests: Sequence[CentroidRequest], dtype: np.dtype) -> KMeansScan:
        centres = np.stack([request.centres for request in requests])
        return KMeansScan(Centroids(requests[0].frame, centres))


@dataclass(frozen=True)
class CentroidSums:
    """What a scan found for the centroids of one start."""

    sums: np.ndarray
    """(clusters, columns)"""
    weights: np.ndarray
    """(clusters,)"""
    score: float
    """Sum of the lowest scores: the inertia less the sum of the squared rows."""


@dataclass(frozen=True)
class KMeansScan(SharedScan[CentroidSums]):
    """What a step of Lloyd's algorithm needs of every start."""

    centroids: Centroids
    name = "k-means"

    def unpack(self, node: Node) -> list[CentroidSums]:
        sums, weights, scored = node
        return [CentroidSums(*parts) for parts in zip(sums, weights, scored.tolist(), strict=True)]

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        run = leaf_rows
        while 2 * run <= rows.shape[0] and self.centroids.centres.nbytes * run < (
            STACK_BYTES // 2 * leaf_rows
        ):
            run *= 2
        return fold_leaves(
            (
                self.centroids.sums(rows[start : start + run], leaf_rows)
                for start in range(0, rows.shape[0], run)
            ),
            self.merge,
        )


@dataclass(frozen=True)
class CostScan(Scan):
    """Weights of the clusters of one start, inertia from the distances themselves, first rows."""

    centroids: Centroids
    name = "inertia"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        return fold_leaves(
            (self._leaf(leaf, at) for leaf, at in leaves(rows, first_row, leaf_rows)), self.merge
        )

    def _leaf(self, leaf: BlockRows, first_row: int) -> Node:
        rows, weights = split_weights(leaf)
        labels, distances = self.centroids.nearest(rows)
        if weights is None:
            weights = np.ones(len(labels))
        sizes = np.bincount(labels, weights, minlength=self.centroids.centres.shape[1])
        first = np.full(len(sizes), np.iinfo(np.int64).max)  # of an empty cluster
        first[labels[::-1]] = np.arange(first_row, first_row + len(labels))[::-1]
        return sizes, np.array([np.sum(weights * distances)]), first

    def merge(self, left: Node, right: Node) -> Node:
        *sums, first = zip(left, right, strict=True)
        return *(a + b for a, b in sums), np.minimum(*first)


@dataclass(frozen=True)
class FarScan(Scan):
    """The rows farthest from their centroids; with a seed, a sample that prefers far rows.

    The sample is drawn without replacement with probabilities in proportion to weight times
    squared distance, by exponential keys (Efraimidis and Spirakis, 2006): a row's key depends on
    its global number and the seed alone.
    """

    centroids: Centroids
    count: int
    seed: int | None = None
    name = "far rows"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        return fold_leaves(
            (self._leaf(leaf, at) for leaf, at in leaves(rows, first_row, leaf_rows)), self.merge
        )

    def _leaf(self, leaf: BlockRows, first_row: int) -> Node:
        rows, weights = split_weights(leaf)
        labels, distances = self.centroids.nearest(rows)
        if weights is None:
            weights = np.ones(len(labels))
        keys = np.where(weights > 0, distances, -np.inf)
        if self.seed is not None:
            mass = np.maximum(weights * distances, 0.0)
            with np.errstate(divide="ignore"):
                keys = np.log(_uniform(first_row, len(labels), self.seed)) / mass
        numbers = first_row + np.arange(len(labels))
        best = self._best(keys, numbers)
        chosen = self.centroids.frame.moved(rows[best])
        return keys[best], numbers[best], chosen, weights[best], labels[best], distances[best]

    def merge(self, left: Node, right: Node) -> Node:
        every = tuple(np.concatenate(pair) for pair in zip(left, right, strict=True))
        best = self._best(every[0], every[1])
        return tuple(part[best] for part in every)

    def _best(self, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Positions of the largest keys, the largest first; of equal ones the first row."""
        return np.lexsort((numbers, -keys))[: self.count]


def _uniform(first_row: int, n: int, seed: int) -> np.ndarray:
    """Numbers in (0, 1) that belong to global row numbers and a seed."""
    mixed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    bits = (row_hashes(first_row, n) ^ mixed[0]) * (mixed[1] | np.uint64(1))
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


@dataclass(frozen=True)
class GramScan(LeafScan):
    """Sums over rows of outer products of features, of the kernels' own k(x, x), of weights."""

    make: Callable[[RowRecord], tuple[np.ndarray, np.ndarray]]
    """From what is stored of a leaf to its features and the kernels' values k(x, x)."""
    name = "gram"

    def leaf(self, record: RowRecord) -> Node:
        features, own = self.make(record)
        weights = record.weights_in(np.dtype(np.float64))
        if record.weights is not None:
            features = features * np.sqrt(weights)[:, None]
        return features.T @ features, weights @ own, np.array([weights.sum()])


def _in_units(
    weights: np.ndarray | None, n_leaves: int, leaf_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of at most 1 in a unit of every leaf, a power of two, by which no bit is lost.

    Loops in single precision could not hold very large ones.
    """
    if weights is None:
        return np.empty(0), np.ones(n_leaves)
    largest = np.maximum.reduceat(weights, np.arange(n_leaves) * leaf_rows)
    units = np.where(largest > 0, np.exp2(np.frexp(largest)[1]), 1.0)
    return weights / np.repeat(units, leaf_rows)[: len(weights)], units
