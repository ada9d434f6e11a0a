"""Rules say what their tree does, in the user's words."""

import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from dmkc.report.columns import Column
from dmkc.report.rules import between, surrogate


def column(values, name="x", kind="number", words=()):
    return Column(name, kind, np.asarray(values, dtype=float), words)


def holds(text, rows):
    """Whether the text of a rule holds for every row, by reading it."""
    out = np.ones(len(next(iter(rows.values())).values), dtype=bool)
    for part in text.split(" and "):
        both = re.fullmatch(r"(\S+) < (\w+) ≤ (\S+)", part)
        one = re.fullmatch(r"(\w+) (>|≤) (\S+)", part)
        word = re.fullmatch(r"(\w+) is (not )?(\w+)", part)
        flag = re.fullmatch(r"(not )?(\w+)", part)
        if both:
            values = rows[both[2]].values
            out &= (values > value(both[1])) & (values <= value(both[3]))
        elif one:
            values, at = rows[one[1]].values, value(one[3])
            out &= values > at if one[2] == ">" else values <= at
        elif word and word[3] == "missing":
            out &= np.isnan(rows[word[1]].values) ^ bool(word[2])
        elif word:
            is_it = rows[word[1]].values == rows[word[1]].words.index(word[3])
            out &= is_it ^ bool(word[2])
        else:
            out &= (rows[flag[2]].values == 1) ^ bool(flag[1])
    return out


def value(text):
    return float(text.replace(",", "").replace("−", "-"))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age, visits = rng.integers(18, 80, 900), rng.poisson(5, 900)
    income = np.where(rng.random(900) < 0.1, np.nan, rng.lognormal(10, 0.5, 900))
    plan, new = rng.integers(0, 3, 900), rng.random(900) < 0.4
    labels = np.where((age > 52) & (visits < 3), 1, np.where(plan == 2, 2, 0))
    labels = np.where(np.isnan(income), 3, labels)
    found = [
        column(age, "age"),
        column(visits, "visits"),
        column(income, "income"),
        column(plan, "plan", "category", ("free", "paid", "team")),
        column(new, "new", "boolean", ("no", "yes")),
    ]
    return found, labels


def test_every_row_follows_one_rule_and_that_of_the_tree(table):
    columns, labels = table
    found = surrogate(columns, labels)
    rows = {c.name: c for c in columns}
    follows = np.array([holds(rule.text, rows) for rule in found.rules])
    assert (follows.sum(axis=0) == 1).all()
    X = np.column_stack([question.values() for question in found.tests])
    said = np.array([rule.cluster for rule in found.rules])[follows.argmax(axis=0)]
    np.testing.assert_array_equal(said, found.tree.predict(X))
    for rule, here in zip(found.rules, follows, strict=True):
        assert rule.holds == pytest.approx(here.mean())
        assert rule.right == pytest.approx(np.mean(labels[here] == rule.cluster))


def test_rules_are_the_ones_that_made_the_clusters(table):
    columns, labels = table
    found = surrogate(columns, labels)
    assert found.fidelity > 0.95 > found.largest and len(found.rules) <= 7
    for rule in found.rules:
        assert (rule.cluster == 3) == ("income is missing" in rule.text)
        assert (rule.cluster == 1) == ("age > 52" in rule.text and "visits ≤ 2" in rule.text)


def test_thresholds_of_few_digits_change_next_to_nothing(table):
    columns, labels = table
    found = surrogate(columns, labels)
    X = np.column_stack([question.values() for question in found.tests]).astype(np.float32)
    aside = np.random.default_rng(0).permutation(np.arange(len(labels)) % 3 == 0)
    plain = DecisionTreeClassifier(
        max_leaf_nodes=found.tree.max_leaf_nodes,
        min_samples_leaf=found.tree.min_samples_leaf,
        random_state=0,
    ).fit(X[~aside], labels[~aside])
    assert np.mean(plain.predict(X) == found.tree.predict(X)) > 0.99
    assert found.fidelity == pytest.approx(np.mean(found.tree.predict(X[aside]) == labels[aside]))


@pytest.mark.parametrize(
    ("below", "above", "at", "found"),
    [
        (52, 53, 52.5, 52),
        (55, 56, 55.5, 55),
        (1234.5, 1311.2, 1272.8, 1300),
        (0.0123, 0.0125, 0.0124, 0.0124),
    ],
)
def test_thresholds_lie_between_the_values(below, above, at, found):
    assert between(below, above, at) == found


def test_random_thresholds_part_the_same_values():
    rng = np.random.default_rng(0)
    for _ in range(300):
        below, above = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-6, 7))
        found = between(below, above, (below + above) / 2)
        assert below <= found < above


def test_dates_are_dates():
    days = np.repeat([19723.0, 19800.0], 100)
    found = surrogate([column(days, "signup", "date")], np.repeat([0, 1], 100))
    assert found.rules[1].text.startswith("signup after 2024-0")
    assert found.rules[0].text == found.rules[1].text.replace("after", "until")


def test_where_there_is_nothing_to_tell():
    assert surrogate([column(np.arange(20.0))], np.zeros(20, dtype=int)) is None
    assert surrogate([], np.arange(20) % 2) is None
    poor = surrogate([column(np.ones(90))], np.arange(90) % 3)
    assert len(poor.rules) == 1 and poor.rules[0].text == "" and poor.fidelity < 0.5
