"""The reference methods against brute force, and the large-scale methods against them."""

from __future__ import annotations

from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from dmkc import SparseKernelMMC
from dmkc.reference import iterative_svr, mmc_sdp
from dmkc.reference.itersvr import best_bias


def centred(K):
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def gaussian_groups(n=8, seed=0, gap=3.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + gap * y[:, None]
    return centred(rbf_kernel(X, gamma=0.2)), y


def svm_value(K, y, C):
    """max over 0 <= alpha <= C of 2 sum alpha - alpha^T (K o y y^T) alpha (eq. 3.1)."""
    alpha = cp.Variable(len(y))
    quadratic = cp.quad_form(alpha, cp.psd_wrap(K * np.outer(y, y)))
    problem = cp.Problem(cp.Maximize(2 * cp.sum(alpha) - quadratic), [alpha >= 0, alpha <= C])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def best_labeling(K, C, balance):
    signs = (np.array(s) for s in product([-1.0, 1.0], repeat=len(K)) if s[0] > 0)
    fair = [s for s in signs if abs(s.sum()) <= balance]
    values = [svm_value(K, s, C) for s in fair]
    return min(values), fair[int(np.argmin(values))]


@pytest.mark.parametrize(("seed", "C"), [(0, 0.5), (1, 5.0)])
def test_the_relaxation_bounds_every_labeling_from_below(seed, C):
    K, _ = gaussian_groups(6, seed, gap=1.0)
    relaxed = mmc_sdp(K, C, 2)
    best, _ = best_labeling(K, C, 2)
    assert relaxed.value <= best + 1e-5 * abs(best)
    assert relaxed.value >= 0.5 * best


@pytest.mark.parametrize("seed", range(2))
def test_clear_groups_are_found_exactly(seed):
    K, y = gaussian_groups(6, seed, gap=5.0)
    relaxed = mmc_sdp(K, 1.0, 2)
    best, signs = best_labeling(K, 1.0, 2)
    assert adjusted_rand_score(signs, relaxed.labels) == adjusted_rand_score(y, signs) == 1.0
    own = svm_value(K, 2.0 * relaxed.labels - 1, 1.0)
    assert own == pytest.approx(best, rel=1e-4)


def test_the_relaxed_matrix_meets_its_constraints():
    K, _ = gaussian_groups(10, 4, gap=1.5)
    M = mmc_sdp(K, 1.0, 4).M
    np.testing.assert_allclose(np.diag(M), 1, atol=1e-6)
    assert np.linalg.eigvalsh(M)[0] > -1e-6
    assert np.abs(M.sum(axis=0)).max() <= 4 + 1e-5
    for i, j, k in combinations(range(10), 3):
        a, b, c = M[i, j], M[i, k], M[j, k]
        assert min(a + b + c, a - b - c, b - a - c, c - a - b) >= -1 - 1e-5


@pytest.mark.slow
def test_the_first_order_solver():
    X, y = make_blobs(40, centers=2, cluster_std=1.0, random_state=1)
    K = centred(rbf_kernel(X, gamma=0.05))
    relaxed = mmc_sdp(K, 1.0, 8)
    assert adjusted_rand_score(y, relaxed.labels) == 1.0


def test_the_large_method_agrees_with_the_semidefinite_program():
    X, _ = make_blobs(16, centers=2, cluster_std=1.5, random_state=3)
    large = SparseKernelMMC(kernels="linear", scale=None, random_state=0).fit(X)
    relaxed = mmc_sdp(centred(X @ X.T), 0.1, 4)
    assert adjusted_rand_score(large.labels_, relaxed.labels) > 0.9


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"K": np.ones((3, 2))}, "symmetric"),
        ({"K": np.eye(200)}, "2 to 150 rows"),
        ({"C": 0.0}, "positive"),
        ({"balance": 0}, "No labeling of 5 rows"),
    ],
)
def test_programs_that_make_no_sense(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        mmc_sdp(**{"K": np.eye(5), "C": 1.0, "balance": 1, **change})


def test_regression_mends_a_start_of_which_a_quarter_is_wrong():
    X, y = make_blobs(120, centers=2, cluster_std=1.0, random_state=2)
    K = centred(rbf_kernel(X, gamma=0.1))
    start = y.copy()
    start[::4] = 1 - start[::4]  # a quarter of the rows is wrong
    found = iterative_svr(K, start, C=1.0, balance=0.2)
    assert found.converged and adjusted_rand_score(y, found.labels) == 1.0


def test_the_end_is_a_fixed_point_within_the_balance():
    X, _ = make_moons(100, noise=0.1, random_state=0)
    K = rbf_kernel(X, gamma=2.0)
    start = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    found = iterative_svr(K, start, balance=0.1)
    again = iterative_svr(K, found.labels, balance=0.1)
    assert again.n_iter == 1
    np.testing.assert_array_equal(again.labels, found.labels)
    assert abs(np.mean(2 * found.labels - 1)) <= 0.1
    np.testing.assert_array_equal(found.labels, found.scores >= 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_bias_is_the_best_of_a_dense_search(seed):
    scores = np.random.default_rng(seed).normal(size=15)
    bias = best_bias(scores, 0.4)

    def error(b):
        signs = np.where(scores + b >= 0, 1.0, -1.0)
        return np.abs(scores + b - signs).sum() if abs(signs.mean()) <= 0.4 else np.inf

    dense = min(error(b) for b in np.linspace(-4, 4, 20_001))
    assert error(bias) <= dense + 1e-9


@pytest.mark.parametrize(
    ("K", "start", "sentence"),
    [
        (np.eye(4), np.zeros(4), "two different labels"),
        (np.eye(4), np.arange(3), "n labels"),
        (np.eye(5), [0, 1, 0, 1, 0], "No labeling of 5 rows"),
    ],
)
def test_regressions_that_make_no_sense(K, start, sentence):
    with pytest.raises(ValueError, match=sentence):
        iterative_svr(K, start)
