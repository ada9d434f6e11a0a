"""Blocks have the promised dtype, and missing values are NaN in them."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dmkc.data import as_rows

TABLE = np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("stored", "loaded"),
    [
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("longdouble", "float64"),
        ("int8", "int8"),
        ("uint64", "uint64"),
        ("bool", "bool"),
        (">i4", "int32"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, da.asarray, xr.DataArray])
def test_dtypes(stored, loaded, make, load_all):
    values = (np.arange(12).reshape(6, 2) % 5).astype(stored)
    rows = as_rows(make(values))
    assert rows.dtype == np.dtype(loaded)
    assert rows.dtype.isnative
    np.testing.assert_array_equal(load_all(rows, 4), values.astype(loaded))


@pytest.mark.parametrize("partitions", [None, 2])
def test_missing_values_of_nullable_columns_are_nan(partitions, load_all):
    table = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "f": pd.array([0.5, 1.5, None], dtype="Float64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "n": np.arange(3),
            "p": pd.array([1, None, 2], dtype="int64[pyarrow]"),
        }
    )
    rows = as_rows(table if partitions is None else dd.from_pandas(table, npartitions=partitions))
    nan = np.nan
    expected = [[1, 0.5, 1, 0, 1], [nan, 1.5, nan, 1, nan], [3, nan, 0, 2, 2]]
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(load_all(rows, 2), expected)


def test_mixed_numpy_columns_get_a_common_dtype(load_all):
    table = pd.DataFrame({"x": [True, False], "y": np.array([1, 2], np.float32), 3: [4.5, 5]})
    rows = as_rows(table)
    assert (rows.dtype, rows.column_names) == (np.dtype(np.float64), None)
    np.testing.assert_array_equal(load_all(rows, 1), [[1, 1, 4.5], [0, 2, 5]])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_masked_entries_are_nan(lazy, dtype, load_all):
    values = np.ma.masked_array(np.arange(6, dtype=dtype).reshape(3, 2), mask=np.eye(3, 2))
    rows = as_rows(da.from_array(values, chunks=(2, 1), asarray=False) if lazy else values)
    assert rows.dtype == (np.float32 if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(load_all(rows, 2), [[np.nan, 1], [2, np.nan], [4, 5]])


def test_objects_lists_and_array_likes_that_hold_numbers(load_all):
    class Table:
        def __array__(self, dtype=None, copy=None):
            return TABLE

    objects = as_rows(TABLE.astype(object))
    assert objects.dtype == np.float64
    np.testing.assert_array_equal(load_all(objects, 10), TABLE)
    np.testing.assert_array_equal(load_all(as_rows(TABLE.tolist()), 10), TABLE)
    np.testing.assert_array_equal(load_all(as_rows(Table()), 10), TABLE)
