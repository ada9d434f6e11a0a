"""An adaptive threshold: the optimum against cvxpy, scikit-learn's NuSVC and brute force."""

from __future__ import annotations

import warnings
from itertools import groupby, pairwise, product

import cvxpy as cp
import numpy as np
import pytest
from margin_reference import features_of, regulariser
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.svm import NuSVC

from dmkc import MultipleKernelClustering
from dmkc.clusterers.margin import bundle, cccp
from dmkc.kernels import Gaussian, Linear, Polynomial
from dmkc.master import adaptive

BANK = [Linear(), Polynomial(2, gamma=0.3), Gaussian(gamma=0.4)]


@pytest.fixture(params=["easy", "hard"])
def tight(request, monkeypatch):
    """Close the gap of the first labeling too, at the C that was asked for."""
    monkeypatch.setattr(cccp, "LOOSE_GAP", 0.0)
    monkeypatch.setattr(cccp, "LOOSER_GAP", 0.0)
    if request.param == "hard":  # all problems are taken for hard ones from the first step on
        monkeypatch.setattr(cccp, "EASY_STEPS", 1)
        monkeypatch.setattr(bundle, "FEW_CUTS", 0)
    monkeypatch.setattr(adaptive, "BARELY", 0.0)


def two_groups(n=60, d=3, gap=1.6, seed=0):
    rng = np.random.default_rng(seed)
    z = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + gap / 2 * z[:, None], z


def make(**params):
    params = {"scale": None, "tol": 1e-6, "dtype": "float64", "random_state": 0, **params}
    return MultipleKernelClustering(threshold="adaptive", **params)


