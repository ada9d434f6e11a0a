"""k-means beside scikit-learn from the same start, its contract, and its invariances."""

from __future__ import annotations

from itertools import pairwise

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

from dmkc import KMeans


@parametrize_with_checks([without_chances(KMeans())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def mixture(n=3000, d=5, k=6, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(k, d))
    y = rng.integers(0, k, size=n)
    return centres[y] + rng.normal(size=(n, d)), y


def peer(X, init, sample_weight=None, **params):
    model = cluster.KMeans(len(init), init=init, n_init=1, algorithm="lloyd", **params)
    return model.fit(X, sample_weight=sample_weight)


def matched(ours, theirs):
    """Their labels in our numbering; every pair of clusters must be one to one."""
    table = pd.crosstab(np.asarray(theirs), np.asarray(ours))
    assert ((table > 0).sum(axis=0) == 1).all() and ((table > 0).sum(axis=1) == 1).all()
    return table.idxmax(axis=1).to_numpy()


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_same_steps_as_scikit_learn_from_the_same_start(scale, offset):
    X = mixture()[0] * scale + offset
    theirs, ours = peer(X, X[:7]), KMeans(7, init=X[:7]).fit(X)
    order = matched(ours.labels_, theirs.labels_)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    np.testing.assert_allclose(ours.cluster_centers_[order], theirs.cluster_centers_, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 9),
    d=st.integers(1, 9),
    max_iter=st.integers(1, 30),
    weighted=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_number_of_steps_equals_scikit_learn(seed, k, d, max_iter, weighted):
    X, _ = mixture(400, d, 4, seed, spread=1.0)
    weights = np.random.default_rng(seed).integers(1, 4, size=400) if weighted else None
    params = {"max_iter": max_iter, "tol": 0.0}
    theirs = peer(X, X[:k], weights, **params)
    ours = KMeans(k, init=X[:k], **params).fit(X, sample_weight=weights)
    matched(ours.labels_, theirs.labels_)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)


@pytest.mark.parametrize("k, d", [(15, 3), (16, 5), (17, 8), (66, 3), (517, 6), (300, 70)])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_clusters_take_the_same_steps(k, d, offset):
    """Also where the last tile of rows is not full and rows are shifted."""
    X, _ = mixture(2 * 4096 + 300, d, 40, spread=10.0)
    X, weights = X + offset, np.random.default_rng(k).integers(1, 4, size=len(X))
    params = {"max_iter": 3, "tol": 0.0}
    theirs = peer(X, X[:k], weights, **params)
    ours = KMeans(k, init=X[:k], **params).fit(X, sample_weight=weights)
    matched(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    for rows in (100, 5000):
        again = KMeans(k, init=X[:k], **params)
        again.fit(da.from_array(X, chunks=(rows, d)), sample_weight=weights)
        assert again.cluster_centers_.tobytes() == ours.cluster_centers_.tobytes()
        assert np.array_equal(np.asarray(again.labels_), ours.labels_)


def test_single_precision_comes_to_the_same_clusters():
    X, _ = mixture(5000)
    X = X.astype(np.float32)
    ours, theirs = KMeans(6, init=X[:6], tol=0.0).fit(X), peer(X, X[:6], tol=0.0)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.999
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-4)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_sparse_rows_equal_dense_ones(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 30)) * (rng.random((500, 30)) < 0.2)
    X[np.arange(500), rng.integers(0, 5, 500)] += 4.0
    for params in ({}, {"scale": "standard"}):
        dense = KMeans(5, init=X[:5], **params).fit(X)
        ours = KMeans(5, init=X[:5], **params).fit(kind(X))
        np.testing.assert_array_equal(ours.labels_, dense.labels_)
        np.testing.assert_array_equal(ours.predict(kind(X)), dense.labels_)
        np.testing.assert_allclose(ours.transform(kind(X)), dense.transform(X), atol=1e-7)
        np.testing.assert_allclose(ours.cluster_centers_, dense.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float32])
def test_numbers_of_any_kind(dtype):
    X = (3 * mixture(600)[0]).astype(dtype)
    ours, theirs = KMeans(4, init=X[:4]).fit(X), peer(X, X[:4])
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)


def test_an_empty_cluster_takes_the_farthest_row():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [30.0]])
    init = np.array([[0.0], [5.0], [1000.0]])
    ours, theirs = KMeans(3, init=init).fit(X), peer(X, init)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    assert ours.labels_.tolist() == [0, 0, 0, 1, 1, 2]


