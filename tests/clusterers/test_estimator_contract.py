"""scikit-learn's contract, what labels mean, and every sentence an error says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

from dmkc import MultipleKernelClustering
from dmkc.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial


@parametrize_with_checks(
    [without_chances(MultipleKernelClustering()), without_chances(MultipleKernelClustering(3))]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=300, d=4, seed=0, sizes=None):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], sizes) if sizes else rng.integers(0, 2, size=n)
    return rng.normal(size=(len(y), d)) + 6.0 * y[:, None], y


def make(**params):
    return MultipleKernelClustering(**{"random_state": 0, "rank": 30, **params})


def test_parameters_can_be_read_set_and_cloned():
    model = make(C=3.0, kernels=["linear", Gaussian(2.0)])
    params = model.get_params()
    assert params["C"] == 3.0 and params["rank"] == 30
    assert clone(model).get_params() == params
    assert model.set_params(C=4.0) is model and model.C == 4.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(bandwidth=1.0)


def test_clones_share_the_client(thread_client):
    model = MultipleKernelClustering(3, kernels="gaussian", client=thread_client)
    copy = clone(model)
    assert copy.client is thread_client and model.client is thread_client
    assert (copy.n_clusters, copy.kernels) == (3, "gaussian")


def test_fit_does_not_change_parameters_and_returns_itself():
    model = make(kernels=["linear", "gaussian"], init=["k-means"])
    before = dict(model.get_params())
    assert model.fit(blobs()[0]) is model
    assert model.get_params() == before


def test_it_goes_into_a_pipeline():
    X, y = blobs()
    steps = make_pipeline(StandardScaler(), make())
    labels = steps.fit_predict(X * [1, 10, 100, 1000])
    assert adjusted_rand_score(y, labels) == 1.0
    np.testing.assert_array_equal(steps.predict(X * [1, 10, 100, 1000]), labels)


def test_a_fitted_model_survives_pickling():
    X, _ = blobs()
    model = make().fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


@pytest.mark.parametrize("sizes", [(60, 140), (140, 60)])
def test_the_larger_cluster_is_number_zero(sizes):
    X, y = blobs(sizes=sizes)
    labels = make().fit(X).labels_
    assert adjusted_rand_score(y, labels) == 1.0
    assert np.bincount(labels).tolist() == [140, 60]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("sample_rows", [16384, 64])
def test_of_equal_clusters_the_one_with_the_first_row_is_number_zero(swap, sample_rows):
    X, _ = blobs(sizes=(100, 100))
    X = X[::-1] if swap else X
    labels = make(sample_rows=sample_rows).fit(X).labels_
    assert labels[0] == 0
    assert np.bincount(labels).tolist() == [100, 100]


def test_labels_are_what_predict_gives_and_fit_predict_returns_them():
    X, _ = blobs()
    for sample_rows in (16384, 64):
        model = make(sample_rows=sample_rows).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)
        assert model.labels_.dtype.kind == "i"


def test_new_rows_are_told_apart():
    X, y = blobs(600)
    model = make().fit(X[:300])
    assert adjusted_rand_score(y[300:], model.predict(X[300:])) == 1.0


def test_one_row_can_be_predicted():
    X, _ = blobs()
    model = make().fit(X)
    assert [int(model.predict(X[i : i + 1])[0]) for i in range(20)] == model.labels_[:20].tolist()


@pytest.mark.parametrize("X", [blobs()[0], np.ones((5, 2)), np.ones((1, 3)), [[1.0], [2.0]]])
def test_one_cluster_is_all_zeros(X):
    model = make(n_clusters=1).fit(X)
    assert model.labels_.tolist() == [0] * len(X)
    assert model.predict(X).tolist() == [0] * len(X)
    assert model.transform(X).shape[0] == len(X)


@pytest.mark.parametrize(
    "kernels",
    [None, [Linear()], [Laplacian(gamma=0.1), Cosine(), Polynomial(3, gamma=0.2), Linear()]],
)
def test_inner_products_of_transformed_rows_are_the_learned_kernel(kernels):
    X, _ = blobs(80)
    model = make(kernels=kernels, rank=80, norm=1.5, landmarks=X, scale="standard").fit(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.zeros((80, 80))
    for weight, kernel in zip(model.kernel_weights_, model.kernels_, strict=True):
        K = kernel.matrix(Z, Z)
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        expected += weight * K / (np.trace(K) / 80)
    found = model.transform(X)
    assert found.shape[1] == len(model.get_feature_names_out())
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-6)


def test_fitted_kernels_have_their_widths():
    model = make(kernels=["gaussian", "polynomial:3", "laplacian"]).fit(blobs()[0])
    assert all(kernel.gamma > 0 for kernel in model.kernels_)
    assert model.kernels_[1].gamma == pytest.approx(1 / 4)


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_units_do_not_matter(scale):
    """Without scaling, one unit for all columns does not matter to these kernels."""
    X, _ = blobs()
    units = np.array([1e-3, 1.0, 1e3, 1e6]) if scale else np.array([2.0] * 4)
    params = {"scale": scale, "kernels": None if scale else ["linear", "gaussian", "cosine"]}
    model = make(landmarks=X[:30], **params).fit(X)
    other = make(landmarks=X[:30] * units + 5, **params).fit(X * units + 5)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize(("unit", "same_as"), [(3.0, None), (30.0, "standard")])
def test_if_mixed_divides_columns_of_different_units_only(unit, same_as):
    X, _ = blobs()
    X = np.column_stack([X / X.std(axis=0) * [1, 1, 1, unit], np.ones(len(X))])
    model, other = (make(scale=scale).fit(X) for scale in ("if-mixed", same_as))
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_attributes_of_a_fit():
    X, _ = blobs()
    model = make().fit(X)
    assert model.n_features_in_ == 4
    assert len(model.kernel_weights_) == len(model.kernels_) == 3
    assert model.C_ > 0 and model.n_iter_ >= 1 and model.n_scans_ >= 1
    assert isinstance(model.start_, str)
    assert make(C=2.5).fit(X).C_ == 2.5


@pytest.mark.parametrize("state", [3, np.int64(3), np.random.RandomState(3)])
def test_random_states(state):
    X, y = blobs()
    assert adjusted_rand_score(y, make(random_state=state).fit(X).labels_) == 1.0


def test_given_starts_may_have_any_two_labels():
    X, y = blobs()
    for labels in (y, np.where(y == 1, "a", "b"), y.tolist(), [y, 1 - y], y.astype(bool)):
        model = make(init=labels).fit(X)
        assert model.start_ == "given"
        assert adjusted_rand_score(y, model.labels_) == 1.0


def spoiled(places):
    X = blobs()[0]
    for (i, j), value in places.items():
        X[i, j] = value
    return X


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (spoiled({(7, 2): np.nan}), "contains 1 NaN value.*row 7, column 2"),
        (
            spoiled({(8, 1): np.inf, (3, 0): -np.inf}),
            "2 infinite.*row 3, column 0; row 8, column 1",
        ),
        (spoiled({(1, 1): np.nan, (2, 2): np.inf}), "1 NaN and 1 infinite"),
        (blobs()[0][:1], "1 row.* cannot form 2 clusters"),
        (np.full((20, 3), 4.2), "All rows are equal"),
        (np.array([["a", "b"], ["c", "d"]]), "not hold numbers|not a number"),
        (np.array([["a", 1], ["c", 2]], dtype=object), "'a', which is not a number"),
        (np.ones((2, 2)) + 1j, "Complex data not supported"),
        (np.ones(5), "Expected 2D array, got 1D array"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), "0 feature"),
        (np.ones((3, 2, 2)), "dim <= 2 is required"),
    ],
)
def test_rows_that_cannot_be_clustered(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        make().fit(X)


def test_infinite_values_are_refused_without_other_noise(recwarn):
    with pytest.raises(ValueError, match="infinite"):
        make().fit(np.vstack([spoiled({(8, 1): np.inf})] * 20))
    assert not [str(w.message) for w in recwarn]


def test_a_column_of_a_frame_is_named_in_the_message():
    import pandas as pd

    frame = pd.DataFrame(spoiled({(7, 2): np.nan}), columns=["a", "b", "c", "d"])
    frame.index = [f"row{i}" for i in range(len(frame))]
    with pytest.raises(ValueError, match="row row7, column c"):
        make().fit(frame)


def test_something_that_is_not_rows():
    with pytest.raises(TypeError, match="not supported; pass a NumPy array"):
        make().fit(object())


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"C": 0}, "C must be a number greater than 0"),
        ({"C": -1.0}, "C must be a number greater than 0"),
        ({"C": np.nan}, "C must be a number greater than 0"),
        ({"C": np.inf}, "C must be a"),
        ({"C": "1"}, "C must be a number greater than 0"),
        ({"balance": -0.1}, "balance must be a number at least 0"),
        ({"balance": np.inf}, "balance must be"),
        ({"norm": 0.5}, "norm must be a number at least 1"),
        ({"tol": 0.0}, "tol must be a number greater than 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"max_iter": 2.0}, "max_iter must be an integer"),
        ({"rank": 0}, "rank must be an integer of at least 1"),
        ({"rank": True}, "rank must be an integer"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"sample_rows": 1}, "sample_rows must be an integer of at least 2"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_clusters": 2.5}, "n_clusters must be an integer"),
        ({"verbose": -1}, "verbose must be an integer of at least 0"),
        ({"random_state": -1}, "random_state must not be negative"),
        ({"random_state": "a"}, "random_state must be"),
        ({"scale": "standart"}, "scale must be one of.*Did you mean 'standard'"),
        ({"solver": "clarabell"}, "solver must be one of.*Did you mean 'clarabel'"),
        ({"dtype": "float16"}, "dtype must be one of.*Did you mean"),
        ({"feature_mode": "recomputed"}, "feature_mode must be one of.*Did you mean 'recompute'"),
        ({"refine": "al"}, "refine must be one of.*Did you mean 'all'"),
        ({"landmarks": "k-means"}, "landmarks must be one of.*Did you mean 'kmeans'"),
        ({"landmarks": np.ones((3, 2))}, "landmarks must be one or more rows with 4 columns"),
        ({"landmarks": np.full((3, 4), np.nan)}, "landmarks must be finite, but hold NaN"),
        ({"landmarks": np.ones((0, 4))}, "landmarks must be"),
        ({"kernels": "gausian"}, "Unknown kernel 'gausian'.*Did you mean 'gaussian'"),
        ({"kernels": []}, "non-empty list"),
        ({"init": "kmeans"}, "Unknown init 'kmeans'; known are .*k-means"),
        ({"init": "kmeans"}, "Did you mean 'k-means'"),
        ({"init": []}, "at least one start"),
        ({"init": [0, 1, 0]}, "one label per row"),
        ({"init": np.zeros(300)}, "(two|2) different labels"),
        ({"kernels": Gaussian(gamma=1e-30)}, "Every kernel of the bank is constant"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(blobs()[0])


def test_something_that_is_no_client():
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, not int"):
        make(client=3).fit(blobs()[0])


def test_a_constant_kernel_among_others_gets_no_weight():
    X, y = blobs()
    with pytest.warns(UserWarning, match="constant on these rows get no weight"):
        model = make(kernels=[Gaussian(gamma=1e-30), Linear()]).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.kernel_weights_[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("method", ["predict", "transform", "decision_function"])
def test_nothing_works_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(make(), method)(blobs()[0])


@pytest.mark.parametrize("method", ["predict", "transform", "decision_function"])
def test_new_rows_must_have_the_same_columns(method):
    X, _ = blobs()
    model = make().fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        getattr(model, method)(X[:, :3])


@pytest.mark.parametrize("method", ["predict", "transform", "decision_function"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_new_rows_must_be_finite(method, value):
    model = make().fit(blobs()[0])
    X = blobs()[0]
    X[4, 1] = value
    with pytest.raises(ValueError, match=r"NaN|inf"):
        getattr(model, method)(X)


def test_new_frames_must_have_the_same_names():
    import pandas as pd

    frame = pd.DataFrame(blobs()[0], columns=list("abcd"))
    model = make().fit(frame)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_clusters_on_easy_data_are_found_by_every_kernel():
    X, y = make_blobs(400, 5, centers=2, cluster_std=0.5, random_state=3)
    for kernels in ("linear", "gaussian", "laplacian", "cosine", "polynomial:3", None):
        assert adjusted_rand_score(y, make(kernels=kernels).fit(X).labels_) == 1.0
