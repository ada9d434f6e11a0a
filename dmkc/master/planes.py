"""The small problem of nonparallel planes: a quadratic plus l-infinity norms of groups.

    min over u:   1/2 u.H u - q.u + c sum_G |u_G|_inf

where a group holds the weights of one feature in all planes (Fang and Liu 2020, problem 17 with
its losses replaced by quadratics).  Block descent finds which groups vanish and which weights of a
group tie for the largest; on that face the problem is a linear system, which is solved exactly.

A step of reweighted least squares has the quadratic of all planes at once.  Most features have no
weight and none would stay if it were given one, so its matrix is formed only for those that may get
weights, and the gradient tells whether any other should have been among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from dmkc.compiled import compiled

MAX_ROUNDS = 500
SWEEPS = 4
"""Sweeps of block descent between two exact steps."""
EXACT = 1e-11
"""Residual, relative to the problem's numbers, that counts as solved."""
PULLED = 1e-10
"""A pull beyond c counts from this much on, relative to the problem's numbers."""
TIED = 1e-10


def solve_groups(
    H: np.ndarray, q: np.ndarray, edges: np.ndarray, c: float, start: np.ndarray
) -> np.ndarray:
    """The minimiser; group g is ``u[edges[g]:edges[g + 1]]`` and H is positive definite."""
    if c == 0:
        return cho_solve(cho_factor(H), q)
    H = np.ascontiguousarray(H)
    bounds = _largest(H, edges)
    u = np.array(start, dtype=np.float64)
    size = EXACT * (np.abs(q).max(initial=0.0) + c)
    roots = np.sqrt(np.diagonal(H))
    for _ in range(MAX_ROUNDS):
        residual = _sweeps(H, q, edges, bounds, c, u, H @ u - q, SWEEPS)
        # |H| |u| is at most this, as H is positive definite: what rounding leaves is no residual
        rounding = np.finfo(np.float64).eps * roots.max(initial=0.0) * (roots @ np.abs(u))
        if residual <= size + rounding:
            break
        _exact_on_face(H, q, edges, c, u)
    return u


def shrunk(values: np.ndarray, edges: np.ndarray, radius: float) -> np.ndarray:
    """Values less their projections onto l1 balls: the proximal map of sum_G |u_G|_inf."""
    out = np.array(values, dtype=np.float64)
    _shrink_all(out, edges, radius)
    return out


