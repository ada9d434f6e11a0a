"""The optimisation against scikit-learn's SVC, cvxpy and brute force."""

from __future__ import annotations

import warnings
from itertools import groupby, pairwise, product

import numpy as np
import pytest
from margin_reference import LabelledProblem, features_of, fixed_value, own_value
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from dmkc import MultipleKernelClustering
from dmkc.clusterers.margin import bundle, cccp
from dmkc.kernels import Gaussian, Linear, Polynomial

BANK = [Linear(), Polynomial(2, gamma=0.3), Gaussian(gamma=0.4)]


@pytest.fixture(params=["easy", "hard"])
def tight(request, monkeypatch):
    """Close the gap of the first labeling too, which is otherwise left loose."""
    monkeypatch.setattr(cccp, "LOOSE_GAP", 0.0)
    monkeypatch.setattr(cccp, "LOOSER_GAP", 0.0)
    if request.param == "hard":  # all problems are taken for hard ones from the first step on
        monkeypatch.setattr(cccp, "EASY_STEPS", 1)
        monkeypatch.setattr(bundle, "FEW_CUTS", 0)


def two_groups(n=80, d=3, gap=1.2, seed=0):
    rng = np.random.default_rng(seed)
    z = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + gap / 2 * z[:, None], z


def fit_labels(X, z, **params):
    """A model of one labeling: a single round from it."""
    params = {"scale": None, "tol": 1e-6, "dtype": "float64", "landmarks": X, **params}
    model = MultipleKernelClustering(init=z, max_iter=1, random_state=0, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


@pytest.mark.parametrize("C", [0.5, 5.0, 100.0])
@pytest.mark.parametrize("solver", ["clarabel", "cvxpy"])
def test_one_linear_kernel_is_a_support_vector_machine(tight, C, solver):
    X, z = two_groups()
    model = fit_labels(X, z, kernels="linear", C=C, balance=None, solver=solver)
    centred = X - X.mean(axis=0)
    rows = centred / np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    svm = SVC(kernel="linear", C=C / len(X), tol=1e-8).fit(rows, z)
    hinge = np.maximum(1 - z * svm.decision_function(rows), 0).mean()
    expected = 0.5 * np.sum(svm.coef_**2) + C * hinge
    assert fixed_value(model, X, z, C) == pytest.approx(expected, rel=1e-4)
    assert model.kernel_weights_ == pytest.approx([1.0])


def test_one_gaussian_kernel_is_a_support_vector_machine(tight):
    X, z = two_groups(60)
    model = fit_labels(X, z, kernels=Gaussian(gamma=0.4), C=20.0, balance=None)
    phi, _ = features_of(model, X)
    svm = SVC(kernel="precomputed", C=20.0 / len(X), tol=1e-8).fit(phi @ phi.T, z)
    scores = svm.decision_function(phi @ phi.T)
    alpha = np.zeros(len(X))
    alpha[svm.support_] = svm.dual_coef_[0]
    expected = 0.5 * alpha @ (phi @ phi.T) @ alpha + 20 * np.maximum(1 - z * scores, 0).mean()
    assert fixed_value(model, X, z, 20.0) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("balance", [None, 0.0, 0.3])
def test_three_kernels_solve_the_problem_with_a_slack_per_row(tight, norm, balance):
    X, z = two_groups(60)
    z[:10] = 1.0  # uneven, so that the balance matters
    model = fit_labels(X, z, kernels=BANK, C=10.0, balance=balance, norm=norm)
    phi, offsets = features_of(model, X)
    problem = LabelledProblem(phi, offsets, 10.0, balance, norm)
    expected = problem.solve(z)
    assert fixed_value(model, X, z, 10.0) == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(model.kernel_weights_, problem.beta.value, atol=1e-3)
    if balance is not None:
        assert abs(model.decision_function(X).mean()) <= balance + 1e-6


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
def test_both_solvers_find_the_same_model(tight, norm):
    X, z = two_groups(60)
    a, b = (
        fit_labels(X, z, kernels=BANK, C=10.0, norm=norm, tol=1e-5, solver=solver)
        for solver in ("clarabel", "cvxpy")
    )
    assert fixed_value(a, X, z, 10.0) == pytest.approx(fixed_value(b, X, z, 10.0), rel=1e-4)
    np.testing.assert_allclose(a.kernel_weights_, b.kernel_weights_, atol=5e-3)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def moons(n=400, seed=0):
    return make_moons(n, noise=0.15, random_state=seed)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sample_rows", [16384, 200])
def test_the_objective_never_rises_and_bounds_lie_below(seed, sample_rows):
    X = moons(1500, seed)
    model = MultipleKernelClustering(
        init=["k-means", "random"], n_init=3, sample_rows=sample_rows, random_state=seed
    ).fit(X)
    records = sorted(model.history_, key=lambda r: (r["start"], r["on"]))
    for _, run in groupby(records, key=lambda r: (r["start"], r["on"])):
        run = list(run)
        assert [(r["round"], r["step"]) for r in run] == sorted(
            (r["round"], r["step"]) for r in run
        )
        # a point that is summed up alone or with others may differ in its last bit
        assert all(b["objective"] <= a["objective"] * (1 + 1e-14) for a, b in pairwise(run))
        assert all(r["bound"] <= r["objective"] * (1 + 1e-9) for r in run)
        for _, one in groupby(run, key=lambda r: r["round"]):
            assert all(b["bound"] >= a["bound"] for a, b in pairwise(list(one)))
    on = "all" if sample_rows < len(X) else "sample"
    kept = [r["objective"] for r in records if (r["start"], r["on"]) == (model.start_, on)]
    assert kept and model.objective_ <= min(kept) * (1 + 1e-9)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("sample_rows", [16384, 200])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-3)])
