"""The estimator: scikit-learn's contract, clusters, model files, inputs, and what errors say."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.planes import learn
from dmkc.clusterers.planes.learn import TOO_SMALL, PlaneFit, cost_of
from dmkc.kernels import Gaussian
from dmkc.metrics import accuracy
from dmkc.scan.planes import Planes


@parametrize_with_checks([without_chances(NonparallelPlaneClustering())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=300, d=8, k=2, seed=0):
    """Clusters that differ in the first columns only."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=n)
    X = rng.normal(size=(n, d))
    X[:, :k] += 8.0 * np.eye(k)[y]
    return X, y


def make(**params):
    return NonparallelPlaneClustering(**{"random_state": 0, **params})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "hinge"},
        {"planes": "twin", "loss": "hinge"},
        {"planes": "twin", "c2": 0.0},
        {"solver": "bundle"},
        {"solver": "irls", "scale": "standard"},
        {"kernels": "gaussian", "rank": 40},
        {"dtype": "float32"},
        {"sample_rows": 100},
        {"train_rows": 100, "polish": 2},
        {"init": ["random", "pca", "k-means"]},
        {"feature_mode": "recompute", "sample_rows": 64},
    ],
)
@pytest.mark.parametrize("k", [2, 3])
def test_clusters_are_found(params, k):
    X, y = blobs(k=k)
    model = make(n_clusters=k, **params).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert model.gap_ <= model.tol and model.converged_


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sample_rows", [80, 8192])
def test_a_heavy_race_is_over_after_two_rounds(k, sample_rows, monkeypatch):
    monkeypatch.setattr(learn, "HEAVY", 0.0)
    X, y = blobs(k=k)
    model = make(n_clusters=k, sample_rows=sample_rows).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.converged_
    told = [r for r in model.history_ if r["on"] == "sample"]
    assert {r["round"] for r in told if r["start"] != model.start_} <= {1, 2}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        few = make(n_clusters=k, max_iter=1, sample_rows=sample_rows).fit(X)
    assert {record["round"] for record in few.history_} == {1}


def test_labels_are_the_nearest_planes():
    X, _ = blobs(k=3)
    model = make(n_clusters=3, scale="minmax").fit(X)
    Z = (X - X.mean(axis=0)) / np.ptp(X, axis=0)
    scores = Z @ model.planes_.T + model.model_.biases
    distance = np.abs(scores) / np.linalg.norm(model.planes_, axis=1)
    np.testing.assert_array_equal(distance.argmin(axis=1), model.labels_)
    np.testing.assert_allclose(model.decision_function(X), -distance, atol=1e-8)


def test_the_sign_of_two_planes_decision_is_the_label():
    X, _ = blobs()
    model = make().fit(X)
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.labels_ == 1)


@pytest.mark.parametrize("params", [{}, {"kernels": Gaussian(2.0)}, {"n_clusters": 3}])
def test_saved_models_predict_the_same_bits(tmp_path, params):
    X, _ = blobs(k=3)
    model = make(**params).fit(X)
    model.save(tmp_path / "model.zarr")
    again = dmkc.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.selected_features_, model.selected_features_)


@pytest.mark.parametrize("sample_rows", [64, 8192])
def test_labels_do_not_depend_on_form_or_chunks(sample_rows):
    X, _ = blobs(n=700)
    model = make(sample_rows=sample_rows).fit(X)
    names = [f"c{i}" for i in range(8)]
    frame = make(sample_rows=sample_rows).fit(pd.DataFrame(X, columns=names))
    np.testing.assert_array_equal(frame.labels_.to_numpy(), model.labels_)
    for chunks in (700, 97):
        lazy = make(sample_rows=sample_rows).fit(da.from_array(X, chunks=(chunks, 8)))
        np.testing.assert_array_equal(lazy.labels_.compute(), model.labels_)
        np.testing.assert_array_equal(lazy.planes_, model.planes_)
    sparse = make(sample_rows=sample_rows).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.labels_, model.labels_)


