"""The convex problem of nonparallel planes for a fixed labeling, seen from the coordinator.

    1/2 mean(f_z^2) + ridge/2 sum_k |w_k|^2 + c1 mean(loss) + c2 sum_G |w_G|_inf

(Fang and Liu 2020, problem 17, with means instead of sums).  From the sums of a scan it gives the
value at a model, a certified lower bound of the minimum, and the next model of iteratively
reweighted least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmkc.master.planes import Quadratic, group_sizes, minimised, shrunk
from dmkc.scan.planes import Planes, PlaneSums

KEEN = 0.8
"""Features without weights that are pulled by this share of c2 are worked on as well."""
FEWER = 0.8
"""More of the features than this are as good as all."""


@dataclass(frozen=True)
class PlaneProblem:
    """Weights of the terms and groups of the features."""

    n_clusters: int
    c1: float
    c2: float
    ridge: float
    hinge: bool
    together: bool
    """One problem for all planes, whose groups span them; else a problem per plane."""
    offsets: np.ndarray
    """Where each group of features begins; the last entry is their number."""

    @property
    def n_features(self) -> int:
        return int(self.offsets[-1])

    def zero(self, columns: np.ndarray | None = None) -> Planes:
        n = self.n_features if columns is None else len(columns)
        return Planes(np.zeros((self.n_clusters, n)), np.zeros(self.n_clusters), columns)

    def value(self, model: Planes, sums: PlaneSums) -> float:
        """The objective at the model under the labeling of the scan."""
        own = 0.5 * sums.squares.sum() + self.c1 * sums.losses
        size = 0.5 * self.ridge * float(np.sum(model.w**2))
        return float(own / sums.total + size + self.c2 * self.norm(model))

    def norm(self, model: Planes) -> float:
        """Sum of the groups' largest weights."""
        return float(sum(sizes.sum() for sizes in self.sizes(model)))

    def sizes(self, model: Planes) -> list[np.ndarray]:
        """The largest weight of every group (of every plane, when planes are fitted alone)."""
        edges = self.edges(model.columns)
        return [group_sizes(part, e) for part, e in self._parts(model.w, edges)]

    def bound(self, sums: PlaneSums, columns: np.ndarray | None = None) -> float:
        """A lower bound of the minimum over models on these features (None: all).

        The dual of the problem at the multipliers of the scan: f_z of every row, shifted by cluster
        so that the gradient in the biases vanishes, and those that the cut is made of.
        """
        n, gradient = sums.total, self.gradient(sums)
        counts = sums.members[:, -1]
        if np.any(counts == 0):
            return -np.inf
        shift = -gradient[:, -1] * n / counts
        gradient = gradient + shift[:, None] * sums.members / n
        squares = sums.squares + 2.0 * shift * sums.pull[:, -1] + shift**2 * counts
        parts = self._parts(gradient[:, :-1], self.edges(columns))
        left = [shrunk(part, edges, self.c2) for part, edges in parts]
        rest = sum(float(part @ part) for part in left) / (2.0 * self.ridge)
        return float(-0.5 * squares.sum() / n + self.c1 * sums.height.sum() / n - rest)

    def gradient(self, sums: PlaneSums) -> np.ndarray:
        """(clusters, features + 1): of the squares and of the losses' cut."""
        return (sums.pull + self.c1 * sums.slope.sum(axis=0)) / sums.total

    def pressure(self, sums: PlaneSums) -> np.ndarray:
        """How hard every group is pulled from zero; a group at zero stays there up to c2."""
        return self._pulls(self.gradient(sums)[:, :-1], self.edges(None))

    def working(
        self, model: Planes, sums: PlaneSums, columns: np.ndarray | None
    ) -> np.ndarray | None:
        """The features, by position, that a next step might give weights; None: about all."""
        gradient, edges = self.gradient(sums)[:, :-1], self.edges(columns)
        keen = self._pulls(gradient, edges) > KEEN * self.c2
        used = np.max(self.sizes(model), axis=0) > 0
        found = np.flatnonzero(np.repeat(used | keen, np.diff(edges)))
        return found if len(found) <= FEWER * edges[-1] else None

    def reweighted(
        self, model: Planes, sums: PlaneSums, gram: np.ndarray, inner: np.ndarray | None = None
    ) -> Planes:
        """The minimiser when every loss is replaced by a quadratic that touches it.

        Only the `inner` features (by position) get weights; all that have some are among them.
        """
        n, p = sums.total, model.w.shape[1]
        inner = np.arange(p) if inner is None else inner
        some = np.append(inner, p)
        own = gram[:, some[:, None], some] / n
        at = np.arange(len(inner))
        own[:, at, at] += self.ridge
        bends, q = self.c1 * sums.curvature / n, -self.c1 * sums.lean[:, some] / n
        start = np.column_stack([model.w, model.b])[:, some]
        edges = self.edges(inner if model.columns is None else model.columns[inner])
        if self.together:
            found = minimised(Quadratic(own, bends), q, start, edges, self.c2)
        else:
            alone = [Quadratic(part[None], bends[:0]) for part in own + bends]
            each = zip(alone, q[:, None], start[:, None], strict=True)
            found = np.vstack([minimised(*one, edges, self.c2) for one in each])
        w = np.zeros_like(model.w)
        w[:, inner] = found[:, :-1]
        return Planes(w, found[:, -1].copy(), model.columns)

    def edges(self, columns: np.ndarray | None) -> np.ndarray:
        """Group boundaries among some features, which come in whole groups."""
        if columns is None:
            return self.offsets
        group = np.searchsorted(self.offsets, columns, side="right")
        return np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(columns))

    def _pulls(self, gradient: np.ndarray, edges: np.ndarray) -> np.ndarray:
        parts = self._parts(gradient, edges)
        return np.max([np.add.reduceat(np.abs(g), e[:-1]) for g, e in parts], axis=0)

    def _parts(self, w: np.ndarray, edges: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights as vectors whose groups are contiguous."""
        if self.together:
            return [(w.T.ravel(), len(w) * edges)]
        return [(row, edges) for row in w]
