"""Columns and values as the user knows them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dmkc import TableColumns
from dmkc.report import columns
from dmkc.report.columns import Column, date, number, share, without_exponents


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (40312.4, 1.0, "40,312"),
        (1999.0, 1.0, "1999"),
        (-0.004, 0.01, "0.00"),
        (-61.27, 0.1, "−61.3"),
        (0.000123, 1e-6, "0.000123"),
        (3e-12, 1e-14, "3.00 × 10⁻¹²"),
        (2.5e20, 1.0, "2.50 × 10²⁰"),
        (0.0, 1e-12, "0"),
        (np.nan, 1.0, "missing"),
    ],
)
def test_numbers_are_read_easily(value, step, text):
    assert number(value, step) == text


def test_shares_and_dates():
    shown = [share(part).replace("\N{NO-BREAK SPACE}", " ") for part in (0, 1e-5, 0.034, 0.5, 1)]
    assert shown == ["0 %", "<0.1 %", "3.4 %", "50 %", "100 %"]
    assert share(0.996).startswith("99.6") and share(0.0996).startswith("10")
    assert date(19723) == "2024-01-01" and date(19723.5, 0.001) == "2024-01-01 12:00"
    assert date(1e30) == "1.00 × 10³⁰"


def test_exponents_are_written_out():
    assert without_exponents("C 4.03e+04 (from 1e-05)") == "C 40,300 (from 0.00001)"
    assert without_exponents("-1.5e+03, 12, e+04, abc1e+05") == "−1500, 12, e+04, abc1e+05"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        {
            "age": rng.integers(20, 70, 60).astype(float),
            "plan": rng.choice(["free", "paid", "team"], 60),
            "active": rng.random(60) < 0.5,
            "signup": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 60), "D"),
            "stay": pd.to_timedelta(rng.integers(1, 30, 60), "D"),
        }
    )
    found.loc[[3, 7], "age"] = np.nan
    found.loc[5, "plan"] = None
    return found


def shown(found):
    return {c.name: [c.text(value) for value in c.values] for c in found}


def test_numbers_of_a_recipe_are_the_table_again(frame):
    made = TableColumns(missing="impute").fit(frame)
    numbers = made.transform(frame)
    every = list(range(numbers.shape[1]))
    whole = columns.of_recipe(numbers.to_numpy(), made.recipe_, every)
    assert shown(whole) == shown(columns.of_frame(frame, made.recipe_))
    assert shown(whole) == shown(columns.of_frame(frame, None))
    texts = shown(whole)
    assert texts["age"][3] == "missing" and texts["plan"][5] == "missing"
    assert texts["age"][0] == str(int(frame["age"][0])) and texts["plan"][0] == frame["plan"][0]
    assert texts["signup"] == frame["signup"].dt.strftime("%Y-%m-%d").tolist()
    assert texts["active"][0] == ("yes" if frame["active"][0] else "no")
    assert texts["stay"][0] == f"{frame['stay'][0].days} days"
    places = sorted(place for column in whole for place in column.places)
    assert places == every


def test_a_category_without_a_column_is_another(frame):
    made = TableColumns(missing="impute").fit(frame)
    new = frame.assign(plan="new")
    with pytest.warns(UserWarning, match="no column of their own"):
        numbers = made.transform(new).to_numpy()
    found = {c.name: c for c in columns.of_recipe(numbers, made.recipe_, range(numbers.shape[1]))}
    assert found["plan"].text(found["plan"].values[0]) == "others"


def test_many_categories_are_few(frame):
    rng = np.random.default_rng(1)
    words = pd.DataFrame({"word": rng.choice([f"w{i}" for i in range(80)], 3000)})
    (found,) = columns.of_frame(words, None)
    assert len(found.words) == 31 and found.words[-1] == "others"
    for text, value in zip(words["word"], found.values, strict=True):
        assert found.text(value) in (text, "others")


def test_sparse_columns_are_the_same_as_dense_ones():
    X = sp.random_array((50, 9), density=0.3, format="csr", rng=np.random.default_rng(0))
    names = [f"column {j}" for j in range(9)]
    a, b = (columns.of_numbers(each, names, [1, 4]) for each in (X, X.toarray()))
    assert [c.name for c in a] == ["column 1", "column 4"]
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_a_constant_and_an_empty_column_have_texts():
    assert Column("a", "number", np.full(5, 40000.0)).text(40000.0) == "40,000"
    assert Column("b", "number", np.full(5, np.nan)).text(np.nan) == "missing"
