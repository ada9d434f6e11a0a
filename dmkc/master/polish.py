"""A few Newton steps from the solver's point to the optimum itself.

An interior-point solver leaves the master's solution at its tolerance, and which digits it gets
right depends on rounding.  Once it is known which multipliers are positive and which bounds hold,
the dual is a smooth problem with a few equations, and Newton's method reaches machine precision.
Without this, the same rows given in two ways (repeated, or with weights) would agree to six digits
only.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from .norms import (
    block_norms,
    centred_slopes,
    conjugate,
    dual_parts,
    feasible_multipliers,
    kernel_weights,
    regulariser,
    slack,
)
from .problem import MasterProblem, MasterSolution

STEPS = 6
POSITIVE = 1e-6
"""Multipliers above this share of the largest count as positive."""


def polished(problem: MasterProblem, found: MasterSolution) -> MasterSolution:
    """The solution with its error reduced, or as it is where that does not work."""
    if problem.norm == 1 and len(problem.offsets) > 2:
        return found  # weights are multipliers there, and the problem is not smooth
    top = found.multipliers.max(initial=0.0)
    active = np.flatnonzero(found.multipliers > POSITIVE * top)
    if top <= 0 or not found.weights.any():
        return found
    try:
        better = _newton(problem, found, active)
    except np.linalg.LinAlgError:
        return found
    if better is None:
        return found
    return better if _gap(problem, better) <= _gap(problem, found) else found


def _newton(
    problem: MasterProblem, found: MasterSolution, active: np.ndarray
) -> MasterSolution | None:
    slopes = centred_slopes(problem)[active]
    loss, sign = problem.cuts.loss[active], problem.cuts.sign[active]
    y = found.multipliers[active]
    rules, values, pull = [], [], np.zeros(len(active))
    spent = y.sum() >= problem.C * (1 - 1e-6)
    if spent:
        rules.append(np.ones(len(active)))
        values.append(problem.C)
    side = 0.0
    settled = problem.bias and problem.balance is not None
    level = float(sign @ y)
    if settled and problem.balance and abs(level) > 1e-7 * problem.C:
        side = float(np.sign(level))
        pull = problem.balance * side * sign
    if problem.adaptive:
        rules.append(loss - pull)
        values.append(1.0)
    free = problem.bias and problem.balance != 0 and not side
    if free:
        rules.append(sign)
        values.append(0.0)
    linear = np.zeros(len(active)) if problem.adaptive else loss - pull
    grams = np.stack([part @ part.T for part in _parts(problem, slopes)])
    # with an adaptive threshold the multipliers are as small as the Gram matrices
    scale = float(np.abs(grams).max()) if problem.adaptive else 1.0
    bounds = scale * np.array(rules).reshape(len(rules), len(active))
    values = [scale * value for value in values]
    duals = np.zeros(len(rules))
    n, m = len(y), len(rules)
    system = np.zeros((n + m, n + m))
    system[:n, n:], system[n:, :n] = bounds.T, bounds
    for _ in range(STEPS):
        gradient, system[:n, :n] = _curve(problem, grams, y)
        residual = linear - gradient - duals @ bounds
        missing = np.array(values) - bounds @ y
        step, *_ = np.linalg.lstsq(system, np.concatenate([residual, missing]), rcond=1e-12)
        y, duals = y + step[:n], duals + step[n:]
        if not np.isfinite(step).all():
            return None
        if np.abs(step[:n]).max() <= 1e-11 * problem.C:  # the next would be its square
            break
    if y.min() < 0 or not np.any(y @ slopes):
        return None
    combined = y @ slopes
    beta = kernel_weights(block_norms(combined, problem.offsets) ** 2, problem.norm)
    weights = np.repeat(beta, np.diff(problem.offsets)) * combined
    duals = scale * duals
    threshold = -float(duals[int(spent)]) if problem.adaptive else 1.0
    if threshold <= 0:
        return None
    score = float(duals[-1]) if free else 0.0
    if problem.balance is not None:
        limit = problem.balance * threshold
        score = side * limit if side else min(max(score, -limit), limit)
    bias = score - float(weights @ problem.mean) if problem.bias else 0.0
    multipliers = np.zeros_like(found.multipliers)
    multipliers[active] = y
    if problem.adaptive:
        multipliers = feasible_multipliers(problem, multipliers)
    elif multipliers.sum() > problem.C:
        multipliers *= problem.C / multipliers.sum()
    gain, cost = dual_parts(problem, multipliers, multipliers @ centred_slopes(problem))
    xi = slack(problem, weights, bias, threshold)
    return replace(
        found,
        value=-cost if problem.adaptive else gain - cost,
        weights=weights,
        bias=bias,
        kernel_weights=beta,
        slack=xi,
        multipliers=multipliers,
        threshold=threshold,
    )


def _parts(problem: MasterProblem, slopes: np.ndarray) -> list[np.ndarray]:
    return [slopes[:, a:b] for a, b in pairwise(problem.offsets)]


def _curve(
    problem: MasterProblem, grams: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of the dual's quadratic part."""
    star = 1.0 if len(grams) == 1 else conjugate(problem.norm)  # one kernel: no choice
    pulls = grams @ y
    squares = np.maximum(pulls @ y, 0.0)
    total = max(float(np.linalg.norm(squares, star)), 1e-300)
    ratio = squares / total
    beta = ratio ** (star - 1) if star > 1 else np.ones_like(ratio)
    hessian = np.tensordot(beta, grams, axes=1)
    if star > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            bend = np.diag(np.where(ratio > 0, ratio ** (star - 2), 0.0)) - np.outer(beta, beta)
        hessian += 2 * (star - 1) / total * pulls.T @ bend @ pulls
    return beta @ pulls, hessian


def _gap(problem: MasterProblem, point: MasterSolution) -> float:
    """Distance of a point's objective from its lower bound; also of multipliers that overspend."""
    objective = regulariser(point.weights, problem.offsets, problem.norm) + problem.C * point.slack
    if problem.adaptive:
        objective -= point.threshold
    return abs(objective - point.value)
