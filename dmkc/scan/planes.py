"""The scan of nonparallel-plane clustering: sums at a model of one plane per cluster.

A row of cluster z should lie on its own plane (f_z = 0) and at distance from the others.  Its
residuals are 1 - (f_z - f_k) for every other cluster k (Fang and Liu 2020, problem 17; all planes
*together*), or 1 - side_k f_k (Wang et al. 2015, twin planes fitted *one by one*, where side_k is
the sign that the concave-convex procedure has fixed).  Losses are |r| or max(0, r).  A pass returns
their value and a cut for every group of rows, and on request quadratics that touch the losses, for
reweighted least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.data import BlockRows, RowRecord, as_record
from dmkc.scan.base import leaves
from dmkc.scan.cuts import row_hashes
from dmkc.scan.grid import Node, fold_leaves
from dmkc.scan.requests import GivenLabels, SharedScan

TILE_NUMBERS = 1 << 18
"""Numbers of a tile, which is turned into float64 while it stays in cache."""


@dataclass(frozen=True)
class Planes:
    """One plane per cluster: f_k = w_k.x + b_k on some of the features."""

    w: np.ndarray
    """(clusters, features)"""
    b: np.ndarray
    columns: np.ndarray | None = None
    """The features that w stands for; None: all of them."""

    @property
    def n_clusters(self) -> int:
        return len(self.b)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """The plane values of a block of feature rows."""
        some = features if self.columns is None else features[:, self.columns]
        return some @ self.w.T + self.b

    def nearest(self, scores: np.ndarray) -> np.ndarray:
        """The nearest plane of every row; a plane without weights is near to nothing."""
        size = np.linalg.norm(self.w, axis=1)
        near = np.abs(scores) / np.where(size > 0, size, 1.0)
        near[:, size == 0] = np.inf
        return near.argmin(axis=1)

    def spread(self, n_features: int) -> np.ndarray:
        """The weights of all features."""
        if self.columns is None:
            return self.w
        full = np.zeros((self.n_clusters, n_features))
        full[:, self.columns] = self.w
        return full

    def on(self, columns: np.ndarray | None, n_features: int) -> Planes:
        """The same planes on other columns, which must hold all that have weights."""
        full = self.spread(n_features)
        return Planes(full if columns is None else full[:, columns], self.b, columns)


@dataclass(frozen=True)
class Loss:
    """What is paid for a residual."""

    hinge: bool
    """max(0, r) instead of |r|."""
    together: bool
    """Residuals compare a row's own plane with the others; else each plane is fitted alone."""


