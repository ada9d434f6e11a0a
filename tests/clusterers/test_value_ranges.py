"""Finite values out of all bounds: refused by column and value and never called NaN."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dmkc import Gaussian, KMeans, Laplacian, MultipleKernelClustering, Polynomial
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.data import check_weights
from dmkc.datasets import make_blobs
from dmkc.errors import UserError

BLOBS = make_blobs(90, 3, 2, seed=1)[0].astype(float)
NAMES = ["a", "b", "c"]


def estimator(method, **parameters):
    cls = ESTIMATORS[method]
    small = {"rank": 20, "n_members": 2} | parameters
    return cls(2, random_state=0, **{k: v for k, v in small.items() if k in cls.parameters()})


def column_times(factor):
    X = BLOBS.copy()
    X[:, 1] *= factor
    return pd.DataFrame(X, columns=NAMES)


def refused(model, X, words, **more):
    """One true sentence, and no warning of an overflow on the way to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(UserError, match=words) as caught:
            model.fit(X, **more)
    assert "NaN" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_values_that_cannot_be_squared(method):
    for factor in (1e154, 1e160, 1e300, 1e307):
        refused(estimator(method), column_times(factor), r"Column b of X holds -?\d.*e\+")
    refused(estimator(method), BLOBS * 1e160, r"Column \d of X holds")
    refused(estimator(method, scale="minmax"), column_times(1e307), "Column b of X holds")


@pytest.mark.parametrize("method", ESTIMATORS)
def test_differences_that_vanish(method):
    for factor in (1e-160, 1e-310):
        refused(estimator(method), column_times(factor), "Column b of X varies by .*e-.* only")
        refused(estimator(method, scale=None), BLOBS * factor, "varies by .*e-.* only")


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("factor", [1e60, 1e-60])
def test_what_a_fit_takes_transform_and_predict_take(method, factor):
    X = BLOBS * factor
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = estimator(method, kernels=["linear", "gaussian"]).fit(X)
        assert np.isfinite(np.asarray(model.transform(X))).all()
        assert (np.asarray(model.predict(X)) == np.asarray(model.labels_)).all()


def test_a_choice_among_methods_scales_by_itself():
    for factor in (1e110, 1e-110, 1e150, 1e-150):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = estimator("auto").fit(BLOBS * factor)
            assert np.isfinite(np.asarray(model.transform(BLOBS * factor))).all()


@pytest.mark.parametrize(
    "method", [name for name in ESTIMATORS if name not in ("consensus", "auto")]
)
def test_units_that_are_out_of_bounds_unless_they_are_scaled(method):
    for factor, what in ((1e110, "large"), (1e-110, "small")):
        refused(estimator(method, scale=None), BLOBS * factor, f"too {what} to compute with")
    for factor in (1e150, 1e-150):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = estimator(method, scale="standard").fit(BLOBS * factor)
            assert np.isfinite(np.asarray(model.transform(BLOBS * factor))).all()