def test_several_empty_clusters_are_filled():
    X, _ = mixture(300, 3, 6, seed=2, spread=20.0)
    init = np.vstack([X[:2], np.full((4, 3), 1e4) + np.arange(4)[:, None]])
    ours, theirs = KMeans(6, init=init).fit(X), peer(X, init)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)


def test_fewer_distinct_rows_than_clusters_are_reported():
    with pytest.warns(ConvergenceWarning, match="2 of 3 clusters are empty"):
        model = KMeans(3, random_state=0).fit(np.ones((10, 2)))
    assert model.labels_.tolist() == [0] * 10 and model.inertia_ == 0.0


def test_max_iter_is_reported():
    X, _ = mixture()
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = KMeans(8, init=X[:8], max_iter=2).fit(X)
    assert model.n_iter_ == 2 and not model.converged_


def test_scaled_columns_are_those_of_a_scaler():
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = mixture()[0] * [1e-3, 1.0, 50.0, 1e4, 1.0] + [5, 0, 0, 1e5, 3]
    for scale, scaler in (("standard", StandardScaler()), ("minmax", MinMaxScaler())):
        Z = scaler.fit_transform(X)
        ours, theirs = KMeans(5, init=X[:5], scale=scale).fit(X), peer(Z, Z[:5])
        order = matched(ours.labels_, theirs.labels_)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
        centres = scaler.inverse_transform(theirs.cluster_centers_)
        np.testing.assert_allclose(ours.cluster_centers_[order], centres, rtol=1e-8)


def test_a_constant_column_does_not_matter_when_scaled():
    X, _ = mixture()
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    ours = KMeans(4, init=wide[:4], scale="standard").fit(wide)
    np.testing.assert_array_equal(
        ours.labels_, KMeans(4, init=X[:4], scale="standard").fit_predict(X)
    )
    np.testing.assert_array_equal(ours.cluster_centers_[:, 5], 7.0)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_starts_find_easy_clusters(init):
    X, y = mixture(20_000, 4, 5, seed=3, spread=30.0)
    model = KMeans(5, init=init, n_init=5, random_state=0, sample_rows=2000).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.999
    assert model.start_.startswith(init)


def test_starts_are_as_good_as_those_of_scikit_learn():
    X, _ = mixture(5000, 8, 25, seed=4, spread=1.5)
    theirs = cluster.KMeans(25, n_init=10, random_state=0).fit(X).inertia_
    for init in ("k-means++", "k-means||"):
        ours = KMeans(25, init=init, n_init=10, random_state=0, sample_rows=2000).fit(X).inertia_
        assert ours < 1.01 * theirs


def test_starts_in_a_batch_are_those_run_alone():
    X, _ = mixture(2000, 3, 7, spread=1.0)
    inits = [X[i : i + 7] for i in (0, 50, 100)]
    alone = [KMeans(7, init=i).fit(X) for i in inits]
    from dmkc.clusterers.fits import Named, Stage
    from dmkc.clusterers.kmeans.kmeans import frame_of
    from dmkc.clusterers.kmeans.lloyd import Lloyd, Run
    from dmkc.clusterers.rowset import SpreadRows
    from dmkc.data import as_rows
    from dmkc.scan.engine import ThreadEngine
    from dmkc.scan.grid import Grid
    from dmkc.scan.survey import SurveyScan

    rows, engine = as_rows(X), ThreadEngine()
    grid = Grid.plan(2000, 3, engine.block_bytes, engine.threads)
    blocks = list(rows.blocks(grid.block_rows))
    points = SpreadRows(engine, grid, blocks, 3, X.dtype, None)
    survey = points.run(SurveyScan(np.arange(3)))
    frame = frame_of(survey, None, rows)
    tol = 1e-4 * float(np.mean(X.var(axis=0)))
    lloyd = Lloyd(frame, 0.0, tol, 300, lambda name, run: None)
    starts = [Named(str(i), Run(centres=c)) for i, c in enumerate(inits)]
    for one, end in zip(alone, Stage(points, lloyd.measured).run(starts), strict=True):
        assert end.value.n_iter == one.n_iter_
        assert end.value.inertia == pytest.approx(one.inertia_, rel=1e-12)


def test_inertia_never_rises():
    X, _ = mixture(4000, 6, 9, spread=0.7)
    model = KMeans(9, init=X[:9]).fit(X)
    values = [step["objective"] for step in model.history_]
    assert len(values) == model.n_iter_ > 3
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))
    assert values[-1] >= model.inertia_ * (1 - 1e-12)


