"""The convex fit of given labels: problem (17) in cvxpy, both solvers, weights and permutations."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.clusterers.fits import run_together
from dmkc.clusterers.planes import solvers as planes_solvers
from dmkc.clusterers.planes.solvers import Asker, solve_convex
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.rowset import SampleRows
from dmkc.data import RowRecord
from dmkc.scan.planes import PlaneScan
from dmkc.scan.requests import GivenLabels


def data(n=60, d=8, k=2, seed=0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % k
    X = rng.normal(size=(n, d))
    X[:, :k] += 1.5 * np.eye(k)[z]
    return X - X.mean(axis=0), z


def make(d, k=2, c1=0.4, c2=0.02, ridge=0.01, hinge=False, together=True, offsets=None):
    offsets = np.arange(d + 1) if offsets is None else np.asarray(offsets)
    return PlaneProblem(k, c1, c2, ridge, hinge, together, offsets)


def fit(X, z, problem, solver="irls", gap=1e-6, weights=None, leaf_rows=64, before=None):
    """The convex fit, driven by one block of rows; `before` is a fit to begin from."""
    rows = SampleRows(RowRecord(X, weights, labels=z[:, None]), leaf_rows)
    asker = Asker(problem, GivenLabels(0), None, None, before and before.working)
    solving = solve_convex(asker, solver, before and before.model, gap, lambda *_: None)
    return run_together([solving], rows)[0]


def problem_17(X, z, problem, k):
    """The problem of the paper, with means in place of sums, as it is printed."""
    n, d = X.shape
    W, b = cp.Variable((k, d)), cp.Variable(k)
    F = X @ W.T + np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C")
    squares = sum(cp.sum_squares(F[z == r, r]) for r in range(k)) / (2 * n)
    losses = 0
    for own in range(k):
        for r in range(k):
            if r != own:
                if problem.together:
                    residual = 1 - F[z == own, own] + F[z == own, r]
                else:
                    residual = 1 + F[z == own, r]
                loss = cp.pos(residual) if problem.hinge else cp.abs(residual)
                losses = losses + cp.sum(loss) / (n * (k - 1))
    edges = problem.offsets
    groups = list(itertools.pairwise(edges))
    if problem.together:
        norm = sum(cp.max(cp.abs(W[:, a:b_])) for a, b_ in groups)
    else:
        norm = sum(cp.max(cp.abs(W[r, a:b_])) for a, b_ in groups for r in range(k))
    whole = squares + problem.ridge / 2 * cp.sum_squares(W) + problem.c1 * losses
    found = cp.Problem(cp.Minimize(whole + problem.c2 * norm))
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    found.solve(solver="CLARABEL", **tight)
    return found.value, W.value, b.value


@pytest.mark.parametrize("solver", ["irls", "bundle"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("hinge", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_fit_is_problem_17(solver, together, hinge, k):
    X, z = data(k=k)
    problem = make(8, k, hinge=hinge, together=together)
    value, W, _ = problem_17(X, z, problem, k)
    found = fit(X, z, problem, solver)
    assert abs(found.value - value) <= 1e-5 * value
    assert found.bound <= value * (1 + 1e-7) and found.gap <= 1e-6
    np.testing.assert_allclose(found.model.w, W, atol=0.02 * np.abs(W).max())


@pytest.mark.parametrize("c1, c2", [(0.05, 0.0), (2.0, 0.02), (0.25, 0.08)])
def test_other_weights_of_the_terms(c1, c2):
    X, z = data(seed=1)
    problem = make(8, c1=c1, c2=c2)
    value, _, _ = problem_17(X, z, problem, 2)
    for solver in ("irls", "bundle"):
        assert abs(fit(X, z, problem, solver).value - value) <= 1e-5 * value


@pytest.mark.parametrize("together", [True, False])
def test_groups_of_several_features(together):
    X, z = data(seed=2)
    problem = make(8, c2=0.05, together=together, offsets=[0, 3, 4, 8])
    value, _, _ = problem_17(X, z, problem, 2)
    for solver in ("irls", "bundle"):
        assert abs(fit(X, z, problem, solver).value - value) <= 1e-5 * value


@pytest.mark.parametrize("solver", ["irls", "bundle"])
@pytest.mark.parametrize("together", [True, False])
def test_many_features_are_fitted_on_those_that_matter(solver, together, monkeypatch):
    monkeypatch.setattr(planes_solvers, "WHOLE", 10)
    monkeypatch.setattr(planes_solvers, "FIRST", 4)
    X, z = data(n=50, d=120, seed=3)
    problem = make(120, c2=0.05, together=together)
    value, W, _ = problem_17(X, z, problem, 2)
    found = fit(X, z, problem, solver, gap=1e-5)
    assert abs(found.value - value) <= 1e-5 * value
    assert found.bound <= value * (1 + 1e-7)
    assert len(found.model.columns) < 120
    used = np.abs(W).max(axis=0) > 1e-3 * np.abs(W).max()
    assert set(np.flatnonzero(used)) <= set(found.model.columns)


@pytest.mark.parametrize("together", [True, False])
def test_gram_matrices_of_few_features_lead_to_the_same_fit(together):
    """Few features are worked on; labels that need others bring them in again."""
    X, z = data(n=80, d=40, k=3, seed=4)
    problem = make(40, 3, c2=0.1 if together else 0.06, together=together, hinge=True)
    first = fit(X, z, problem, gap=1e-3)
    assert first.working is not None and len(first.working) < 32
    used = np.flatnonzero(np.abs(first.model.w).max(axis=0))
    assert set(used) <= set(first.working)
    other = X[:, -3:].argmax(axis=1)
    value, _, _ = problem_17(X, other, problem, 3)
    again = fit(X, other, problem, before=first)
    assert abs(again.value - value) <= 1e-5 * value
    assert again.bound <= value * (1 + 1e-7)


@pytest.mark.parametrize("hinge", [True, False])
def test_newton_steps_that_fail_become_safe_ones(hinge, monkeypatch):
    """Even where every step begins as Newton's own, whose first goes too far."""
    monkeypatch.setattr(planes_solvers, "ABOVE", 1e-3)
    monkeypatch.setattr(planes_solvers, "LEAST_ABOVE", 1e-3)
    X, z = data(n=150, d=30, seed=6)
    problem = make(30, c1=1.0, c2=0.005, ridge=1e-4, hinge=hinge)
    value, _, _ = problem_17(X, z, problem, 2)
    found = fit(X, z, problem, gap=1e-5)
    assert found.gap <= 1e-5 and abs(found.value - value) <= 1e-5 * value


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([True, False]), st.integers(2, 4))
def test_duplicated_rows_weights_and_permuted_columns(seed, together, k):
    X, z = data(n=40, d=6, k=k, seed=seed)
    problem = make(6, k, together=together, c2=0.03)
    plain = fit(X, z, problem)
    twice = fit(np.vstack([X, X]), np.append(z, z), problem)
    heavy = fit(X, z, problem, weights=np.full(40, 3.0))
    order = np.random.default_rng(seed).permutation(6)
    mixed = fit(X[:, order], z, problem)
    for other in (twice, heavy, mixed):
        assert abs(other.value - plain.value) <= 3e-6 * plain.value
    scale = np.abs(plain.model.w).max() + 1e-9
    np.testing.assert_allclose(mixed.model.w, plain.model.w[:, order], atol=0.02 * scale)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_a_noise_column_gets_no_weight_at_a_large_c2(seed):
    X, z = data(n=1000, d=2, seed=seed)  # of 200 rows noise may well pull harder than c2
    noise = np.random.default_rng(seed).normal(size=(1000, 1))
    problem = make(3, c2=0.15)
    found = fit(np.hstack([X, noise]), z, problem)
    assert not found.model.w[:, 2].any()
    assert np.abs(found.model.w[:, :2]).max() > 0


def test_the_same_bits_whatever_the_blocks_are():
    X, z = data(n=300)
    columns = RowRecord(X, labels=z[:, None])
    asker = Asker(make(8), GivenLabels(0), None, None)
    solving = solve_convex(asker, "irls", None, 1e-6, lambda *_: None)
    scan = PlaneScan((next(solving),))
    whole = scan.block(columns, 0, 64)[0]
    halves = scan.merge(scan.block(columns[:128], 0, 64), scan.block(columns[128:256], 128, 64))
    joined = scan.merge(halves, scan.block(columns[256:], 256, 64))[0]
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(value, vars(joined)[name])
