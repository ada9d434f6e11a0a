"""Random master problems: the direct dual against the paper's SOCP, and strong duality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.master import Cuts, MasterProblem, MasterSolution, regulariser, solve

NORMS = [1.0, 1.5, 2.0, 3.0, np.inf]


@st.composite
def problems(draw, prices=(-2, 3), scales=(-2, 1)) -> MasterProblem:
    """Masks of random rows, some of them repeated or empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, count = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    offsets = (0, *np.cumsum(rng.integers(1, 7, count)).tolist())
    rows = draw(st.sampled_from([4, 15, 40]))
    signs = np.where(rng.random(rows) < draw(st.sampled_from([0.1, 0.5])), -1.0, 1.0)
    features = rng.normal(size=(rows, offsets[-1])) + rng.normal(size=offsets[-1])
    if draw(st.booleans()):
        features[:, 0] += 4 * signs
    features *= 10.0 ** draw(st.integers(*scales))
    masks = (rng.random((size, rows)) < 0.6).astype(float)
    if draw(st.booleans()):
        masks[-1] = masks[0]
    if draw(st.booleans()):
        masks[rng.integers(size)] = 0
    cuts = Cuts(masks.mean(1), (masks * signs).mean(1), (masks * signs) @ features / rows)
    bias = draw(st.sampled_from([True, True, True, False]))
    return MasterProblem(
        cuts=cuts,
        offsets=offsets,
        mean=features.mean(0),
        C=10.0 ** draw(st.integers(*prices)),
        balance=draw(st.sampled_from([None, 0.0, 0.05, 2.0])) if bias else None,
        norm=draw(st.sampled_from(NORMS)),
        bias=bias,
    )


def objective(problem: MasterProblem, found: MasterSolution) -> float:
    penalty = regulariser(found.weights, problem.offsets, problem.norm)
    return penalty + problem.C * found.slack


def check_optimality(problem: MasterProblem, found: MasterSolution, tolerance: float) -> None:
    cuts, primal = problem.cuts, objective(problem, found)
    scale = problem.C * max(cuts.loss.max(), 1e-300)
    assert primal - found.value <= tolerance * primal + 1e-9 * scale
    assert primal - found.value >= -1e-12 * scale
    gaps = cuts.loss - cuts.slope @ found.weights
    if problem.bias:
        gaps = gaps - found.bias * cuts.sign
        score = found.weights @ problem.mean + found.bias
        if problem.balance is not None:
            assert abs(score) <= problem.balance + 1e-6
        else:
            products = found.multipliers * cuts.sign
            assert abs(products.sum()) <= 1e-12 * problem.C
    else:
        assert found.bias == 0
    assert found.slack >= 0
    assert gaps.max() <= found.slack + 1e-12 * (1 + abs(cuts.slope @ found.weights).max())
    assert found.multipliers.min() >= 0
    assert found.multipliers.sum() <= problem.C * (1 + 1e-12)
    assert found.kernel_weights.min() >= 0
    assert np.linalg.norm(found.kernel_weights, problem.norm) == pytest.approx(1, abs=1e-9)
    blocks = np.split(found.weights, problem.offsets[1:-1])
    pairs = zip(found.kernel_weights, blocks, strict=True)
    explicit = 0.5 * sum(v @ v / beta for beta, v in pairs if v.any())
    assert explicit + problem.C * found.slack <= primal + 1e-6 * primal + 1e-9 * scale


@settings(max_examples=300, deadline=None, derandomize=True)
@given(problems())
def test_direct_dual_agrees_with_the_socp(problem):
    direct, socp = solve(problem), solve(problem, "cvxpy")
    check_optimality(problem, direct, 1e-6)
    value, scale = objective(problem, direct), problem.C
    assert value == pytest.approx(objective(problem, socp), rel=1e-5, abs=1e-8 * scale)
    penalty = regulariser(direct.weights, problem.offsets, problem.norm)
    # For q = 1 the weights need not be unique; with hardly any penalty they are not determined.
    if problem.norm > 1 and penalty > 1e-3 * scale:
        scores = problem.cuts.slope @ direct.weights
        spread = 1e-3 * abs(scores).max()
        np.testing.assert_allclose(problem.cuts.slope @ socp.weights, scores, atol=spread)
        if problem.norm < np.inf:
            np.testing.assert_allclose(direct.kernel_weights, socp.kernel_weights, atol=1e-3)


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(problems(prices=(-3, 6), scales=(-6, 3)))
def test_strong_duality_over_many_scales(problem):
    extreme = problem.C * abs(problem.cuts.slope).max() ** 2 > 1e6
    check_optimality(problem, solve(problem), 1e-5 if extreme else 1e-6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_a_second_call_gives_the_same_bits(problem):
    first, second = solve(problem), solve(problem)
    assert first.value == second.value and first.bias == second.bias
    assert np.array_equal(first.weights, second.weights)
    assert np.array_equal(first.multipliers, second.multipliers)
