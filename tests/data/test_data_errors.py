"""Inputs that cannot be clustered are refused with a sentence."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from dmkc.data import as_rows

MAKERS = [np.asarray, da.asarray, xr.DataArray, zarr.array]
MAKERS_2D = [*MAKERS, pd.DataFrame, sp.csr_matrix, sp.coo_array]


@pytest.mark.parametrize("make", [*MAKERS, pd.Series, lambda x: dd.from_pandas(pd.Series(x)), list])
def test_one_dimension(make):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead") as error:
        as_rows(make(np.arange(3.0)))
    assert "Reshape your data" in str(error.value)


@pytest.mark.parametrize("make", MAKERS)
def test_three_dimensions(make):
    with pytest.raises(ValueError, match=r"dim 3, while dim <= 2 .*\(3, 2, 2\)"):
        as_rows(make(np.ones((3, 2, 2))))


def test_no_dimension():
    with pytest.raises(ValueError, match="Expected 2D array, got scalar array instead"):
        as_rows(np.array(3.0))


@pytest.mark.parametrize("make", MAKERS_2D)
def test_no_rows(make):
    message = r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."
    with pytest.raises(ValueError, match=message):
        as_rows(make(np.ones((0, 3))))


@pytest.mark.parametrize("make", MAKERS_2D)
def test_no_columns(make):
    message = r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."
    with pytest.raises(ValueError, match=message):
        as_rows(make(np.ones((3, 0))))


def test_no_rows_or_columns_in_a_dask_dataframe():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=1)
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 1\)\)"):
        as_rows(frame[frame.a > 5])
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(2, 0\)\)"):
        as_rows(frame[[]])


def test_no_rows_found_once_unknown_chunks_are_computed():
    source = da.ones((4, 2), chunks=2)
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
        as_rows(source[source[:, 0] > 5])


def test_unknown_chunks_that_cannot_be_computed():
    def fail(block):
        raise OSError("disk gone")

    source = da.ones((4, 2), chunks=2).map_blocks(fail, dtype=float, meta=np.ones((0, 0)))
    source._chunks = ((np.nan, np.nan), (2,))
    with pytest.raises(ValueError, match=r"chunk sizes of X are unknown .*disk gone.*call X\."):
        as_rows(source)


@pytest.mark.parametrize("make", MAKERS_2D)
def test_complex(make):
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_rows(make(np.ones((3, 2), complex)))


def frames(frame):
    return [frame, dd.from_pandas(frame, npartitions=2)]


@pytest.mark.parametrize("lazy", [0, 1])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pd.array(["a", "b"], dtype="str"),
            r"Column 'bad' \(.*\) of X does not hold numbers.*TableC",
        ),
        (
            pd.Categorical(["u", "v"]),
            r"Column 'bad' \(category\) of X holds categories; dmkc.TableCol",
        ),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), r"'bad' \(datetime64.* holds dates"),
        (pd.to_datetime(["2020-01-01"] * 2, utc=True), r"'bad' \(datetime64.*UTC.* holds dates"),
        (pd.to_timedelta([1, 2]), r"'bad' \(timedelta64.* holds dates.*TableColumns"),
        (pd.period_range("2020", periods=2, freq="Y"), r"'bad' \(period.* holds dates"),
        (np.array([1j, 2j]), r"Complex data not supported: Column 'bad'"),
    ],
)
def test_columns_that_are_not_numbers_are_named(column, message, lazy):
    frame = pd.DataFrame({"good": [1.0, 2.0], "bad": column})
    with pytest.raises(ValueError, match=message):
        as_rows(frames(frame)[lazy])


def test_object_columns_and_several_bad_columns():
    frame = pd.DataFrame({"o": pd.Series([1, "x"], dtype=object), "p": pd.Series([{}, 1])})
    message = r"Columns 'o' \(object\), 'p' \(object\) of X do not hold numbers; .*convert"
    with pytest.raises(ValueError, match=message):
        as_rows(frame)
    many = pd.DataFrame({f"c{i}": ["x"] for i in range(14)})
    with pytest.raises(ValueError, match=r"'c9' \(\w+\) and 4 more of X"):
        as_rows(many)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([["a", "b"]]), r"X does not hold numbers \(dtype <U1\).*encode text"),
        (np.array([[b"a", b"b"]]), r"X does not hold numbers \(dtype \|S1\)"),
        (np.array([["2020-01-01"]], "M8[D]"), "X holds dates or durations"),
        (np.zeros((2, 2), dtype=[("a", "f4")]), "X is a structured array"),
        ([["a", 1.0]], "X does not hold numbers"),
        ([[1, 2], [3]], "X could not be read as a table.*same number of columns"),
        (np.array([[1, 2], [3, "abc"]], object), r"Row 1, column 1 of X holds 'abc'"),
    ],
)
def test_arrays_that_are_not_numbers(values, message):
    with pytest.raises(ValueError, match=message):
        as_rows(values)


def test_object_array_with_a_dict():
    values = np.array([[1, 2], [{"foo": "bar"}, 4]], dtype=object)
    with pytest.raises(TypeError, match=r"argument must be .* string.* number") as error:
        as_rows(values)
    assert "Row 1, column 0" in str(error.value)


def test_dask_array_of_objects():
    with pytest.raises(ValueError, match=r"dtype object.*astype\(float\)"):
        as_rows(da.from_array(np.ones((2, 2), dtype=object), chunks=1))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_numpy_matrix():
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        as_rows(np.matrix([[1.0]]))


@pytest.mark.parametrize("value", [None, 3, {1, 2}, iter([1])])
def test_unknown_types_are_named(value):
    message = f"X is a {type(value).__name__}, which is not supported; pass a NumPy array"
    with pytest.raises(TypeError, match=message):
        as_rows(value)


def test_what_is_wrong_with_a_view_is_said_by_its_name():
    with pytest.raises(ValueError, match="View 'b': Expected 2D array, got 1D array"):
        as_rows({"a": np.ones((3, 2)), "b": [1, 2, 3]})
    with pytest.raises(TypeError, match="View 'b': X is a int"):
        as_rows({"a": np.ones((3, 2)), "b": 7})


def test_a_variable_of_a_dataset(load_all):
    dataset = xr.Dataset({"x": (("r", "c"), np.ones((3, 2))), "y": ("r", np.ones(3))})
    assert as_rows(dataset).views == {"x": (0, 2), "columns": (2, 3)}
    with pytest.raises(ValueError, match="no variable 'z'; its variables are 'x'"):
        as_rows(dataset, variable="z")
    np.testing.assert_array_equal(load_all(as_rows(dataset, variable="x"), 2), np.ones((3, 2)))


def test_variable_is_refused_where_there_is_nothing_to_choose():
    with pytest.raises(ValueError, match="but X is a ndarray; leave variable out"):
        as_rows(np.ones((2, 2)), variable="x")
    with pytest.raises(ValueError, match="is a single array"):
        as_rows(zarr.array(np.ones((2, 2))), variable="x")


def test_values_that_are_not_finite_pass(load_all):
    values = np.array([[np.nan, np.inf], [1.0, 2.0]])
    np.testing.assert_array_equal(load_all(as_rows(values), 1), values)
