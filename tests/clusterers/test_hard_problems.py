"""Convex problems that plain cutting planes crawl on: they end, certified, after few scans."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dmkc import MultipleKernelClustering, NonparallelPlaneClustering, SparseKernelMMC
from dmkc.clusterers.margin import bundle, cccp
from dmkc.clusterers.planes import solvers
from dmkc.master import MasterSolverError

DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
}


def rows(kind: str, n: int = 600, d: int = 10) -> np.ndarray:
    return DRAWS[kind](np.random.default_rng(0), (n, d))


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("C", [None, 1e4])
@pytest.mark.parametrize("scale", ["standard", None])
def test_two_clusters_of_any_rows_and_any_price_are_certified_after_few_scans(kind, C, scale):
    model = MultipleKernelClustering(2, C=C, scale=scale, random_state=0).fit(rows(kind))
    assert model.converged_  # its last gap was certified
    assert model.n_scans_ <= 400


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("C", [None, 1e4])
def test_an_adaptive_threshold_is_found_or_given_up_after_few_scans(kind, C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseKernelMMC(2, C=C, random_state=0).fit(rows(kind))
    # nothing separates the clusters that k-means finds among rows of such tails
    assert model.converged_ or kind == "cauchy"
    assert model.n_scans_ <= 400


@pytest.mark.parametrize("weight", [1e-8, 1e8])
def test_the_unit_of_the_weights_does_not_make_a_problem_harder(weight):
    X = np.random.default_rng(0).standard_t(1.2, (400, 5))
    settings = {"C": 1e5, "init": "k-means", "scale": None, "random_state": 0}
    plain = MultipleKernelClustering(2, **settings).fit(X)
    same = MultipleKernelClustering(2, **settings).fit(X, sample_weight=np.full(400, weight))
    assert plain.converged_
    assert same.converged_
    assert same.objective_ == pytest.approx(plain.objective_, rel=1e-2)


@pytest.mark.parametrize("kind", DRAWS)
def test_many_clusters_at_a_high_price_end_after_a_bounded_number_of_scans(kind, monkeypatch):
    monkeypatch.setattr(cccp, "ALL_STEPS_OF_SEVERAL", 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MultipleKernelClustering(8, C=1e4, random_state=0).fit(rows(kind))
    assert model.n_scans_ <= cccp.ALL_STEPS_OF_SEVERAL + 60  # and those of the starts
    assert len(np.unique(model.labels_)) == 8


def test_a_master_without_a_solution_ends_the_search_with_the_best_point(monkeypatch):
    solved = []

    def fails(problem, solver="clarabel"):
        solved.append(problem)
        if len(solved) > 3:
            raise MasterSolverError("nothing was found")
        return right(problem, solver)

    right = bundle.solve
    monkeypatch.setattr(bundle, "solve", fails)
    monkeypatch.setattr(bundle, "solve_from", lambda problem, multipliers, grams: None)
    with pytest.warns(ConvergenceWarning, match="did not close the gap"):
        model = MultipleKernelClustering(2, init="k-means", random_state=0).fit(rows("normal"))
    assert not model.converged_
    assert set(np.unique(model.labels_)) == {0, 1}


def test_planes_that_are_not_found_end_the_fit(monkeypatch):
    monkeypatch.setattr(solvers, "MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="not found to the gap asked for"):
        model = NonparallelPlaneClustering(3, tol=1e-6, random_state=0).fit(rows("normal"))
    assert not model.converged_
    assert model.n_iter_ == 1
