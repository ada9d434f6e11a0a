"""Spectral clustering: against brute force and scikit-learn's graph, and what labels depend on."""

from __future__ import annotations

from itertools import combinations

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from graph_reference import affinities, laplacian_parts, walk_kernel
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import SpectralClustering
from dmkc.datasets import make_blobs, make_moons, make_rings

N = 13_000  # several leaves, the last one partly filled


@parametrize_with_checks(
    [
        without_chances(SpectralClustering()),
        without_chances(SpectralClustering(3)),
        without_chances(SpectralClustering("auto")),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def groups(n=180, d=3, k=3, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[y], y


def rings(n=N):
    return make_rings(n, noise=0.06, seed=1)


def fit(X, n_clusters=2, **params):
    return SpectralClustering(n_clusters, random_state=0, **params).fit(X)


@pytest.mark.parametrize("shape", [make_rings, make_moons])
@pytest.mark.parametrize("n", [400, 6000])
def test_shapes_that_k_means_cannot_tell_apart(shape, n):
    X, y = shape(n, noise=0.05, seed=0)
    assert adjusted_rand_score(y, fit(X).labels_) > 0.98
    assert adjusted_rand_score(y, dmkc.KMeans(2, random_state=0).fit(X).labels_) < 0.6


@pytest.mark.parametrize("k", [5, 8])
def test_eigenvalues_and_embedding_are_those_of_the_graph(k):
    X, _ = groups(apart=1.0)
    anchors = X[::3]
    model = fit(X, 4, neighbours=k, anchors=anchors, scale=None, dtype="float64")
    values, vectors = laplacian_parts(affinities(X, anchors, k))
    count = len(model.eigenvalues_)
    np.testing.assert_allclose(model.eigenvalues_, values[:count], atol=1e-6)
    assert model.objective_ == pytest.approx(values[:4].sum(), abs=1e-6)
    ours = model.transform(X)
    kept = slice(1, 1 + ours.shape[1])
    # Rows have length 1, and each eigenvector a weight of its own, which may only fall.
    lead, *others = vectors[:, kept].T
    weights = [1.0]
    for mine, other in zip(ours[:, 1:].T, others, strict=True):
        left, right = mine * lead, ours[:, 0] * other
        weights.append(left @ right / (right @ right))
        np.testing.assert_allclose(left, weights[-1] * right, atol=1e-6)
    assert (np.diff(np.abs(weights)) < 0).all() and np.abs(weights).min() > 0
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, rtol=1e-9)


def normalised_cuts(W):
    """Every way to part the rows of a graph in two, with its normalised cut."""
    n = len(W)
    for size in range(1, n // 2 + 1):
        for chosen in combinations(range(n), size):
            inside = np.zeros(n, bool)
            inside[list(chosen)] = True
            between = W[inside][:, ~inside].sum()
            yield between / W[inside].sum() + between / W[~inside].sum(), inside


@pytest.mark.parametrize("neighbours", [4, 7])
@pytest.mark.parametrize("seed", range(4))
def test_labels_are_the_least_normalised_cut(neighbours, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(11, 2)) + np.where(np.arange(11) < 5, 0.0, 7.0)[:, None]
    W = walk_kernel(affinities(X, X, neighbours))
    _, best = min(normalised_cuts(W), key=lambda found: found[0])
    model = fit(X, neighbours=neighbours, scale=None)
    assert adjusted_rand_score(best, model.labels_) == 1.0


def test_training_rows_have_the_embedding_of_the_fit():
    X, _ = rings(3000)
    model = fit(X, 3)
    rows = model.transform(X)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-9)
    centres = np.array([rows[model.labels_ == c].mean(axis=0) for c in range(3)])
    inertia = ((rows - centres[model.labels_]) ** 2).sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    parts = [model.transform(X[a:b]) for a, b in ((0, 1), (1, 700), (700, 3000))]
    np.testing.assert_allclose(np.vstack(parts), rows, atol=1e-6)


def test_new_rows_are_labelled_as_equal_rows_of_the_fit():
    X, _ = rings(3000)
    model = fit(X)
    np.testing.assert_array_equal(model.predict(X[::-7].copy()), model.labels_[::-7])
    fresh, truth = make_rings(500, noise=0.06, seed=9)
    assert adjusted_rand_score(truth, model.predict(fresh)) > 0.98


@pytest.fixture(scope="module")
def reference():
    return fit(rings()[0])


def assert_identical(model, expected):
    np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(expected.labels_))
    np.testing.assert_array_equal(model.eigenvalues_, expected.eigenvalues_)
    np.testing.assert_array_equal(model.anchors_, expected.anchors_)
    assert model.inertia_ == expected.inertia_


@pytest.mark.parametrize("form", ["dask", "small chunks", "zarr", "frame", "fortran"])
def test_the_form_of_rows_changes_no_bit(form, reference, tmp_path):
    X, _ = rings()
    shaped = {
        "dask": lambda: da.from_array(X, chunks=(4000, 2)),
        "small chunks": lambda: da.from_array(X, chunks=(333, 1)),
        "zarr": lambda: zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(999, 2)),
        "frame": lambda: pd.DataFrame(X, columns=["a", "b"]),
        "fortran": lambda: np.asfortranarray(X),
    }[form]()
    assert_identical(fit(shaped), reference)


