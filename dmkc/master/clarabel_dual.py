"""The master solved through its dual, which has one variable for each cut (dual of eq. 2.14).

    max  a.lambda - l |h.lambda| - 1/2 |(|u_k|^2)_k|_{q*},   lambda >= 0,  sum lambda <= C

with u = sum_p lambda_p (g_p - h_p m); then v_k = beta_k u_k, and the mean score v.m + b is the
multiplier of h.lambda.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .adaptive import solve_adaptive
from .conic import ConicPoint, ScaledDual, solve_conic
from .norms import dual_parts, feasible_multipliers, regulariser, slack, unit
from .polish import polished
from .problem import Cuts, MasterProblem, MasterSolution, MasterSolverError
from .scaled import ScaledCuts, candidate_weights, factorise

# Gaps between the primal and the dual value: relative, and relative to the value at v = 0.
TARGET_GAP, TARGET_FLOOR = 1e-8, 1e-14
LARGEST_GAP, LARGEST_FLOOR = 1e-5, 1e-10
# A share of |h| <= a this small is rounding: a mean over n rows is 0 or at least 1/n.
TINY_SIGN = 1e-12
# Below this curvature the quadratic part is lost in the solver's tolerance anyway.
LEAST_CURVATURE = 1e-10


def solve_dual(problem: MasterProblem) -> MasterSolution:
    """Solve the problem, which has been checked."""
    if problem.adaptive:
        return polished(problem, solve_adaptive(problem))
    cuts, count = problem.cuts, len(problem.offsets) - 1
    top = float(cuts.loss.max(initial=0.0))
    if top <= 0:
        nothing, none = np.zeros(problem.offsets[-1]), np.zeros(cuts.loss.size)
        return MasterSolution(0.0, nothing, 0.0, unit(np.ones(count), problem.norm), 0.0, none)
    if problem.bias and problem.balance is None:
        signs = np.where(np.abs(cuts.sign) > TINY_SIGN * top, cuts.sign, 0.0)
        if not (signs.min() < 0 < signs.max()):
            return _solve_one_sided(problem, signs)
        problem = replace(problem, cuts=replace(cuts, sign=signs))
    return polished(problem, _solve_scaled(problem, top))


def _solve_one_sided(problem: MasterProblem, signs: np.ndarray) -> MasterSolution:
    """With a free bias and signs on one side only, the bias alone meets the signed cuts."""
    cuts, kept = problem.cuts, signs == 0
    rest = Cuts(cuts.loss[kept], cuts.sign[kept], cuts.slope[kept])
    inner = solve_dual(replace(problem, cuts=rest, bias=False))
    missing = cuts.loss[~kept] - cuts.slope[~kept] @ inner.weights - inner.slack
    needed = (missing / np.abs(signs[~kept])).max(initial=0.0)
    bias = float(np.sign(signs.sum()) * needed)
    multipliers = np.zeros(cuts.loss.size)
    multipliers[kept] = inner.multipliers
    xi = slack(replace(problem, cuts=replace(cuts, sign=signs)), inner.weights, bias)
    return replace(inner, bias=bias, slack=xi, multipliers=multipliers)


def _solve_scaled(problem: MasterProblem, top: float) -> MasterSolution:
    scaled = factorise(problem, top)
    strength = problem.C * scaled.size**2 / top
    best: MasterSolution | None = None
    primal, status = np.inf, ""
    for budget in _budgets(strength):
        dual = ScaledDual(
            loss=problem.cuts.loss / top,
            sign=problem.cuts.sign if problem.bias and problem.balance != 0 else None,
            penalty=None if problem.balance is None else problem.balance / top,
            factors=scaled.factors,
            norm=problem.norm,
            budget=budget,
            curvature=max(strength / budget, LEAST_CURVATURE),
        )
        point = solve_conic(dual)
        status = point.status
        if not np.isfinite(point.multipliers).all():
            continue
        found, objective = _recover(problem, scaled, point, problem.C / budget)
        if best is None:
            best, primal = found, objective
        else:
            if found.value > best.value:
                best = replace(best, value=found.value, multipliers=found.multipliers)
            if objective < primal:
                best = replace(found, value=best.value, multipliers=best.multipliers)
                primal = objective
        if primal - best.value <= TARGET_GAP * primal + TARGET_FLOOR * problem.C * top:
            return best
    if best is not None:
        if primal - best.value <= LARGEST_GAP * primal + LARGEST_FLOOR * problem.C * top:
            return best
    raise MasterSolverError(f"Clarabel found no usable optimum of the master; it said {status}.")


def _budgets(strength: float) -> list[float]:
    """Bounds of sum y to try: y is of order 1 for one of them.

    Separable cuts have multipliers near C / strength, conflicting ones near C.
    """
    if strength <= 10:
        return [1.0, 10.0, 3.0, 100.0]
    return [strength**power for power in (1.0, 0.75, 1.2, 0.0, 0.5, 0.25)]


def _recover(
    problem: MasterProblem, scaled: ScaledCuts, point: ConicPoint, unit_multiplier: float
) -> tuple[MasterSolution, float]:
    """A feasible dual and a feasible primal point, and the primal's objective."""
    limit = problem.balance
    multipliers = feasible_multipliers(problem, point.multipliers * unit_multiplier)
    combined = multipliers @ scaled.slopes
    gain, loss = dual_parts(problem, multipliers, combined)
    # The best multiple of the multipliers has a closed form and removes most of their error.
    total = multipliers.sum()
    if gain > 0 and total > 0:
        scale = problem.C / total
        if loss > 0:
            scale = min(scale, gain / (2 * loss))
        multipliers, combined = multipliers * scale, combined * scale
        value = scale * gain - scale**2 * loss
    else:
        multipliers, combined, value = np.zeros_like(multipliers), np.zeros_like(combined), 0.0
    candidates = candidate_weights(problem, scaled, point, combined, scaled.top / scaled.size)
    score = point.mean_score * scaled.top
    if limit is not None:
        score = min(max(score, -limit), limit)
    best: MasterSolution | None = None
    least = np.inf
    for weights, beta in candidates:
        bias = score - float(weights @ problem.mean) if problem.bias else 0.0
        xi = slack(problem, weights, bias)
        objective = regulariser(weights, problem.offsets, problem.norm) + problem.C * xi
        if best is None or objective < least:
            best = MasterSolution(value, weights, bias, beta, xi, multipliers)
            least = objective
    assert best is not None
    return best, least
