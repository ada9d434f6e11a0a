"""What is made of columns, compared with what pandas and scikit-learn make of them."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from dmkc.errors import UserError
from dmkc.tables import MissingValues, Recipe, TableColumns
from dmkc.tables.columns import summaries
from dmkc.tables.summary import added, summarised


def kinds(columns):
    return {c.name: c.left_out or c.kind for c in columns.recipe_.columns}


def test_kinds_of_columns(table):
    assert kinds(TableColumns().fit(table)) == {
        "customer_id": "id-like",
        "email": "id-like",
        "age": "number",
        "visits": "number",
        "member": "boolean",
        "country": "category",
        "size": "category",
        "since": "date",
        "currency": "constant",
        "empty": "no values",
        "seen": "date",
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["true", "False"] * 10, "boolean"),
        ([True, None] + [False] * 18, "boolean"),
        ([decimal.Decimal("1.5"), decimal.Decimal(2)] * 10, "number"),
        (pd.array([1, None] * 10, dtype="Int64"), "constant"),
        (pd.array([1, 2, 3, None] * 5, dtype="Int64"), "number"),
        (pd.array([1.5, 2, 3, None] * 5, dtype="Float32"), "number"),
        ([datetime.date(2020, 1, d) for d in range(1, 21)], "date"),
        (pd.date_range("2020", periods=20, tz="Europe/Berlin"), "date"),
        (pd.period_range("2020-01", periods=20, freq="M"), "date"),
        (pd.to_timedelta(range(20), "h"), "duration"),
        (["2020-01-01T10:00:00Z", "2020-01-02 11:30"] * 10, "date"),
        (["2020-01-01", "9999-12-31"] * 10, "date"),
        ([1, "one", 2.5, "two"] * 5, "category"),
        (["2020-01-01", "soon"] * 10, "category"),
        (["2020-13-45"] * 10 + ["2020-01-01"] * 10, "category"),
        ([f"x{i}" for i in range(20)], "id-like"),
        (range(100, 120), "id-like"),
        ([i * i for i in range(20)], "number"),
        (np.linspace(0, 1, 20), "number"),
        ([[1], [2]] * 10, "neither numbers, texts nor dates"),
    ],
)
def test_kinds_of_values(values, kind):
    frame = pd.DataFrame({"a": pd.Series(values), "b": np.arange(20) % 3})
    assert kinds(TableColumns("impute").fit(frame))["a"] == kind


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        *((name, True) for name in ("id", "customer_id", "userId", "ID", "Unnamed: 0")),
        *((name, False) for name in ("paid", "width", "valid", "income")),
    ],
)
def test_names_of_ids(name, left_out):
    frame = pd.DataFrame({name: [i * i for i in range(20)], "b": np.arange(20) % 3})
    assert (kinds(TableColumns().fit(frame))[name] == "id-like") is left_out


def test_categories_as_pandas_and_scikit_learn_make_them(table):
    made = TableColumns().fit_transform(table)
    named = ["country", "size"]
    ours = made[[name for name in made if name.partition("=")[0] in named]]
    dummies = pd.get_dummies(table[named].astype(str), prefix_sep="=", dtype=np.float32)
    pd.testing.assert_frame_equal(ours, dummies)
    encoder = OneHotEncoder(sparse_output=False).fit(table[named].astype(str))
    assert np.array_equal(ours, encoder.transform(table[named].astype(str)))


def test_numbers_truth_and_dates(table):
    made = TableColumns().fit_transform(table)
    assert made["age"].equals(table["age"]) and made["visits"].equals(table["visits"])
    assert np.array_equal(made["member=True"], table["member"])
    days = (table["since"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    for name in ("since", "seen"):
        assert np.array_equal(made[name], days)


def test_dates_far_away_and_with_zones():
    texts = ["9999-12-31", "1850-01-01", "1970-01-02T06:00:00+06:00", "1970-01-01 12:00"]
    frame = pd.DataFrame({"text": texts, "b": range(4)})
    assert list(TableColumns().fit_transform(frame)["text"]) == [2932896, -43829, 1, 0.5]


def test_imputed_as_scikit_learn_does(gaps):
    columns = TableColumns("impute", exclude=["since", "seen", "country"]).fit(gaps)
    made = columns.transform(gaps)
    imputer = SimpleImputer(add_indicator=True)
    theirs = imputer.fit_transform(gaps[["age", "visits"]])
    assert np.allclose(made[["age", "visits", "age=missing"]], theirs, rtol=1e-11)


def test_missing_categories_and_dates_have_indicators(gaps):
    made = TableColumns("impute").fit_transform(gaps)
    absent = gaps["country"].isna()
    names = ["country=DE", "country=FR", "country=IT", "country=missing"]
    assert (made[names].sum(axis=1) == 1).all()
    assert np.array_equal(made["country=missing"] == 1, absent)
    assert np.array_equal(made["since=missing"] == 1, gaps["since"].isna())
    known = made.loc[gaps["since"].notna(), "since"]
    assert made.loc[11, "since"] == pytest.approx(known.mean())
    assert "visits=missing" not in made and made.notna().all(axis=None)


def test_dropped_rows_keep_the_index_of_others(gaps):
    made = TableColumns("drop").fit_transform(gaps)
    assert list(made.index) == [i for i in range(80) if i not in (3, 7, 11)]


def test_missing_values_are_refused_with_a_sentence(gaps):
    with pytest.raises(MissingValues) as problem:
        TableColumns().fit_transform(gaps)
    text = str(problem.value)
    assert text.startswith("3 of 80 rows have missing values (age 1, country 2, since 1; the first")
    assert 'missing="drop"' in text and 'missing="impute"' in text
    TableColumns(exclude=["age", "country", "since"]).fit_transform(gaps)


def test_the_recipe_is_plain_json(gaps):
    recipe = TableColumns("impute", kinds={"visits": "category"}).fit(gaps).recipe_
    again = Recipe.from_json(json.loads(json.dumps(recipe.as_json())))
    assert again == recipe
    pd.testing.assert_frame_equal(again.apply(gaps).numbers, recipe.apply(gaps).numbers)


@pytest.mark.parametrize(
    "stored", [None, {}, {"missing": "refuse", "index": None, "columns": [{"name": "a"}]}, [1]]
)
def test_what_is_no_recipe_is_refused(stored):
    with pytest.raises(UserError, match="malformed"):
        Recipe.from_json(stored)


def test_columns_are_found_by_name_whatever_their_order(table):
    columns = TableColumns().fit(table)
    made = columns.transform(table)
    other = table[table.columns[::-1]].assign(more=1)
    pd.testing.assert_frame_equal(columns.transform(other), made)
    with pytest.raises(UserError, match="lacks columns that the model was fitted on: age, country"):
        columns.transform(table.drop(columns=["age", "country"]))


def test_unknown_categories_are_zeros_counted_and_warned_of(table):
    columns = TableColumns().fit(table)
    other = table.assign(country=table["country"].replace("IT", "PT"))
    with pytest.warns(UserWarning, match=r"'country': \d+ rows hold values .*\('PT'\)"):
        made = columns.transform(other)
    strange = (table["country"] == "IT").to_numpy()
    assert not made.loc[strange, ["country=DE", "country=FR", "country=IT"]].any(axis=None)


def test_numbers_look_the_same_as_categories_with_and_without_gaps():
    frame = pd.DataFrame({"zip": [10, 20, 30] * 10, "b": np.arange(30) % 7})
    columns = TableColumns("impute", kinds={"zip": "category"}).fit(frame)
    assert list(columns.get_feature_names_out()) == ["zip=10", "zip=20", "zip=30", "b"]
    made = columns.transform(frame.assign(zip=[10.0, np.nan, 30.0] * 10))
    assert made["zip=10"].sum() == 10 and made["zip=20"].sum() == 0


def test_the_most_frequent_categories_have_columns():
    words = [f"w{i % 70}" if i < 140 else "often" for i in range(400)]
    frame = pd.DataFrame({"word": words, "b": np.arange(400) % 3})
    with pytest.warns(UserWarning, match="no column of their own"):
        made = TableColumns().fit_transform(frame)
    assert made.shape[1] == 51 and made["word=often"].sum() == 260


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda t: TableColumns("guess").fit(t), "missing must be one of"),
        (lambda t: TableColumns(kinds={"age": "word"}).fit(t), "is no kind of columns"),
        (lambda t: TableColumns(exclude=["zz"]).fit(t), "There is no column 'zz'"),
        (lambda t: TableColumns().fit(t[["email", "currency"]]), "No column is left to cluster"),
        (lambda t: TableColumns().fit(t.to_numpy()), "which has no columns of different kinds"),
        (lambda t: TableColumns().fit(t[["age", "age"]]), "two columns 'age'"),
        (lambda t: TableColumns(kinds={"email": "number"}).fit_transform(t), "'user0@example.org'"),
        (
            lambda t: TableColumns().fit(t[["size", "age"]].rename(columns={"age": "size=s"})),
            "Two columns would be called 'size=s'",
        ),
    ],
)
def test_mistakes(table, made, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(table)


def test_columns_can_be_insisted_on(table):
    columns = TableColumns(include=["customer_id", "currency"], exclude=["email", "age"])
    made = columns.fit_transform(table)
    assert {"customer_id", "currency=EUR"} <= set(made) and "age" not in made


words = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]), st.text(max_size=3))
numbers = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(words), min_size=1, max_size=30), st.integers(1, 5))
def test_summaries_of_texts_do_not_depend_on_parts(values, size):
    series = pd.Series(values, dtype=object)
    whole = summarised(series)
    parts = added([summarised(series[i : i + size]) for i in range(0, len(series), size)])
    assert (parts.rows, parts.missing, parts.distinct) == (
        whole.rows,
        whole.missing,
        whole.distinct,
    )
    assert parts.counts == whole.counts and parts.all_differ == whole.all_differ


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=30), st.integers(1, 5))
def test_summaries_of_numbers_do_not_depend_on_parts(values, size):
    series = pd.Series(values, dtype="float64")
    whole = summarised(series)
    parts = added([summarised(series[i : i + size]) for i in range(0, len(series), size)])
    assert parts.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-9)
    for name in ("sort", "rows", "missing", "distinct", "low", "high", "whole", "all_differ"):
        assert getattr(parts, name) == getattr(whole, name)


def test_summaries_count_missing_and_distinct_values(gaps):
    found = summaries(gaps)
    for name in gaps:
        assert found[name].missing == gaps[name].isna().sum()
        assert found[name].distinct == gaps[name].nunique()
