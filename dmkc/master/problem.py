"""The data of one master problem and of its solution, with the checks on its input.

The master is the multiple kernel clustering problem over P cuts (eq. 2.14 with the averaged
cuts a, h, g): min 1/2 sum_k |v_k|^2 / beta_k + C xi, with |v.m + b| <= l and |beta|_q <= 1.  With
an adaptive threshold rho (Wu and Zhang, Sparse Kernel Maximum Margin Clustering, eq. 11), the
objective is that less rho, cuts are xi >= rho a - v.g - b h, and the balance is |v.m + b| <= l rho.
"""

from __future__ import annotations

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