def test_repeated_rows_and_weights_are_the_same():
    X, _ = blobs(n=120)
    weights = np.random.default_rng(1).integers(1, 4, size=120)
    given = {"init": (X[:, 0] > X[:, 1]).astype(int), "scale": None, "c2": 0.05, "tol": 1e-6}
    heavy = make(**given).fit(X, sample_weight=weights)
    given["init"] = np.repeat(given["init"], weights)
    long = make(**given).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(heavy.labels_, weights), long.labels_)
    assert heavy.objective_ == pytest.approx(long.objective_, rel=1e-5)
    np.testing.assert_allclose(heavy.planes_, long.planes_, atol=1e-2 * abs(long.planes_).max())


def test_one_cluster_is_all_zeros():
    X, _ = blobs(n=30)
    model = make(n_clusters=1).fit(X)
    assert not model.labels_.any() and not model.predict(X).any()
    assert not len(model.selected_features_)
    with pytest.warns(UserWarning, match="No column is selected"):
        assert model.transform(X).shape == (30, 0)


def test_a_cluster_does_not_become_too_small():
    """Planes swallow a cluster where nothing separates two; the guard stops that."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    with pytest.warns(ConvergenceWarning, match="a cluster would have become too small"):
        model = make(min_share=0.45, init="random", loss="laplacian", c1=0.25).fit(X)
    assert not model.converged_


def test_a_cluster_around_another_keeps_a_round_with_both():
    """Planes lose such clusters; what is kept is not the last round before that."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=500)
    X = rng.normal(size=(500, 10)) * np.where(y == 0, 2.0, 0.5)[:, None]
    with pytest.warns(ConvergenceWarning, match="lies around another: try kernels='gaussian'"):
        model = make(scale="minmax").fit(X)
    assert np.bincount(model.labels_).min() > 0.1 * len(X)
    assert accuracy(y, make(kernels="gaussian").fit(X).labels_) > 0.95


def test_clusters_of_unequal_spread():
    """Rows far out on their own side cost nothing by default; the Laplacian loss pulls at them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=400)
    X = rng.normal(size=(400, 5)) * np.where(y == 0, 0.4, 2.0)[:, None] + 3.5 * y[:, None]
    found = accuracy(y, make().fit(X).labels_)
    assert found > 0.95
    assert found > accuracy(y, make(loss="laplacian").fit(X).labels_)


def test_nothing_is_selected_at_a_large_c2():
    with pytest.warns(UserWarning, match="No column has a weight at c2 = 100"):
        make(c2=100.0).fit(blobs()[0])


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"c1": 0}, "c1 must be a number greater than 0"),
        ({"c2": -1.0}, "c2 must be a number at least 0"),
        ({"ridge": 0.0}, "ridge must be a number greater than 0"),
        ({"loss": "laplace"}, "loss must be one of.*Did you mean 'laplacian'"),
        ({"planes": "twins"}, "planes must be one of.*Did you mean 'twin'"),
        ({"solver": "irsl"}, "solver must be one of.*Did you mean 'irls'"),
        ({"min_share": 0.5}, "min_share must be below 1 / n_clusters"),
        ({"landmarks": np.ones((3, 8))}, "landmarks go with kernels"),
        ({"polish": 2}, "polish goes with train_rows"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"init": "kmeans"}, "Unknown init"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(blobs()[0])


def test_explained_share_and_history():
    X, _ = make_blobs(200, 5, centers=2, random_state=1)
    model = make(verbose=0, scale="minmax").fit(X)
    assert 0 < model.explained_ < 1
    assert 0 < model.separation_ < 1
    assert model.history_[-1]["gap"] == pytest.approx(model.gap_)
    assert {record["on"] for record in model.history_} == {"sample"}


@pytest.mark.parametrize("k, kept", [(2, 1), (3, 0)])
def test_a_collapse_counts_against_a_fit_of_two_clusters(k, kept):
    """Of several clusters the others are still there, and the farthest apart are kept."""
    model = Planes(np.ones((k, 1)), np.zeros(k))

    def fit(separation, converged, reason):
        end = {"shares": np.full(k, 1 / k), "n_iter": 3, "converged": converged, "reason": reason}
        return PlaneFit(model, 1.0, 0.5, 0.0, separation, **end)

    fits = [fit(0.4, False, TOO_SMALL), fit(0.2, True, "labels settled")]
    assert int(np.argmin([cost_of(one) for one in fits])) == kept