@pytest.mark.parametrize("feature_mode", ["persist", "recompute", "store"])
def test_where_values_are_held_changes_no_bit(feature_mode, reference):
    assert_identical(fit(rings()[0], feature_mode=feature_mode), reference)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit(threads, reference):
    with dask.config.set(scheduler="threads", num_workers=threads):
        assert_identical(fit(rings()[0]), reference)


def test_small_blocks_change_no_bit(reference, monkeypatch):
    monkeypatch.setattr("dmkc.scan.engine.block_bytes_for", lambda *a: 1)
    assert_identical(fit(rings()[0]), reference)


def test_a_cluster_changes_no_bit(process_client, reference):
    X = da.from_array(rings()[0], chunks=(2500, 2))
    assert_identical(fit(X, client=process_client), reference)


def test_a_row_of_weight_three_is_three_rows():
    X, y = groups(200, apart=6.0)
    weights = np.random.default_rng(0).integers(1, 4, size=200)
    weighted = SpectralClustering(3, random_state=0, dtype="float64").fit(X, sample_weight=weights)
    repeated = fit(np.repeat(X, weights, axis=0), 3, dtype="float64")
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-9)
    np.testing.assert_allclose(weighted.anchors_, repeated.anchors_, atol=1e-12)
    np.testing.assert_array_equal(weighted.labels_, repeated.predict(X))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-6)
    nothing = fit(np.vstack([X, X + 50]), 3, dtype="float64")
    without = SpectralClustering(3, random_state=0, dtype="float64").fit(
        np.vstack([X, X + 50]), sample_weight=np.repeat([1.0, 0.0], 200)
    )
    assert len(without.anchors_) == 200 < len(nothing.anchors_)
    assert adjusted_rand_score(y, without.labels_[:200]) > 0.9


def test_views_are_their_columns_side_by_side():
    X, _ = groups(200, apart=6.0)
    expected = fit(X, 3)
    views = {"left": X[:, :1], "right": X[:, 1:]}
    model = fit(views, 3)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(views), expected.labels_)


def test_sparse_rows_are_labelled_as_dense_ones():
    X, y = groups(400, d=6, apart=5.0)
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense, sparse = fit(X, 3), fit(sp.csr_array(X), 3)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.predict(X), dense.labels_)
    assert adjusted_rand_score(y, dense.labels_) > 0.9


def test_duplicates_share_anchors_and_labels():
    X, _ = groups(100)
    model = fit(np.vstack([X] * 5), 3)
    assert len(model.anchors_) == 100
    assert (model.labels_.reshape(5, 100) == model.labels_[:100]).all()


