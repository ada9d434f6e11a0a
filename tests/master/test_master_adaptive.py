"""The master with an adaptive threshold: its dual against the primal, and the KKT conditions."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.svm import NuSVC
from test_master_exact import all_cuts, rows_of
from test_master_random import NORMS

from dmkc.master import Cuts, MasterProblem, regulariser, solve
from dmkc.master.problem import block_norms, centred_slopes


@st.composite
def problems(draw) -> MasterProblem:
    """Masks of random rows, the first of which holds all of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, count = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    offsets = (0, *np.cumsum(rng.integers(1, 7, count)).tolist())
    rows = draw(st.sampled_from([6, 15, 40]))
    signs = np.where(rng.random(rows) < draw(st.sampled_from([0.2, 0.5])), -1.0, 1.0)
    features = rng.normal(size=(rows, offsets[-1])) + rng.normal(size=offsets[-1])
    features[:, 0] += draw(st.sampled_from([1.0, 4.0])) * signs
    features *= 10.0 ** draw(st.integers(-3, 1))
    masks = (rng.random((size, rows)) < 0.6).astype(float)
    masks[0] = 1
    if draw(st.booleans()):
        masks[-1] = masks[0]
    cuts = Cuts(masks.mean(1), (masks * signs).mean(1), (masks * signs) @ features / rows)
    bias, C = draw(st.sampled_from([True, True, False])), draw(st.sampled_from([1.1, 2, 10, 100]))
    balance = draw(st.sampled_from([0.0, 0.05, 0.9])) * (1 - 1 / C) if bias else None
    norm = draw(st.sampled_from(NORMS))
    return MasterProblem(cuts, offsets, features.mean(0), C, balance, norm, bias, adaptive=True)


def objective(problem, found) -> float:
    size = regulariser(found.weights, problem.offsets, problem.norm)
    return size - found.threshold + problem.C * found.slack


@settings(max_examples=250, deadline=None, derandomize=True)
@given(problems())
def test_the_dual_meets_the_primal_and_the_kkt_conditions(problem):
    found = solve(problem)
    assume(found.threshold > 0)
    cuts, lam, rho, xi = problem.cuts, found.multipliers, found.threshold, found.slack
    value = objective(problem, found)
    assert value == pytest.approx(found.value, rel=1e-7)
    assert value < 0
    # in units of the objective: -value is half the squared length of u
    unit = -2 * value
    assert rho - problem.C * xi == pytest.approx(unit, rel=1e-6)
    score = found.weights @ problem.mean + found.bias if problem.bias else 0.0
    gains = cuts.slope @ found.weights + found.bias * cuts.sign
    gaps = rho * cuts.loss - gains - xi
    assert gaps.max() <= 1e-6 * unit  # every cut holds
    assert abs(lam * gaps).max() <= 1e-6 * unit  # and exactly where it has a multiplier
    assert lam.min() >= 0 and xi >= 0
    assert lam.sum() <= problem.C * (1 + 1e-12)
    assert xi * (problem.C - lam.sum()) <= 1e-6 * unit * problem.C
    level = float(cuts.sign @ lam) if problem.bias else 0.0
    balance = problem.balance or 0.0
    assert cuts.loss @ lam - balance * abs(level) == pytest.approx(1, abs=1e-9)
    assert abs(score) <= balance * rho + 1e-9 * rho
    assert abs(level) * (balance * rho - np.sign(level) * score) <= 1e-6 * unit
    combined = lam @ centred_slopes(problem)
    if problem.norm > 1 or len(problem.offsets) == 2:
        expected = np.repeat(found.kernel_weights, np.diff(problem.offsets)) * combined
        np.testing.assert_allclose(found.weights, expected, atol=1e-6 * np.sqrt(unit))
    lengths = block_norms(combined, problem.offsets)
    assert np.linalg.norm(found.kernel_weights, problem.norm) == pytest.approx(1)
    if problem.norm == 1:
        assert lengths.max() ** 2 == pytest.approx(unit, rel=1e-6)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(problems())
def test_the_direct_dual_agrees_with_the_cone_program(problem):
    direct, socp = solve(problem), solve(problem, "cvxpy")
    size = np.linalg.norm(problem.cuts.slope, axis=1).max() ** 2
    value = objective(problem, direct)
    assert value == pytest.approx(objective(problem, socp), rel=1e-4, abs=1e-7 * size)
    if -value > 1e-3 * size:
        assert direct.threshold == pytest.approx(socp.threshold, rel=1e-3)
        assert direct.slack == pytest.approx(socp.slack, abs=1e-3 * direct.threshold)


