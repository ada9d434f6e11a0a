"""Anchors, and the sparse affinity of every row to the few nearest of them.

A row's nearest anchors are found by one matrix product a tile.  Their distances are then computed
anew as differences, since a product of large numbers loses small ones, and become weights
``exp(-d^2 / (2 s^2))`` that sum to 1, with s half the distance to the farthest of them: rows in
thin places look as far as they must.  What leaves a task is a sum over rows, or a few numbers of
each; the affinities themselves do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dmkc.compiled import compiled
from dmkc.data import RowRecord
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import TILE_ROWS, Scaling, Tile, Tiles, View
from dmkc.scan.assign import Centroids, Frame, KMeansScan
from dmkc.scan.base import LeafScan
from dmkc.scan.grid import Node

ROWS_PER_ANCHOR = 10
"""Sampled rows that k-means makes an anchor of, about."""
STEPS = 5
"""Steps of k-means: anchors are to cover the rows, and need not settle."""
GROUPS = 64
"""Groups of anchors among which the nearest are looked for."""


@compiled
def _nearest(dots, squares, count, lowest, found):  # pragma: no cover - compiled
    """The anchors of the lowest |a|^2 - 2 x.a, of equal ones the first; lowest score first.

    Anchors are dealt to groups, whose least scores are found by wide instructions.  The `count`-th
    smallest of these bounds what is looked for, and few groups have anything below it.
    """
    n, p = dots.shape
    two, far = dots.dtype.type(2), dots.dtype.type(np.inf)
    groups = max(GROUPS, count)
    size = -(-p // groups)
    scores = np.full(size * groups, far, dots.dtype)
    least, bounds = np.empty(groups, dots.dtype), np.empty(count, dots.dtype)
    for i in range(n):
        row = dots[i]
        for j in range(p):
            scores[j] = squares[j] - two * row[j]
        for g in range(groups):
            least[g] = scores[g]
        for s in range(1, size):
            part = scores[s * groups : (s + 1) * groups]
            for g in range(groups):
                if part[g] < least[g]:
                    least[g] = part[g]
        for c in range(count):
            bounds[c] = far
        for g in range(groups):
            value = least[g]
            if value < bounds[count - 1]:
                c = count - 1
                while c > 0 and bounds[c - 1] > value:
                    bounds[c] = bounds[c - 1]
                    c -= 1
                bounds[c] = value
        bound = bounds[count - 1]
        held, places, filled = lowest[i], found[i], 0
        for g in range(groups):
            if least[g] > bound:
                continue
            for s in range(size):
                j = s * groups + g
                value = scores[j]
                if j >= p or value > bound:
                    continue
                if filled < count:
                    c = filled
                    filled += 1
                elif value < held[count - 1] or (
                    value == held[count - 1] and j < places[count - 1]
                ):
                    c = count - 1
                else:
                    continue
                while c > 0 and (
                    held[c - 1] > value or (held[c - 1] == value and places[c - 1] > j)
                ):
                    held[c], places[c] = held[c - 1], places[c - 1]
                    c -= 1
                held[c], places[c] = value, j


@compiled
def _sort(distances, found):  # pragma: no cover - compiled
    """Nearest first; of equal ones the lower number."""
    n, count = found.shape
    for i in range(n):
        near, places = distances[i], found[i]
        for c in range(1, count):
            value, place = near[c], places[c]
            at = c
            while at > 0 and (
                near[at - 1] > value or (near[at - 1] == value and places[at - 1] > place)
            ):
                near[at], places[at] = near[at - 1], places[at - 1]
                at -= 1
            near[at], places[at] = value, place


@compiled
def _affinities(distances, count, out):  # pragma: no cover - compiled
    """Weights of the `count` nearest anchors, which sum to 1; all the same at distance zero."""
    for i in range(distances.shape[0]):
        farthest = distances[i, count - 1]
        scale = -2.0 / farthest if farthest > 0 else 0.0
        for c in range(count):
            out[i, c] = math.exp(scale * distances[i, c])
        total = 0.0
        for c in range(count):
            total += out[i, c]
        for c in range(count):
            out[i, c] /= total


@compiled
def combine(found, weights, values, offset, out, at):  # pragma: no cover - compiled
    """Every row's affinities times the values of the anchors, less an offset."""
    n, count = weights.shape
    q = values.shape[1]
    for i in range(n):
        target = out[i, at : at + q]
        for j in range(q):
            target[j] = -offset[j]
        for c in range(count):
            weight, row = out.dtype.type(weights[i, c]), values[found[i, c]]
            for j in range(q):
                target[j] += weight * row[j]


