"""Consensus: what joined clusterings come to, how sure they are, and every sentence of an error."""

from __future__ import annotations

from itertools import product

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans as ScikitKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import ConsensusClustering, KMeans, MultipleKernelClustering, SpectralClustering
from dmkc.clusterers.kmeans.ensemble import BINS
from dmkc.scan.engine import ThreadEngine

SMALL = {"random_state": 0, "n_members": 8, "anchors": 100, "sample_rows": 400}
MIXED = [KMeans(3, random_state=0), SpectralClustering(4, random_state=0), KMeans(5)]
THREE = [KMeans(2, random_state=0), KMeans(3, random_state=1), KMeans(4, random_state=2)]


BY_ROW = "members are found on a sample in the order of the rows, which repeating rows changes"
SIGNS = "an eigenvector that is its own mirror image has either sign, by the numbers of clusters"


def known_to_fail(model):
    weights = "check_sample_weight_equivalence_on_"
    why = BY_ROW if model.members is None else SIGNS
    return {f"{weights}dense_data": why, f"{weights}sparse_data": why}


@parametrize_with_checks(
    [
        without_chances(ConsensusClustering()),
        without_chances(ConsensusClustering(members=THREE[:2])),
    ],
    expected_failed_checks=known_to_fail,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=900, k=3, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    centres = 6.0 * np.stack([np.cos(np.arange(k) * 2.1), np.sin(np.arange(k) * 2.1)], axis=1)
    return centres[y] + spread * rng.normal(size=(n, 2)), y


@pytest.fixture(scope="module")
def vague():
    """Clusters that run into each other, so that clusterings disagree, and a consensus of them."""
    X, _ = blobs(2000, spread=2.5)
    return X, ConsensusClustering(3, **SMALL).fit(X)


def one_hot(model, X):
    """Rows x clusters of all members, from the members' own labels."""
    parts = [np.eye(m.n_clusters_)[np.asarray(m.predict(X))] for m in model.members_]
    return np.hstack(parts), len(parts)


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_a_consensus_of_equal_clusterings_is_that_clustering(spread):
    X, _ = blobs(spread=spread)
    alone = KMeans(3, random_state=0).fit(X)
    joined = ConsensusClustering(3, members=[KMeans(3, random_state=0)] * 3, random_state=0).fit(X)
    np.testing.assert_array_equal(joined.labels_, alone.labels_)
    assert (joined.membership_ == 1).all() and (joined.stability_ == 1).all()
    strict = clone(joined).set_params(least_agreement=1.0).fit(X)
    np.testing.assert_array_equal(strict.labels_, alone.labels_)
    np.testing.assert_allclose(joined.eigenvalues_[:3], 0.0, atol=1e-9)


def test_clear_clusters_are_found_and_new_rows_told_apart():
    X, y = blobs()
    model = ConsensusClustering(3, **SMALL).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    new, truth = blobs(300, seed=1)
    assert adjusted_rand_score(truth, model.predict(new)) == 1.0


def test_labels_shares_and_membership_belong_together(vague):
    X, model = vague
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    shares = model.predict_proba(X)
    assert shares.shape == (len(X), 3) and shares.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert (shares.argmax(axis=1) == model.labels_).mean() > 0.97
    own = shares[np.arange(len(X)), model.labels_]
    np.testing.assert_allclose(model.membership_, own, rtol=1e-12)
    means = [model.membership_[model.labels_ == k].mean() for k in range(3)]
    np.testing.assert_allclose(model.stability_, means, rtol=1e-9)
    sizes = np.bincount(model.labels_)
    assert (np.diff(sizes) <= 0).all()


def test_shares_are_those_of_the_members_clusters():
    X, _ = blobs(400, spread=3.0)
    model = ConsensusClustering(3, members=THREE, random_state=0).fit(X)
    B, count = one_hot(model, X)
    by_cluster = B.T @ np.eye(3)[model.labels_]
    by_cluster /= by_cluster.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), B @ by_cluster / count, atol=1e-12)


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_a_share_of_the_rows_is_noise(vague, noise):
    X, sure = vague
    model = clone(sure).set_params(noise=noise).fit(X)
    found = model.labels_ == -1
    in_bins = np.histogram(sure.membership_, np.arange(BINS + 1) / BINS)[0] / len(X)
    assert noise - in_bins.max() <= found.mean() <= noise
    assert sure.membership_[found].max() < sure.membership_[~found].min()
    np.testing.assert_array_equal(model.labels_[~found], sure.labels_[~found])
    np.testing.assert_array_equal(model.membership_, sure.membership_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_with_little_agreement_are_noise(vague):
    X, sure = vague
    model = clone(sure).set_params(least_agreement=0.8).fit(X)
    np.testing.assert_array_equal(model.labels_ == -1, sure.membership_ < 0.8)
    lazy = clone(model).fit(da.from_array(X, chunks=(300, 2)))
    np.testing.assert_array_equal(np.asarray(lazy.labels_), model.labels_)
    np.testing.assert_array_equal(np.asarray(lazy.membership_), model.membership_)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"noise": 0.1, "least_agreement": 0.5}, "give one"),
        ({"noise": 1.5}, "between 0 and 1"),
        ({"least_agreement": 0.0}, "greater than 0"),
        ({"n_members": 1}, "n_members must be"),
        ({"members": [KMeans()]}, "at least two"),
        ({"members": KMeans()}, "at least two"),
        ({"members": "kmeans"}, "at least two"),
        ({"members": [KMeans(), ScikitKMeans()]}, "one is a KMeans"),
        ({"members": [KMeans, KMeans]}, "one is a KMeans"),
        ({"members": ["kmeans", "nonsense"]}, "no method 'nonsense'"),
        ({"members": ["kmeans", "consensus"]}, "consensus clusterings themselves"),
        ({"members": [KMeans(), KMeans(n_init=0)]}, "n_init"),
        ({"members": THREE, "n_members": 5}, "n_members is for spectral members"),
        ({"members": THREE, "anchors": 5}, "anchors is for spectral members"),
        ({"members": THREE, "scale": None}, "scale is for spectral members"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": (3, 2)}, "n_clusters"),
    ],
)
def test_mistakes_are_told_in_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        ConsensusClustering(**given).fit(object())
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_members_by_name():
    X, _ = blobs(spread=2.0)
    named = ConsensusClustering(3, members=["kmeans", "spectral"], random_state=4).fit(X)
    made = [KMeans(3, random_state=4), SpectralClustering(3, random_state=4)]
    same = ConsensusClustering(3, members=made, random_state=4).fit(X)
    np.testing.assert_array_equal(named.labels_, same.labels_)
    assert named.members == ["kmeans", "spectral"]
    assert [type(member) for member in named.members_] == [KMeans, SpectralClustering]


