"""Maximum margin clustering as a semidefinite program (Xu et al. 2005), for about 100 rows.

The labels y enter the dual of a support vector machine without bias through M = y y^T only.  M is
relaxed to a positive semidefinite matrix of unit diagonal that meets the triangle inequalities and
the balance (constraints L1, L2, L4), and the inner maximum becomes a matrix inequality by its Schur
complement (eqs 3.1-3.8 of the derivation in the MKC thesis).  Labels are the signs of M's leading
eigenvector.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import cvxpy as cp
import numpy as np

from dmkc.errors import UserError

MOST_ROWS = 150
INTERIOR_ROWS = 24
"""Up to here an interior-point solver is quick; beyond, a first-order one is."""
VIOLATION = {"interior": 1e-6, "first order": 1e-2}
"""Triangle inequalities that are missed by more are added."""
ADDED = 2000
ROUNDS = {"interior": 8, "first order": 2}
"""How often they are added at most; a round of the first-order solver may take a minute."""


@dataclass(frozen=True)
class Relaxed:
    """The solution of the relaxed problem."""

    labels: np.ndarray
    """Cluster (0 or 1) of every row."""
    M: np.ndarray
    """The relaxed y y^T."""
    value: float
    """The optimal value, a lower bound of what any labeling can have."""


def mmc_sdp(K: np.ndarray, C: float, balance: float) -> Relaxed:
    """Cluster by the kernel matrix `K` of centred rows into two clusters.

    `C` bounds the multipliers of the support vector machine, `balance` the absolute difference of
    the two clusters' sizes (l).  Twenty rows take seconds, a hundred take minutes.
    """
    K = np.asarray(K, dtype=float)
    n = len(K)
    if K.shape != (n, n) or not np.allclose(K, K.T):
        raise UserError(f"K must be a symmetric matrix, but has shape {K.shape}.")
    if not 2 <= n <= MOST_ROWS:
        raise UserError(f"The semidefinite program is for 2 to {MOST_ROWS} rows, not {n}.")
    if not C > 0:
        raise UserError(f"C must be a positive number, not {C!r}.")
    if not n % 2 <= balance:
        raise UserError(f"No labeling of {n} rows meets a balance of {balance!r}.")
    size = float(np.abs(K).max()) or 1.0
    problem, M = _problem(K / size, C * size, balance)
    kind = "interior" if n <= INTERIOR_ROWS else "first order"
    known: set[tuple[int, int, int, int]] = set()
    value = 0.0
    for _ in range(ROUNDS[kind]):
        value = _solve(problem, kind)
        missed = _missed(np.asarray(M.value), VIOLATION[kind], known)
        if not missed:
            break
        known.update(missed)
        rules = [*problem.constraints, _triangles(M, missed)]
        problem = cp.Problem(problem.objective, rules)
    found = np.asarray(M.value)
    leading = np.linalg.eigh(found)[1][:, -1]
    # values are those of C in units of K: the multipliers are divided by its size
    return Relaxed((leading >= 0).astype(int), found, value / size)


def _problem(K: np.ndarray, C: float, balance: float) -> tuple[cp.Problem, cp.Variable]:
    """Eq. 3.8 without the triangle inequalities."""
    n = len(K)
    M, delta = cp.Variable((n, n), PSD=True), cp.Variable()
    below, above = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    edge = cp.reshape(np.ones(n) + below - above, (n, 1), order="C")
    corner = cp.reshape(delta - 2 * C * cp.sum(above), (1, 1), order="C")
    schur = cp.bmat([[cp.multiply(M, K), edge], [edge.T, corner]])
    rules = [cp.diag(M) == 1, schur >> 0, cp.abs(cp.sum(M, axis=0)) <= balance]
    return cp.Problem(cp.Minimize(delta), rules), M


def _solve(problem: cp.Problem, kind: str) -> float:
    """The optimal value."""
    if kind == "interior":
        problem.solve(solver=cp.CLARABEL)
    else:
        problem.solve(solver=cp.SCS, eps=1e-4, max_iters=10_000)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise RuntimeError(f"The semidefinite program ended with status {problem.status}.")
    return float(problem.value)


def _missed(M: np.ndarray, tolerance: float, known: set) -> list[tuple[int, int, int, int]]:
    """The triangle inequalities that M misses most, as three rows and which of four kinds.

    With signs s_ij s_ik s_jk = 1 they are s_ij M_ij + s_ik M_ik + s_jk M_jk >= -1: L2 and the three
    forms of L1.
    """
    n, found = len(M), []
    for kind, (a, b) in enumerate(product((1.0, -1.0), repeat=2)):
        for i in range(n - 2):
            row = M[i, i + 1 :]
            total = a * row[:, None] + b * row[None, :] + a * b * M[i + 1 :, i + 1 :] + 1.0
            total[np.tril_indices(len(row))] = 0.0
            for j, k in np.argwhere(total < -tolerance):
                found.append((total[j, k], (i, i + 1 + int(j), i + 1 + int(k), kind)))
    found.sort()
    return [triple for _, triple in found[:ADDED] if triple not in known]


def _triangles(M: cp.Variable, triples: list[tuple[int, int, int, int]]) -> cp.Constraint:
    signs = np.array(list(product((1.0, -1.0), repeat=2)))
    i, j, k, kind = np.array(triples).T
    a, b = signs[kind].T
    sides = cp.multiply(a, M[i, j]) + cp.multiply(b, M[i, k]) + cp.multiply(a * b, M[j, k])
    return sides >= -1