@dataclass(frozen=True)
class Rounded:
    """|r| rounded off at zero, sqrt(r^2 + eps^2), and how steep quadratics in its place are."""

    eps: float
    above: float = 1.0
    """1: quadratics above the loss, whose steps never fail; towards 0: Newton's, which are faster
    and may go too far."""

    def at(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and second derivatives of the quadratics that touch at these residuals."""
        size = np.sqrt(residual**2 + self.eps**2)
        newton = (self.eps / size) ** 2
        return residual / size, (self.above + (1.0 - self.above) * newton) / size


@dataclass(frozen=True)
class Reweighted:
    """Multipliers of the losses as one step of reweighted least squares leaves them."""

    before: Planes | None
    """The model where the quadratics touched the losses; None: the model itself."""
    rounded: Rounded

    def multipliers(self, residual: np.ndarray, residuals: Callable, hashes: np.ndarray) -> Any:
        if self.before is None:
            return self.rounded.at(residual)[0]
        touching = residuals(self.before)
        slope, bend = self.rounded.at(touching)
        return np.clip(slope + bend * (residual - touching), -1.0, 1.0)


@dataclass(frozen=True)
class Signs:
    """Multipliers of the losses at the model itself: a cutting plane."""

    def multipliers(self, residual: np.ndarray, residuals: Callable, hashes: np.ndarray) -> Any:
        return np.sign(residual)


@dataclass(frozen=True)
class Mixed:
    """Multipliers of a bundle of cuts: each group of rows has its own mixture of signs."""

    models: tuple[Planes, ...]
    shares: np.ndarray
    """(groups, models), rows summing to 1"""

    def multipliers(self, residual: np.ndarray, residuals: Callable, hashes: np.ndarray) -> Any:
        group = group_of(hashes, len(self.shares))
        mixed = np.zeros_like(residual)
        for model, share in zip(self.models, self.shares.T, strict=True):
            mixed += share[group][:, None] * np.sign(residuals(model))
        return mixed


@dataclass(frozen=True)
class PlaneRequest:
    """Sums asked for at one model under one labeling."""

    label: Planes | GivenLabels
    """Planes whose nearest one is a row's cluster, or given labels."""
    model: Planes
    loss: Loss
    rule: Reweighted | Signs | Mixed
    """Which multipliers of the losses the cut is made of."""
    n_features: int
    view: Callable[[np.ndarray], np.ndarray] | None = None
    """Makes features from raw columns; None: the first raw columns are the features."""
    sides: Planes | None = None
    """Planes whose signs fix the sides of rows for planes fitted alone; None: negative."""
    columns: np.ndarray | None = None
    """The features that sums are asked for; None: all."""
    inner: np.ndarray | None = None
    """Those of them (by position) that weighted Gram matrices are asked for; None: all."""
    groups: int = 1
    """Groups of rows whose losses are summed apart."""
    curved: Rounded | None = None
    """The quadratics whose weighted Gram matrices are wanted, if any."""
    gram: bool = False
    """Whether the Gram matrices of the clusters are wanted."""

    @classmethod
    def shared_scan(cls, requests: Sequence[PlaneRequest], dtype: np.dtype) -> PlaneScan:
        return PlaneScan(tuple(requests))


@dataclass(frozen=True)
class PlaneSums:
    """What a scan found at one model; rows carry a last entry 1 for the bias."""

    slope: np.ndarray
    """(groups, clusters, features + 1): slope of the losses' cuts."""
    height: np.ndarray
    """(groups,): value of the cuts at the zero model."""
    pull: np.ndarray
    """(clusters, features + 1): sum of f_z x by cluster z, the gradient of the squares."""
    members: np.ndarray
    """(clusters, features + 1): sum of x by cluster."""
    squares: np.ndarray
    """(clusters,): sum of f_z^2 by cluster."""
    counts: np.ndarray
    """(clusters,): rows under the model's own labeling."""
    scalars: np.ndarray
    """(3,): losses, relabeled rows, all rows."""
    label_hash: np.ndarray
    """(1,): hash of the model's own labeling and sides."""
    curvature: np.ndarray
    """(pairs or clusters, inner + 1, inner + 1): weighted Gram matrices, or nothing."""
    lean: np.ndarray
    """(clusters, features + 1): slope of the reweighted losses at the zero model, or nothing."""
    gram: np.ndarray
    """(clusters, features + 1, features + 1): Gram matrices by cluster, or nothing."""

    @property
    def losses(self) -> float:
        return float(self.scalars[0])

    @property
    def changed(self) -> float:
        return float(self.scalars[1])

    @property
    def total(self) -> float:
        return float(self.scalars[2])

    def __add__(self, other: PlaneSums) -> PlaneSums:
        mine, theirs = vars(self), vars(other)
        return PlaneSums(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True)
class PlaneScan(SharedScan[PlaneSums]):
    """Sums at several models, each under its own labeling."""

    requests: tuple[PlaneRequest, ...]
    name = "planes"

    def block(self, rows: BlockRows, first_row: int, leaf_rows: int) -> Node:
        record = as_record(rows)
        parts = (self._leaf(leaf, first) for leaf, first in leaves(record, first_row, leaf_rows))
        return fold_leaves(parts, self.merge)

    def _leaf(self, leaf: RowRecord, first: int) -> Node:
        step = max(64, TILE_NUMBERS // leaf.shape[1])
        parts = []
        for start in range(0, len(leaf), step):
            tile = leaf[start : start + step]
            weights = tile.weights_in(np.dtype(np.float64))
            hashes = row_hashes(first + start, len(tile))
            seen: dict[Any, np.ndarray] = {}
            parts.append(tuple(_sums(tile, weights, hashes, r, seen) for r in self.requests))
        return fold_leaves(parts, self.merge)

    def unpack(self, node: Node) -> list[PlaneSums]:
        return list(node)


def _sums(
    tile: RowRecord,
    weights: np.ndarray,
    hashes: np.ndarray,
    request: PlaneRequest,
    seen: dict[Any, np.ndarray],
) -> PlaneSums:
    """The sums of a tile of rows; `seen` holds features that several requests share."""
    key = id(request.view)
    if key not in seen:
        stored = tile.rows
        made = stored[:, : request.n_features] if request.view is None else request.view(stored)
        seen[key] = np.asarray(made, np.float64)
    features, model, loss = seen[key], request.model, request.loss
    n, k = len(tile), model.n_clusters
    scores = model.scores(features)
    if isinstance(request.label, Planes):
        label = request.label
        z = label.nearest(scores if label is model else label.scores(features))
    else:
        assert tile.labels is not None
        z = tile.labels[:, request.label.column].astype(np.int64)
    rows = np.empty((n, 1 + _width(request)))
    rows[:, :-1] = features if request.columns is None else features[:, request.columns]
    rows[:, -1] = 1.0

    every = np.arange(n)
    side = np.full((n, k), -1.0)
    if request.sides is not None:
        side = np.where(request.sides.scores(features) >= 0, 1.0, -1.0)

    def residuals(of: np.ndarray | Planes) -> np.ndarray:
        at = of.scores(features) if isinstance(of, Planes) else of
        return 1.0 + at - at[every, z][:, None] if loss.together else 1.0 - side * at

    def directed(push: np.ndarray) -> np.ndarray:
        """How much every row's scores feel a push on its residuals."""
        if not loss.together:
            return -side * push
        felt = push.copy()
        felt[every, z] = -push.sum(axis=1)
        return felt

    cluster = np.zeros((n, k))
    cluster[every, z] = weights
    others = np.repeat(weights[:, None] / max(k - 1, 1), k, axis=1)
    others[every, z] = 0.0
    residual = residuals(scores)
    push = request.rule.multipliers(residual, residuals, hashes)
    push = others * (0.5 + 0.5 * push if loss.hinge else push)
    felt = directed(push)
    value = np.maximum(residual, 0.0) if loss.hinge else np.abs(residual)
    own_score, own = scores[every, z], model.nearest(scores)
    curvature = lean = np.zeros(0)
    if request.curved is not None:
        slopes, bend = request.curved.at(residual)
        heavy = others * (0.5 * bend if loss.hinge else bend)
        part = rows if request.inner is None else rows[:, np.append(request.inner, -1)]
        curvature = _curvature(part, heavy, z, loss)
        steep = others * (0.5 + 0.5 * slopes if loss.hinge else slopes)
        lean = directed(steep + heavy * (1.0 - residual)).T @ rows  # at zero residuals are 1
    group = group_of(hashes, request.groups)
    parts = [group == g for g in range(request.groups)] if request.groups > 1 else [slice(None)]
    return PlaneSums(
        slope=np.stack([felt[part].T @ rows[part] for part in parts]),
        height=np.array([push[part].sum() for part in parts]),
        pull=(cluster * own_score[:, None]).T @ rows,
        members=cluster.T @ rows,
        squares=(cluster * own_score[:, None] ** 2).sum(axis=0),
        counts=np.bincount(own, weights, minlength=k),
        scalars=np.array([(others * value).sum(), weights[own != z].sum(), weights.sum()]),
        label_hash=_label_hash(own, scores, hashes, loss),
        curvature=curvature,
        lean=lean,
        gram=_weighted_grams(rows, cluster.T) if request.gram else np.zeros(0),
    )


def group_of(hashes: np.ndarray, groups: int) -> np.ndarray:
    """The group of every row, by its hash."""
    return ((hashes >> np.uint64(33)) % np.uint64(groups)).astype(np.int64)


def _width(request: PlaneRequest) -> int:
    return request.n_features if request.columns is None else len(request.columns)


def _curvature(rows: np.ndarray, heavy: np.ndarray, z: np.ndarray, loss: Loss) -> np.ndarray:
    """RowRecord Gram matrices of every pair of clusters, or of every plane's other rows."""
    if not loss.together:
        return _weighted_grams(rows, heavy.T)
    first, second = np.triu_indices(heavy.shape[1], 1)
    pairs = [
        np.where(z == a, heavy[:, b], np.where(z == b, heavy[:, a], 0.0))
        for a, b in zip(first, second, strict=True)
    ]
    return _weighted_grams(rows, pairs)


def _weighted_grams(rows: np.ndarray, weights: Any) -> np.ndarray:
    found = np.empty((len(weights), rows.shape[1], rows.shape[1]))
    for heavy, gram in zip(weights, found, strict=True):
        some = np.flatnonzero(heavy)
        part = rows[some] * np.sqrt(heavy[some])[:, None]
        np.matmul(part.T, part, out=gram)
    return found


def _label_hash(own: np.ndarray, scores: np.ndarray, hashes: np.ndarray, loss: Loss) -> np.ndarray:
    """A hash of the labeling, and of the sides where these are learned as well."""
    with np.errstate(over="ignore"):
        label_hash = (hashes * (own + 1).astype(np.uint64)).sum(dtype=np.uint64)
        if not loss.together:
            powers = np.uint64(1) << np.arange(1, scores.shape[1] + 1, dtype=np.uint64)
            sides = ((scores >= 0) * powers).sum(axis=1, dtype=np.uint64)
            label_hash += (hashes * hashes * sides).sum(dtype=np.uint64)
    return np.array([label_hash], np.uint64)
