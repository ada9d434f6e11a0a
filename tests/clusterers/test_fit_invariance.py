"""The same seed gives the same bits whatever the form, chunks, workers and scheduler are."""

from __future__ import annotations

from functools import lru_cache

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dmkc import MultipleKernelClustering
from dmkc.kernels import Gaussian, Laplacian, Linear, Polynomial

N = 13_000  # four leaves, the last one partly filled
MANY = 70_000  # enough leaves for blocks of several sizes
DTYPES = ["float32", "float64"]
PRECISION = pytest.mark.parametrize("dtype", DTYPES)


@lru_cache
def rows(n=N):
    """Two overlapping groups, so that many rows lie inside the margin."""
    rng = np.random.default_rng(n)
    side = rng.random(n) < 0.4
    return rng.normal(size=(n, 5)) + np.where(side, 1.3, -1.0)[:, None] * [1, 1, 0.5, 0, 0]


def fit(X, **params):
    params = {"random_state": 3, "rank": 12, "sample_rows": 500, "tol": 3e-5, **params}
    return MultipleKernelClustering(**params).fit(X)


@lru_cache
def reference(dtype, n=N, n_clusters=2):
    return fit(rows(n), dtype=dtype, n_clusters=n_clusters)


def assert_identical(model, expected):
    assert model.objective_ == expected.objective_
    assert model.C_ == expected.C_
    assert model.n_iter_ == expected.n_iter_
    assert model.start_ == expected.start_
    np.testing.assert_array_equal(model.kernel_weights_, expected.kernel_weights_)
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    np.testing.assert_array_equal(model.model_.biases, expected.model_.biases)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)


@PRECISION
def test_all_rows_are_used_and_inside_the_margin(dtype):
    """Otherwise equal bits would prove little."""
    model = reference(dtype)
    scans = [r for r in model.history_ if r["on"] == "all"]
    assert len(scans) >= 3
    scores = model.decision_function(rows())
    assert scores.dtype == dtype
    assert 0.05 < np.mean(np.abs(scores) < 1) < 0.95
    assert 0.2 < model.labels_.mean() <= 0.5


@PRECISION
def test_another_seed_gives_other_bits(dtype):
    assert fit(rows(), dtype=dtype, random_state=4).objective_ != reference(dtype).objective_


@PRECISION
def test_the_same_fit_twice(dtype):
    assert_identical(fit(rows(), dtype=dtype), reference(dtype))


def chunk_sizes(n):
    return st.lists(st.integers(1, n - 1), max_size=12, unique=True).map(
        lambda cuts: tuple(np.diff([0, *sorted(cuts), n]).tolist())
    )


@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dtype=st.sampled_from(DTYPES), chunks=chunk_sizes(N), columns=chunk_sizes(5))
def test_any_chunks_of_a_dask_array(feature_mode, dtype, chunks, columns):
    X = da.from_array(rows(), chunks=(chunks, columns))
    assert_identical(fit(X, dtype=dtype, feature_mode=feature_mode), reference(dtype))


@PRECISION
def test_one_chunk_and_many_small_ones(dtype):
    for height in (N, 100):
        X = da.from_array(rows(), chunks=(height, 5))
        assert_identical(fit(X, dtype=dtype), reference(dtype))


@PRECISION
@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
def test_numpy_rows_kept_or_made_anew(dtype, feature_mode):
    assert_identical(fit(rows(), dtype=dtype, feature_mode=feature_mode), reference(dtype))


@PRECISION
def test_fortran_order_and_zarr(dtype, tmp_path):
    assert_identical(fit(np.asfortranarray(rows()), dtype=dtype), reference(dtype))
    zarr.create_array(tmp_path / "rows.zarr", data=rows(), chunks=(999, 2))
    assert_identical(fit(tmp_path / "rows.zarr", dtype=dtype), reference(dtype))


@PRECISION
@pytest.mark.parametrize(
    "config",
    [
        {"scheduler": "synchronous"},
        {"scheduler": "threads", "num_workers": 1},
        {"scheduler": "threads", "num_workers": 2},
        {"scheduler": "threads", "num_workers": 4},
    ],
    ids=lambda c: "-".join(str(v) for v in c.values()),
)
@pytest.mark.parametrize("feature_mode", ["persist", "recompute"])
def test_any_scheduler_and_number_of_threads(dtype, config, feature_mode):
    with dask.config.set(config):
        model = fit(rows(MANY), dtype=dtype, feature_mode=feature_mode)
    assert_identical(model, reference(dtype, MANY))


@pytest.mark.parametrize(
    ("dtype", "feature_mode"), [("float32", "persist"), ("float64", "recompute")]
)
def test_a_cluster_in_this_process(thread_client, dtype, feature_mode):
    for X in (rows(MANY), da.from_array(rows(MANY), chunks=(9_999, 3))):
        with thread_client.as_current():
            model = fit(X, dtype=dtype, feature_mode=feature_mode)
        assert_identical(model, reference(dtype, MANY))


@pytest.mark.parametrize(
    ("dtype", "feature_mode"), [("float32", "persist"), ("float64", "recompute")]
)
def test_a_cluster_of_processes(process_client, dtype, feature_mode):
    for X in (rows(), da.from_array(rows(), chunks=(1_777, 5))):
        with process_client.as_current():
            model = fit(X, dtype=dtype, feature_mode=feature_mode)
        assert_identical(model, reference(dtype))


