"""A step of reweighted least squares: its quadratic, working groups, and rounded losses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.master.planes import Quadratic, group_sizes, minimised, shrunk
from dmkc.scan.planes import Planes, Reweighted, Rounded


def positive(rng, many, size):
    root = rng.normal(size=(many, size, size + 2))
    return root @ root.transpose(0, 2, 1) / size


def quadratic(seed, k, p, joint=True):
    rng = np.random.default_rng(seed)
    pairs = positive(rng, k * (k - 1) // 2 if joint else 0, p + 1)
    return Quadratic(positive(rng, k, p + 1), pairs), rng.normal(size=(k, p + 1))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_matrix_and_the_product_are_the_same_quadratic(k, joint):
    form, u = quadratic(k, k, 5, joint)
    H = form.matrix(np.arange(5))
    np.testing.assert_allclose(H, H.T, atol=1e-12)
    np.testing.assert_allclose((H @ u.T.ravel()).reshape(6, k).T, form.times(u), atol=1e-10)
    some = np.array([1, 4])
    at = np.append(some, 5)[:, None] * k + np.arange(k)
    np.testing.assert_array_equal(form.matrix(some), H[np.ix_(at.ravel(), at.ravel())])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.0, 3.0), st.booleans())
def test_the_step_is_optimal_for_all_groups_whatever_it_began_with(seed, k, c, alive):
    """No group stays out of work that would get weights; a start without weights is no trap."""
    edges = np.array([0, 1, 3, 4, 8])
    form, q = quadratic(seed, k, 8)
    start = np.random.default_rng(seed + 1).normal(size=(k, 9)) if alive else np.zeros((k, 9))
    u = minimised(form, q, start, edges, c)
    pull = form.times(u) - q
    np.testing.assert_allclose(pull[:, -1], 0.0, atol=1e-8)
    weights = u[:, :-1].T.ravel()
    again = shrunk(weights - pull[:, :-1].T.ravel(), k * edges, c)
    np.testing.assert_allclose(again, weights, atol=1e-7 * (1 + np.abs(weights).max()))


def test_nothing_is_left_but_biases_where_groups_cost_much():
    form, q = quadratic(0, 3, 4)
    u = minimised(form, q, np.ones((3, 5)), np.arange(5), 1e3)
    assert not group_sizes(u[:, :-1].T.ravel(), 3 * np.arange(5)).any()
    np.testing.assert_allclose((form.times(u) - q)[:, -1], 0.0, atol=1e-9)


RESIDUALS = np.linspace(-3, 3, 61)


@pytest.mark.parametrize("above", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("eps", [1e-3, 0.5])
def test_quadratics_touch_the_rounded_loss(eps, above):
    rounded = Rounded(eps, above)
    slope, bend = rounded.at(RESIDUALS)
    step = 1e-3 * eps
    loss = [np.sqrt((RESIDUALS + t) ** 2 + eps**2) for t in (-step, 0.0, step)]
    np.testing.assert_allclose(slope, (loss[2] - loss[0]) / (2 * step), atol=1e-5)
    assert np.all(bend > 0)
    if above == 1.0:
        values = loss[1][:, None] + slope[:, None] * (RESIDUALS - RESIDUALS[:, None])
        values += 0.5 * bend[:, None] * (RESIDUALS - RESIDUALS[:, None]) ** 2
        assert np.all(values >= loss[1] - 1e-9)


def test_multipliers_are_those_of_the_step_and_stay_in_range():
    before = Planes(np.zeros((2, 1)), np.zeros(2))
    rule = Reweighted(before, Rounded(0.1, 0.5))
    there = np.array([[0.05], [-0.4], [2.0]])
    slope, bend = rule.rounded.at(there)
    found = rule.multipliers(there + 0.01, lambda _: there, np.zeros(3, np.uint64))
    np.testing.assert_allclose(found, np.clip(slope + 0.01 * bend, -1, 1))
    far = rule.multipliers(there + 9.0, lambda _: there, np.zeros(3, np.uint64))
    assert np.all(np.abs(far) <= 1.0)
