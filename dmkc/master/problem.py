"""One master problem and its solution, and the closed forms that all solvers share.

The master is the multiple kernel clustering problem over P cuts (eq. 2.14 with the averaged
cuts a, h, g): min 1/2 sum_k |v_k|^2 / beta_k + C xi, with |v.m + b| <= l and |beta|_q <= 1.  With
an adaptive threshold rho (Wu and Zhang, Sparse Kernel Maximum Margin Clustering, eq. 11), the
objective is that less rho, cuts are xi >= rho a - v.g - b h, and the balance is |v.m + b| <= l rho.

With w_k = |u_k|^2 and 1/q + 1/q* = 1, the best weights give sum_k beta_k w_k = |w|_{q*}; the
least sum_k |v_k|^2 / beta_k is (sum_k |v_k|^(2q/(q+1)))^((q+1)/q) (eqs 2.14-2.18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cuts:
    """The sums that describe P cuts."""

    loss: np.ndarray  # a, (P,): mean of the mask
    sign: np.ndarray  # h, (P,): mean of the mask times the sign pattern
    slope: np.ndarray  # g, (P, D): mean of mask, sign and features, kernels' blocks side by side


@dataclass(frozen=True)
class MasterProblem:
    """One master problem."""

    cuts: Cuts  # the cuts found so far
    offsets: tuple[int, ...]  # M+1 block boundaries in D: kernel k is offsets[k]:offsets[k+1]
    mean: np.ndarray  # m, (D,): mean of the features
    C: float  # price of the slack
    balance: float | None = None  # l: bound of the absolute mean score, None for no bound
    norm: float = 2.0  # q in [1, inf]: which norm of the kernel weights is at most 1
    bias: bool = True  # False: no bias at all, then sign and mean are ignored
    adaptive: bool = False  # whether the threshold of the margin is a variable


@dataclass(frozen=True)
class MasterSolution:
    """An optimal point of a master problem."""

    value: float  # optimal value, the dual one: a lower bound of the primal
    weights: np.ndarray  # v, (D,)
    bias: float  # b
    kernel_weights: np.ndarray  # beta, (M,)
    slack: float  # xi
    multipliers: np.ndarray  # lambda, (P,): one for each cut
    threshold: float = 1.0  # rho; 0 where no point separates the cuts, and then v = 0


class MasterSolverError(RuntimeError):
    """The conic solver returned no point that is good enough to be used."""


def check(problem: MasterProblem) -> None:
    """Raise a ValueError if the problem is not one that can be solved."""
    cuts, offsets = problem.cuts, problem.offsets
    if not 0 < problem.C < np.inf:
        raise ValueError(f"The price C must be a positive finite number, but it is {problem.C}.")
    if not problem.norm >= 1:
        raise ValueError(f"The norm of the kernel weights must be >= 1, but it is {problem.norm}.")
    if problem.balance is not None:
        if not problem.bias:
            raise ValueError("A problem without a bias allows no balance; pass balance=None.")
        if not 0 <= problem.balance < np.inf:
            raise ValueError(
                f"The balance must be None or a finite number >= 0, but it is {problem.balance}."
            )
    if len(offsets) < 2 or offsets[0] != 0 or any(np.diff(offsets) < 1):
        raise ValueError(
            f"The offsets must start at 0 and increase strictly, but they are {offsets}."
        )
    if cuts.slope.ndim != 2 or cuts.slope.shape[1] != offsets[-1]:
        raise ValueError(
            f"The slopes must have shape (cuts, {offsets[-1]}), but it is {cuts.slope.shape}."
        )
    size, width = cuts.slope.shape
    if cuts.loss.shape != (size,):
        raise ValueError(f"The losses must have shape ({size},), but it is {cuts.loss.shape}.")
    used = [cuts.loss, cuts.slope]
    if problem.bias:
        if cuts.sign.shape != (size,):
            raise ValueError(f"The signs must have shape ({size},), but it is {cuts.sign.shape}.")
        if problem.mean.shape != (width,):
            raise ValueError(
                f"The mean must have shape ({width},), but it is {problem.mean.shape}."
            )
        used += [cuts.sign, problem.mean]
    if not all(np.isfinite(array).all() for array in used):
        raise ValueError("The cuts and the mean must be finite numbers.")
    if problem.adaptive:
        _check_adaptive(problem)


def widths(problem: MasterProblem) -> np.ndarray:
    """How fast every cut grows with the threshold, a - l |h|, when the mean score helps it."""
    if not problem.bias:
        return problem.cuts.loss
    assert problem.balance is not None
    return problem.cuts.loss - problem.balance * np.abs(problem.cuts.sign)


def _check_adaptive(problem: MasterProblem) -> None:
    if problem.C <= 1:
        raise ValueError(
            f"The price C must exceed 1 with an adaptive threshold, but it is {problem.C}."
        )
    if problem.bias and problem.balance is None:
        raise ValueError("An adaptive threshold needs a balance: the bias alone would raise it.")
    if problem.C * widths(problem).max(initial=0.0) < 1:
        raise ValueError(
            "The threshold is not bounded by these cuts: one of them must have a loss of at least "
            "1 / C, less what the balance allows."
        )


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