@settings(max_examples=8, deadline=None)
@given(chunk=st.integers(700, 9000), seed=st.integers(0, 100), dtype=st.sampled_from(["f4", "f8"]))
def test_labels_do_not_depend_on_chunks(chunk, seed, dtype):
    X = mixture(9000, 3, 5, seed=1)[0].astype(dtype)
    whole = KMeans(5, random_state=seed, sample_rows=500).fit(X)
    lazy = KMeans(5, random_state=seed, sample_rows=500).fit(da.from_array(X, chunks=(chunk, 3)))
    np.testing.assert_array_equal(lazy.labels_.compute(), whole.labels_)
    np.testing.assert_array_equal(lazy.cluster_centers_, whole.cluster_centers_)
    assert lazy.inertia_ == whole.inertia_


def test_labels_do_not_depend_on_memory(monkeypatch):
    from dmkc.scan.engine import ThreadEngine

    X, _ = mixture(9000)
    whole = KMeans(5, random_state=0).fit(X)
    lazy = da.from_array(X, chunks=(1000, 5))

    def small(self, original=ThreadEngine.__init__):
        original(self)
        self.memory, self.block_bytes = 1000, 1 << 16

    monkeypatch.setattr(ThreadEngine, "__init__", small)
    np.testing.assert_array_equal(KMeans(5, random_state=0).fit(lazy).labels_, whole.labels_)


def test_a_weight_is_as_good_as_repetition():
    X, _ = mixture(500)
    weights = np.random.default_rng(0).integers(0, 4, size=500)
    init = X[weights > 0][:5]
    ours = KMeans(5, init=init).fit(X, sample_weight=weights)
    repeated = KMeans(5, init=init).fit(np.repeat(X, weights, axis=0))
    assert ours.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)
    np.testing.assert_array_equal(np.repeat(ours.labels_, weights), repeated.labels_)
    np.testing.assert_allclose(ours.cluster_sizes_, repeated.cluster_sizes_)


def test_order_of_rows_does_not_matter():
    X, _ = mixture(1000)
    order = np.random.default_rng(0).permutation(1000)
    a, b = KMeans(5, init=X[:5]).fit(X), KMeans(5, init=X[:5]).fit(X[order])
    np.testing.assert_array_equal(a.labels_[order], b.labels_)


def test_clusters_are_numbered_by_size_then_first_row():
    X = np.array([[0.0], [9.0], [0.1], [9.1], [9.2], [20.0], [20.1]])
    model = KMeans(3, init=X[[5, 0, 1]]).fit(X)
    assert model.labels_.tolist() == [1, 0, 1, 0, 0, 2, 2]
    np.testing.assert_array_equal(model.cluster_sizes_, [3, 2, 2])


def test_predict_and_transform_of_new_rows():
    X, _ = mixture()
    model = KMeans(6, random_state=0).fit(X[:2000])
    np.testing.assert_array_equal(model.predict(X[:2000]), model.labels_)
    distances = model.transform(X[2000:])
    wanted = np.linalg.norm(X[2000:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, wanted, atol=1e-9)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.predict(X[2000:]))


def test_frames_and_names():
    frame = pd.DataFrame(mixture()[0], columns=list("abcde"))
    model = KMeans(3, random_state=0).fit(frame)
    assert isinstance(model.labels_, pd.Series)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1"),
        ({"n_clusters": 4000}, "3000 row.* cannot form 4000 clusters"),
        ({"n_init": 0}, "n_init must be an integer"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"tol": -1.0}, "tol must be a number at least 0"),
        ({"scale": "standart"}, "scale must be one of.*Did you mean 'standard'"),
        ({"init": "kmeans++"}, "init must be one of.*Did you mean 'k-means"),
        ({"init": np.zeros((3, 2))}, r"init must have shape \(2, 5\)"),
        ({"init": np.full((2, 5), np.nan)}, "init must be finite"),
        ({"init": np.zeros((2, 5)), "n_init": 2}, "one array of centroids is one start"),
        ({"sample_rows": 1}, "sample_rows must be"),
        ({"random_state": -1}, "random_state must not be negative"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        KMeans(**params).fit(mixture()[0])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_must_be_finite(value, form):
    X, _ = mixture()
    bad = X.copy()
    bad[4, 1] = value
    model = KMeans(3, random_state=0).fit(form(X))
    for method in ("fit", "predict", "transform"):
        with pytest.raises(ValueError, match=r"NaN|inf"):
            getattr(model, method)(form(bad))


def test_labels_do_not_depend_on_workers(process_client):
    X, _ = mixture(9000)
    here = KMeans(5, random_state=0, sample_rows=500, n_init=2).fit(X)
    there = KMeans(5, random_state=0, sample_rows=500, n_init=2, client=process_client).fit(X)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    np.testing.assert_array_equal(here.cluster_centers_, there.cluster_centers_)