def group_sizes(u: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The largest absolute value of every group."""
    return np.maximum.reduceat(np.abs(u), edges[:-1])


def _largest(H: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The largest eigenvalue of every group's block; groups of one size at once."""
    sizes = np.diff(edges)
    found = np.empty(len(sizes))
    for size in np.unique(sizes):
        same = sizes == size
        at = edges[:-1][same][:, None] + np.arange(size)
        found[same] = np.linalg.eigvalsh(H[at[:, :, None], at[:, None, :]])[:, -1]
    return found


def _exact_on_face(
    H: np.ndarray, q: np.ndarray, edges: np.ndarray, c: float, u: np.ndarray
) -> None:
    """Move u to the minimiser over its face; where that lies beyond the face, go on over another.

    Either only up to where the face ends, or all the way with every weight clipped that went too
    far, whichever is lower: the latter may change many groups at the price of one factorisation.
    """
    for _ in range(len(u)):
        face = _Face.of(u, edges)
        active = np.flatnonzero(face.member >= 0)
        if not len(active):
            return
        # u = E y with one entry of E in every active row: a tie's common size, or a free weight
        at = np.arange(len(active)), face.member[active]
        E = sp.csr_array((face.sign[active], at), (len(active), face.n_sizes + face.n_free))
        wanted = E.T @ q[active]
        wanted[: face.n_sizes] -= c
        some = H if len(active) == len(u) else H[np.ix_(active, active)]
        reduced = E.T @ (E.T @ some).T
        try:
            y = cho_solve(cho_factor(reduced, overwrite_a=True, check_finite=False), wanted)
        except LinAlgError:
            return
        target = np.zeros_like(u)
        target[active] = E @ y
        clipped = face.clipped(target)
        if not face.move(u, target):
            return
        if _value(some, q, edges, c, clipped, active) < _value(some, q, edges, c, u, active):
            u[:] = clipped


def _value(
    H: np.ndarray, q: np.ndarray, edges: np.ndarray, c: float, u: np.ndarray, active: np.ndarray
) -> float:
    """The objective at u, which vanishes but for the active weights; H holds these alone."""
    some = u[active]
    return float(0.5 * some @ (H @ some) - q[active] @ some + c * group_sizes(u, edges).sum())


@dataclass(frozen=True)
class _Face:
    """Groups that vanish, weights that tie for the largest of their group, and free weights."""

    group: np.ndarray
    """The group of every weight."""
    tied: np.ndarray
    free: np.ndarray
    member: np.ndarray
    """The reduced variable that every weight follows: a group's size, itself, or none (-1)."""
    sign: np.ndarray
    n_sizes: int
    n_free: int

    @classmethod
    def of(cls, u: np.ndarray, edges: np.ndarray) -> _Face:
        sizes = group_sizes(u, edges)
        group = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        tied = (sizes[group] > 0) & (np.abs(u) >= (1.0 - TIED) * sizes[group])
        free = (sizes[group] > 0) & ~tied
        number = np.cumsum(sizes > 0) - 1
        n_sizes, n_free = int((sizes > 0).sum()), int(free.sum())
        member = np.full(len(u), -1)
        member[tied] = number[group[tied]]
        member[free] = n_sizes + np.arange(n_free)
        return cls(group, tied, free, member, np.where(tied, np.sign(u), 1.0), n_sizes, n_free)

    def clipped(self, target: np.ndarray) -> np.ndarray:
        """The target with sizes of at least 0 and with free weights no larger than their group."""
        size = np.zeros(self.group[-1] + 1)
        size[self.group[self.tied]] = np.maximum((target * self.sign)[self.tied], 0.0)
        return np.clip(target, -size[self.group], size[self.group])

    def move(self, u: np.ndarray, target: np.ndarray) -> bool:
        """Move u to the target, or to where the face ends on the way there (then True)."""
        size, new = np.zeros(self.group[-1] + 1), np.zeros(self.group[-1] + 1)
        size[self.group[self.tied]] = np.abs(u[self.tied])
        new[self.group[self.tied]] = (target * np.sign(u))[self.tied]
        with np.errstate(divide="ignore", invalid="ignore"):
            vanish = np.where((size > 0) & (new <= 0), size / (size - new), np.inf)
            at, meet = np.flatnonzero(self.free), []
            for side in (1.0, -1.0):
                room = size[self.group[at]] - side * u[at]
                closing = side * (target - u)[at] - (new - size)[self.group[at]]
                meet.append(np.where(closing > room, room / closing, np.inf))
        first = [vanish.min(), *(m.min(initial=np.inf) for m in meet)]
        step = min(1.0, *first)
        u += step * (target - u)
        if step == 1.0:
            return False
        ending = int(np.argmin(first))
        if ending == 0:
            u[self.group == int(vanish.argmin())] = 0.0
        else:
            one = at[int(meet[ending - 1].argmin())]
            mates = self.tied & (self.group == self.group[one])
            u[one] = np.abs(u[mates]).max() * (1.0 if ending == 1 else -1.0)
        return True


@compiled
def _sweeps(H, q, edges, bounds, c, u, grad, count):  # pragma: no cover - compiled
    """Block descent in place; returns the largest residual of the last sweep."""
    worst = 0.0
    trial = np.empty_like(u)
    for _ in range(count):
        worst = 0.0
        for g in range(len(edges) - 1):
            a, b = edges[g], edges[g + 1]
            bound = bounds[g]
            for i in range(a, b):
                trial[i] = u[i] - grad[i] / bound
            _shrink(trial, a, b, c / bound)
            for i in range(a, b):
                step = trial[i] - u[i]
                if step != 0.0:
                    worst = max(worst, abs(step) * bound)
                    u[i] = trial[i]
                    row = H[i]
                    for j in range(len(u)):
                        grad[j] += step * row[j]
    return worst


@compiled
def _shrink(values, a, b, radius):  # pragma: no cover - compiled
    """Clip ``values[a:b]`` at the height whose excess is `radius`; all become 0 below it."""
    total = 0.0
    for i in range(a, b):
        total += abs(values[i])
    if total <= radius:
        for i in range(a, b):
            values[i] = 0.0
        return
    sizes = np.sort(np.abs(values[a:b]))[::-1]
    reach, height = 0.0, 0.0
    for i in range(len(sizes)):
        reach += sizes[i]
        height = (reach - radius) / (i + 1)
        if i + 1 == len(sizes) or sizes[i + 1] <= height:
            break
    for i in range(a, b):
        values[i] = min(max(values[i], -height), height)


@compiled
def _shrink_all(values, edges, radius):  # pragma: no cover - compiled
    for g in range(len(edges) - 1):
        _shrink(values, edges[g], edges[g + 1], radius)


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
    enough = c + PULLED * (np.abs(q).max(initial=0.0) + c)
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
