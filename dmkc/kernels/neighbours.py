"""The kernel of a neighbour graph: rows are alike when a short walk leads from one to the other.

Rows are tied to their nearest anchors (`kernels/anchors.py`).  With z(x) the affinities of a row
and G the mean of z^T z over all rows, found by one scan, the degrees of the anchors are the row
sums of G, and the walk row -> anchor -> row is the kernel z(x) degrees^-1 z(y)^T.  Its principal
directions are eigenvectors of a matrix of the size of the anchors; a row is stored as its
coordinates along the leading ones, few dense numbers.  Liu, He and Chang (2010) and Cai and Chen
(2015) have this graph, Huang et al. (2020) its sparse form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from dmkc.errors import UserError
from dmkc.kernels.anchors import AffinityScan, NearAnchors, make_anchors
from dmkc.kernels.base import Diagonal, FittedKernel, Kernel, State, StoredMap
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import Tile

K_AMONG_ROWS, K_AMONG_CENTROIDS = 20, 6
"""Neighbours where their number is left open."""
LEAST_DEGREE = 0.01
"""Anchors with a smaller part of the mean degree count as if they had it: a single far row would
otherwise be a cluster of its own, with a k(x, x) beyond all others."""
SMALLEST = 1e-7
"""Eigenvalues of the Laplacian below this are zero."""
MOST_DIMENSIONS = 64
"""Directions that are planned with where their number is left open."""
NOISE = 1e-7
"""Directions with less than this part of the largest variance are noise."""
REPEATED = 1e-9
"""Variances that differ by less than this are the same, as those of separate parts of a graph."""
EVEN = 1e-9
"""A sum of cubes of a vector of length 1 that may be rounding."""
AS_LARGE = 1e-6
"""Numbers count as the largest up to this part of it, so that rounding does not choose."""


@dataclass(frozen=True, repr=False)
class Neighbours(Kernel):
    """Rows are alike that a walk over their nearest anchors joins soon.

    Every row is tied to the `k` nearest of about `anchors` anchors.  Clusters may have any shape,
    as long as rows are denser inside of them than between them.  `anchors` is how many points stand
    for the rows (centroids of a sample, or the rows where there are fewer than twice as many), or
    the points themselves, in the units of the columns.  `k` is by default 20 where the rows are the
    anchors, and 6 where an anchor stands for many rows.

    The features are leading eigenvectors of the graph, `dimensions` of them: by default half as
    many again as there are clusters, weighted by how slowly a walk forgets them.  With `steps` they
    are those of a walk of so many steps from row to row; all count the same with 0.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, Neighbours, metrics
    >>> from dmkc.datasets import make_blobs
    >>> X, y = make_blobs(300, 4, 3, spread=0.5, seed=2)
    >>> bank = [Neighbours(10), "linear"]
    >>> model = MultipleKernelClustering(3, kernels=bank, random_state=0).fit(X)
    >>> metrics.accuracy(y, model.labels_)
    1.0
    """

    shows_clusters: ClassVar[bool] = True

    k: int | None = None
    anchors: Any = 1000
    steps: int | None = None
    dimensions: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("steps", 0), ("dimensions", 1)):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)
        if not isinstance(self.anchors, Integral):
            object.__setattr__(self, "anchors", _points(self.anchors))
        else:
            _check_whole("anchors", self.anchors, 1)  # all that equal rows have

    @property
    def title(self) -> str:
        walk = "" if self.steps is None else f", {self.steps} steps"
        some = "" if self.k is None else f", {self.k}"
        return f"Neighbours{some} of {self._count} anchors{walk}"

    @property
    def _count(self) -> int:
        return int(self.anchors) if isinstance(self.anchors, Integral) else len(self.anchors)

    def stored_width(self, n_columns: int, n_landmarks: int) -> int:
        return min(self.dimensions or MOST_DIMENSIONS, self._count)

    def compared_with(self, n_landmarks: int) -> int:
        return self._count

    def fit(self, sample: KernelSample) -> FittedKernel:
        graph = sample.once(("anchor graph", self.anchors), lambda: AnchorGraph.of(self, sample))
        return graph.kernel(self, sample.n_clusters)

    def restore(self, state: State, n_columns: int) -> FittedKernel:
        anchors, values, offset, factors, search = (
            state.get(name) for name in ("anchors", "values", "offset", "factors", "search")
        )
        if anchors is None or anchors.ndim != 2 or anchors.shape[1] != n_columns:
            raise ValueError(f"it has no anchors of {n_columns} columns")
        if values is None or values.ndim != 2 or len(values) != len(anchors):
            raise ValueError("its directions do not fit its anchors")
        width = (values.shape[1],)
        if offset is None or factors is None or offset.shape != width or factors.shape != width:
            raise ValueError("its directions do not fit together")
        fits = search is not None and search.shape == (1,) and self.k is not None
        if search is None or not fits or not (self.k or 0) <= search[0] <= len(anchors):
            raise ValueError(f"it does not have {self.k} neighbours among its anchors")
        return OnAnchors(self, anchors, values, offset, factors, search)


@dataclass(frozen=True, eq=False)
class OnAnchors(FittedKernel):
    """A walk on a neighbour graph whose anchors and directions are known."""

    kernel: Neighbours
    anchors: np.ndarray
    """Standardised, one a row; kernels with the same array share the search for the nearest."""
    values: np.ndarray
    """Anchors x directions: what an affinity to an anchor adds to a row's coordinates."""
    offset: np.ndarray
    """What is taken off, which makes the coordinates of all rows zero on average."""
    factors: np.ndarray
    """How much each direction counts."""
    search: np.ndarray
    """How many neighbours are looked for, for this kernel and those that share its anchors."""

    @property
    def k(self) -> int:
        return int(self.kernel.k or self.search[0])

    @property
    def stored_width(self) -> int:
        return len(self.offset)

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        near = NearAnchors.of(tile, self.anchors, int(self.search[0]))

        def make() -> np.ndarray:
            return self.values.astype(out.dtype)

        values = tile.tiles.kept("values of anchors", self.values, make)
        near.combined(self.k, values, self.offset.astype(out.dtype), out, at)

    def stored_mean(self) -> np.ndarray:
        return np.zeros(self.stored_width)

    def feature_map(self, cut_off: float) -> StoredMap:
        return Diagonal(self.factors)

    def diagonal(self, tile: Tile) -> np.ndarray:
        out = np.empty((tile.n, self.stored_width), tile.tiles.dtype)
        self.fill(tile, out, 0)
        features = out.astype(np.float64) * self.factors
        return np.einsum("ij,ij->i", features, features)

    def state(self) -> State:
        return {
            "anchors": self.anchors,
            "values": self.values,
            "offset": self.offset,
            "factors": self.factors,
            "search": self.search,
        }


