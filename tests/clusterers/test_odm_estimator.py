"""Margin-distribution clustering as an estimator: contract, inputs, constraints in every form."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import Gaussian, MarginDistributionClustering
from dmkc.constraints import check_labeling, random_pairs


@parametrize_with_checks([without_chances(MarginDistributionClustering())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=600, seed=0, gap=3.0, d=4):
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.4).astype(int)
    return rng.normal(size=(n, d)) + gap * y[:, None] * np.eye(d)[0], y


def make(**params):
    return MarginDistributionClustering(**{"random_state": 0, "rank": 30, **params})


X, Y = blobs()
MUST, CANNOT = random_pairs(Y, 80, random_state=1)


def test_constraints_help_and_are_kept():
    plain, helped = make().fit(X), make(must_link=MUST, cannot_link=CANNOT).fit(X)
    assert adjusted_rand_score(Y, helped.labels_) > adjusted_rand_score(Y, plain.labels_) + 0.02
    assert len(check_labeling(helped.labels_, MUST, CANNOT)) == helped.n_violated_ == 0
    rows = np.unique(np.concatenate([MUST, CANNOT]))
    np.testing.assert_array_equal(helped.constrained_rows_, rows)
    np.testing.assert_array_equal(helped.labels_[rows], helped.constrained_labels_)
    free = np.setdiff1d(np.arange(len(X)), rows)
    np.testing.assert_array_equal(helped.predict(X)[free], helped.labels_[free])
    assert np.bincount(helped.labels_)[0] >= len(X) / 2


def test_without_constraints_two_moderate_clusters_are_found():
    easy, y = blobs(gap=6.0)
    model = make().fit(easy)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    np.testing.assert_array_equal(model.predict(easy), model.labels_)
    lopsided = np.concatenate([easy[y == 0], easy[y == 1][:30]])
    assert np.bincount(make().fit(lopsided).labels_, minlength=2).min() >= 30


FORMS = {
    "numpy": lambda: X,
    "pandas": lambda: pd.DataFrame(X),
    "dask": lambda: da.from_array(X, chunks=(170, 4)),
    "dask-frame": lambda: dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3),
    "xarray": lambda: xr.DataArray(X, dims=("id", "c")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sample_rows", [8192, 100])
def test_the_same_labels_in_every_form_of_input(form, sample_rows):
    params = {"must_link": MUST, "cannot_link": CANNOT, "sample_rows": sample_rows}
    expected = make(**params).fit(X).labels_
    given_ = FORMS[form]()
    labels = make(**params).fit(given_).labels_
    kind = {"dask": da.Array, "dask-frame": dd.Series, "xarray": xr.DataArray, "pandas": pd.Series}
    assert isinstance(labels, kind.get(form, np.ndarray))
    np.testing.assert_array_equal(np.asarray(labels), expected)
    assert len(check_labeling(expected, MUST, CANNOT)) == 0


@pytest.mark.parametrize("mode", ["persist", "recompute", "store"])
def test_feature_modes_and_zarr_agree(tmp_path, mode):
    stored = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, dtype=X.dtype, chunks=(200, 4))
    stored[...] = X
    params = {"must_link": MUST, "cannot_link": CANNOT, "sample_rows": 100}
    expected = make(**params).fit(X)
    found = make(feature_mode=mode, **params).fit(str(tmp_path / "x.zarr"))
    np.testing.assert_array_equal(np.asarray(found.labels_), expected.labels_)
    assert found.objective_ == expected.objective_


def test_a_cluster_of_workers_agrees(thread_client):
    assert_cluster_agrees(thread_client)


@pytest.mark.slow
def test_a_cluster_of_processes_agrees(process_client):
    assert_cluster_agrees(process_client)


def assert_cluster_agrees(client):
    params = {"must_link": MUST, "cannot_link": CANNOT, "sample_rows": 100}
    expected = make(**params).fit(X)
    for given_ in (X, da.from_array(X, chunks=(130, 4))):
        found = make(client=client, **params).fit(given_)
        with client.as_current():
            np.testing.assert_array_equal(np.asarray(found.labels_), expected.labels_)
        assert found.objective_ == expected.objective_


def test_a_sample_leads_to_the_same_clusters_as_all_rows():
    big, y = blobs(6000, seed=3)
    must, cannot = random_pairs(y, 120, random_state=2)
    params = {"must_link": must, "cannot_link": cannot, "landmarks": big[:30]}
    whole, sampled = make(**params).fit(big), make(sample_rows=500, **params).fit(big)
    assert sampled.objective_ == pytest.approx(whole.objective_, rel=0.02)
    assert adjusted_rand_score(whole.labels_, sampled.labels_) > 0.95
    assert len(check_labeling(sampled.labels_, must, cannot)) == 0


@pytest.mark.parametrize("polish", [0, 5])
def test_training_on_a_subset_keeps_the_constraints(polish):
    big, y = blobs(4000, seed=3)
    must, cannot = random_pairs(y, 120, random_state=2)
    model = make(must_link=must, cannot_link=cannot, train_rows=400, polish=polish).fit(big)
    assert len(check_labeling(model.labels_, must, cannot)) == 0
    whole = make(must_link=must, cannot_link=cannot).fit(big)
    assert adjusted_rand_score(whole.labels_, model.labels_) > 0.85


def test_more_constrained_rows_than_stand_beside_the_sample(monkeypatch):
    from dmkc.clusterers.odm import constrained

    monkeypatch.setattr(constrained, "CONSTRAINED_IN_RACE", 40)
    model = make(must_link=MUST, cannot_link=CANNOT, sample_rows=100).fit(X)
    assert len(check_labeling(model.labels_, MUST, CANNOT)) == 0
    assert adjusted_rand_score(Y, model.labels_) > 0.6


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    params = {"landmarks": X[:30], "tol": 1e-8, "kernels": Gaussian(gamma=0.1)}
    plain = make(**params).fit(X, sample_weight=weights)
    again = make(**params).fit(X[repeated])
    np.testing.assert_array_equal(plain.labels_[repeated], again.labels_)
    assert plain.objective_ == pytest.approx(again.objective_, rel=1e-5)


def test_weights_of_constrained_rows_count():
    """A component goes where its heavier rows pull it."""
    line = np.concatenate([np.linspace(-3, -2, 30), np.linspace(2, 3, 30)])[:, None]
    pull = [(0, 59)]
    weights = np.ones(60)
    for heavy, light in ((0, 59), (59, 0)):
        weights[[heavy, light]] = 50.0, 0.01
        with pytest.warns(UserWarning, match="cannot-links"):
            model = make(must_link=pull, kernels="linear", constraint_share=0.05)
            labels = model.fit(line, sample_weight=weights).labels_
        middle = 15 if heavy == 0 else 45
        assert labels[0] == labels[59] == labels[middle]


def test_index_labels_name_rows():
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(len(X))])
    named = [[[f"r{a}", f"r{b}"] for a, b in pairs] for pairs in (MUST, CANNOT)]
    found = make(must_link=named[0], cannot_link=named[1]).fit(frame).labels_
    expected = make(must_link=MUST, cannot_link=CANNOT).fit(X).labels_
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert len(check_labeling(found, *named)) == 0


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(2, 4), st.booleans())
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_every_labeling_keeps_all_constraints(seed, count, m, sample):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(90, 3))
    must, cannot = random_pairs(rng.integers(0, m, 90), count, random_state=seed)
    model = MarginDistributionClustering(
        m, must_link=must, cannot_link=cannot, rank=10, max_iter=5, random_state=0,
        sample_rows=40 if sample else 8192,
    ).fit(rows)  # fmt: skip
    assert len(check_labeling(model.labels_, must, cannot)) == 0
    sizes = np.bincount(model.labels_, minlength=m)
    assert (np.diff(sizes) <= 0).all()


def test_several_clusters_with_constraints():
    rows, y = make_blobs(600, 4, centers=4, cluster_std=2.2, random_state=5)
    must, cannot = random_pairs(y, 200, random_state=0)
    plain = make(n_clusters=4).fit(rows)
    model = make(n_clusters=4, must_link=must, cannot_link=cannot).fit(rows)
    assert len(check_labeling(model.labels_, must, cannot)) == 0
    scores = [adjusted_rand_score(y, m.labels_) for m in (plain, model)]
    assert scores[1] > scores[0] > 0.4
    assert model.decision_function(rows).shape == (600, 4)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()


def test_several_clusters_without_constraints_do_not_vanish():
    rows, y = make_blobs(500, 3, centers=5, cluster_std=0.7, random_state=1)
    model = make(n_clusters=5).fit(rows)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_soft_constraints_may_be_violated_at_a_price():
    must = [*MUST, *CANNOT[:12]]  # twelve of them contradict the others
    found = []
    for penalty in (0.0, 0.3, 3.0):
        model = make(must_link=must, cannot_link=CANNOT, hard=False, penalty=penalty).fit(X)
        assert len(check_labeling(model.labels_, must, CANNOT)) == model.n_violated_
        found.append(model.n_violated_)
    assert found[0] >= found[1] >= found[2] == 12
    params = {"must_link": MUST, "cannot_link": CANNOT, "init": "k-means"}
    dear, hard = make(hard=False, penalty=1e4, **params).fit(X), make(**params).fit(X)
    assert dear.n_violated_ == 0
    np.testing.assert_array_equal(dear.labels_, hard.labels_)


def test_weights_of_pairs_decide_which_are_kept():
    line = np.concatenate([np.linspace(-3, -2, 20), np.linspace(2, 3, 20)])[:, None]
    kept = {}
    for weights in ((5.0, 0.01), (0.01, 5.0)):
        must, cannot = [(0, 39, weights[0])], [(0, 39, weights[1])]
        with pytest.warns(UserWarning, match="cannot-links"):
            model = make(must_link=must, cannot_link=cannot, hard=False, kernels="linear")
            labels = model.fit(line).labels_
        kept[weights] = labels[0] == labels[39]
    assert kept == {(5.0, 0.01): True, (0.01, 5.0): False}


def test_contradictions_are_found_before_anything_is_scanned():
    touched = []

    def spy(block):
        touched.append(len(block))
        return block

    lazy = da.from_array(X, chunks=(100, 4)).map_blocks(spy, dtype=X.dtype, meta=X[:0])
    with pytest.raises(ValueError, match="contradict each other: row"):
        make(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)]).fit(lazy)
    assert not touched


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"theta": 1.5}, "theta must be a number between 0 and 1"),
        ({"nu": -0.1}, "nu must be a number at least 0"),
        ({"nu": 2.0}, "nu must be a number between 0 and 1"),
        ({"C": 0}, "C must be a number greater than 0"),
        ({"hard": "yes"}, "hard must be True or False"),
        ({"hard": False}, "go with must_link or cannot_link"),
        ({"constraint_share": 0.5}, "go with must_link or cannot_link"),
        ({"penalty": 2.0, "must_link": [(0, 1)]}, "goes with hard=False"),
        ({"init": "links"}, "needs must_link or cannot_link"),
        ({"init": "link"}, "Unknown init 'link'"),
        ({"balance": "none"}, "balance must be one of"),
        ({"must_link": [(0, 600)]}, "names row 600"),
        ({"n_clusters": 1, "cannot_link": [(0, 1)]}, "at least two clusters"),
        ({"polish": 2}, "polish goes with train_rows"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(X)


def test_one_cluster_is_all_zeros():
    model = make(n_clusters=1, must_link=[(0, 1)]).fit(X)
    assert not model.labels_.any() and not model.predict(X).any()


def test_empty_lists_are_no_constraints():
    expected = make().fit(X)
    found = make(must_link=[], cannot_link=[]).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.objective_ == expected.objective_


def test_an_index_with_repeated_labels_is_fine_where_no_pairs_name_rows():
    frame = pd.DataFrame(X, index=np.arange(len(X)) // 2)
    labels = make().fit(frame).labels_
    assert np.array_equal(labels, make().fit(X).labels_)
    assert np.array_equal(make(must_link=[]).fit(frame).labels_, labels)


def test_models_are_stored_and_loaded_bit_for_bit(tmp_path):
    model = make(must_link=MUST, cannot_link=CANNOT).fit(X)
    model.save(tmp_path / "model.zarr")
    again = dmkc.load(tmp_path / "model.zarr")
    assert isinstance(again, MarginDistributionClustering)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.constrained_labels_, model.constrained_labels_)
