"""Whether clusters can be trusted is said in words that fit."""

import numpy as np
import pytest

from dmkc import KMeans, MultipleKernelClustering, SpectralClustering
from dmkc.datasets import make_blobs, make_ringnorm, make_rings
from dmkc.report import trust
from dmkc.report.subject import subject_of
from dmkc.report.trust import DIVISION, NESTED, NO, PARTLY, YES, nested, trust_of


def seen(model, X):
    return trust_of(subject_of(model.fit(X), X))


def test_clear_clusters():
    X = make_blobs(300, 3, 3, spread=0.5, seed=2)[0].astype(float)
    found = seen(KMeans(3, random_state=0), X)
    assert found.answer == YES and found.evidence > 3 and found.own.mean() > 0.95
    assert "There is structure" in found.sentences[0] and "stable" in found.sentences[1]
    assert found.others["k-means on standardised columns"] > 0.9
    assert not len(found.unsure) or found.own[found.unsure].max() < 0.75


def test_rows_without_clusters():
    X = np.random.default_rng(0).normal(size=(300, 4))
    found = seen(KMeans(3, random_state=0), X)
    assert found.answer == NO and found.evidence < 3
    assert "no evidence of clusters" in found.sentences[0]
    order = found.own[found.unsure]
    assert len(order) and (np.diff(order) >= 0).all()


def test_a_cloud_inside_another_is_not_called_none():
    X, y = make_ringnorm(600, 20, seed=0)
    assert nested(X, y)
    found = seen(MultipleKernelClustering(random_state=0), X)
    assert found.answer == PARTLY and NESTED in found.sentences
    halves = (X[:, 0] > np.median(X[:, 0])).astype(int)
    assert not nested(np.random.default_rng(0).normal(size=(600, 20)), halves)


def test_shapes_that_simple_methods_cannot_find(monkeypatch):
    monkeypatch.setattr(trust, "_evidence", lambda subject: 9.0)
    X, _ = make_rings(300, noise=0.05, seed=0)
    found = seen(SpectralClustering(2, random_state=0), X)
    assert max(found.others.values()) < 0.5 and "find round clusters" in found.sentences[-1]
    assert "-0.00" not in found.sentences[-1]


@pytest.mark.parametrize(
    ("k", "evidence", "mean", "clear", "answer"),
    [
        (1, 0.5, None, None, YES),
        (1, 8.0, None, None, PARTLY),
        (3, 8.0, 0.95, None, YES),
        (3, 8.0, 0.95, "some structure", PARTLY),
        (3, 8.0, 0.8, None, PARTLY),
        (3, 8.0, 0.5, None, NO),
        (3, 1.0, 0.95, None, DIVISION),
        (3, 1.0, 0.95, "no evidence of clusters", DIVISION),
        (3, 1.0, 0.8, None, NO),
        (3, None, None, None, PARTLY),
    ],
)
def test_answers(k, evidence, mean, clear, answer):
    assert trust._answer(k, evidence, mean, clear) == answer