@dataclass(frozen=True, eq=False)
class Walk:
    """The leading directions of the walk on a neighbour graph."""

    singular: np.ndarray
    """How much of a direction one step from rows to anchors keeps: 1 less an eigenvalue of the
    normalised Laplacian of the graph of rows and anchors; largest first, the constant left out."""
    values: np.ndarray
    """Anchors x directions: a row's coordinates are its affinities times these ..."""
    offset: np.ndarray
    """... less this."""


@dataclass(eq=False)
class AnchorGraph:
    """Anchors, and the graphs of all numbers of neighbours that are asked for."""

    anchors: np.ndarray
    default_k: int
    sums: dict[int, sp.csr_array]
    """Mean of z^T z for every number of neighbours."""
    search: np.ndarray
    walks: dict[int, Walk]

    @classmethod
    def of(cls, kernel: Neighbours, sample: KernelSample) -> AnchorGraph:
        """One scan for all kernels of a bank that have the same anchors."""
        anchors, are_rows = _anchors(kernel, sample)
        default = K_AMONG_ROWS if are_rows else K_AMONG_CENTROIDS
        alike = [k for k in sample.kernels if isinstance(k, Neighbours)]
        same = [k for k in (kernel, *alike) if k.anchors == kernel.anchors]
        counts = {default if k.k is None else k.k for k in same}
        asked = tuple(sorted({min(count, len(anchors)) for count in counts}))
        assert sample.scaling is not None
        *sums, (total,) = sample.run_on_all(
            AffinityScan(sample.scaling, anchors, asked, sample.dtype)
        )
        # An anchor that is nobody's neighbour at the largest number is none at smaller ones.
        used = np.flatnonzero(sums[-1].diagonal() > 0)
        kept = {k: part[used][:, used] / total for k, part in zip(asked, sums, strict=True)}
        return cls(anchors[used], default, kept, np.array([float(asked[-1])]), {})

    def kernel(self, kernel: Neighbours, n_clusters: int) -> OnAnchors:
        """A kernel of this graph."""
        k = min(self.default_k if kernel.k is None else kernel.k, int(self.search[0]))
        dimensions = kernel.dimensions or dimensions_for(n_clusters)
        walk = self.walk(k, dimensions)
        kept = walk.singular[:dimensions]
        size = len(kept)
        if kernel.steps is None:
            weights = slow_first(1.0 - kept, n_clusters, size) / kept
        else:
            weights = kept ** (kernel.steps - 1.0)
        return OnAnchors(
            replace(kernel, k=k, anchors=len(self.anchors), dimensions=size),
            self.anchors,
            np.ascontiguousarray(walk.values[:, :size]),
            walk.offset[:size],
            weights,
            self.search,
        )

    def walk(self, k: int, dimensions: int) -> Walk:
        """The leading directions, found once for all kernels with this number of neighbours."""
        if k not in self.walks or len(self.walks[k].singular) < dimensions:
            self.walks[k] = walk_of(self.sums[k], dimensions)
        return self.walks[k]


