"""Choosing the number of clusters without labels."""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

import dmkc
from dmkc import MultipleKernelClustering
from dmkc.cli import main
from dmkc.clusterers.sampled import neighbour_graph, spread_out


def groups(m, n=300, seed=0):
    """Blobs around the corners of a simplex, so that every column tells one apart."""
    return make_blobs(n, centers=8.0 * np.eye(m), random_state=seed)


def make(n_clusters="auto", **params):
    return MultipleKernelClustering(n_clusters, **{"random_state": 0, "rank": 30, **params})


@pytest.mark.slow
@parametrize_with_checks([without_chances(MultipleKernelClustering((2, 3), rank=20))])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_number_of_clear_groups_is_found(m):
    X, y = groups(m)
    model = make((2, 6)).fit(X)
    assert model.n_clusters_ == m
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert len(np.unique(model.labels_)) == m


def test_scores_of_all_numbers_are_kept():
    X, _ = groups(3)
    model = make((2, 6)).fit(X)
    assert [tried["n_clusters"] for tried in model.selection_] == [2, 3, 4, 5, 6]
    chosen = [tried for tried in model.selection_ if tried["chosen"]]
    assert [tried["n_clusters"] for tried in chosen] == [model.n_clusters_] == [3]
    assert chosen[0]["score"] == max(tried["score"] for tried in model.selection_)
    assert all(0.0 <= tried["leak"] <= 1.5 for tried in model.selection_)
    assert model.fit(X).set_params(n_clusters=3).fit(X).selection_ is None


def test_a_choice_leads_to_the_same_fit_as_the_number_itself():
    X, _ = groups(3)
    chosen, given = make((2, 5)).fit(X), make(3).fit(X)
    np.testing.assert_array_equal(chosen.labels_, given.labels_)
    np.testing.assert_array_equal(chosen.model_.weights, given.model_.weights)
    assert chosen.objective_ == given.objective_


def test_the_choice_does_not_depend_on_chunks_or_on_how_rows_are_held():
    X, _ = groups(4)
    plain = make((2, 4), sample_rows=150).fit(X)
    chunked = make((2, 4), sample_rows=150).fit(da.from_array(X, chunks=(37, 2)))
    assert plain.selection_ == chunked.selection_
    np.testing.assert_array_equal(plain.labels_, chunked.labels_.compute())


def test_subset_training_chooses_on_the_subset():
    X, y = groups(4, n=3000)
    model = make((2, 5), train_rows=300).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_rows_of_weight_zero_do_not_count():
    X, _ = groups(5)
    kept = X[:, :2].max(axis=1) < 4.0
    assert make((2, 6)).fit(X, sample_weight=kept.astype(float)).n_clusters_ == 3


@pytest.mark.parametrize("n_rows", [2, 7, 25])
def test_few_rows_are_tried_with_few_clusters(n_rows):
    X, _ = groups(2, n=n_rows)
    assert make().fit(X).n_clusters_ == 2


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_clusters": "many"}, "or \"auto\", not 'many'"),
        ({"n_clusters": (1, 4)}, "begins at 2 or more"),
        ({"n_clusters": (4, 4)}, "n_clusters must be"),
        ({"n_clusters": (2, 3.5)}, "n_clusters must be"),
        ({"n_clusters": 0}, "at least 1"),
        ({"n_clusters": (2, 200)}, "at least 600 rows are needed, but there are 300"),
        ({"init": np.arange(300) % 3}, "number of clusters of its own"),
        ({"balance": 0.3}, "two clusters"),
    ],
)
def test_mistakes_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(groups(3)[0])


@pytest.mark.parametrize("n_clusters", [pytest.param("auto", marks=pytest.mark.slow), (2, 4)])
def test_a_saved_model_keeps_the_choice(tmp_path, n_clusters):
    X, _ = groups(3)
    model = make(n_clusters).fit(X)
    model.save(tmp_path / "model.zarr")
    again = dmkc.load(tmp_path / "model.zarr")
    assert again.n_clusters == n_clusters
    assert again.n_clusters_ == 3 and again.selection_ == model.selection_
    np.testing.assert_array_equal(again.predict(X), model.labels_)


@pytest.mark.parametrize("given", ["auto", pytest.param("2-5", marks=pytest.mark.slow)])
def test_the_command_line_chooses(tmp_path, given, capsys):
    X, _ = groups(4)
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / "run"
    words = ["fit", str(tmp_path / "x.npy"), "--method", "mkc", "--clusters", given]
    assert main([*words, "--seed", "0", "--out", str(out)]) == 0
    found = json.loads((out / "metrics.json").read_text())
    assert found["clusters"] == 4 and len(found["cluster_sizes"]) == 4
    assert max(found["clusters_tried"], key=found["clusters_tried"].get) == "4"
    assert (out / "report.html").exists()
    assert main(["info", str(out / "model.zarr")]) == 0
    assert "4" in capsys.readouterr().out


def test_neighbours_are_symmetric_and_never_oneself():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[10:20] = rows[0]
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    graph = neighbour_graph(distances, 4)
    assert (graph != graph.T).nnz == 0 and graph.diagonal().sum() == 0
    assert graph.sum(axis=1).min() >= 4
    far = distances.copy()
    np.fill_diagonal(far, np.inf)
    for i in range(20, 50):
        assert set(np.argsort(far[i], kind="stable")[:4]) <= set(graph[i].indices)


def test_rows_are_spread_evenly_and_by_weight():
    assert spread_out(np.ones(5)).tolist() == [0, 1, 2, 3, 4]
    assert spread_out(np.ones(100), 4).tolist() == [12, 37, 62, 87]
    assert 1 not in spread_out(np.array([1.0, 0.0, 1.0]))
    twice = np.bincount(spread_out(np.array([2.0] * 50 + [1.0] * 50), 60))
    assert twice[:50].sum() == 40
