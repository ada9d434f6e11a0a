"""Closed forms shared by the solvers: the two objectives and the kernel weights (eqs 2.14-2.18).

With w_k = |u_k|^2 and 1/q + 1/q* = 1, the best weights give sum_k beta_k w_k = |w|_{q*}; the
least sum_k |v_k|^2 / beta_k is (sum_k |v_k|^(2q/(q+1)))^((q+1)/q).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .problem import MasterProblem, widths


def conjugate(norm: float) -> float:
    """The exponent q* with 1/q + 1/q* = 1."""
    if norm == 1:
        return np.inf
    return 1.0 if np.isinf(norm) else norm / (norm - 1)


def block_norms(vector: np.ndarray, offsets: Sequence[int]) -> np.ndarray:
    """The length of every kernel's block of the vector."""
    return np.sqrt(np.add.reduceat(vector * vector, offsets[:-1]))


def unit(direction: np.ndarray, norm: float) -> np.ndarray:
    """The non-negative direction scaled to unit q-norm; uniform if it is zero."""
    top = direction.max()
    shape = direction / top if top > 0 else np.ones_like(direction)
    return shape / np.linalg.norm(shape, norm)


def kernel_weights(squared_norms: np.ndarray, norm: float) -> np.ndarray:
    """The weights beta >= 0, |beta|_q <= 1 that maximise sum_k beta_k w_k.

    For q = 1 every split between the largest w_k is a maximiser: they share equally.
    """
    w = np.asarray(squared_norms, dtype=float)
    top = w.max()
    if top <= 0 or np.isinf(norm):
        return unit(np.ones_like(w), norm)
    if norm == 1:
        return unit((w >= top * (1 - 1e-9)).astype(float), norm)
    return unit((w / top) ** (1 / (norm - 1)), norm)


def weights_for(vector: np.ndarray, offsets: Sequence[int], norm: float) -> np.ndarray:
    """The weights beta that minimise sum_k |v_k|^2 / beta_k."""
    lengths = block_norms(vector, offsets)
    top = lengths.max()
    if top <= 0 or np.isinf(norm):
        return unit(np.ones_like(lengths), norm)
    return unit((lengths / top) ** (2 / (norm + 1)), norm)


def regulariser(weights: np.ndarray, offsets: Sequence[int], norm: float) -> float:
    """The least 1/2 sum_k |v_k|^2 / beta_k over beta >= 0, |beta|_q <= 1."""
    lengths = block_norms(np.asarray(weights, dtype=float), offsets)
    power = 2.0 if np.isinf(norm) else 2 * norm / (norm + 1)
    top = lengths.max()
    if top == 0:
        return 0.0
    return float(0.5 * (top * np.sum((lengths / top) ** power) ** (1 / power)) ** 2)


def centred_slopes(problem: MasterProblem) -> np.ndarray:
    """g_p - h_p m for every cut, the slopes once the bias is written as s0 - v.m."""
    cuts = problem.cuts
    return cuts.slope - np.outer(cuts.sign, problem.mean) if problem.bias else cuts.slope


def slack(
    problem: MasterProblem, weights: np.ndarray, bias: float, threshold: float = 1.0
) -> float:
    """The least slack xi of a point (v, b, rho)."""
    cuts = problem.cuts
    gaps = threshold * cuts.loss - cuts.slope @ weights
    if problem.bias:
        gaps = gaps - bias * cuts.sign
    return float(max(0.0, gaps.max(initial=0.0)))


def feasible_multipliers(problem: MasterProblem, multipliers: np.ndarray) -> np.ndarray:
    """The nearby multipliers that satisfy the dual's constraints up to rounding."""
    found = np.maximum(multipliers, 0.0)
    if problem.bias and problem.balance is None:
        # Shrinking the heavier side makes h.lambda zero and keeps all the other constraints.
        parts = found * problem.cuts.sign
        plus, minus = parts[parts > 0].sum(), -parts[parts < 0].sum()
        if plus > minus:
            found = np.where(parts > 0, found * (minus / plus), found)
        elif minus > plus:
            found = np.where(parts < 0, found * (plus / minus), found)
    if problem.adaptive:
        return _with_unit_gain(problem, found)
    total = found.sum()
    return found * (problem.C / total) if total > problem.C else found


def _with_unit_gain(problem: MasterProblem, found: np.ndarray) -> np.ndarray:
    """Multipliers of gain 1 or more; where they overspend C, mixed with the widest cut alone."""
    room = widths(problem)
    widest = int(room.argmax())
    alone = np.zeros_like(found)
    alone[widest] = 1 / room[widest]
    gain = linear_gain(problem, found)
    if gain <= 0:
        return alone
    found = found / gain
    excess = found.sum() - problem.C
    if excess <= 0:
        return found
    share = excess / (found.sum() - alone.sum())
    return (1 - share) * found + share * alone


def linear_gain(problem: MasterProblem, multipliers: np.ndarray) -> float:
    """The linear part a.lambda - l |h.lambda| of the dual."""
    gain = float(problem.cuts.loss @ multipliers)
    if problem.bias and problem.balance:
        gain -= problem.balance * abs(float(problem.cuts.sign @ multipliers))
    return gain


def dual_parts(
    problem: MasterProblem, multipliers: np.ndarray, combined: np.ndarray
) -> tuple[float, float]:
    """The linear and the quadratic part of the dual, given u = sum_p lambda_p (g_p - h_p m)."""
    gain = linear_gain(problem, multipliers)
    lengths = block_norms(combined, problem.offsets)
    return gain, float(0.5 * np.linalg.norm(lengths, 2 * conjugate(problem.norm)) ** 2)
