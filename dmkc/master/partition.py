"""Multiple-kernel k-means on small matrices: partitions and kernel weights.

Kernels come as S_p = U^T K_p U in an orthonormal basis U, with the traces of the K_p; a partition
matrix is H = U B with orthonormal B (the relaxation of kernel k-means).  Nothing here depends on
the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

SMALLEST_STEP = 1e-12


@dataclass(frozen=True)
class Partition:
    """A relaxed partition and the kernel weights it goes with."""

    coefficients: np.ndarray
    """B: directions x clusters, orthonormal."""
    kernel_weights: np.ndarray
    objective: float
    values: tuple[float, ...] = ()
    """The objective after every iteration."""
    converged: bool = True
    details: dict[str, Any] = field(default_factory=dict)
    """Fitted attributes that only this method has, by name."""


def leading(matrix: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal eigenvectors of the largest eigenvalues, the largest first."""
    size = len(matrix)
    if count >= size:
        return np.eye(size)
    _, vectors = eigh(matrix, subset_by_index=[size - count, size - 1], check_finite=False)
    return vectors[:, ::-1]


def combined(kernels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.tensordot(weights, kernels, axes=1)


def shares_of(kernels: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """tr(H^T K_p H) of every kernel."""
    return np.einsum("pij,ik,jk->p", kernels, coefficients, coefficients, optimize=True)


def average(kernels: np.ndarray, traces: np.ndarray, k: int) -> Partition:
    """Kernel k-means of the average kernel: min tr(K (I - H H^T))."""
    weights = np.full(len(kernels), 1.0 / len(kernels))
    found = leading(combined(kernels, weights), k)
    value = float(weights @ (traces - shares_of(kernels, found)))
    return Partition(found, weights, value, (value,))


def mkkm(
    kernels: np.ndarray, traces: np.ndarray, k: int, tol: float, max_iter: int, penalty: float
) -> Partition:
    """min over H and w >= 0, sum w = 1 of tr(K_w (I - H H^T)) + lambda/2 w^T M w.

    K_w = sum w_p^2 K_p and M_pq = tr(K_p K_q).  Without penalty this is multiple-kernel k-means,
    with it the matrix-induced regularisation of Liu et al. (2016), whose lambda depends on the
    number of rows: here it is `penalty` times the ratio of the mean trace to the mean of M.  Both
    steps are exact, so that the objective never rises.
    """
    m = len(kernels)
    flat = kernels.reshape(m, -1)
    related = flat @ flat.T
    related *= penalty * float(traces.mean()) / float(related.mean())
    weights = np.full(m, 1.0 / m)
    values: list[float] = []
    for _ in range(max_iter):
        found = leading(combined(kernels, weights**2), k)
        losses = np.maximum(traces - shares_of(kernels, found), 0.0)
        weights = _simplex_minimum(2.0 * np.diag(losses) + related, weights)
        values.append(float(weights**2 @ losses + 0.5 * weights @ related @ weights))
        if len(values) > 1 and values[-2] - values[-1] <= tol * abs(values[-2]):
            return Partition(found, weights, values[-1], tuple(values))
    return Partition(found, weights, values[-1], tuple(values), converged=False)


def simple_mkkm(
    kernels: np.ndarray, traces: np.ndarray, k: int, tol: float, max_iter: int
) -> Partition:
    """min over w >= 0, sum w = 1 of max over H of tr(K_w H H^T), K_w = sum w_p^2 K_p.

    SimpleMKKM of Liu et al. (2020): the inner maximum is a differentiable function of w, which is
    lowered along reduced gradients as in SimpleMKL.  The function is convex, so that the minimum is
    the global one.
    """
    weights = np.full(len(kernels), 1.0 / len(kernels))
    value, gradient, found = _peak(kernels, weights, k)
    values = [value]
    for _ in range(max_iter):
        direction = _reduced(weights, gradient)
        slope = float(gradient @ direction)
        falling = direction < 0
        if slope >= -SMALLEST_STEP * abs(value) or not falling.any():
            return Partition(found, weights, value, tuple(values))
        longest = float(np.min(-weights[falling] / direction[falling]))
        step = _line_minimum(kernels, weights, direction, longest, slope, value, k)
        weights = np.maximum(weights + step * direction, 0.0)
        weights /= weights.sum()
        before = value
        value, gradient, found = _peak(kernels, weights, k)
        values.append(value)
        if before - value <= tol * abs(before):
            return Partition(found, weights, value, tuple(values))
    return Partition(found, weights, value, tuple(values), converged=False)


def _peak(kernels: np.ndarray, weights: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """max over H of tr(K_w H H^T), its gradient in w, and that H."""
    found = leading(combined(kernels, weights**2), k)
    shares = shares_of(kernels, found)
    return float(weights**2 @ shares), 2.0 * weights * shares, found


def _reduced(weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A descent direction that keeps the sum of the weights and their signs."""
    base = int(np.argmax(weights))
    direction = gradient[base] - gradient
    direction[(weights <= 0) & (direction < 0)] = 0.0
    direction[base] = 0.0
    direction[base] = -direction.sum()
    return direction


def _line_minimum(
    kernels: np.ndarray,
    weights: np.ndarray,
    direction: np.ndarray,
    longest: float,
    slope: float,
    value: float,
    k: int,
) -> float:
    """A step with sufficient decrease (Armijo), from the longest one that is allowed."""
    step = longest
    while step > SMALLEST_STEP * longest:
        trial, _, _ = _peak(kernels, np.maximum(weights + step * direction, 0.0), k)
        if trial <= value + 1e-3 * step * slope:
            return step
        step *= 0.5
    return 0.0


def _simplex_minimum(matrix: np.ndarray, start: np.ndarray) -> np.ndarray:
    """min of w^T matrix w / 2 over the simplex; in closed form where matrix is diagonal."""
    m = len(matrix)
    diagonal = np.diag(matrix)
    if np.count_nonzero(matrix - np.diag(diagonal)) == 0:
        if (diagonal <= 0).any():
            none = (diagonal <= 0).astype(np.float64)
            return none / none.sum()
        return (1.0 / diagonal) / (1.0 / diagonal).sum()
    size = float(np.abs(matrix).max())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(matrix / size)),
        np.zeros(m),
        sp.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)])),
        np.concatenate([[1.0], np.zeros(m)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)],
        settings,
    ).solve()
    weights = np.maximum(np.array(solution.x), 0.0)
    if not np.isfinite(weights).all() or weights.sum() <= 0:
        return start
    weights /= weights.sum()
    # losses of very different sizes are beyond the solver: it may end above where it began
    return weights if weights @ matrix @ weights <= start @ matrix @ start else start
