"""Results come back in the form the input had."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.data import as_rows

TABLE = np.arange(22.0).reshape(11, 2)
LABELS = np.arange(11) % 3
SCORES = np.arange(33.0).reshape(11, 3)


@pytest.mark.parametrize("source", [TABLE, TABLE.tolist(), sp.csr_array(TABLE)])
@pytest.mark.parametrize("values", [LABELS, SCORES])
def test_numpy_and_scipy_give_numpy(source, values):
    container = as_rows(source).container
    assert not container.lazy
    for given_values in (values, da.from_array(values, chunks=4)):
        out = container.wrap(given_values)
        assert type(out) is np.ndarray
        np.testing.assert_array_equal(out, values)


def test_pandas_gives_pandas_with_the_index():
    index = pd.MultiIndex.from_product([["u"], range(11)], names=["site", "day"])
    container = as_rows(pd.DataFrame(TABLE, index=index)).container
    labels = container.wrap(LABELS)
    pd.testing.assert_series_equal(labels, pd.Series(LABELS, index=index, name="label"))
    scores = container.wrap(SCORES, name="score")
    assert list(scores.columns) == ["score_0", "score_1", "score_2"]
    pd.testing.assert_index_equal(scores.index, index)
    np.testing.assert_array_equal(scores, SCORES)
    assert not container.lazy
    assert container.row_labels(np.array([10, 0])) == ["('u', 10)", "('u', 0)"]


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 11), max_size=6), chunk=st.integers(1, 12))
def test_dask_gives_dask_with_the_chunks_of_the_input(cuts, chunk):
    edges = [0, *sorted(cuts), 11]
    chunks = tuple(high - low for low, high in pairwise(edges))
    container = as_rows(da.from_array(TABLE, chunks=(chunks, 1))).container
    assert container.lazy
    for values in (LABELS, SCORES):
        for given_values in (values, da.from_array(values, chunks=chunk)):
            out = container.wrap(given_values)
            assert isinstance(out, da.Array)
            assert out.chunks == (chunks, *((size,) for size in values.shape[1:]))
            np.testing.assert_array_equal(out.compute(scheduler="sync"), values)


def test_wrapping_a_dask_array_computes_nothing():
    def fail(block):
        raise AssertionError("computed")

    values = da.from_array(LABELS, chunks=4).map_blocks(fail, dtype=LABELS.dtype, meta=LABELS[:0])
    frame = pd.DataFrame(TABLE)
    lazy = xr.DataArray(da.from_array(TABLE, chunks=5))
    for source in (da.from_array(TABLE), dd.from_pandas(frame, npartitions=2), lazy):
        out = as_rows(source).container.wrap(values)
        with pytest.raises(AssertionError, match="computed"):
            out.compute(scheduler="sync")


@pytest.mark.parametrize("known", [True, False])
def test_dask_dataframe_gives_dask_series_with_index_and_divisions(known):
    frame = pd.DataFrame(TABLE, columns=["a", "b"], index=np.arange(11) * 10)
    source = dd.from_pandas(frame, npartitions=4)
    source = source[source.a >= 8]  # leaves the first partition empty
    if not known:
        source = source.clear_divisions()
    rows = as_rows(source)
    kept = rows.n_rows
    assert rows.container.row_chunks[0] == 0
    labels = rows.container.wrap(da.from_array(LABELS[:kept], chunks=2))
    assert isinstance(labels, dd.Series)
    assert labels.divisions == source.divisions
    assert tuple(labels.map_partitions(len).compute()) == rows.container.row_chunks
    expected = pd.Series(LABELS[:kept], index=frame.index[frame.a >= 8], name="label")
    pd.testing.assert_series_equal(labels.compute(), expected)
    scores = rows.container.wrap(da.from_array(SCORES[:kept], chunks=2), name="score")
    assert list(scores.columns) == ["score_0", "score_1", "score_2"]
    pd.testing.assert_index_equal(scores.compute().index, expected.index)
    np.testing.assert_array_equal(scores.compute(), SCORES[:kept])
    # Dask shuffles the rows of a join between frames whose divisions are unknown.
    joined = source.assign(label=labels).compute().sort_index()
    assert joined["label"].tolist() == expected.tolist()


@pytest.mark.parametrize("lazy", [False, True])
def test_xarray_gives_xarray_with_the_row_coordinates(lazy):
    data = da.from_array(TABLE, chunks=((4, 7), (1, 1))) if lazy else TABLE
    source = xr.DataArray(
        data,
        dims=("time", "band"),
        coords={
            "time": pd.date_range("2020-01-01", periods=11),
            "site": ("time", list("abcdefghijk")),
            "band": ["red", "nir"],
            "quality": (("time", "band"), TABLE),
            "station": 7,
        },
    )
    rows = as_rows(source)
    assert rows.column_names == ("red", "nir")
    assert rows.container.lazy == lazy
    labels = rows.container.wrap(da.from_array(LABELS, chunks=3) if lazy else LABELS)
    assert (labels.dims, labels.name) == (("time",), "label")
    assert set(labels.coords) == {"time", "site"}
    xr.testing.assert_identical(labels["site"], source["site"].drop_vars("station"))
    assert labels.chunks == (((4, 7),) if lazy else None)
    np.testing.assert_array_equal(labels, LABELS)
    scores = rows.container.wrap(SCORES, name="score")
    assert scores.dims == ("time", "feature")
    np.testing.assert_array_equal(scores, SCORES)
    assert rows.container.row_labels(np.array([1])) == ["2020-01-02 00:00:00"]


def test_xarray_keeps_a_multi_index():
    index = pd.MultiIndex.from_product([["u"], range(11)], names=["site", "day"])
    coords = xr.Coordinates.from_pandas_multiindex(index, "place")
    source = xr.DataArray(TABLE, dims=("place", "band"), coords=coords)
    container = as_rows(source).container
    labels = container.wrap(LABELS)
    assert labels.sel(site="u", day=4).item() == LABELS[4]
    assert container.row_labels(np.array([4])) == ["('u', 4)"]


def test_xarray_without_coordinates_or_with_a_row_dimension_called_feature():
    container = as_rows(xr.DataArray(TABLE, dims=("feature", "band"))).container
    assert container.wrap(SCORES).dims == ("feature", "output_feature")
    assert container.row_labels(np.array([3])) == ["3"]


@pytest.mark.parametrize(
    ("layout", "chunks"),
    [({"chunks": (4, 1)}, (4, 4, 3)), ({"chunks": (2, 2), "shards": (6, 2)}, (6, 5))],
)
def test_zarr_gives_dask_with_the_chunks_or_shards_of_the_store(layout, chunks, tmp_path):
    path = str(tmp_path / "x.zarr")
    zarr.create_array(path, data=TABLE, **layout)
    for source in (path, zarr.open_array(path)):
        container = as_rows(source).container
        out = container.wrap(da.from_array(LABELS, chunks=5))
        assert container.lazy
        assert out.chunks == (chunks,)
        np.testing.assert_array_equal(out, LABELS)


@pytest.mark.parametrize("values", [LABELS[:5], np.zeros((11, 1, 1)), np.zeros(())])
def test_results_of_another_shape_are_refused(values):
    with pytest.raises(ValueError, match="with 11 rows to match X"):
        as_rows(TABLE).container.wrap(values)