def test_members_are_copies():
    X, _ = blobs()
    members = [KMeans(3, random_state=0), MultipleKernelClustering(3, rank=20, random_state=0)]
    model = ConsensusClustering(3, members=members, random_state=0).fit(X)
    assert not any("labels_" in vars(member) for member in members)
    assert all("labels_" in vars(member) for member in model.members_)
    assert ConsensusClustering(3, **SMALL).fit(X).members_ is None


@pytest.mark.parametrize("members", [None, THREE])
def test_one_cluster_holds_every_row_for_sure(members):
    X, _ = blobs(60)
    model = ConsensusClustering(1, members=members, random_state=0, noise=0.3).fit(X)
    assert (model.labels_ == 0).all() and (model.membership_ == 1).all()
    assert (model.predict_proba(X) == 1).all() and model.transform(X).shape == (60, 1)


@pytest.mark.parametrize("asked", ["auto", (2, 6)])
@pytest.mark.parametrize("members", [None, [KMeans(k, random_state=0) for k in (3, 3, 4, 5)]])
def test_the_number_of_clusters_is_found(asked, members):
    X, y = blobs()
    more = {"random_state": 0} if members else SMALL
    model = ConsensusClustering(asked, members=members, **more).fit(X)
    assert model.n_clusters_ == 3 and adjusted_rand_score(y, model.labels_) == 1.0
    assert sum(tried["chosen"] for tried in model.selection_) == 1
    assert model._choice().records == model.selection_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("clusters", [1, 2, 3, "auto"])
def test_few_rows(n, clusters):
    X, _ = blobs(n)
    model = ConsensusClustering(clusters, random_state=0)
    if clusters != "auto" and n < clusters:
        with pytest.raises(ValueError, match=r"\.$"):
            model.fit(X)
        return
    if n == 1 and clusters == "auto":
        with pytest.raises(ValueError, match=r"\.$"):
            model.fit(X)
        return
    model.fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_duplicates_and_constant_columns():
    X, y = blobs(120)
    doubled = np.repeat(X, 3, axis=0)
    labels = ConsensusClustering(3, random_state=0).fit(doubled).labels_
    assert adjusted_rand_score(np.repeat(y, 3), labels) == 1.0
    assert (labels.reshape(-1, 3) == labels[::3, None]).all()
    flat = np.column_stack([X, np.full(len(X), 7.0)])
    assert adjusted_rand_score(y, ConsensusClustering(3, random_state=0).fit_predict(flat)) == 1.0
    with pytest.raises(ValueError, match="All rows are equal"):
        ConsensusClustering(2, random_state=0).fit(np.ones((30, 2)))
    two = ConsensusClustering(2, random_state=0).fit(np.repeat([[0.0], [1.0]], [20, 10], axis=0))
    assert two.labels_.tolist() == [0] * 20 + [1] * 10