def test_few_rows_are_their_own_anchors():
    X, _ = groups(30, apart=8.0)
    model = fit(X, 3, scale=None)
    np.testing.assert_allclose(
        np.sort(model.anchors_, axis=0), np.sort(X - X.mean(axis=0), axis=0), atol=1e-12
    )


def test_rows_that_are_two_points():
    X = np.repeat([[0.0, 1.0], [5.0, 0.0]], [12, 8], axis=0)
    for neighbours in (1, 2, 10):
        model = fit(X, neighbours=neighbours)
        assert adjusted_rand_score(np.repeat([0, 1], [12, 8]), model.labels_) == 1.0


def test_a_column_that_is_constant_changes_nothing():
    X, _ = groups(150, apart=6.0)
    with_constant = np.column_stack([X, np.full(150, 3.0)])
    np.testing.assert_array_equal(fit(with_constant, 3).labels_, fit(X, 3).labels_)


@pytest.mark.parametrize(
    ("X", "params", "sentence"),
    [
        (np.ones((20, 3)), {}, "All rows are equal"),
        (np.ones((1, 3)), {}, "1 row.* cannot form 2 clusters"),
        (np.eye(4), {"neighbours": 0}, "neighbours must be"),
        (np.eye(4), {"anchors": 1}, "anchors must be"),
        (np.eye(4), {"anchors": np.eye(3)}, "have 3 columns, but the kernel sees 4"),
        (np.eye(4), {"n_clusters": (5, 3)}, "n_clusters must be"),
        (np.eye(4), {"n_clusters": "some"}, "n_clusters must be"),
    ],
)
def test_mistakes(X, params, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit(X, **params)


def test_one_row_may_be_one_cluster():
    model = fit(np.ones((1, 3)), 1)
    assert model.labels_.tolist() == [0] and model.transform(np.ones((2, 3))).shape[0] == 2


def test_more_neighbours_than_anchors_are_all_of_them():
    X, _ = groups(60, apart=6.0)
    np.testing.assert_array_equal(
        fit(X, 3, anchors=X[:10], neighbours=40).transform(X),
        fit(X, 3, anchors=X[:10], neighbours=10).transform(X),
    )


@pytest.mark.parametrize("n", [300, 5000])
def test_the_number_of_clear_clusters_is_found(n):
    X, y = make_blobs(n, 4, 3, spread=0.5, seed=2)
    model = fit(X, "auto")
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) > 0.99
    assert [r["n_clusters"] for r in model.selection_] == list(range(2, 11))
    assert [r["n_clusters"] for r in model.selection_ if r["chosen"]] == [3]
    gaps = {r["n_clusters"]: r["eigengap"] for r in model.selection_}
    np.testing.assert_allclose(
        [gaps[m] for m in gaps], np.diff(model.eigenvalues_)[1 : len(gaps) + 1]
    )
    assert max(gaps, key=gaps.get) == 3
    assert fit(X, (4, 6)).n_clusters_ in (4, 5, 6)
    assert fit(X, 3).selection_ is None


@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
def test_files_keep_every_bit(n_clusters, tmp_path):
    X, _ = rings(3000)
    model = fit(X, n_clusters)
    model.save(tmp_path / "m.zarr")
    loaded = dmkc.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.eigenvalues_, model.eigenvalues_)
    assert loaded.selection_ == model.selection_ and loaded.n_clusters_ == model.n_clusters_


def test_a_finished_fit_is_replayed(tmp_path, reference):
    for _ in range(2):
        with dmkc.checkpoint(tmp_path):
            assert_identical(fit(rings()[0]), reference)


def test_training_on_some_rows():
    X, y = rings()
    model = fit(X, train_rows=3000, polish=2)
    assert adjusted_rand_score(y, model.labels_) > 0.98
