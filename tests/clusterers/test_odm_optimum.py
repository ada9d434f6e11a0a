"""Margin-distribution clustering against its problem in cvxpy and against every labeling."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from dmkc import Gaussian, Linear, MarginDistributionClustering
from dmkc.clusterers.odm import distribution
from dmkc.constraints import check_labeling

THETA, NU, C = 0.3, 0.5, 20.0


def make(**params):
    defaults = {"random_state": 0, "rank": 40, "C": C, "tol": 1e-9, "dtype": "float64"}
    return MarginDistributionClustering(**{**defaults, **params})


def features(model, X):
    """The unweighted features of the fitted model, kernel by kernel."""
    phi, at, out = model.model_.features, 0, []
    columns = phi.features(phi.plan(X).rows)
    for size in np.diff(phi.offsets):
        out.append(columns[:, at : at + size])
        at += size
    return out


def counts(n, constrained, share=0.95):
    """What every row counts for."""
    if not len(constrained):
        return np.full(n, 1.0 / n)
    share = max(share, len(constrained) / n)
    free = n - len(constrained)
    c = np.full(n, (1 - share) / free if free else 0.0)
    c[constrained] = share / len(constrained)
    return c


def losses(margins):
    return (
        cp.square(cp.pos(1 - THETA - margins)) + NU * cp.square(cp.pos(margins - 1 - THETA))
        if isinstance(margins, cp.Expression)
        else np.maximum(1 - THETA - margins, 0) ** 2 + NU * np.maximum(margins - 1 - THETA, 0) ** 2
    )


def convex_value(phis, y, count, norm=2.0, balance=None):
    """The paper's problem (2) for given sides, with kernel weights of unit norm, in cvxpy."""
    v = [cp.Variable(p.shape[1]) for p in phis]
    b = cp.Variable()
    weights = cp.Variable(len(phis), nonneg=True) if len(phis) > 1 else cp.Constant([1.0])
    f = sum(p @ w for p, w in zip(phis, v, strict=True)) + b
    size = sum(cp.quad_over_lin(w, weights[k]) for k, w in enumerate(v))
    if len(phis) == 1:
        size = cp.sum_squares(v[0])
    objective = 0.5 * size + 0.5 * cp.square(b)
    objective += 0.5 * C * (count @ losses(cp.multiply(y, f)))
    rules = [cp.norm(weights, norm) <= 1] if len(phis) > 1 else []
    if balance is not None:
        rules.append(cp.abs(b) <= balance)
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value), weights.value


def blobs(n=60, seed=0, gap=3.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + gap * y[:, None] * [1, 0, 0], y


BANKS = [[Linear()], [Linear(), Gaussian(0.5)], [Gaussian(0.3), Gaussian(1.0), Linear()]]


@pytest.mark.parametrize("kernels", BANKS)
@pytest.mark.parametrize("norm", [1.5, 2.0])
def test_the_model_is_the_optimum_of_its_labels(kernels, norm):
    X, _ = blobs()
    must, cannot = [(0, 2), (1, 3)], [(4, 5), (6, 9)]
    with pytest.warns(UserWarning, match="cannot-links"):
        model = make(must_link=must, cannot_link=cannot, kernels=kernels, norm=norm).fit(X)
    y = np.where(model.labels_ == 1, 1.0, -1.0)
    count = counts(len(X), np.unique(must + cannot))
    value, weights = convex_value(features(model, X), y, count, norm)
    assert model.objective_ == pytest.approx(value, rel=1e-4)
    np.testing.assert_allclose(model.kernel_weights_, weights, atol=5e-3)


def test_without_constraints_the_bias_is_bounded_and_the_model_is_optimal():
    X, _ = blobs(gap=1.0)
    X = np.concatenate([X, X[1::2] + 0.1, X[1::2] - 0.1])
    bounds = []
    for balance in (0.0, 0.05, 0.3):
        model = make(kernels="linear", balance=balance).fit(X)
        y = np.where(model.labels_ == 1, 1.0, -1.0)
        value, _ = convex_value(features(model, X), y, counts(len(X), []), balance=balance)
        assert model.objective_ == pytest.approx(value, rel=1e-5)
        assert abs(model.model_.biases[0]) <= balance + 1e-12
        bounds.append(abs(model.model_.biases[0]))
    assert bounds[0] == 0.0 and bounds[1] == pytest.approx(0.05)


def test_l_bfgs_and_newton_find_the_same_model(monkeypatch):
    X, _ = blobs()
    newton = make(kernels=BANKS[1], balance=0.1).fit(X)
    monkeypatch.setattr(distribution, "NEWTON_FEATURES", 3)
    other = make(kernels=BANKS[1], balance=0.1).fit(X)
    np.testing.assert_array_equal(newton.labels_, other.labels_)
    assert other.objective_ == pytest.approx(newton.objective_, rel=1e-5)
    assert len(other.history_) > len(newton.history_)


def value_of(X, y, phis, constrained):
    return convex_value(phis, y, counts(len(X), constrained))[0]


@pytest.mark.parametrize("seed", range(3))
def test_no_feasible_labeling_of_few_rows_is_better(seed):
    """Every feasible labeling of ten rows; the fit starts from all kinds of starts."""
    X, _ = blobs(10, seed, gap=2.5)
    must, cannot = [(0, 4), (3, 7)], [(0, 1), (2, 3)]
    with pytest.warns(UserWarning, match="cannot-links"):
        model = make(
            must_link=must, cannot_link=cannot, kernels="linear", init=["k-means", "pca", "links"]
        ).fit(X)
    phis, constrained = features(model, X), np.unique(must + cannot)
    best = np.inf
    for free in itertools.product([-1.0, 1.0], repeat=9):
        y = np.array([1.0, *free])
        if len(check_labeling(y, must, cannot)) == 0:
            best = min(best, value_of(X, y, phis, constrained))
    assert model.objective_ == pytest.approx(best, rel=1e-4)


def test_labels_are_the_best_for_the_model():
    """Brute force over all labelings that keep the constraints, at the fitted scores."""
    X, _ = blobs(12, 3, gap=1.0)
    must, cannot = [(0, 1), (2, 3), (5, 8)], [(0, 2), (4, 5)]
    with pytest.warns(UserWarning, match="cannot-links"):
        model = make(must_link=must, cannot_link=cannot, kernels="linear").fit(X)
    f, count = model.decision_function(X), counts(12, np.unique(must + cannot))
    feasible = [
        np.array(y)
        for y in itertools.product([-1.0, 1.0], repeat=12)
        if len(check_labeling(y, must, cannot)) == 0
    ]
    paid = [count @ losses(y * f) for y in feasible]
    best = feasible[int(np.argmin(paid))]
    np.testing.assert_array_equal(model.labels_, (best > 0).astype(int))


def test_the_objective_never_rises():
    X, _ = blobs(200, 5, gap=1.5)
    model = make(must_link=[(0, 1)], cannot_link=[(i, i + 1) for i in range(2, 40, 2)]).fit(X)
    by_start = {}
    for record in model.history_:
        by_start.setdefault(record["start"], []).append(record["objective"])
    assert max(map(len, by_start.values())) > 3
    for values in by_start.values():
        assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(values))
