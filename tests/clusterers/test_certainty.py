"""Chances of labels and scores of outliers, of every method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dmkc
from dmkc.clusterers.members import agreement_of
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_blobs

METHODS = [name for name in ESTIMATORS if name != "hmkkm"]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, 4, centers=3, seed=0)
    return np.asarray(X), np.asarray(y)


@pytest.mark.parametrize("n_clusters", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_chances_sum_to_one_and_speak_for_the_label(method, n_clusters, blobs):
    X, _ = blobs
    model = ESTIMATORS[method](n_clusters=n_clusters, random_state=0).fit(X)
    chances = model.predict_proba(X)
    assert chances.shape == (len(X), n_clusters)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.min() >= 0
    assert np.mean(chances.argmax(axis=1) == model.labels_) > 0.9


@pytest.mark.parametrize("n_clusters", [3, (2, 4)])
def test_chances_of_chosen_parameters(n_clusters, blobs):
    X, _ = blobs
    model = dmkc.MultipleKernelClustering(n_clusters, scale="auto", random_state=0).fit(X)
    chances = model.predict_proba(X)
    assert np.mean(chances.argmax(axis=1) == model.labels_) > 0.9
    assert model._refit_parameters()["scale"] != "auto"
    model.set_params(n_clusters=3, scale="minmax").fit(X)
    assert "scale" not in model._refit_parameters()  # its own is as good for other rows


def test_separated_rows_are_sure_and_rows_between_them_are_not(blobs):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 0.5, (100, 2)), rng.normal(5, 0.5, (100, 2))])
    model = dmkc.KMeans(2, random_state=0).fit(X)
    assert (model.predict_proba(X).max(axis=1) == 1).all()
    noise = rng.uniform(size=(300, 2))
    unsure = dmkc.KMeans(3, random_state=0).fit(noise)
    assert unsure.predict_proba(noise).max(axis=1).mean() < 0.95


def test_the_same_chances_whatever_the_form_of_the_rows(blobs):
    import dask.array as da

    X, _ = blobs
    model = dmkc.SpectralClustering(3, random_state=0).fit(X)
    plain = model.predict_proba(X)
    lazily = model.predict_proba(da.from_array(X, chunks=(70, 4)))
    np.testing.assert_array_equal(np.asarray(lazily), plain)
    np.testing.assert_array_equal(model.predict_proba(X[:7]), plain[:7])
    again = dmkc.SpectralClustering(3, random_state=0).fit(da.from_array(X, chunks=(50, 4)))
    np.testing.assert_array_equal(again.predict_proba(X), plain)


def test_frames_views_and_sparse_rows_have_chances(blobs):
    X, _ = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = dmkc.MultipleKernelClustering(
        3, kernels=[dmkc.Gaussian(columns=["a", "b"]), "linear"], random_state=0
    ).fit(frame)
    assert np.asarray(named.predict_proba(frame)).shape == (len(X), 3)
    views = {"one": X[:, :2], "two": X[:, 2:]}
    assert dmkc.MultipleKernelClustering(3, random_state=0).fit(views).predict_proba(
        views
    ).shape == (len(X), 3)
    few = sp.csr_array(np.maximum(X, 0))
    model = dmkc.SpectralClustering(3, random_state=0).fit(few)
    assert model.predict_proba(few).shape == (len(X), 3)
    assert model.outlier_scores(few).shape == (len(X),)


def test_constraints_and_subsets_do_without_in_refits(blobs):
    X, _ = blobs
    tied = dmkc.MarginDistributionClustering(
        2, must_link=[[0, 200]], cannot_link=[[0, 5]], random_state=0
    ).fit(X)
    assert tied.predict_proba(X).shape == (len(X), 2)
    part = dmkc.MultipleKernelClustering(2, train_rows=100, random_state=0).fit(X)
    assert part.predict_proba(X).shape == (len(X), 2)
    given = dmkc.MultipleKernelClustering(2, init=np.arange(len(X)) % 2, random_state=0).fit(X)
    assert given.predict_proba(X).shape == (len(X), 2)


def test_a_model_from_a_file_says_why_it_has_no_chances(tmp_path, blobs):
    X, _ = blobs
    dmkc.KMeans(3, random_state=0).fit(X).save(tmp_path / "m.zarr")
    with pytest.raises(dmkc.errors.UserError, match="a model file holds no rows"):
        dmkc.load(tmp_path / "m.zarr").predict_proba(X)


def test_far_rows_are_outliers(blobs):
    X, _ = blobs
    far = X.mean(axis=0) + 100 * X.std(axis=0)
    for method in ("spectral", "mkc", "consensus", "kernel-kmeans"):
        model = ESTIMATORS[method](n_clusters=3, random_state=0).fit(X)
        scores = model.outlier_scores(np.vstack([X, far]))
        assert np.median(scores[:-1]) < 1.3
        assert scores.argmax() == len(X) and scores[-1] > 10
    with pytest.raises(dmkc.errors.UserError, match="neither anchors nor landmarks"):
        dmkc.KMeans(3, random_state=0).fit(X).outlier_scores(X)


def test_scores_of_anchors_are_those_of_scikit_learn(blobs):
    from sklearn.neighbors import LocalOutlierFactor

    X, _ = blobs
    model = dmkc.SpectralClustering(3, scale=None, random_state=0).fit(X)
    points = np.unique(X, axis=0)
    peer = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(points)
    new = X[:20] + 0.3
    np.testing.assert_allclose(model.outlier_scores(new), -peer.score_samples(new), rtol=1e-5)


def test_clusters_of_refits_are_matched_one_to_one():
    reference = np.array([0, 0, 1, 1, 2, 2])
    turned = np.array([2, 2, 0, 0, 1, 1])
    shares = agreement_of(reference, [turned, reference], 3).shares
    np.testing.assert_array_equal(shares[:3], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(shares[3:], np.eye(3))