def n_slack(features, signs, offsets, C, balance, norm) -> tuple[float, float]:
    """Value and threshold of the problem with one slack for each row (eq. 10)."""
    rows, kernels = len(signs), range(len(offsets) - 1)
    v, b, rho = cp.Variable(offsets[-1]), cp.Variable(), cp.Variable(nonneg=True)
    beta, slacks = cp.Variable(len(offsets) - 1, nonneg=True), cp.Variable(rows, nonneg=True)
    penalty = sum(cp.quad_over_lin(v[offsets[k] : offsets[k + 1]], beta[k]) for k in kernels)
    constraints = [
        cp.multiply(signs, features @ v + b) >= rho - slacks,
        cp.norm(beta, norm) <= 1,
        cp.abs(features.mean(0) @ v + b) <= balance * rho,
    ]
    cost = penalty / 2 - rho + C / rows * cp.sum(slacks)
    program = cp.Problem(cp.Minimize(cost), constraints)
    program.solve(solver=cp.CLARABEL)
    return float(program.value), float(rho.value)


@pytest.mark.parametrize("norm", [1, 1.5, 2, "inf"])
@pytest.mark.parametrize("balance", [0.0, 0.1])
@pytest.mark.parametrize("C", [1.3, 2.0, 5.0])
def test_all_masks_give_the_n_slack_problem(norm, balance, C):
    offsets = (0, 2, 3, 6)
    features, signs = rows_of(3, 7, offsets[-1])
    cuts = all_cuts(features, signs)
    problem = MasterProblem(cuts, offsets, features.mean(0), C, balance, float(norm), adaptive=True)
    found = solve(problem)
    value, rho = n_slack(features, signs, offsets, C, balance, norm)
    assert found.value == pytest.approx(value, rel=1e-5)
    assert found.threshold == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize("C", [1.6, 3.0])
def test_one_kernel_with_all_masks_is_a_nu_support_vector_machine(C):
    features, signs = rows_of(11, 9, 3)
    problem = MasterProblem(
        all_cuts(features, signs), (0, 3), features.mean(0), C, 0.99 * (1 - 1 / C), adaptive=True
    )
    found = solve(problem)
    score = found.weights @ problem.mean + found.bias
    assert abs(score) < 0.9 * problem.balance * found.threshold  # the balance does not bind
    machine = NuSVC(kernel="linear", nu=1 / C, tol=1e-9).fit(features, signs)
    ours = features @ found.weights + found.bias
    # scikit-learn divides by the threshold
    np.testing.assert_allclose(
        ours / found.threshold, machine.decision_function(features), atol=1e-4
    )
    assert (
        np.mean(signs * ours < found.threshold - 1e-9)
        <= 1 / C
        <= np.mean(signs * ours <= found.threshold * (1 + 1e-6))
    )


def test_the_adaptive_problem_is_the_unit_problem_at_a_price_divided_by_the_threshold():
    features, signs = rows_of(5, 8, 4)
    cuts = all_cuts(features, signs)
    problem = MasterProblem(cuts, (0, 2, 4), features.mean(0), 2.5, 0.2, adaptive=True)
    found = solve(problem)
    unit = solve(replace(problem, C=problem.C / found.threshold, adaptive=False))
    np.testing.assert_allclose(found.weights / found.threshold, unit.weights, rtol=1e-5, atol=1e-7)
    assert found.bias / found.threshold == pytest.approx(unit.bias, rel=1e-5, abs=1e-7)


def test_cuts_that_cannot_be_separated_give_the_zero_point():
    cuts = Cuts(np.array([1.0, 0.5]), np.zeros(2), np.array([[1.0, 0.0], [-1.0, 0.0]]))
    problem = MasterProblem(cuts, (0, 2), np.zeros(2), 10.0, 0.0, adaptive=True)
    found = solve(problem)
    assert found.threshold == found.value == found.slack == 0 and not found.weights.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"C": 1.0}, "must exceed 1"),
        ({"balance": None}, "needs a balance"),
        ({"balance": 5.0}, "not bounded"),
        ({"cuts": Cuts(np.array([0.3]), np.zeros(1), np.ones((1, 2)))}, "not bounded"),
    ],
)
def test_a_problem_without_a_finite_solution_is_refused(changes, words):
    cuts = Cuts(np.array([1.0]), np.array([0.5]), np.ones((1, 2)))
    problem = MasterProblem(cuts, (0, 2), np.zeros(2), 2.0, 0.1, adaptive=True)
    with pytest.raises(ValueError, match=words):
        solve(replace(problem, **changes))
