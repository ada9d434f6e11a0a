"""Wide rows of which few columns separate the clusters."""

import numpy as np
import pytest

from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.planes.few_columns import few_columns
from dmkc.clusterers.planes.learn import MOST_OF_PULL, SHARE_OF_PULL, share_of_pull
from dmkc.metrics import accuracy


def planted(n_rows, n_columns, n_planted, shift, clusters=2):
    rng = np.random.default_rng(0)
    y = rng.integers(0, clusters, size=n_rows)
    X = rng.normal(size=(n_rows, n_columns))
    true = np.sort(rng.choice(n_columns, n_planted, replace=False))
    X[:, true] += shift * y[:, None]
    return X, y, true


def test_planted_columns_are_found_among_many():
    X, y, true = planted(300, 3000, 8, 3.0)
    model = NonparallelPlaneClustering(random_state=0).fit(X)
    assert "columns" in model.start_
    assert accuracy(y, model.labels_) == 1.0
    assert set(true) <= set(model.get_support(indices=True))
    assert set(np.argsort(-model.feature_importances_)[:8]) == set(true)
    assert len(model.get_support(indices=True)) < 60


def test_several_clusters():
    X, y, _ = planted(300, 400, 8, 4.0, clusters=3)
    model = NonparallelPlaneClustering(3, init="few-columns", random_state=0).fit(X)
    assert accuracy(y, model.labels_) > 0.97


@pytest.mark.parametrize("count", [1, 3, 50])
def test_constant_columns_and_more_columns_than_there_are(count):
    rows = np.column_stack([np.repeat([-1.0, 1.0], 10), np.zeros(20), np.arange(20.0)])
    seen = []

    def grouping(few):
        seen.append(few.shape[1])
        return (few[:, 0] > 0).astype(int)

    labels = few_columns(rows, np.ones(20), count, grouping)
    assert set(seen) == {min(count, 3)}
    assert np.array_equal(labels, np.repeat([0, 1], 10))


def test_a_weight_is_so_many_rows():
    X, _, _ = planted(60, 80, 4, 3.0)
    times = np.random.default_rng(1).integers(1, 4, size=60)
    chosen = []

    def grouping(few):
        chosen.append(few)
        return (few[:, 0] > 0).astype(int)

    few_columns(X, times.astype(float), 4, grouping)
    once = list(chosen)
    chosen.clear()
    few_columns(np.repeat(X, times, axis=0), np.ones(times.sum()), 4, grouping)
    for weighted, repeated in zip(once, chosen, strict=True):
        assert np.array_equal(np.repeat(weighted, times, axis=0), repeated)


def test_a_share_of_the_pull():
    assert share_of_pull(64, 1000) == SHARE_OF_PULL
    assert SHARE_OF_PULL < share_of_pull(10_000, 400) < share_of_pull(10_000, 100) <= MOST_OF_PULL
    assert share_of_pull(10_000, 20) == MOST_OF_PULL