@pytest.mark.parametrize("method", ESTIMATORS)
def test_weights_out_of_bounds(method):
    for value, words in ((1e300, r"holds 1e\+300"), (1e-310, "holds 1e-310")):
        weights = np.where(np.arange(len(BLOBS)) % 2, value, 1.0)
        refused(estimator(method), BLOBS, f"sample_weight {words}", sample_weight=weights)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_weights_near_the_bounds_and_rows_of_single_precision(method):
    X, n = BLOBS.astype(np.float32), len(BLOBS)
    for weights in (np.where(np.arange(n) < n // 2, 1e29, 1.0), np.full(n, 1e-29)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = estimator(method).fit(X, sample_weight=weights)
            assert np.isfinite(np.asarray(model.transform(X))).all()


def test_weights_of_zero_and_lazy_ones():
    weights = np.array([0.0, 1e-29, 1e29])
    assert (check_weights(weights, 3) == weights).all()
    with pytest.raises(UserError, match="1e-310"):
        check_weights(da.from_array(np.array([0.0, 1.0, 1e-310])), 3)
    for wrong in (["a", "b", "c"], [{}, 1, 1], [[1], [1, 2], 1]):
        with pytest.raises(UserError, match="must hold numbers"):
            check_weights(wrong, 3)
    for wrong in ([np.nan, 1, 1], [np.inf, 1, 1], [-1, 1, 1], [0, 0, 0]):
        with pytest.raises(UserError, match="not only zeros"):
            check_weights(wrong, 3)


@pytest.mark.parametrize("method", [name for name in ESTIMATORS if name != "kmeans"])
def test_whole_numbers_that_are_rounded_away(method):
    near = 2**53 + np.arange(90)[:, None] + np.arange(3)
    refused(estimator(method), near, r"Column 0 of X holds whole numbers such as 90.*2\^53")
    equal = 2**62 + np.arange(90)[:, None] % 2 + np.zeros(3, np.int64)
    refused(estimator(method), equal, r"whole numbers such as 461")
    refused(estimator(method), 1e16 + 2.0 * (np.arange(90)[:, None] % 2) + np.zeros(3), "rounding")


def test_whole_numbers_that_kmeans_cannot_tell_apart():
    refused(KMeans(2), 2**62 + np.arange(90)[:, None] % 2 + np.zeros(3, np.int64), "2\\^53")
    times = 2**60 + (np.arange(90)[:, None] % 2) * 10**12 + np.zeros(3, np.int64)
    assert KMeans(2, random_state=0).fit(times).n_clusters_ == 2


def test_single_precision_has_bounds_of_its_own():
    usual = KMeans(2, random_state=0).fit(BLOBS).labels_
    for factor, what in ((1e30, "large"), (1e-30, "small")):
        X = (BLOBS * factor).astype(np.float32)
        refused(KMeans(2, scale=None), X, f"too {what} to compute with in float32")
        refused(MultipleKernelClustering(2, scale=None, dtype="float32"), X, f"too {what}")
        for scale in ("standard", "if-mixed"):
            found = KMeans(2, scale=scale, random_state=0).fit(X)
            np.testing.assert_array_equal(found.labels_, usual)


def test_sparse_rows_are_looked_at_too():
    X = sp.csr_array(np.where(BLOBS > 0, BLOBS, 0.0) * 1e200)
    for method in ("kmeans", "kernel-kmeans"):
        refused(estimator(method), X, "Column . of X holds")


@pytest.mark.parametrize("kernel", [Polynomial(100), Polynomial(60, gamma=1e10)])
def test_kernels_that_overflow_are_named(kernel):
    bank = ["gaussian", kernel]
    model = MultipleKernelClustering(2, kernels=bank, scale=None, rank=20, random_state=0)
    refused(model, BLOBS * 1e8, r"The kernel Polynomial.*holds .*e\+")


@pytest.mark.parametrize("method", ["mkc", "kmeans", "spectral", "planes"])
def test_new_rows_that_are_too_large_are_not_called_nan(method):
    model = estimator(method).fit(BLOBS)
    for X in (BLOBS * 1e200, sp.csr_array(BLOBS * 1e200)):
        with pytest.raises(UserError, match="as large as") as caught, np.errstate(all="ignore"):
            model.predict(X)
        assert "NaN" not in str(caught.value)
    with pytest.raises(UserError, match="NaN"):
        model.predict(np.where(BLOBS > 0, np.nan, BLOBS))


WIDTHS = [0.0, -1.0, 1e-320, 1e301, np.inf, np.nan, "wide", [1.0], 10**400]


@pytest.mark.parametrize("value", WIDTHS, ids=[str(value)[:9] for value in WIDTHS])
def test_widths_of_kernels_are_bounded(value):
    for make in (Gaussian, Laplacian, lambda v: Gaussian(gamma=v), lambda v: Gaussian(diameters=v)):
        with pytest.raises(UserError, match="must be a positive number"):
            make(value)


@pytest.mark.parametrize("degree", [0, 101, 10**9, 2.5, np.inf, np.nan, [2], "2"])
def test_degrees_are_bounded(degree):
    with pytest.raises(UserError, match="degree"):
        Polynomial(degree)
    for offset in (np.nan, np.inf, 1e300, "1"):
        with pytest.raises(UserError, match="coef0"):
            Polynomial(2, coef0=offset)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_out_of_bounds_count_even_where_rows_weigh_nothing(form):
    X, weights = BLOBS.copy(), np.ones(len(BLOBS))
    X[3, 1], weights[3] = 1.7e308, 0.0
    refused(KMeans(2), form(X), r"Column 1 of X holds 1.7e\+308", sample_weight=weights)


@pytest.mark.parametrize("value", [1e10, 1e100, 1e300])
def test_weights_of_objectives_are_bounded(value):
    for method, name in (("mkc", "C"), ("odm", "C"), ("planes", "c1"), ("planes", "ridge")):
        refused(estimator(method, **{name: value}), BLOBS, f"{name} must be a number between")


@pytest.mark.parametrize("landmarks", [{}, [["a", "b", "c"]], [[1.0, 2.0], [1.0]]])
def test_landmarks_that_are_no_rows(landmarks):
    refused(estimator("kernel-kmeans", landmarks=landmarks), BLOBS, "landmarks must be rows")


@pytest.mark.parametrize("method", ["spectral", "consensus"])
def test_weights_far_apart_leave_anchors(method):
    weights = np.where(np.arange(len(BLOBS)) % 2, 1e29, 1.0)
    model = estimator(method, anchors=5).fit(BLOBS, sample_weight=weights)
    assert set(model.labels_) == {0, 1}


def test_planes_that_lose_all_clusters_but_one():
    X = np.random.default_rng(775).normal(size=(60, 1)) + 6.0 * (np.arange(60) % 2)[:, None]
    model = estimator("planes", c2=1.0, sample_rows=25).fit(X)
    assert np.isfinite(model.explained_)


@pytest.mark.parametrize("value", [10_001, 10**9, 10**400])
def test_counts_that_take_memory_are_bounded(value):
    for method, name in (("kmeans", "n_init"), ("hmkkm", "n_masks"), ("consensus", "n_members")):
        model = ESTIMATORS[method](2, **{name: value})
        refused(model, BLOBS, f"{name} must be an integer of at most 10000")