def test_the_objective_is_what_the_model_says(norm, sample_rows, dtype, tolerance):
    X = moons()
    model = MultipleKernelClustering(
        norm=norm, sample_rows=sample_rows, dtype=dtype, random_state=0, rank=30
    ).fit(X)
    assert model.objective_ == pytest.approx(own_value(model, X, model.C_), rel=tolerance)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.labels_, (scores >= 0).astype(int))
    assert abs(scores.mean()) <= 0.3 + 1e-4
    weights = model.kernel_weights_
    assert (weights >= 0).all() and np.linalg.norm(weights, norm) <= 1 + 1e-6


def test_the_fit_is_a_fixed_point_of_its_own_labeling(tight):
    """No model of the final labeling is better by more than the tolerance."""
    X = moons(120)
    model = MultipleKernelClustering(kernels=BANK, tol=1e-5, random_state=0, rank=120).fit(X)
    phi, offsets = features_of(model, X)
    z = np.where(np.asarray(model.labels_) == 1, 1.0, -1.0)
    best = LabelledProblem(phi, offsets, model.C_, 0.3, 2.0).solve(z)
    assert best <= model.objective_ * (1 + 1e-6)
    assert model.objective_ == pytest.approx(best, rel=1e-4)


def small_case(seed):
    """Eight rows, two kernels; C, the balance and the shape of the rows vary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    if seed % 3:
        X[:4] += rng.normal(size=2) * 1.5
    return X, float(rng.choice([3.0, 10.0, 40.0])), float(rng.choice([0.1, 0.3]))


def test_many_starts_reach_the_best_of_all_labelings():
    """Over all labelings, the one-sided ones too: the balance bounds the mean score, not z."""
    cases, reached, split = 15, 0, 0
    sides = np.array(list(product([1.0, -1.0], repeat=7)))
    sides = np.column_stack([np.ones(len(sides)), sides])
    for seed in range(cases):
        X, C, balance = small_case(seed)
        model = MultipleKernelClustering(
            kernels=[Linear(), Gaussian(gamma=0.5)],
            scale=None,
            C=C,
            balance=balance,
            init=["k-means", "kernel-k-means", "pca", "random"],
            n_init=8,
            tol=1e-6,
            random_state=seed,
        ).fit(X)
        phi, offsets = features_of(model, X)
        problem = LabelledProblem(phi, offsets, C, balance, 2.0)
        best = min(problem.solve(z) for z in sides)
        assert model.objective_ >= best * (1 - 1e-4)
        reached += model.objective_ <= best * (1 + 1e-4)
        split += len(np.unique(model.labels_)) == 2
    assert split >= cases / 2
    print(f"the best of all labelings was found in {reached} of {cases} cases")
    assert reached >= 0.6 * cases


def test_one_round_warns_that_it_has_not_converged():
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        MultipleKernelClustering(max_iter=1, init="random", random_state=0).fit(moons())


def test_a_usual_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultipleKernelClustering(random_state=0).fit(moons())


def test_all_starts_can_be_carried_on_to_all_rows():
    X = moons(2000)
    params = {"init": ["k-means", "random"], "n_init": 5, "sample_rows": 150, "random_state": 1}
    best = MultipleKernelClustering(**params).fit(X)
    every = MultipleKernelClustering(refine="all", **params).fit(X)
    on_sample = {r["start"] for r in every.history_ if r["on"] == "sample"}
    on_all = {r["start"] for r in every.history_ if r["on"] == "all"}
    assert len(on_sample) >= 4
    assert len({r["start"] for r in best.history_ if r["on"] == "all"}) == 1
    assert on_all <= on_sample and len(on_all) >= 2
    assert every.objective_ <= best.objective_ * (1 + 1e-6)
    assert every.objective_ == pytest.approx(own_value(every, X, every.C_), rel=1e-8)


def test_fits_that_share_scans_end_like_fits_alone():
    X = moons(300)
    params = {"tol": 1e-5, "random_state": 0, "rank": 40, "C": 8.0}
    rng = np.random.default_rng(0)
    starts = [rng.integers(0, 2, size=len(X)) for _ in range(6)]
    together = MultipleKernelClustering(init=starts, **params).fit(X)
    alone = [MultipleKernelClustering(init=start, **params).fit(X) for start in starts]
    lowest = min(alone, key=lambda m: m.objective_)
    assert together.objective_ == pytest.approx(lowest.objective_, rel=1e-4)
    np.testing.assert_array_equal(together.labels_, lowest.labels_)