def walk_of(mean_products: Any, dimensions: int) -> Walk:
    """The leading principal directions of affinities over the root of the anchors' degrees.

    `mean_products` is the mean of z^T z.  Affinities sum to 1, and so its row sums are the mean of
    z, the degrees of the anchors.
    """
    gram = mean_products.toarray() if sp.issparse(mean_products) else mean_products
    degrees = gram.sum(axis=1)
    used = degrees > 0
    bounded = np.maximum(degrees, LEAST_DEGREE * degrees.mean())
    roots = np.where(used, 1.0 / np.sqrt(np.where(used, bounded, 1.0)), 0.0)
    mean = degrees * roots
    centred = gram * roots * roots[:, None] - np.outer(mean, mean)
    squares, vectors = _leading((centred + centred.T) / 2, dimensions)
    keep = squares > NOISE * max(squares[0], NOISE)
    if not keep.any():  # all rows have the same neighbours
        keep[0], squares = True, np.ones_like(squares)
    squares, vectors = squares[keep], vectors[:, keep]
    vectors = turned_within(squares, vectors)[:, :dimensions]
    vectors = vectors * _sides(vectors)
    return Walk(np.sqrt(squares[:dimensions]), roots[:, None] * vectors, mean @ vectors)


def _leading(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The leading eigenvalues, falling, and their eigenvectors: so many, and all that repeat the
    last of these, or rounding would choose among them."""
    p = len(matrix)
    found = min(count, p)
    while True:
        values, vectors = eigh(matrix, subset_by_index=[p - found, p - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        last = values[min(count, p) - 1]
        if found == p or last <= REPEATED or values[-1] < last - REPEATED:
            return values, vectors
        found = min(2 * found, p)


def _sides(vectors: np.ndarray) -> np.ndarray:
    """The sign that each vector gets, since eigenvectors have none of their own.

    Where the sum of its cubes is 0 but for rounding, its first large entry decides.
    """
    cubes, sizes = (vectors**3).sum(axis=0), np.abs(vectors)
    first = np.argmax(sizes >= (1.0 - AS_LARGE) * sizes.max(axis=0), axis=0)
    entry = vectors[first, np.arange(vectors.shape[1])]
    return np.where(np.where(np.abs(cubes) > EVEN, cubes, entry) < 0, -1.0, 1.0)


def turned_within(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The eigenvectors of repeated eigenvalues (in falling order) in a basis of their own.

    Any basis of them will do, and rounding would choose it.  Here each is the one that is largest
    in some place, the places being those where what is left of all of them is largest.
    """
    out = vectors.copy()
    for same in np.split(np.arange(len(values)), np.flatnonzero(np.diff(values) < -REPEATED) + 1):
        if len(same) == 1:
            continue
        left, turn = vectors[:, same], np.empty((len(same), len(same)))
        for j in range(len(same)):
            sizes = np.einsum("ij,ij->i", left, left)
            place = left[np.argmax(sizes >= (1.0 - AS_LARGE) * sizes.max())]
            turn[:, j] = place / np.linalg.norm(place)
            left = left - np.outer(left @ turn[:, j], turn[:, j])
        out[:, same] = vectors[:, same] @ turn
    return out


def slow_first(
    eigenvalues: np.ndarray, n_clusters: int, dimensions: int | None = None
) -> np.ndarray:
    """Weights of the leading directions, from eigenvalues of the Laplacian without the first.

    A direction of eigenvalue a gets root(b / (a + b)), where b is the eigenvalue that comes after
    those of the clusters: directions count by how slowly a walk forgets them, and all that belong
    to separate parts of the graph count the same.
    """
    most = min(dimensions or dimensions_for(n_clusters), len(eigenvalues))
    lead = np.maximum(eigenvalues[:most], 0.0)
    next_one = max(float(lead[min(n_clusters, most) - 1]), SMALLEST)
    return np.sqrt(next_one / (lead + next_one))


def dimensions_for(n_clusters: int) -> int:
    """Directions for so many clusters; with no more than clusters, two of them often share one."""
    return n_clusters + max(2, n_clusters // 2)


def _anchors(kernel: Neighbours, sample: KernelSample) -> tuple[np.ndarray, bool]:
    """Points that were given or found, standardised, and whether they are the rows themselves."""
    if isinstance(kernel.anchors, Integral):
        return make_anchors(sample, int(kernel.anchors))
    points = np.array(kernel.anchors)
    if points.shape[1] != sample.n_columns:
        raise UserError(
            f"The anchors of a Neighbours kernel have {points.shape[1]} columns, but the kernel "
            f"sees {sample.n_columns}."
        )
    scaled = points if sample.scaling is None else sample.scaling.apply(points)
    return np.unique(scaled, axis=0), False


def _points(given: Any) -> tuple[tuple[float, ...], ...]:
    """Anchors that a user gives, as plain values."""
    try:
        points = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise UserError(
            "Neighbours anchors must be a number of anchors, or two or more finite rows."
        )
    return tuple(map(tuple, points.tolist()))


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UserError(
            f"Neighbours {name} must be a whole number of at least {least}, not {value!r}."
        )