@dataclass(frozen=True, eq=False)
class NearAnchors:
    """Some rows' nearest anchors, nearest first."""

    found: np.ndarray
    """Rows x anchors: their numbers."""
    distances: np.ndarray
    """Squared, float64."""

    @classmethod
    def of(cls, tile: Tile, anchors: np.ndarray, count: int) -> NearAnchors:
        """The nearest anchors of a tile of rows, found once for all kernels of these anchors."""
        return tile.shared("nearest anchors", anchors, lambda: cls._search(tile, anchors, count))

    @classmethod
    def _search(cls, tile: Tile, anchors: np.ndarray, count: int) -> NearAnchors:
        dots, squares = tile.products(anchors), tile.landmark_squares(anchors)
        lowest = np.empty((tile.n, count), dots.dtype)
        found, distances = np.empty((tile.n, count), np.int32), np.empty((tile.n, count))
        _nearest(dots, squares, count, lowest, found)
        tile.fill_distances(anchors, found, lowest, distances)
        _sort(distances, found)
        return cls(found, distances)

    def affinities(self, count: int) -> np.ndarray:
        """Weights of the `count` nearest, float64."""
        out = np.empty((len(self.found), count))
        _affinities(self.distances, count, out)
        return out

    def combined(
        self, count: int, values: np.ndarray, offset: np.ndarray, out: np.ndarray, at: int
    ) -> None:
        """Write the affinities times the values of the anchors into ``out[:, at:]``."""
        weights = self.affinities(count)
        combine(self.found, weights, values, offset, out, at)


@dataclass(frozen=True)
class AffinityScan(LeafScan):
    """For several numbers of neighbours, the weighted sum of z^T z over the affinities z of rows.

    Sums are sparse matrices: few anchors share a row.
    """

    scaling: Scaling
    anchors: np.ndarray
    counts: tuple[int, ...]
    dtype: np.dtype
    name = "neighbours"

    def leaf(self, record: RowRecord) -> Node:
        tiles = Tiles(View(None, self.scaling), self.dtype, TILE_ROWS)
        parts = [
            NearAnchors.of(tile, self.anchors, max(self.counts))
            for _, tile in tiles.of(record.rows)
        ]
        near = NearAnchors(
            np.concatenate([part.found for part in parts]),
            np.concatenate([part.distances for part in parts]),
        )
        weights = record.weights_in(np.dtype(np.float64))
        sums = (self._products(near, count, weights) for count in self.counts)
        return (*sums, np.array([weights.sum()]))

    def _products(self, near: NearAnchors, count: int, weights: np.ndarray) -> sp.csr_array:
        """The sum of z^T z over some rows."""
        n, p = len(weights), len(self.anchors)
        ends = np.arange(0, n * count + 1, count)
        places = np.ascontiguousarray(near.found[:, :count]).ravel()
        roots = np.sqrt(weights)[:, None] * near.affinities(count)
        z = sp.csr_array((roots.ravel(), places, ends), shape=(n, p))
        sums = sp.csr_array(z.T @ z)
        sums.sort_indices()
        return sums


def make_anchors(sample: KernelSample, count: int) -> tuple[np.ndarray, bool]:
    """Distinct points that cover the rows: a few steps of k-means on some of the sample.

    Where there are few rows for every anchor, the rows themselves; the second value says so.
    """
    rows, weights = sample.rows[sample.weights > 0], sample.weights[sample.weights > 0]
    rng = np.random.default_rng([sample.seed, 11, count])
    if len(rows) > ROWS_PER_ANCHOR * count:
        some = np.sort(rng.choice(len(rows), ROWS_PER_ANCHOR * count, replace=False))
        rows, weights = rows[some], weights[some]
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= 2 * count:
        return distinct, True
    nothing = np.empty(0)
    frame = Frame(nothing, nothing, np.dtype(np.float32))
    # Sums are of single precision: weights are divided by a power of 2, which changes no centre.
    few = RowRecord(rows.astype(np.float32), np.ldexp(weights, -np.frexp(weights.max())[1]))
    centres = distinct[np.sort(rng.choice(len(distinct), count, replace=False))]
    for _ in range(STEPS):
        scan = KMeansScan(Centroids(frame, centres[None]))
        (found,) = scan.unpack(sample.run_here(scan, few))
        covered = found.weights > 0
        centres = found.sums[covered] / found.weights[covered, None]
    return np.unique(centres, axis=0), False
