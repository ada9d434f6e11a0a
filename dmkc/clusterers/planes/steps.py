"""The convex problem of nonparallel planes for a fixed labeling, seen from the coordinator.

    1/2 mean(f_z^2) + ridge/2 sum_k |w_k|^2 + c1 mean(loss) + c2 sum_G |w_G|_inf

(Fang and Liu 2020, problem 17, with means instead of sums).  From the sums of a scan it gives the
value at a model, a certified lower bound of the minimum, and the next model of iteratively
reweighted least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from dmkc.master.planes import group_sizes, shrunk, solve_groups
from dmkc.scan.planes import Planes, PlaneSums


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
        gradient = self.gradient(sums)[:, :-1]
        parts = self._parts(gradient, self.edges(None))
        pulls = [np.add.reduceat(np.abs(part), edges[:-1]) for part, edges in parts]
        return np.max(pulls, axis=0)

    def reweighted(self, model: Planes, sums: PlaneSums, gram: np.ndarray) -> Planes:
        """The minimiser when every loss is replaced by a quadratic that touches it from above."""
        k, p = model.w.shape
        q = -self.c1 * sums.lean / sums.total
        at = model.w
        edges = self.edges(model.columns)
        if self.together:
            H = self._joint(sums.curvature, gram, sums.total)
            found = _with_biases(H, q.T.ravel(), at.T.ravel(), k * edges, self.c2)
            found = found.reshape(p + 1, k).T
        else:
            alone = (gram + self.c1 * sums.curvature) / sums.total + self._ridge(p)
            each = zip(alone, q, at, strict=True)
            found = np.stack([_with_biases(H, part, w, edges, self.c2) for H, part, w in each])
        return Planes(np.ascontiguousarray(found[:, :-1]), found[:, -1].copy(), model.columns)

    def edges(self, columns: np.ndarray | None) -> np.ndarray:
        """Group boundaries among some features, which come in whole groups."""
        if columns is None:
            return self.offsets
        group = np.searchsorted(self.offsets, columns, side="right")
        return np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(columns))

    def _parts(self, w: np.ndarray, edges: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights as vectors whose groups are contiguous."""
        if self.together:
            return [(w.T.ravel(), len(w) * edges)]
        return [(row, edges) for row in w]

    def _ridge(self, p: int) -> np.ndarray:
        return np.diag(np.append(np.full(p, self.ridge), 0.0))

    def _joint(self, curvature: np.ndarray, gram: np.ndarray, total: float) -> np.ndarray:
        """The Hessian of all planes together, features outside and planes inside."""
        k, size = len(gram), gram.shape[1]
        first, second = np.triu_indices(k, 1)
        pairs = self.c1 * curvature / total
        blocks = np.empty((k, k, size, size))  # turned round once: it is much faster than by block
        blocks[first, second] = blocks[second, first] = -pairs
        for r in range(k):
            own = pairs[(first == r) | (second == r)].sum(axis=0)
            blocks[r, r] = gram[r] / total + self._ridge(size - 1) + own
        return blocks.transpose(2, 0, 3, 1).reshape(size * k, size * k)


def _with_biases(
    H: np.ndarray, q: np.ndarray, start: np.ndarray, edges: np.ndarray, c: float
) -> np.ndarray:
    """The minimiser of 1/2 u.H u - q.u plus the norms of the groups, which leave out the biases."""
    n = int(edges[-1])
    lower = cholesky(H[n:, n:], lower=True)
    half = solve_triangular(lower, H[n:, :n], lower=True)
    across = solve_triangular(lower, half, lower=True, trans=1)
    base = cho_solve((lower, True), q[n:])
    reduced = H[:n, :n] - half.T @ half
    u = solve_groups(reduced, q[:n] - H[:n, n:] @ base, edges, c, start)
    return np.concatenate([u, base - across @ u])
