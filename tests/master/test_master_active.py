"""The master from the solution before: it must be the one that the conic solver finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import test_master_adaptive
import test_master_random
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.master import Cuts, MasterProblem, more_products, solve, solve_from

PROBLEMS = st.one_of(test_master_random.problems(), test_master_adaptive.problems())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(PROBLEMS, st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_conic_solver_from_any_start(problem, seed):
    expected = solve(problem)
    rng = np.random.default_rng(seed)
    size = len(problem.cuts.loss)
    start = rng.random(size) * (rng.random(size) < 0.5) * problem.C / size
    found = solve_from(problem, start)
    if found is None:
        return
    assert found.value == pytest.approx(expected.value, rel=2e-5, abs=1e-9 * problem.C)
    assert found.multipliers.min() >= 0
    assert found.multipliers.sum() <= problem.C * (1 + 1e-12)


def many_cuts(seed: int, adaptive: bool, kernels: int, balance: float | None) -> MasterProblem:
    """Sixty cuts of rows that overlap."""
    rng = np.random.default_rng(seed)
    rows, width = 300, 8 * kernels
    signs = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    features = rng.normal(size=(rows, width))
    features[:, 0] += 2 * signs
    points = features @ rng.normal(size=(width, 60)) * 0.3 + features[:, :1]
    masks = (signs[:, None] * points < 1).T.astype(float)
    masks[0] = 1.0
    cuts = Cuts(masks.mean(1), (masks * signs).mean(1), (masks * signs) @ features / rows)
    edges = tuple(range(0, width + 1, 8))
    bias = balance is not None
    return MasterProblem(cuts, edges, features.mean(0), 20.0, balance, 2.0, bias, adaptive)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("kernels", [1, 3])
@pytest.mark.parametrize("balance", [None, 0.0, 0.1])
def test_it_is_found_where_there_are_many_cuts(adaptive, kernels, balance):
    for seed in range(5):
        problem = many_cuts(seed, adaptive, kernels, balance)
        some = Cuts(*(part[:40] for part in vars(problem.cuts).values()))
        before = solve(replace(problem, cuts=some)).multipliers
        found = solve_from(problem, np.concatenate([before, np.zeros(20)]))
        expected = solve(problem)
        assert found is not None
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        np.testing.assert_allclose(
            found.kernel_weights, expected.kernel_weights, atol=1e-4
        )  # the other solver's are the less exact ones
        assert found.slack == pytest.approx(expected.slack, rel=1e-4, abs=1e-7)


def test_inner_products_grow_with_the_cuts():
    problem = many_cuts(0, False, 3, 0.1)
    known = np.zeros((0, 0, 0))
    for count in (17, 18, 40, 60):
        some = Cuts(*(part[:count] for part in vars(problem.cuts).values()))
        known = more_products(replace(problem, cuts=some), known)
    whole = more_products(problem, np.zeros((0, 0, 0)))
    np.testing.assert_allclose(known, whole, atol=1e-12)
    start = solve(problem).multipliers
    one, two = solve_from(problem, start), solve_from(problem, start, known)
    assert one is not None
    assert two is not None
    assert one.value == pytest.approx(two.value, rel=1e-9)


def test_the_norm_that_is_not_smooth_is_left_to_the_conic_solver():
    problem = replace(many_cuts(0, False, 3, None), norm=1.0)
    assert solve_from(problem, np.zeros(60)) is None
