"""The master with an adaptive threshold, through its dual (Wu and Zhang, eq. 22, many kernels).

    min 1/2 |(|u_k|^2)_k|_{q*}   s.t.  a.lambda - l |h.lambda| >= 1,  sum lambda <= C,  lambda >= 0

with u = sum_p lambda_p (g_p - h_p m).  Then v_k = beta_k u_k, and the threshold rho, the slack xi
and the mean score v.m + b are the multipliers of the three constraints.  (The printed formula for
rho, eq. 24, is 0/0 whenever xi > 0.)

The primal has no unit of its own: v, b, rho, xi times t change its value to t^2 R - t (rho - C xi),
which is least at t = (rho - C xi) / 2R.  So every point stands for a ray, and what is looked for is
the largest (rho - C xi)^2 / 4R.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmkc.master.conic import (
    ConicPoint,
    ScaledCuts,
    ScaledDual,
    candidate_weights,
    factorise,
    solve_conic,
)
from dmkc.master.problem import (
    MasterProblem,
    MasterSolution,
    MasterSolverError,
    centred_slopes,
    dual_parts,
    feasible_multipliers,
    kernel_weights,
    regulariser,
    slack,
    widths,
)

TARGET_GAP, LARGEST_GAP = 1e-8, 1e-5
"""Relative gaps between the primal and the dual value: to end the search, and to be of use."""
CURVATURES = (1.0, 10.0, 0.1, 100.0, 0.01, 1000.0)
"""Units of the objective to try: with power cones Clarabel gets stuck in some and not in others."""
NOTHING = 1e-9
"""Combined slopes below this share of the largest slope mean that nothing separates the cuts."""
BARELY = 0.05
"""Share of the squared margin of the clusters' means below which cuts are barely separated."""


def solve_adaptive(problem: MasterProblem) -> MasterSolution:
    """Solve the problem, which has been checked."""
    top = float(problem.cuts.loss.max())
    scaled = factorise(problem, top)
    # centred slopes may be all rounding, so that their own size is no measure
    least = NOTHING * float(np.linalg.norm(problem.cuts.slope, axis=1).max())
    best: MasterSolution | None = None
    status, shrunk = "", 1.0
    for curvature in CURVATURES:
        dual = ScaledDual(
            loss=problem.cuts.loss / top,
            sign=problem.cuts.sign if problem.bias and problem.balance else None,
            penalty=problem.balance / top if problem.balance else None,
            factors=[factor / shrunk for factor in scaled.factors],
            norm=problem.norm,
            budget=problem.C * top,
            curvature=curvature,
            adaptive=True,
        )
        point = solve_conic(dual)
        status = point.status
        if not np.isfinite(point.multipliers).all():
            continue
        best = _better(problem, best, _recover(problem, scaled, point, shrunk, curvature))
        length = np.sqrt(-2 * best.value)
        if length <= least:
            return _nothing(problem, best)
        if adaptive_objective(problem, best) - best.value <= -TARGET_GAP * best.value:
            return best
        shrunk = length * top / scaled.size  # in these units the optimum is of order 1
    if best is not None:
        objective = adaptive_objective(problem, best)
        if objective - best.value <= -LARGEST_GAP * best.value:
            return best
    raise MasterSolverError(f"Clarabel found no usable optimum of the master; it said {status}.")


def adaptive_objective(problem: MasterProblem, found: MasterSolution) -> float:
    """The primal objective 1/2 sum_k |v_k|^2 / beta_k - rho + C xi of a point."""
    size = regulariser(found.weights, problem.offsets, problem.norm)
    return size - found.threshold + problem.C * found.slack


def barely_separated(problem: MasterProblem, found: MasterSolution) -> bool:
    """Whether the cuts are separated by far less than their widest one alone.

    That one is all there is when C falls to 1, and separates clusters by their means.
    """
    room = widths(problem)
    widest = int(room.argmax())
    alone = np.zeros_like(room)
    alone[widest] = 1 / room[widest]
    _, most = dual_parts(problem, alone, alone @ centred_slopes(problem))
    return -found.value <= BARELY * most


def _recover(
    problem: MasterProblem,
    scaled: ScaledCuts,
    point: ConicPoint,
    shrunk: float,
    curvature: float,
) -> MasterSolution:
    """A feasible dual and the best of some feasible primal points."""
    multipliers = feasible_multipliers(problem, point.multipliers / scaled.top)
    combined = multipliers @ scaled.slopes
    _, loss = dual_parts(problem, multipliers, combined)
    unit = scaled.size * shrunk / scaled.top  # of u; prices are in units of the objective
    unit_weight, unit_score = unit / curvature, unit**2 / curvature
    limit = problem.balance or 0.0
    best: MasterSolution | None = None
    for weights, beta in candidate_weights(problem, scaled, point, combined, unit_weight):
        threshold = max(point.threshold, 0.0) * unit_score
        score = point.mean_score * unit_score * scaled.top
        score = min(max(score, -limit * threshold), limit * threshold)
        bias = score - float(weights @ problem.mean) if problem.bias else 0.0
        xi = slack(problem, weights, bias, threshold)
        size = regulariser(weights, problem.offsets, problem.norm)
        worth = threshold - problem.C * xi
        t = worth / (2 * size) if worth > 0 and size > 0 else 0.0
        found = MasterSolution(
            -loss, t * weights, t * bias, beta, t * xi, multipliers, threshold=t * threshold
        )
        best = found if best is None else _better(problem, best, found)
    assert best is not None
    return best


def _better(
    problem: MasterProblem, old: MasterSolution | None, new: MasterSolution
) -> MasterSolution:
    """The lower primal point with the higher bound."""
    if old is None:
        return new
    upper = min(old, new, key=lambda found: adaptive_objective(problem, found))
    lower = max(old, new, key=lambda found: found.value)
    return replace(upper, value=lower.value, multipliers=lower.multipliers)


def _nothing(problem: MasterProblem, found: MasterSolution) -> MasterSolution:
    """The point v = 0, rho = 0, which is optimal when no point separates the cuts."""
    zero = np.zeros(problem.offsets[-1])
    beta = kernel_weights(np.zeros(len(problem.offsets) - 1), problem.norm)
    return MasterSolution(0.0, zero, 0.0, beta, 0.0, found.multipliers, threshold=0.0)
