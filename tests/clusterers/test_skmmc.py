"""SparseKernelMMC: the family it covers, the sparse basis, and scikit-learn's contract."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import Gaussian, MultipleKernelClustering, SparseKernelMMC
from dmkc.datasets import make_ringnorm
from dmkc.metrics import accuracy

FAMILY = [(t, b) for t in ("adaptive", "unit") for b in ("nystrom", "sparse")]


@parametrize_with_checks([without_chances(SparseKernelMMC())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


SPARSE_CHECKS = [
    pytest.param(check, id=check.func.__name__)
    for _, check in estimator_checks_generator(without_chances(SparseKernelMMC(basis="sparse")))
    if check.func.__name__ != "check_clustering"  # which wants three clusters
]


@pytest.mark.slow
@pytest.mark.parametrize("check", SPARSE_CHECKS)
def test_scikit_learn_checks_of_the_sparse_basis(check):
    check(without_chances(SparseKernelMMC(basis="sparse")))


def rings(n=400, seed=0):
    """A dense group inside a wide one: no plane in the columns separates them."""
    X, y = make_ringnorm(n, 4, seed=seed)
    return X, y


@pytest.mark.parametrize(("threshold", "basis"), FAMILY)
def test_every_member_finds_two_groups(threshold, basis):
    X, y = make_blobs(300, centers=2, cluster_std=2.0, random_state=1)
    model = SparseKernelMMC(threshold=threshold, basis=basis, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.n_vectors_ <= 200 and (basis == "nystrom" or model.n_vectors_ < 30)
    assert (model.threshold_ == 1.0) == (threshold == "unit")


def test_a_gaussian_kernel_beats_k_means_on_ringnorm():
    X, y = make_ringnorm(1000, seed=3)
    model = SparseKernelMMC(random_state=0).fit(X)
    centroids = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    assert accuracy(y, model.labels_) > 0.97 > 0.85 > accuracy(y, centroids)


def test_nystrom_is_multiple_kernel_clustering_with_one_kernel():
    X, _ = rings()
    params = {"C": 2.5, "rank": 50, "init": "k-means", "tol": 1e-3, "random_state": 1}
    params["scale"] = "standard"
    one = SparseKernelMMC(kernels="gaussian:0.7", **params).fit(X)
    other = MultipleKernelClustering(kernels="gaussian:0.7", threshold="adaptive", **params).fit(X)
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize("threshold", ["adaptive", "unit"])
def test_a_linear_kernel_separates_by_a_plane_of_the_columns(threshold):
    X, _ = rings()
    model = SparseKernelMMC(kernels="linear", threshold=threshold, random_state=0).fit(X)
    scores = model.decision_function(X)
    ones = np.column_stack([X, np.ones(len(X))])
    fitted = ones @ np.linalg.lstsq(ones, scores, rcond=None)[0]
    np.testing.assert_allclose(scores, fitted, atol=1e-8)


def test_several_kernels_get_weights():
    X, _ = make_ringnorm(600, seed=1)
    model = SparseKernelMMC(kernels=["linear", "gaussian:0.5"], random_state=0).fit(X)
    assert model.kernel_weights_.shape == (2,)
    assert np.linalg.norm(model.kernel_weights_) == pytest.approx(1)


def test_several_clusters():
    digits = load_digits()
    some = np.isin(digits.target, (0, 6, 8, 9))
    model = SparseKernelMMC(4, scale=None, random_state=0).fit(digits.data[some])
    assert accuracy(digits.target[some], model.labels_) > 0.95
    assert np.bincount(model.labels_).min() > 150


@pytest.mark.parametrize("C", [1.05, 1.5, 10.0, 100.0])
def test_easy_groups_do_not_depend_on_the_price(C):
    X, y = make_blobs(200, centers=2, cluster_std=1.0, random_state=1)
    model = SparseKernelMMC(C=C, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_more_vectors_per_cut_come_closer_to_the_whole_kernel():
    X, _ = rings(300)
    few, many = (
        SparseKernelMMC(basis="sparse", vectors_per_cut=k, random_state=0).fit(X) for k in (1, 4)
    )
    assert few.n_vectors_ < many.n_vectors_ <= 200
    whole = SparseKernelMMC(landmarks=X, random_state=0).fit(X)
    agreement = [accuracy(whole.labels_, m.labels_) for m in (few, many)]
    assert agreement[1] >= agreement[0] - 0.02 and agreement[1] > 0.9


def test_rank_bounds_the_number_of_vectors():
    X, _ = rings()
    model = SparseKernelMMC(basis="sparse", rank=5, vectors_per_cut=3, random_state=0).fit(X)
    assert model.n_vectors_ <= 5


def test_a_sparse_model_is_saved_and_loaded(tmp_path):
    X, _ = rings()
    model = SparseKernelMMC(basis="sparse", random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = dmkc.load(tmp_path / "model")
    assert isinstance(again, SparseKernelMMC)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.n_vectors_ == model.n_vectors_ and again.threshold_ == model.threshold_


@pytest.mark.parametrize("basis", ["nystrom", "sparse"])
def test_the_same_bits_from_any_chunks(basis):
    X, _ = make_ringnorm(9000, 5, seed=2)
    params = {"basis": basis, "rank": 40, "sample_rows": 600, "random_state": 4}
    expected = SparseKernelMMC(**params).fit(X)
    for chunks, mode in [((9000, 5), "recompute"), ((1111, 2), "persist")]:
        found = SparseKernelMMC(feature_mode=mode, **params).fit(da.from_array(X, chunks))
        assert found.objective_ == expected.objective_
        np.testing.assert_array_equal(found.labels_.compute(), expected.labels_)


@pytest.mark.parametrize("basis", ["nystrom", "sparse"])
def test_a_row_of_weight_three_is_three_equal_rows(basis):
    X, y = make_blobs(150, centers=2, cluster_std=4.0, random_state=3)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    params = {"basis": basis, "kernels": Gaussian(gamma=0.1), "scale": None, "random_state": 0}
    if basis == "nystrom":
        params |= {"landmarks": X[:40], "tol": 1e-6}
    weighted = SparseKernelMMC(init=y, **params).fit(X, sample_weight=weights)
    repeated = np.repeat(np.arange(len(X)), weights)
    plain = SparseKernelMMC(init=y[repeated], **params).fit(X[repeated])
    # pre-images begin at rows drawn at random, so that the sparse bases differ
    assert accuracy(plain.predict(X), weighted.labels_) > (0.99 if basis == "nystrom" else 0.95)
    if basis == "nystrom":
        assert weighted.objective_ == pytest.approx(plain.objective_, rel=1e-4)


@pytest.mark.parametrize("basis", ["nystrom", "sparse"])
def test_training_on_a_subset(basis):
    X, y = make_ringnorm(4000, seed=5)
    model = SparseKernelMMC(
        basis=basis, train_rows=600, polish=3, init=y, random_state=0, sample_rows=500
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert accuracy(y, model.labels_) > 0.95


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"basis": "spars"}, "Did you mean 'sparse'"),
        ({"vectors_per_cut": 2}, 'goes with basis="sparse"'),
        ({"vectors_per_cut": 0, "basis": "sparse"}, "vectors_per_cut must be an integer"),
        ({"basis": "sparse", "kernels": "linear"}, "one Gaussian kernel"),
        ({"basis": "sparse", "kernels": ["gaussian", "gaussian:2"]}, "one Gaussian kernel"),
        ({"basis": "sparse", "n_clusters": 3}, "two clusters"),
        ({"basis": "sparse", "landmarks": "kmeans"}, "makes its own landmarks"),
        ({"basis": "sparse", "init": "pca"}, "needs features"),
        ({"C": 1.0}, "C must exceed 1"),
        ({"C": 2.0, "balance": 0.5}, "balance must be a number below"),
        ({"n_clusters": 3, "balance": 0.1}, "balance bounds"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseKernelMMC(**params).fit(rings(50)[0])


def test_one_cluster_is_all_zeros():
    for basis in ("nystrom", "sparse"):
        model = SparseKernelMMC(1, basis=basis).fit(np.eye(5))
        assert model.labels_.tolist() == [0] * 5


def test_the_command_line_knows_it(tmp_path, capsys):
    from dmkc.cli import main

    X, _ = rings(200)
    np.save(tmp_path / "rows.npy", X)
    words = ["fit", str(tmp_path / "rows.npy"), "--method", "skmmc", "--basis", "sparse"]
    assert main([*words, "--random-state", "0", "--out", str(tmp_path / "run")]) in (0, None)
    capsys.readouterr()
    assert isinstance(dmkc.load(tmp_path / "run" / "model.zarr"), SparseKernelMMC)


@pytest.mark.parametrize(("seed", "columns"), [(9, 5), (42, 30), (3, 2)])
def test_weights_are_repeated_rows_for_the_sparse_basis(seed, columns):
    """The master puts rows on the margin itself, where rounding could choose the next vector."""
    rng = np.random.RandomState(seed)
    X = rng.rand(20, columns)
    weights = rng.randint(0, 5, size=20)
    repeated = rng.permutation(X.repeat(weights, axis=0))
    weighted = SparseKernelMMC(basis="sparse", random_state=0).fit(X, sample_weight=weights)
    plain = SparseKernelMMC(basis="sparse", random_state=0).fit(repeated)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-7, atol=1e-9)