def fit_labels(X, z, **params):
    """A model of one labeling: a single round from it."""
    model = make(init=z, max_iter=1, landmarks=X, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


class LabelledProblem:
    """min 1/2 sum_k |v_k|^2 / beta_k - rho + C mean(slack), one slack a row (eq. 10)."""

    def __init__(self, phi, offsets, C, balance, norm=2.0):
        n, width = phi.shape
        self.z, self.rho = cp.Parameter(n), cp.Variable(nonneg=True)
        self.v, self.b = cp.Variable(width), cp.Variable()
        self.beta = cp.Variable(len(offsets) - 1, nonneg=True)
        slack = cp.Variable(n, nonneg=True)
        scores = phi @ self.v + self.b
        penalty = sum(
            cp.quad_over_lin(self.v[a:b], self.beta[k])
            for k, (a, b) in enumerate(pairwise(offsets))
        )
        rules = [
            cp.multiply(self.z, scores) >= self.rho - slack,
            cp.norm(self.beta, "inf" if np.isinf(norm) else norm) <= 1,
            cp.abs(cp.sum(scores) / n) <= balance * self.rho,
        ]
        cost = penalty / 2 - self.rho + C / n * cp.sum(slack)
        self.problem = cp.Problem(cp.Minimize(cost), rules)

    def solve(self, z):
        self.z.value = z
        self.problem.solve(solver=cp.CLARABEL)
        return float(self.problem.value)


def value_at(model, X, margins_of, C):
    """The objective of a fitted model, whose scores are in units of its threshold."""
    phi, offsets = features_of(model, X)
    rho = model.threshold_
    v = rho * model.model_.weights[0]
    margins = margins_of(phi @ v + rho * model.model_.biases[0])
    hinge = np.maximum(rho - margins, 0).mean()
    return regulariser(v, offsets, model.kernel_weights_) - rho + C * hinge


def signed(z):
    """Margins under a labeling or its mirror image, whichever fits."""
    return lambda scores: max(z * scores, -z * scores, key=np.sum)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("balance", [0.0, 0.1])
def test_three_kernels_solve_the_problem_with_a_slack_per_row(tight, norm, balance):
    X, z = two_groups()
    z[:6] = 1.0  # uneven, so that the balance matters
    model = fit_labels(X, z, kernels=BANK, C=3.0, balance=balance, norm=norm)
    phi, offsets = features_of(model, X)
    problem = LabelledProblem(phi, offsets, 3.0, balance, norm)
    expected = problem.solve(z)
    side = signed(z)(phi @ model.model_.weights[0]) / (phi @ model.model_.weights[0])
    rho = float(problem.rho.value)
    # a fitted threshold is the best for the model's own labels; here it is the labeling's
    short = np.maximum(1 - side * (phi @ model.model_.weights[0] + model.model_.biases[0]), 0)
    size = regulariser(model.model_.weights[0], offsets, model.kernel_weights_)
    best = -((1 - 3.0 * short.mean()) ** 2) / (4 * size)
    assert best == pytest.approx(expected, rel=1e-3)
    assert (1 - 3.0 * short.mean()) / (2 * size) == pytest.approx(rho, rel=2e-2)
    np.testing.assert_allclose(model.kernel_weights_, problem.beta.value, atol=2e-2)


@pytest.mark.parametrize("C", [1.5, 4.0])
def test_one_gaussian_kernel_is_a_nu_support_vector_machine(tight, C):
    X, z = two_groups(gap=3.0)
    model = fit_labels(X, z, kernels=Gaussian(gamma=0.3), C=C, balance=0.99 * (1 - 1 / C))
    phi, _ = features_of(model, X)
    machine = NuSVC(kernel="precomputed", nu=1 / C, tol=1e-8).fit(phi @ phi.T, z)
    expected = machine.decision_function(phi @ phi.T)
    found = model.decision_function(X)
    np.testing.assert_allclose(np.sign(found @ expected) * found, expected, atol=5e-3)


@pytest.mark.parametrize("C", [1.3, 2.0, 20.0])
def test_objective_threshold_and_scores_belong_together(C):
    X, _ = two_groups(200)
    model = make(kernels=BANK, C=C, rank=40).fit(X)
    assert model.objective_ == pytest.approx(value_at(model, X, np.abs, C), rel=1e-6)
    assert model.objective_ < 0 < model.threshold_
    assert abs(model.decision_function(X).mean()) < 1e-6
    inside = np.mean(np.abs(model.decision_function(X)) < 1 - 1e-3)
    touched = np.mean(np.abs(model.decision_function(X)) < 1 + 1e-3)
    assert inside <= 1 / C <= touched


def test_the_value_never_rises():
    X, _ = two_groups(300, gap=0.8)
    model = make(kernels=BANK, C=2.0, rank=40, init="random", n_init=3, tol=1e-3).fit(X)
    courses = groupby(model.history_, key=lambda r: (r["start"], r["round"]))
    ends = {key: list(records)[-1]["objective"] for key, records in courses}
    for (start, round_), value in ends.items():
        before = ends.get((start, round_ - 1))
        if before is not None and round_ > 2:  # a start may have been eased in the first round
            assert value <= before + 1e-9 * abs(before)


def test_no_labeling_that_the_fit_could_reach_is_much_better():
    X, _ = two_groups(9, gap=4.0, seed=3)
    model = make(kernels=BANK, C=1.8, balance=0.2, landmarks=X, init="auto").fit(X)
    phi, offsets = features_of(model, X)
    problem = LabelledProblem(phi, offsets, 1.8, 0.2)
    every = [
        problem.solve(np.array(signs)) for signs in product([-1.0, 1.0], repeat=9) if signs[0] > 0
    ]
    assert model.objective_ >= min(every) * (1 + 1e-4)
    assert model.objective_ <= 0.8 * min(every)
    labels = 2.0 * model.labels_ - 1
    own = min(problem.solve(labels), problem.solve(-labels))
    assert model.objective_ == pytest.approx(own, rel=1e-3)  # a fixed point of the rounds


def test_the_scale_of_a_kernel_does_not_matter():
    X, _ = two_groups(150)
    plain = make(kernels="linear", C=2.0).fit(X)
    scaled = make(kernels="linear", C=2.0).fit(1000 * X)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(1000 * X))


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_starts_that_cannot_be_separated_are_eased(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    start = rng.integers(0, 2, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(kernels="linear", C=C, init=start, tol=1e-3).fit(X)
    assert np.bincount(model.labels_).min() > 20
    assert np.isfinite(model.objective_)


def test_several_clusters():
    X, y = make_blobs(400, centers=4, cluster_std=0.7, random_state=2)
    model = make(n_clusters=4, rank=60, tol=1e-3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.objective_ < 0 < model.threshold_
    scores = np.sort(model.decision_function(X), axis=1)
    inside = np.mean(scores[:, -1] - scores[:, -2] < 1 - 1e-3)
    assert 0 < inside <= 0.55


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"C": 1.0}, "C must exceed 1"),
        ({"C": 0.5}, "C must exceed 1"),
        ({"balance": None}, "balance must be a number below"),
        ({"balance": 0.6}, "balance must be a number below"),
        ({"balance": -0.1}, "balance"),
    ],
)
def test_parameters_without_a_finite_solution_are_refused(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(two_groups()[0])


def test_an_unknown_threshold_is_refused():
    with pytest.raises(ValueError, match="Did you mean 'adaptive'"):
        MultipleKernelClustering(threshold="adaptiv").fit(two_groups()[0])
