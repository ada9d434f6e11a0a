"""The small quadratic problem with group norms, against cvxpy and its optimality conditions."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmkc.master.planes as planes_master
from dmkc.master.planes import group_sizes, shrunk, solve_groups


def problem(rng, sizes, condition=1e3):
    n = sum(sizes)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (Q * np.geomspace(1 / condition, 1.0, n)) @ Q.T
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return (H + H.T) / 2, rng.normal(size=n), edges


def value(H, q, edges, c, u):
    return 0.5 * u @ H @ u - q @ u + c * group_sizes(u, edges).sum()


@pytest.mark.parametrize("c", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("sizes", [[2] * 20, [1] * 20, [3, 1, 5, 2, 4, 4], [10] * 8])
def test_solution_is_cvxpys(sizes, c):
    rng = np.random.default_rng(len(sizes))
    H, q, edges = problem(rng, sizes)
    u = solve_groups(H, q, edges, c, np.zeros(len(q)))
    x = cp.Variable(len(q))
    norms = [cp.norm_inf(x[a:b]) for a, b in itertools.pairwise(edges)]
    wanted = cp.Problem(
        cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(H)) - q @ x + c * cp.sum(cp.hstack(norms)))
    )
    wanted.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert value(H, q, edges, c, u) <= wanted.value + 1e-9 * abs(wanted.value)
    np.testing.assert_allclose(u, x.value, atol=2e-5 * np.abs(x.value).max())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.floats(1e-3, 3.0),
    st.floats(1.0, 1e7),
)
def test_solution_meets_the_optimality_conditions(seed, sizes, c, condition):
    """A fixed point of the proximal map is the minimiser."""
    rng = np.random.default_rng(seed)
    H, q, edges = problem(rng, sizes, condition)
    u = solve_groups(H, q, edges, c, rng.normal(size=len(q)))
    again = shrunk(u - (H @ u - q), edges, c)
    np.testing.assert_allclose(again, u, atol=1e-8 * (np.abs(q).max() + np.abs(u).max()))


def test_nothing_is_left_at_a_large_weight_of_the_norms():
    rng = np.random.default_rng(0)
    H, q, edges = problem(rng, [2] * 8)
    largest = np.add.reduceat(np.abs(q), edges[:-1]).max()
    start = rng.normal(size=len(q))
    assert not solve_groups(H, q, edges, 1.0001 * largest, start).any()
    assert solve_groups(H, q, edges, 0.9999 * largest, start).any()


def test_ill_conditioned_problems_are_solved_too():
    """Two planes whose difference is stiff and whose sum is not, as reweighting makes them."""
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(300, 40)), rng.normal(size=(300, 40))
    stiff = A.T @ (A * (1 / np.abs(rng.normal(size=(300, 1))) ** 2)) / 300
    own = B.T @ B / 300 + 1e-3 * np.eye(40)
    H = np.kron(own, np.eye(2)) + np.kron(stiff, [[1, -1], [-1, 1]])
    q, edges = rng.normal(size=80), np.arange(0, 81, 2)
    u = solve_groups(H, q, edges, 0.5, np.zeros(80))
    again = shrunk(u - (H @ u - q), edges, 0.5)
    np.testing.assert_allclose(again, u, atol=1e-8 * np.abs(u).max())


def test_rounding_of_a_steep_quadratic_is_no_residual(monkeypatch):
    """Where H is large its rounding exceeds the tolerance, and no round could do better."""
    rounds = []
    step = planes_master._exact_on_face
    monkeypatch.setattr(
        planes_master, "_exact_on_face", lambda *args: (rounds.append(1), step(*args))
    )
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        H = (Q * np.geomspace(0.4, 4e5, 5)) @ Q.T
        flat = 0.5 * Q[:, 0]
        H, q, edges, c = (H + H.T) / 2, 0.4 * flat + 0.03 * np.sign(flat), np.arange(6), 0.03
        rounds.clear()
        found = solve_groups(H, q, edges, c, np.zeros(5))
        assert len(rounds) < 30
        np.testing.assert_allclose(found, flat, atol=1e-6)