@pytest.mark.parametrize("lazy", [False, True])
def test_a_given_client_need_not_be_the_current_one(thread_client, lazy):
    X = da.from_array(rows(), chunks=(1_777, 5)) if lazy else rows()
    assert_identical(fit(X, dtype="float32", client=thread_client), reference("float32"))


@PRECISION
def test_all_starts_carried_on(dtype):
    """Many models share each scan, which takes another path through the rows."""
    params = {"dtype": dtype, "refine": "all", "init": ["k-means", "random"], "n_init": 5}
    expected = fit(rows(), **params)
    X = da.from_array(rows(), chunks=(3_001, 2))
    for mode in ("persist", "recompute"):
        assert_identical(fit(X, feature_mode=mode, **params), expected)


@PRECISION
def test_several_clusters(dtype):
    X = da.from_array(rows(), chunks=(3_001, 2))
    expected = reference(dtype, N, 3)
    assert len(np.unique(expected.labels_)) == 3
    for mode in ("persist", "recompute"):
        model = fit(X, dtype=dtype, n_clusters=3, feature_mode=mode)
        assert_identical(model, expected)


@PRECISION
def test_sparse_rows_in_any_chunks(dtype):
    X = np.where(np.abs(rows()) > 0.7, rows(), 0.0)
    expected = fit(sp.csr_array(X), dtype=dtype)
    lazy = da.from_array(X, chunks=(1_500, 5)).map_blocks(sp.csr_array)
    for mode in ("persist", "recompute"):
        assert_identical(fit(lazy, dtype=dtype, feature_mode=mode), expected)


@pytest.mark.parametrize("kernels", [["laplacian", "cosine"], ["polynomial:3", "gaussian:2"]])
def test_other_kernels_in_any_chunks(kernels):
    expected = fit(rows(), kernels=kernels, dtype="float32")
    X = da.from_array(rows(), chunks=(2_345, 5))
    model = fit(X, kernels=kernels, dtype="float32", feature_mode="recompute")
    assert_identical(model, expected)


@PRECISION
@pytest.mark.parametrize("chunk", [1, 500, 4096, 5000])
def test_predictions_do_not_depend_on_the_chunks(dtype, chunk):
    model = reference(dtype)
    X = rows()[:9000] if chunk > 1 else rows()[:60]
    whole = model.decision_function(X)
    parts = model.decision_function(da.from_array(X, chunks=(chunk, 5))).compute()
    np.testing.assert_allclose(parts, whole, rtol=1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_array_equal(model.predict(da.from_array(X, chunks=(chunk, 5))), whole >= 0)


def separated(n=400, seed=5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.45).astype(int)
    return rng.normal(size=(n, 3)) + 5.0 * y[:, None], y


KERNELS = [Linear(), Polynomial(2, gamma=0.2), Gaussian(gamma=0.05), Laplacian(gamma=0.1)]


def fixed_fit(X, start, marks, **params):
    """Nothing is left to chance: landmarks, widths and the start are given."""
    params = {"tol": 1e-5, "kernels": KERNELS, "C": 4.0, **params}
    return MultipleKernelClustering(
        scale=None, dtype="float64", landmarks=marks, init=start, random_state=0, **params
    ).fit(X)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_the_rows_does_not_matter(seed):
    X, y = separated()
    start = (y + (np.arange(len(y)) % 7 == 0)) % 2
    base = fixed_fit(X, start, X[:25])
    order = np.random.default_rng(seed).permutation(len(X))
    other = fixed_fit(X[order], start[order], X[:25])
    assert other.objective_ == pytest.approx(base.objective_, rel=1e-3)
    np.testing.assert_array_equal(other.labels_, base.labels_[order])


@pytest.mark.parametrize("times", [2, 5])
def test_repeating_all_rows_does_not_matter(times):
    X, y = separated()
    start = (y + (np.arange(len(y)) % 7 == 0)) % 2
    base = fixed_fit(X, start, X[:25])
    other = fixed_fit(np.tile(X, (times, 1)), np.tile(start, times), X[:25])
    assert other.objective_ == pytest.approx(base.objective_, rel=1e-3)
    np.testing.assert_array_equal(other.labels_, np.tile(base.labels_, times))
    np.testing.assert_allclose(other.kernel_weights_, base.kernel_weights_, atol=5e-3)


def test_the_order_of_columns_and_an_offset_do_not_matter():
    X, y = separated()
    base = fixed_fit(X, y, X[:25])
    for other, marks in ((X[:, [2, 0, 1]], X[:25][:, [2, 0, 1]]), (X + 1e4, X[:25] + 1e4)):
        model = fixed_fit(other, y, marks)
        assert model.objective_ == pytest.approx(base.objective_, rel=1e-6)
        np.testing.assert_array_equal(model.labels_, base.labels_)


def test_the_order_of_kernels_does_not_matter():
    X, y = separated()
    base = fixed_fit(X, y, X[:25])
    model = fixed_fit(X, y, X[:25], kernels=KERNELS[::-1])
    assert model.objective_ == pytest.approx(base.objective_, rel=1e-4)
    np.testing.assert_allclose(model.kernel_weights_[::-1], base.kernel_weights_, atol=5e-3)


def test_which_side_is_called_which_does_not_matter():
    X, y = separated()
    base, other = fixed_fit(X, y, X[:25]), fixed_fit(X, 1 - y, X[:25])
    assert other.objective_ == pytest.approx(base.objective_, rel=1e-6)
    np.testing.assert_array_equal(other.labels_, base.labels_)
