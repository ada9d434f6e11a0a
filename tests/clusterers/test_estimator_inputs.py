"""Awkward rows that must work, and the form in which labels come back."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from sklearn.metrics import adjusted_rand_score

from dmkc import MultipleKernelClustering
from dmkc.kernels import Gaussian, Linear

N = 240


def blobs(n=N, d=4, gap=6.0, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    return rng.normal(size=(n, d)) + gap * y[:, None], y


X, Y = blobs()


def make(**params):
    return MultipleKernelClustering(**{"random_state": 0, "rank": 30, **params})


def assert_found(model, y=Y):
    assert adjusted_rand_score(y, np.asarray(model.labels_)) == 1.0
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("distinct", [2, 3, 10])
@pytest.mark.parametrize("sample_rows", [16384, 64])
def test_duplicated_rows_and_more_landmarks_than_distinct_rows(distinct, sample_rows):
    points, side = blobs(distinct)
    which = np.arange(200) % distinct
    model = make(sample_rows=sample_rows).fit(points[which])
    assert_found(model, side[which])


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_constant_columns(place, scale):
    assert_found(make(scale=scale).fit(np.insert(X, place, 1e6, axis=1)))


def test_two_rows_are_two_clusters():
    assert sorted(make().fit([[0.0, 1.0], [5.0, 2.0]]).labels_.tolist()) == [0, 1]


@pytest.mark.parametrize("n", [3, 4, 5])
def test_very_few_rows(n):
    rows = np.array([[0.0], [0.1], [10.0], [0.2], [10.1]])[:n]
    assert_found(make().fit(rows), (rows[:, 0] > 5).astype(int))


def test_one_column():
    rows, y = blobs(d=1, gap=12.0)
    assert_found(make().fit(rows), y)


def test_more_columns_than_rows():
    wide = np.random.default_rng(0).normal(size=(40, 300))
    wide[:15] += 1.0
    assert_found(make().fit(wide), (np.arange(40) < 15).astype(int))


@pytest.mark.parametrize("kernels", [None, "linear"])
def test_very_many_columns(kernels):
    wide = np.random.default_rng(0).normal(size=(40, 2500))
    wide[:15] += 1.0
    assert_found(make(kernels=kernels).fit(wide), (np.arange(40) < 15).astype(int))


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "longdouble", "int8", "int16", "int64", "uint8"]
)
@pytest.mark.parametrize("sample_rows", [16384, 64])
def test_number_types(dtype, sample_rows):
    assert_found(make(sample_rows=sample_rows).fit((X + 10).astype(dtype)))


@pytest.mark.parametrize("form", [np.asarray, da.from_array, pd.DataFrame])
def test_truth_values(form):
    rng = np.random.default_rng(1)
    rows = rng.random((N, 30)) < np.where(Y == 1, 0.95, 0.05)[:, None]
    assert_found(make().fit(form(rows)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layouts(order):
    assert_found(make().fit(np.array(X, order=order)))
    assert_found(make().fit(np.repeat(X, 2, axis=0)[::2]))
    swapped = X.astype(X.dtype.newbyteorder())
    assert_found(make().fit(swapped))


def test_read_only_rows_are_left_as_they_are():
    rows = X.copy()
    rows.flags.writeable = False
    assert_found(make().fit(rows))
    np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize(
    "chunks",
    [(N, 4), (1, 4), (7, 3), (100, 1), ((0, 100, 0, 140, 0), 4), ((0, 0, 240), (1, 3))],
)
def test_any_chunks_of_a_dask_array(chunks):
    rows = da.from_array(X, chunks=(N, 4)).rechunk(chunks)
    if 0 in np.ravel(chunks[0]):
        parts = [da.from_array(X[a : a + c], chunks=(max(c, 1), 4)) for a, c in starts(chunks[0])]
        rows = da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)
    model = make().fit(rows)
    assert isinstance(model.labels_, da.Array)
    assert_found(model)


def starts(sizes):
    first = 0
    for size in sizes:
        yield first, size
        first += size


def test_dask_labels_are_lazy_and_chunked_like_the_rows():
    rows = da.from_array(X, chunks=(70, 4))
    model = make().fit(rows)
    assert isinstance(model.labels_, da.Array) and model.labels_.chunks == ((70, 70, 70, 30),)
    np.testing.assert_array_equal(model.labels_.compute(), make().fit(X).labels_)
    new = model.predict(rows)
    assert isinstance(new, da.Array)
    np.testing.assert_array_equal(new.compute(), model.labels_.compute())
    assert model.transform(rows).compute().shape == model.transform(X).shape
    np.testing.assert_allclose(
        model.decision_function(rows).compute(), model.decision_function(X), rtol=1e-10
    )


def test_dask_rows_of_unknown_length():
    rows = da.from_array(X, chunks=(70, 4))
    rows = rows[rows[:, 0] > -100]
    assert np.isnan(rows.shape[0])
    assert_found(make().fit(rows))


def test_pandas_labels_keep_the_index():
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(N)])
    model = make().fit(frame)
    assert isinstance(model.labels_, pd.Series)
    assert model.labels_.index.equals(frame.index)
    assert_found(model)
    assert isinstance(model.predict(frame.iloc[:5]), pd.Series)
    assert isinstance(model.transform(frame), pd.DataFrame)


def test_dask_frame_labels_are_a_dask_series():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make().fit(dd.from_pandas(frame, npartitions=3))
    assert isinstance(model.labels_, dd.Series)
    np.testing.assert_array_equal(model.labels_.compute(), make().fit(X).labels_)


@pytest.mark.parametrize("lazy", [False, True])
def test_xarray_labels_are_an_xarray(lazy):
    array = xr.DataArray(X, dims=("time", "band"), coords={"time": np.arange(N) * 2})
    model = make().fit(array.chunk(time=50) if lazy else array)
    assert isinstance(model.labels_, xr.DataArray)
    assert model.labels_.dims == ("time",)
    np.testing.assert_array_equal(model.labels_["time"], array["time"])
    assert_found(model)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("sample_rows", [16384, 64])
def test_sparse_rows_give_the_labels_of_dense_ones(form, sample_rows):
    rows = X * (np.abs(X) > 1)
    dense = make(sample_rows=sample_rows).fit(rows)
    model = make(sample_rows=sample_rows).fit(form(rows))
    assert isinstance(model.labels_, np.ndarray)
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    assert model.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(form(rows)), model.labels_)


def test_sparse_chunks_of_a_dask_array():
    rows = X * (np.abs(X) > 1)
    lazy = da.from_array(rows, chunks=(50, 4)).map_blocks(sp.csr_array)
    model = make().fit(lazy)
    np.testing.assert_array_equal(np.asarray(model.labels_), make().fit(rows).labels_)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_zarr_path_gives_lazy_labels(tmp_path, as_text):
    path = tmp_path / "rows.zarr"
    zarr.create_array(path, data=X, chunks=(50, 2))
    model = make().fit(str(path) if as_text else path)
    assert isinstance(model.labels_, da.Array)
    np.testing.assert_array_equal(model.labels_.compute(), make().fit(X).labels_)
    np.testing.assert_array_equal(model.predict(path).compute(), model.labels_.compute())


def test_an_npy_file(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    model = make().fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(np.asarray(model.labels_), make().fit(X).labels_)


def test_a_list_of_rows():
    np.testing.assert_array_equal(make().fit(X.tolist()).labels_, make().fit(X).labels_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_outliers_do_not_break_anything(dtype):
    rows = X.copy()
    rows[0] = 1e8
    model = make(dtype=dtype).fit(rows)
    assert np.isfinite(model.objective_) and np.isfinite(model.decision_function(rows)).all()


@pytest.mark.parametrize("exponent", [-150, -20, 20, 150])
def test_very_large_and_very_small_numbers(exponent):
    assert_found(make().fit(X * 10.0**exponent))


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", X[:10]])
@pytest.mark.parametrize("rank", [1, 5, 1000])
def test_any_landmarks(landmarks, rank):
    assert_found(make(landmarks=landmarks, rank=rank).fit(X))


@pytest.mark.parametrize("init", ["k-means", "kernel-k-means", "pca"])
def test_starts_that_look_at_the_rows(init):
    assert_found(make(init=init).fit(X))


def test_random_starts():
    model = make(init="random", n_init=8, C=7.0).fit(X)
    assert model.start_.startswith("random")
    assert_found(model)


@pytest.mark.parametrize("init", ["random", ["random", "k-means"]])
def test_an_open_price_does_not_freeze_random_starts(init):
    """C comes from the data, so it must not grow because a random start separates nothing."""
    usual = make().fit(X).C_
    model = make(init=init, n_init=4).fit(X)
    assert usual / 10 < model.C_ < usual * 10
    assert_found(model)


def test_kernels_given_as_functions():
    def product(A, B):
        return A @ B.T

    model = make(kernels=[product, Linear(), Gaussian(1.0)]).fit(X)
    assert_found(model)
    assert model.kernel_weights_[0] == pytest.approx(model.kernel_weights_[1], rel=1e-3)


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("balance", [None, 0.0, 0.3])
def test_extreme_prices_end_with_finite_models(C, balance):
    model = make(C=C, balance=balance).fit(X)
    assert np.isfinite(model.objective_) and np.isfinite(model.decision_function(X)).all()
    assert set(np.unique(model.labels_)) <= {0, 1}
    assert np.isfinite(model.kernel_weights_).all()
