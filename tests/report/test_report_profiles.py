"""What columns say of clusters, beside scikit-learn and brute force."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score, roc_auc_score

from dmkc.report.columns import Column
from dmkc.report.profiles import bins_of, mark, names_of, told, typical


def column(values, name="x", kind="number", words=()):
    return Column(name, kind, np.asarray(values, dtype=float), words)


def test_what_a_column_tells_is_mutual_information():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    codes = np.where(rng.random(3000) < 0.7, labels, rng.integers(0, 4, 3000))
    found = told(column(codes, kind="category", words=tuple("abcd")), labels)
    entropy = mutual_info_score(labels, labels)
    chance = 2 * 3 / (2 * 3000)
    assert found == pytest.approx((mutual_info_score(labels, codes) - chance) / entropy)


def test_what_a_column_tells_is_between_nothing_and_all():
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    assert told(column(labels + 0.1 * rng.random(2000)), labels) == pytest.approx(1, abs=0.05)
    assert told(column(rng.normal(size=2000)), labels) < 0.01
    assert told(column(rng.normal(size=2000) * (1 + 3 * labels)), labels) > 0.2  # spread alone
    assert told(column(np.ones(2000)), labels) == 0
    assert told(column(rng.normal(size=2000)), np.zeros(2000, dtype=int)) == 0
    gaps = np.where(labels == 0, np.nan, rng.normal(size=2000))
    assert told(column(gaps), labels) == pytest.approx(1, abs=0.05)


def test_a_place_is_told_as_by_the_area_under_the_curve():
    rng = np.random.default_rng(1)
    here = rng.random(500) < 0.3
    values = rng.normal(size=500) + here
    area = roc_auc_score(here, values)
    found = mark(column(values, "age"), here)
    assert found.strength == pytest.approx(2 * area - 1) and found.words == "high age"
    assert mark(column(-values, "age"), here).words == "low age"
    assert mark(column(values, "day", "date"), here).words == "late day"


def test_names_by_what_is_particular():
    labels = np.repeat([0, 1, 2], 200)
    rng = np.random.default_rng(2)
    plan = column(labels == 1, "plan", "category", ("free", "paid"))
    wide = column(rng.normal(size=600) * np.where(labels == 2, 9, 1), "noise")
    gap = column(np.where(labels == 0, np.nan, 1.0), "income")
    flag = column(labels == 0, "new", "boolean", ("no", "yes"))
    names = names_of([plan, wide, gap, flag], labels, 3)
    assert "plan paid" in names[1] and "noise far from the middle" in names[2]
    assert set(names[0].split(", ")) == {"income missing", "new"}
    assert names_of([column(np.ones(600))], labels, 3) == ["", "", ""]


def test_equal_names_get_a_third_column():
    labels = np.repeat([0, 1, 2], 100)
    low = [column(labels == 2, name) for name in ("a", "b")]
    third = column(labels == 1, "c")
    found = names_of([*low, third], labels, 3)
    assert found[0] != found[1] and len(set(found)) == 3


def test_equal_names_of_one_column_say_where():
    labels = np.repeat([0, 1, 2, 3], 100)
    day = column(19000 + 100 * labels + np.tile(np.arange(100), 4), "since", "date")
    found = names_of([day], labels, 4)
    assert len(set(found)) == 4 and "since about 2022-" in " ".join(found)


def test_the_first_typical_row_is_the_medoid_and_the_others_are_greedy():
    points = np.random.default_rng(3).normal(size=(40, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    found = typical(points, 3)
    assert found[0] == distances.sum(axis=1).argmin()
    for count in (2, 3):
        before = list(found[: count - 1])
        totals = [distances[:, [*before, j]].min(axis=1).sum() for j in range(40)]
        assert totals[found[count - 1]] == pytest.approx(min(totals))
    best = min(distances[:, list(p)].min(axis=1).sum() for p in combinations(range(40), 2))
    assert distances[:, found[:2]].min(axis=1).sum() < 1.2 * best
    assert len(typical(points[:2], 3)) == 2


@pytest.mark.parametrize("values", [np.arange(10.0), np.linspace(0, 1, 500), [5.0, np.nan, 5.0]])
def test_every_row_is_in_one_bar(values):
    found = bins_of(column(values))
    there = np.isfinite(values)
    assert (found.numbers[there] >= 0).all() and (found.numbers[~there] == -1).all()
    assert found.numbers.max() < len(found.names)
    assert found.shares(np.ones(len(there), dtype=bool)).sum() == pytest.approx(1)


def test_whole_numbers_have_bars_of_their_own():
    found = bins_of(column([3, 3, 4, 6]))
    assert found.names == ("3", "4", "5", "6") and found.numbers.tolist() == [0, 0, 1, 3]