@pytest.mark.parametrize("spread", [1.0, 2.5])
def test_eigenvalues_are_those_of_the_graph_of_rows_and_clusters(spread):
    X, _ = blobs(150, spread=spread)
    model = ConsensusClustering(3, members=THREE, random_state=0).fit(X)
    B, _ = one_hot(model, X)
    n, c = B.shape
    graph = np.zeros((n + c, n + c))
    graph[:n, n:], graph[n:, :n] = B, B.T
    degrees = 1.0 / np.sqrt(graph.sum(axis=1))
    laplacian = np.eye(n + c) - graph * degrees * degrees[:, None]
    expected = np.linalg.eigvalsh(laplacian)[: len(model.eigenvalues_)]
    np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_tiny_ensembles_are_cut_where_the_normalised_cut_is_least(seed):
    rng = np.random.default_rng(seed)
    first = 3 + seed % 3
    X = rng.normal(size=(8, 2)) + np.where(np.arange(8) < first, 0.0, 7.0)[:, None]
    members = [KMeans(k, random_state=s) for s, k in enumerate((2, 3, 4, 3))]
    model = ConsensusClustering(2, members=members, random_state=0).fit(X)
    B, count = one_hot(model, X)
    together = B @ B.T / count
    degrees = together.sum(axis=1)

    def cut(side):
        across = together[side][:, ~side].sum()
        return across / degrees[side].sum() + across / degrees[~side].sum()

    sides = [np.array([True, *rest]) for rest in product([False, True], repeat=7)]
    best = min((side for side in sides if not side.all()), key=cut)
    assert adjusted_rand_score(best, model.labels_) == 1.0


def fit_on(X, **more):
    return ConsensusClustering(3, **{**SMALL, "noise": 0.05, **more}).fit(X)


def assert_same(model, expected):
    for name in ("labels_", "membership_"):
        ours, theirs = (np.asarray(getattr(m, name)) for m in (model, expected))
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    np.testing.assert_array_equal(model.stability_, expected.stability_)


@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_do_not_matter(weighted):
    X, _ = blobs(9000, spread=2.5)
    weights = np.random.default_rng(1).random(len(X)) if weighted else None

    def fitted(rows):
        return ConsensusClustering(3, **SMALL).fit(rows, sample_weight=weights)

    expected = fitted(X)
    for chunks in ((1000, 2), (4096, 1), (777, 2)):
        assert_same(fitted(da.from_array(X, chunks=chunks)), expected)


@pytest.mark.parametrize("members", [None, MIXED[:2]])
def test_a_cluster_gives_the_labels_of_threads(members, thread_client):
    X, _ = blobs(9000, spread=2.5)
    more = {"members": members, "anchors": 1000, "n_members": 20} if members else {}
    expected = fit_on(X, **more)
    assert_same(fit_on(X, client=thread_client, **more), expected)
    lazy = da.from_array(X, chunks=(2000, 2))
    assert_same(fit_on(lazy, client=thread_client, **more), expected)


def test_clusters_may_be_found_anew_on_every_scan(monkeypatch):
    X, _ = blobs(9000, spread=2.5)
    expected, plain = fit_on(X), ThreadEngine.__init__

    def less(self):
        plain(self)
        self.memory = 100_000

    monkeypatch.setattr(ThreadEngine, "__init__", less)
    assert_same(fit_on(X), expected)


def test_a_weight_stands_for_equal_rows():
    X, _ = blobs(300, spread=2.0)
    weights = 1 + np.arange(300) % 3
    start = X[:3]
    members = [KMeans(3, init=start, n_init=1), KMeans(4, init=X[:4], n_init=1)]
    model = ConsensusClustering(3, members=members, random_state=0)
    weighted = clone(model).fit(X, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-9)
    assert adjusted_rand_score(np.repeat(weighted.labels_, weights), repeated.labels_) == 1.0
    np.testing.assert_allclose(weighted.stability_, repeated.stability_, rtol=1e-9)


def test_sparse_rows_have_the_labels_of_dense_ones():
    X, _ = blobs(600)
    X = np.where(np.abs(X) > 1, X, 0.0)
    for members in (None, THREE):
        model = ConsensusClustering(3, members=members, random_state=0, scale="if-mixed")
        dense, sparse = clone(model).fit(X), clone(model).fit(sp.csr_array(X))
        assert adjusted_rand_score(dense.labels_, sparse.labels_) > 0.99
        np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.labels_)


def test_it_goes_into_a_pipeline():
    X, y = blobs()
    steps = make_pipeline(StandardScaler(), ConsensusClustering(3, **SMALL))
    labels = steps.fit_predict(X * [1, 1000])
    assert adjusted_rand_score(y, labels) == 1.0
    np.testing.assert_array_equal(steps.predict(X * [1, 1000]), labels)
    assert steps.transform(X * [1, 1000]).shape == (900, len(steps[-1].get_feature_names_out()))


def test_a_fit_with_members_can_be_planned_and_resumed(tmp_path):
    X, _ = blobs(3000)
    model = ConsensusClustering(3, members=THREE, random_state=0, sample_rows=500)
    found = dmkc.plan(X, model)
    assert found.seconds > 0 and not hasattr(model, "labels_")
    expected = clone(model).fit(X)
    for _ in range(2):
        with dmkc.checkpoint(tmp_path):
            assert_same(clone(model).fit(X), expected)
