"""A step of reweighted least squares: the quadratic of all planes plus norms of their features.

Most features have no weight and none would stay if it were given one.  So the matrix of the
quadratic is formed only for those that may get weights, and the gradient tells whether any other
should have been among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from dmkc.master.planes import solve_groups

EXACT = 1e-10
"""A pull beyond c counts from this much on, relative to the problem's numbers."""


@dataclass(frozen=True)
class Quadratic:
    """1/2 sum_k u_k.A_k u_k + 1/2 sum_pairs (u_a - u_b).B_ab (u_a - u_b), the biases last."""

    own: np.ndarray
    """(planes, p + 1, p + 1)"""
    pairs: np.ndarray
    """(pairs, p + 1, p + 1); none of them: the planes are independent."""

    def times(self, u: np.ndarray) -> np.ndarray:
        """The gradient at (planes, p + 1)."""
        out = np.matmul(self.own, u[:, :, None])[:, :, 0]
        if len(self.pairs):
            first, second = np.triu_indices(len(u), 1)
            felt = np.matmul(self.pairs, (u[first] - u[second])[:, :, None])[:, :, 0]
            np.add.at(out, first, felt)
            np.subtract.at(out, second, felt)
        return out

    def matrix(self, columns: np.ndarray) -> np.ndarray:
        """The Hessian on some columns and the biases, columns outside and planes inside."""
        k, some = len(self.own), np.append(columns, self.own.shape[1] - 1)
        size = len(some)
        part = np.ix_(some, some) if size < self.own.shape[1] else ...
        blocks = np.zeros((k, k, size, size))  # turned round once: much faster than by block
        for r in range(k):
            blocks[r, r] = self.own[r][part]
        if len(self.pairs):
            for a, b, full in zip(*np.triu_indices(k, 1), self.pairs, strict=True):
                pair = full[part]
                blocks[a, b] = blocks[b, a] = -pair
                blocks[a, a] += pair
                blocks[b, b] += pair
        return blocks.transpose(2, 0, 3, 1).reshape(size * k, size * k)


def minimised(
    quadratic: Quadratic, q: np.ndarray, at: np.ndarray, edges: np.ndarray, c: float
) -> np.ndarray:
    """The minimiser of the quadratic - q.u + c sum_G |u_G|_inf, whose groups leave out biases.

    `at` (planes, p + 1) is where to begin; `edges` are the groups of columns.
    """
    k, u = len(at), np.array(at)
    sizes = np.diff(edges)
    enough = c + EXACT * (np.abs(q).max(initial=0.0) + c)
    alive = np.maximum.reduceat(np.abs(u[:, :-1]).max(axis=0), edges[:-1]) > 0
    working = np.full(len(sizes), True) if c == 0 else alive
    missing = ~working & (_pulls(quadratic, q, u, edges) > enough)
    while True:
        working = working | missing
        columns = np.flatnonzero(np.repeat(working, sizes))
        inner = k * np.append(0, np.cumsum(sizes[working]))
        some = np.append(columns, u.shape[1] - 1)
        start = u[:, columns].T.ravel()
        found = _with_biases(quadratic.matrix(columns), q[:, some].T.ravel(), start, inner, c)
        u[:, some] = found.reshape(len(some), k).T
        missing = ~working & (_pulls(quadratic, q, u, edges) > enough)
        if not missing.any():
            return u


def _pulls(quadratic: Quadratic, q: np.ndarray, u: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How hard every group is pulled; one at zero stays there up to c."""
    gradient = (quadratic.times(u) - q)[:, :-1]
    return np.add.reduceat(np.abs(gradient).sum(axis=0), edges[:-1])


def _with_biases(
    H: np.ndarray, q: np.ndarray, start: np.ndarray, edges: np.ndarray, c: float
) -> np.ndarray:
    """The minimiser of 1/2 u.H u - q.u plus the norms of the groups, which leave out the biases."""
    n = int(edges[-1])
    lower = cholesky(H[n:, n:], lower=True)
    base = cho_solve((lower, True), q[n:])
    half = solve_triangular(lower, H[n:, :n], lower=True)
    reduced = half.T @ half
    np.subtract(H[:n, :n], reduced, out=reduced)
    u = solve_groups(reduced, q[:n] - H[:n, n:] @ base, edges, c, start)
    return np.concatenate([u, base - solve_triangular(lower, half @ u, lower=True, trans=1)])
