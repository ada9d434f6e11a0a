"""More than two clusters: the optimum of a labeling, the objective, and the numbering."""

from __future__ import annotations

import warnings
from itertools import pairwise, permutations

import cvxpy as cp
import numpy as np
import pytest
from margin_reference import features_of, regulariser
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from dmkc import MultipleKernelClustering
from dmkc.clusterers.margin import base as margin
from dmkc.clusterers.margin import cccp
from dmkc.clusterers.margin.geometry import MulticlassMargin
from dmkc.kernels import Gaussian, Linear


def groups(sizes, seed=0):
    corners = np.array([[0, 0], [8, 0], [0, 8], [8, 8], [4, 16]])[: len(sizes)]
    X, y = make_blobs(list(sizes), centers=corners, cluster_std=0.7, random_state=seed)
    return X, y


def make(m, **params):
    return MultipleKernelClustering(m, **{"random_state": 0, "rank": 40, **params})


def violations(scores, z):
    """1 - f_z + max over the other clusters, where positive."""
    at = np.arange(len(z))
    others = scores.copy()
    others[at, z] = -np.inf
    return np.maximum(1 - scores[at, z] + others.max(axis=1), 0)


def value(model, X, z, C):
    """The objective with rows weighted so that every cluster weighs the same."""
    phi, offsets = features_of(model, X)
    m = len(model.model_.weights)
    edges = [m * edge for edge in offsets]
    stacked = np.concatenate([model.model_.weights[:, a:b].ravel() for a, b in pairwise(offsets)])
    weight = 1 / (m * np.bincount(z, minlength=m) / len(z))
    scores = phi @ model.model_.weights.T + model.model_.biases
    hinge = np.mean(weight[z] * violations(scores, z))
    return regulariser(stacked, edges, model.kernel_weights_) + C * hinge


def best_value(phi, offsets, z, m, C, norm):
    """The convex problem of a labeling (eqs 4.33-4.35), one slack a row."""
    n = len(z)
    V, beta = cp.Variable((phi.shape[1], m)), cp.Variable(len(offsets) - 1, nonneg=True)
    slack = cp.Variable(n, nonneg=True)
    scores, chosen = phi @ V, np.eye(m)[z]
    own = cp.sum(cp.multiply(chosen, scores), axis=1)
    rules = [cp.norm(beta, norm) <= 1]
    for r in range(m):
        rules.append(own - scores[:, r] >= (z != r) - slack)
    size = sum(
        cp.quad_over_lin(cp.vec(V[a:b, :], order="F"), beta[k])
        for k, (a, b) in enumerate(pairwise(offsets))
    )
    weight = 1 / (m * np.bincount(z, minlength=m) / n)
    problem = cp.Problem(cp.Minimize(size / 2 + C / n * (weight[z] @ slack)), rules)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("C", [2.0, 30.0])
def test_one_labeling_is_solved_to_its_optimum(monkeypatch, norm, C):
    monkeypatch.setattr(cccp, "LOOSE_GAP", 0.0)
    monkeypatch.setattr(cccp, "LOOSER_GAP", 0.0)
    X, y = groups((30, 20, 10))
    X += np.random.default_rng(0).normal(size=X.shape) * 1.5
    model = make(
        3,
        init=y,
        max_iter=1,
        tol=1e-6,
        C=C,
        norm=norm,
        kernels=[Linear(), Gaussian(gamma=0.5)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    phi, offsets = features_of(model, X)
    expected = best_value(phi, offsets, y, 3, C, norm)
    renamed = (np.array(order)[y] for order in permutations(range(3)))
    assert min(value(model, X, z, C) for z in renamed) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("sample_rows", [16384, 100])
@pytest.mark.parametrize("m", [3, 4, 5])
def test_the_objective_is_what_the_model_says(m, sample_rows):
    X, _ = groups((100, 80, 60, 50, 40)[:m])
    model = make(m, sample_rows=sample_rows).fit(X)
    assert model.objective_ == pytest.approx(value(model, X, model.labels_, model.C_), rel=1e-7)


@pytest.mark.parametrize("sizes", [(60, 50, 40), (20, 70, 45, 30), (30, 35, 40, 45, 50)])
@pytest.mark.parametrize("sample_rows", [16384, 90])
def test_clusters_are_found_and_numbered_by_decreasing_size(sizes, sample_rows):
    X, y = groups(sizes)
    model = make(len(sizes), sample_rows=sample_rows).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert np.bincount(model.labels_).tolist() == sorted(sizes, reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_equal_clusters_are_numbered_by_their_first_row(seed):
    X, y = groups((40, 40, 60, 40))
    order = np.random.default_rng(seed).permutation(len(X))
    labels = make(4).fit(X[order]).labels_
    assert adjusted_rand_score(y[order], labels) == 1.0
    first = [int(np.flatnonzero(labels == r)[0]) for r in range(4)]
    assert np.bincount(labels).tolist() == [60, 40, 40, 40]
    assert first[1:] == sorted(first[1:])


def test_scores_decide():
    X, _ = groups((60, 50, 40))
    model = make(3).fit(X)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.transform(X).shape == (150, model.model_.n_features)


def test_bounds_lie_below_values():
    X, _ = groups((60, 50, 40))
    model = make(3, init=["k-means", "random"], n_init=3).fit(X)
    for record in model.history_:
        assert record["bound"] <= record["objective"] * (1 + 1e-9)


@pytest.mark.parametrize("init", ["k-means", "kernel-k-means", "pca"])
def test_kinds_of_start(init):
    X, y = groups((60, 50, 40))
    assert adjusted_rand_score(y, make(3, init=init).fit(X).labels_) == 1.0


def test_a_given_start_needs_all_clusters():
    X, y = groups((60, 50, 40))
    assert make(3, init=np.array(["x", "y", "z"])[y]).fit(X).start_ == "given"
    with pytest.raises(ValueError, match="3 different labels"):
        make(3, init=y % 2).fit(X)


def test_balance_is_for_two_clusters():
    with pytest.raises(ValueError, match="two clusters"):
        make(3, balance=0.3).fit(groups((60, 50, 40))[0])


def test_fewer_rows_than_clusters():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        make(4).fit(np.eye(3))


def test_as_many_rows_as_clusters():
    labels = make(4).fit(np.eye(4) * 5).labels_
    assert sorted(labels.tolist()) == [0, 1, 2, 3]


def test_more_clusters_than_distinct_rows_ends_with_a_warning_or_a_sentence():
    X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 30, axis=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = make(3).fit(X)
        except ValueError as error:
            assert "distinct" in str(error) or "different rows" in str(error)
        else:
            assert said and len(np.unique(model.labels_)) <= 2
            assert np.isfinite(model.objective_)


@pytest.mark.parametrize("seed", range(3))
def test_two_clusters_by_one_score_or_by_two_agree_on_separable_rows(monkeypatch, seed):
    X, y = make_blobs([90, 60], centers=[[0, 0], [6, 1]], cluster_std=0.6, random_state=seed)
    one = make(2).fit(X)
    monkeypatch.setattr(
        margin, "geometry_of", lambda features, m, mean, n: MulticlassMargin(features, m)
    )
    two = make(2).fit(X)
    assert len(one.model_.biases) == 1 and len(two.model_.biases) == 2
    assert adjusted_rand_score(y, one.labels_) == 1.0
    np.testing.assert_array_equal(one.labels_, two.labels_)
    gap = two.decision_function(X)
    side = np.where(one.labels_ == 1, 1.0, -1.0)
    assert np.all((gap[:, 1] - gap[:, 0]) * side > 0) and np.all(
        one.decision_function(X) * side > 0
    )
