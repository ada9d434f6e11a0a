"""The master as the paper writes it: the second-order cone program 2.14, in cvxpy.

    min  1/2 sum_k t_k + C xi,   |(2 v_k, t_k - beta_k)| <= t_k + beta_k,   |beta|_q <= 1

over the cuts xi >= a_p - v.g_p - b h_p with |v.m + b| <= l; with an adaptive threshold, less rho
and with rho a_p and l rho. It is the slow, readable twin of the direct dual.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from dmkc.master.problem import (
    MasterProblem,
    MasterSolution,
    MasterSolverError,
    centred_slopes,
    dual_parts,
    feasible_multipliers,
    slack,
)


def solve_socp(problem: MasterProblem) -> MasterSolution:
    """Solve the problem, which has been checked."""
    cuts, offsets = problem.cuts, problem.offsets
    count = len(offsets) - 1
    # In these units of v and of scores, and with the objective divided by C times a score, the
    # numbers are moderate.
    size = float(np.linalg.norm(cuts.slope, axis=1).max(initial=0.0)) or 1.0
    slope, mean = cuts.slope / size, problem.mean / size
    unit_v, unit_score = (size, size**2) if problem.adaptive else (1 / size, 1.0)
    price = unit_v**2 / (problem.C * unit_score)

    v = cp.Variable(offsets[-1])
    b = cp.Variable()  # keeps no value where no constraint mentions it
    beta = cp.Variable(count, nonneg=True)
    t = cp.Variable(count)
    xi = cp.Variable(nonneg=True)
    rho = cp.Variable(nonneg=True) if problem.adaptive else cp.Constant(1.0)

    constraints: list[cp.Constraint] = []
    for k in range(count):
        block = v[offsets[k] : offsets[k + 1]]
        constraints.append(cp.norm(cp.hstack([2 * block, t[k] - beta[k]]), 2) <= t[k] + beta[k])
    constraints.append(_norm(beta, problem.norm) <= 1)
    if problem.balance is not None:
        constraints.append(cp.abs(mean @ v + b) <= problem.balance * rho)
    cut = None
    if len(slope):
        scores = slope @ v + b * cuts.sign if problem.bias else slope @ v
        cut = xi >= rho * cuts.loss - scores
        constraints.append(cut)

    cost = price / 2 * cp.sum(t) + xi
    if problem.adaptive:
        cost = cost - rho / problem.C
    program = cp.Problem(cp.Minimize(cost), constraints)
    try:
        program.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_threads=1
        )
    except cp.SolverError as error:
        raise MasterSolverError(
            f"Clarabel could not solve the SOCP of the master: {error}"
        ) from None
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise MasterSolverError(f"The SOCP of the master ended with status {program.status}.")

    weights = np.asarray(v.value) * unit_v
    bias = 0.0 if b.value is None else float(np.asarray(b.value)) * unit_score
    threshold = float(np.asarray(rho.value)) * unit_score if problem.adaptive else 1.0
    prices = np.zeros(0) if cut is None else np.atleast_1d(cut.dual_value) * problem.C
    multipliers = feasible_multipliers(problem, prices)
    gain, loss = dual_parts(problem, multipliers, multipliers @ centred_slopes(problem))
    return MasterSolution(
        value=-loss if problem.adaptive else gain - loss,
        weights=weights,
        bias=bias,
        kernel_weights=np.maximum(np.asarray(beta.value), 0.0),
        slack=slack(problem, weights, bias, threshold),
        multipliers=multipliers,
        threshold=threshold,
    )


def _norm(beta: cp.Variable, norm: float) -> cp.Expression:
    if norm == 1:
        return cp.sum(beta)
    if np.isinf(norm):
        return cp.norm_inf(beta)
    # The annotation of pnorm is narrower than its documentation, which allows any real p.
    return cp.pnorm(beta, norm)  # type: ignore[arg-type]
