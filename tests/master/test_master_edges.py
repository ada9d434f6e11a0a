"""Edge cases of the master by name, its closed forms, and every refusal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dmkc.master import (
    Cuts,
    MasterProblem,
    MasterSolverError,
    dual,
    kernel_weights,
    regulariser,
    solve,
)

SOLVERS = ["clarabel", "cvxpy"]


def example(**changes) -> MasterProblem:
    rng = np.random.default_rng(0)
    cuts = Cuts(np.array([0.9, 0.6, 0.5]), np.array([0.1, -0.2, 0.3]), rng.normal(size=(3, 5)))
    return replace(MasterProblem(cuts, (0, 2, 5), rng.normal(size=5), 2.0), **changes)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("balance", [None, 0.0, 1.0])
def test_all_zero_slopes(solver, norm, balance):
    problem = example(norm=norm, balance=balance, mean=np.zeros(5))
    problem = replace(problem, cuts=replace(problem.cuts, slope=np.zeros((3, 5))))
    found = solve(problem, solver)
    np.testing.assert_allclose(found.weights, 0, atol=1e-4 if solver == "cvxpy" else 0)
    if solver == "clarabel":
        uniform = np.full(2, 1.0 if np.isinf(norm) else 2 ** (-1 / norm))
        np.testing.assert_allclose(found.kernel_weights, uniform)
    assert found.value == pytest.approx(2.0 * found.slack, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_identical_kernels_tie_for_norm_1(solver):
    problem = example(norm=1.0, balance=0.3)
    slope, mean = problem.cuts.slope[:, :2], problem.mean[:2]
    twice = replace(
        problem,
        cuts=replace(problem.cuts, slope=np.hstack([slope, slope])),
        mean=np.tile(mean, 2),
        offsets=(0, 2, 4),
    )
    once = replace(
        problem, cuts=replace(problem.cuts, slope=slope), mean=mean, offsets=(0, 2), norm=2.0
    )
    found, single = solve(twice, solver), solve(once, solver)
    assert found.value == pytest.approx(single.value, rel=1e-6)
    assert found.kernel_weights.sum() == pytest.approx(1, abs=1e-6)
    joint = found.weights[:2] + found.weights[2:]
    np.testing.assert_allclose(joint, single.weights, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_norm_1_splits_between_kernels_that_are_both_needed(solver):
    cuts = Cuts(np.array([1.0, 1.0]), np.zeros(2), np.array([[1.0, 0.0], [0.0, 2.0]]))
    problem = MasterProblem(cuts, (0, 1, 2), np.zeros(2), 100.0, None, 1.0, bias=False)
    found = solve(problem, solver)
    # v = (1, 1/2) meets both cuts, and |v_k| / sum |v| are the best weights.
    np.testing.assert_allclose(found.weights, [1, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.kernel_weights, [2 / 3, 1 / 3], atol=1e-5)
    assert found.value == pytest.approx(1.125, rel=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_balance_zero_fixes_the_mean_score(solver):
    problem = example(balance=0.0)
    found = solve(problem, solver)
    assert found.weights @ problem.mean + found.bias == pytest.approx(0, abs=1e-8)


def test_a_wide_balance_is_no_balance():
    value = solve(example(C=0.1)).value
    assert solve(example(C=0.1, balance=1e3)).value == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_free_bias_meets_cuts_with_signs_on_one_side(side):
    problem = example()
    signs = side * np.array([0.1, 0.0, 0.3])
    problem = replace(problem, cuts=replace(problem.cuts, sign=signs))
    found, socp = solve(problem), solve(problem, "cvxpy")
    assert found.value == pytest.approx(socp.value, abs=1e-6)
    gaps = problem.cuts.loss - problem.cuts.slope @ found.weights - found.bias * signs
    assert gaps.max() <= found.slack + 1e-12


def test_one_cut_with_a_sign_needs_the_bias_only():
    problem = example()
    cuts = Cuts(np.array([1.0]), np.array([-0.25]), problem.cuts.slope[:1])
    found = solve(replace(problem, cuts=cuts))
    assert (found.value, found.bias, found.slack) == (0.0, -4.0, 0.0)
    assert not found.weights.any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_cut_costs_nothing(solver):
    problem = replace(example(), cuts=Cuts(np.zeros(0), np.zeros(0), np.zeros((0, 5))))
    found = solve(problem, solver)
    assert found.value == pytest.approx(0, abs=1e-8) and found.multipliers.shape == (0,)


def test_long_blocks_are_reduced():
    rng = np.random.default_rng(4)
    cuts = Cuts(np.array([0.9, 0.6]), np.array([0.1, -0.2]), rng.normal(size=(2, 600)))
    problem = MasterProblem(cuts, (0, 400, 600), rng.normal(size=600), 1.0, 0.1)
    assert solve(problem).value == pytest.approx(solve(problem, "cvxpy").value, rel=1e-6)


def test_without_a_bias_sign_and_mean_are_ignored():
    problem = example(bias=False)
    other = replace(problem, mean=np.full(5, np.nan), cuts=replace(problem.cuts, sign=np.ones(3)))
    assert solve(problem).value == solve(other).value and solve(problem).bias == 0


@pytest.mark.parametrize("norm", [1.0, 1.2, 2.0, 7.0, np.inf])
def test_closed_forms_are_dual_to_each_other(norm):
    rng = np.random.default_rng(1)
    offsets, v = (0, 2, 3, 6), rng.normal(size=6)
    squares = np.add.reduceat(v * v, offsets[:-1])
    least = regulariser(v, offsets, norm)
    beta = kernel_weights(squares, norm)
    assert np.linalg.norm(beta, norm) == pytest.approx(1)
    others = rng.random((2000, 3))
    others /= np.linalg.norm(others, norm, axis=1)[:, None]
    assert (others @ squares).max() <= beta @ squares * (1 + 1e-12)
    costs = 0.5 * (squares / others).sum(1)
    assert least <= costs.min() * (1 + 1e-12) and costs.min() <= 1.1 * least


def test_a_failed_solve_is_an_error(monkeypatch):
    real = dual.solve_conic

    def broken(dual):
        point = real(dual)
        return replace(point, multipliers=point.multipliers * np.nan, status="NumericalError")

    monkeypatch.setattr(dual, "solve_conic", broken)
    with pytest.raises(MasterSolverError, match="NumericalError"):
        solve(example())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"C": 0.0}, "price C"),
        ({"C": np.nan}, "price C"),
        ({"norm": 0.5}, "norm"),
        ({"norm": np.nan}, "norm"),
        ({"balance": -0.1}, "balance"),
        ({"balance": np.inf}, "balance"),
        ({"bias": False, "balance": 0.1}, "without a bias"),
        ({"offsets": (0, 2, 4)}, "slopes"),
        ({"offsets": (0, 2, 2, 5)}, "offsets"),
        ({"offsets": (1, 5)}, "offsets"),
        ({"offsets": (0,)}, "offsets"),
        ({"mean": np.zeros(4)}, "mean must have"),
        ({"mean": np.full(5, np.nan)}, "finite"),
        ({"cuts": Cuts(np.zeros(2), np.zeros(3), np.zeros((3, 5)))}, "losses"),
        ({"cuts": Cuts(np.zeros(3), np.zeros(2), np.zeros((3, 5)))}, "signs"),
        ({"cuts": Cuts(np.zeros(3), np.zeros(3), np.zeros(5))}, "slopes"),
        ({"cuts": Cuts(np.zeros(3), np.zeros(3), np.full((3, 5), np.inf))}, "finite"),
    ],
)
def test_input_that_does_not_fit_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        solve(example(**changes))


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match="solver"):
        solve(example(), "simplex")
