"""Proposals of pairs: what they look at, and that their answers help."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dmkc import MarginDistributionClustering
from dmkc.constraints import next_pairs, random_pairs


def rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.4).astype(int)
    return rng.normal(size=(n, 4)) + 2.5 * y[:, None] * np.eye(4)[0], y


X, Y = rows()


def fitted(must=None, cannot=None):
    params = {"must_link": must, "cannot_link": cannot, "random_state": 0, "rank": 30}
    return MarginDistributionClustering(**params).fit(X)


def test_margins_come_first_the_smallest_ones():
    must, cannot = random_pairs(Y, 60, random_state=0)
    model = fitted(must, cannot)
    pairs = next_pairs(model, X, 8)
    margin = np.abs(model.decision_function(X))
    free = np.setdiff1d(np.arange(len(X)), model.constrained_rows_)
    wanted = free[np.argsort(margin[free], kind="stable")]
    assert pairs[:, 0].tolist() == [i for i in wanted if i not in pairs[:, 1]][:8]
    own = model.predict(X)
    assert (own[pairs[:, 0]] == own[pairs[:, 1]]).all()
    assert margin[pairs[:, 1]].min() > 5 * margin[pairs[:, 0]].max()


def test_farthest_rows_are_far_from_all_before():
    model = fitted()
    pairs, phi = next_pairs(model, X, 6, strategy="farthest"), model.transform(X)
    seen = [pairs[0, 1]]
    for far, near in pairs:
        distance = np.linalg.norm(phi[:, None] - phi[seen], axis=2).min(axis=1)
        assert distance[far] == pytest.approx(distance.max())
        assert near in seen
        assert np.linalg.norm(phi[far] - phi[near]) == pytest.approx(distance[far])
        seen.append(far)


@pytest.mark.filterwarnings("ignore:Only")
def test_the_first_questions_explore_and_later_ones_are_at_the_margin():
    alone = fitted()
    explored = next_pairs(alone, X, 6, strategy="farthest")
    np.testing.assert_array_equal(next_pairs(alone, X, 6), explored)
    few = fitted(*random_pairs(Y, 5, random_state=0))
    np.testing.assert_array_equal(next_pairs(few, X, 6), next_pairs(few, X, 6, strategy="farthest"))
    many = fitted(*random_pairs(Y, 60, random_state=0))
    np.testing.assert_array_equal(next_pairs(many, X, 6), next_pairs(many, X, 6, strategy="margin"))


def test_answers_to_proposals_improve_the_clusters():
    must, cannot = random_pairs(Y, 15, random_state=3)
    pairs = {"must": must, "cannot": cannot}
    with pytest.warns(UserWarning, match="cannot-links"):
        model = fitted(**pairs)
    before = adjusted_rand_score(Y, model.labels_)
    for _ in range(3):
        asked = next_pairs(model, X, 15)
        same = Y[asked[:, 0]] == Y[asked[:, 1]]
        pairs["must"] = np.concatenate([pairs["must"], asked[same]])
        pairs["cannot"] = np.concatenate([pairs["cannot"], asked[~same]])
        model = fitted(**pairs)
    assert adjusted_rand_score(Y, model.labels_) > before


@pytest.mark.parametrize("strategy", ["margin", "farthest"])
def test_lazy_rows_are_sampled_alike(strategy):
    model = fitted()
    params = {"strategy": strategy, "sample_rows": 200, "random_state": 4}
    expected = next_pairs(model, X, 5, **params)
    found = next_pairs(model, da.from_array(X, chunks=(130, 4)), 5, **params)
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(expected[:, 0])) == 5


def test_what_makes_no_sense():
    model = fitted()
    with pytest.raises(ValueError, match=r"strategy must be one of.*Did you mean 'margin'"):
        next_pairs(model, X, strategy="margins")
    with pytest.raises(ValueError, match="n_pairs must be an integer of at least 1"):
        next_pairs(model, X, 0)
