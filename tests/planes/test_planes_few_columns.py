"""Wide rows of which few columns separate the clusters."""

import numpy as np
import pytest

from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.planes.learn import MOST_OF_PULL, SHARE_OF_PULL, share_of_pull
from dmkc.clusterers.sampled import between_shares, correlated, few_columns, mixed, separation
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


def test_weak_columns_are_found_by_their_correlation():
    """Each column alone looks normal: the mixture of two normals one deviation apart."""
    X, y, true = planted(400, 800, 10, 1.0)
    even = np.full(400, 1 / 400)
    assert len(np.intersect1d(mixed(X, even, 8), true)) <= 2
    assert len(np.intersect1d(correlated(X, even, 8), true)) >= 6
    model = NonparallelPlaneClustering(random_state=0).fit(X)
    assert "correlated" in model.start_
    assert accuracy(y, model.labels_) > 0.85
    assert len(np.intersect1d(np.argsort(-model.feature_importances_)[:10], true)) >= 9


def test_correlated_columns_around_some_seeds(monkeypatch):
    """Where not all pairs are looked at, the group around a good seed is found all the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 300))
    X[:, 40:45] += 5.0 * rng.integers(0, 2, size=(100, 1))
    monkeypatch.setattr("dmkc.clusterers.sampled.MOST_PRODUCTS", 0)
    assert set(correlated(X, np.full(100, 0.01), 5)) == set(range(40, 45))


@pytest.mark.parametrize("count", [1, 2, 50])
def test_correlated_columns_with_constants_and_too_few(count):
    rows = np.column_stack([np.arange(20.0), np.zeros(20), -(np.arange(20.0) ** 2), np.ones(20)])
    chosen = correlated(rows, np.full(20, 0.05), count)
    assert len(chosen) == min(count, 4)
    assert count != 2 or chosen.tolist() == [0, 2]


def test_separation_is_the_share_between_clusters():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(200, 3)) * [1.0, 2.0, 0.0], rng.integers(0, 2, size=200)
    weights = rng.uniform(size=200)
    weights /= weights.sum()
    share, spread = between_shares(X, weights, labels)
    whole = np.average(X, axis=0, weights=weights)
    means = [np.average(X[labels == k], axis=0, weights=weights[labels == k]) for k in (0, 1)]
    size = [weights[labels == k].sum() for k in (0, 1)]
    between = sum(s * (m - whole) ** 2 for s, m in zip(size, means, strict=True))
    np.testing.assert_allclose(share * spread, between, atol=1e-12)
    assert separation(X, weights, labels) == pytest.approx(between.sum() / spread.sum())
    assert separation(np.ones((20, 2)), np.full(20, 0.05), labels[:20]) == 0.0


def test_separation_leaves_chance_out():
    """One column cut in two is worth less than ten that agree, and noise next to nothing."""
    X, y, true = planted(400, 2000, 10, 1.5)
    even = np.full(400, 1 / 400)
    noise = np.setdiff1d(np.arange(2000), true)[0]
    one = separation(X, even, (X[:, noise] > 0).astype(int))
    random = separation(X, even, np.random.default_rng(1).integers(0, 2, size=400))
    assert separation(X, even, y) > 2 * one > 20 * random


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
