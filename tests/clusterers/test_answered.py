"""Pairs of rows that labels keep, whatever method was chosen; what they say of candidates."""

import itertools

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

import dmkc
from dmkc import AutoClustering
from dmkc.cli.answers import write_answers
from dmkc.cli.app import main
from dmkc.clusterers.answered import check_answers, votes
from dmkc.constraints import check_labeling, random_pairs
from dmkc.constraints.assign import assigner
from dmkc.errors import UserError


def grid(n=240, seed=0):
    """Four balls in a square: two by two in two ways."""
    rng = np.random.default_rng(seed)
    corner = np.arange(n) % 4
    X = rng.normal(size=(n, 2)) + 8.0 * np.column_stack([corner // 2, corner % 2])
    return X, corner // 2, corner % 2


def quick(n_clusters=2, **parameters):
    return AutoClustering(n_clusters, random_state=0, max_seconds=1e-3, **parameters)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, lambda X: da.from_array(X, (100, 2))])
def test_labels_keep_all_pairs(form):
    X, y, _ = grid()
    must, cannot = random_pairs(y, 40, random_state=1)
    with pytest.warns(UserWarning) as said:
        model = quick(must_link=must, cannot_link=cannot).fit(form(X[:, ::-1]))
    labels = np.asarray(model.labels_)
    assert len(check_labeling(labels, must, cannot)) == 0
    rows = model.constrained_rows_
    np.testing.assert_array_equal(labels[rows], model.constrained_labels_)
    free = np.setdiff1d(np.arange(len(X)), rows)
    np.testing.assert_array_equal(labels[free], np.asarray(model.predict(form(X[:, ::-1])))[free])
    against = len(check_labeling(model.predict(form(X[:, ::-1])), must, cannot))
    if against:
        assert any(f"{against} of 40 pairs contradict" in str(w.message) for w in said)


@pytest.mark.parametrize("m", [2, 3])
def test_as_few_votes_as_possible_are_overruled(m):
    rng = np.random.default_rng(m)
    labels, truth = rng.integers(0, m, 8), rng.integers(0, m, 8)
    rows = rng.normal(size=(8, 2))
    must, cannot = random_pairs(truth, 6, random_state=m)
    told = [(i, j, True) for i, j in must] + [(i, j, False) for i, j in cannot]
    pairs, container = check_answers(told, 8, m)
    gain = votes(rows, labels, pairs.rows, m)
    found = assigner(pairs, container, m, None).assign(gain, None)
    each = np.arange(len(found))
    every = (np.array(z) for z in itertools.product(range(m), repeat=len(found)))
    best = max(gain[each, z].sum() for z in every if pairs.violated(z) == 0)
    assert pairs.violated(found) == 0 and gain[each, found].sum() == best


def test_answers_decide_between_two_ways_to_cut():
    X, one, other = grid(400)
    for y in (one, other):
        must, cannot = random_pairs(y, 12, random_state=0)
        model = AutoClustering(2, random_state=0, must_link=must, cannot_link=cannot).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9


def test_contradictions_are_named():
    X, _, _ = grid()
    with pytest.raises(UserError, match="row 2 must be with 1, 1 must be with 0, 0 cannot be"):
        quick("auto", must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)]).fit(X)
    with pytest.raises(UserError, match="cannot be with"):
        quick(2, cannot_link=[(0, 1), (1, 2), (0, 2)]).fit(X)
    found = dmkc.select(X[:60], answers=[(0, 1, True)])
    with pytest.raises(UserError, match="contradict each other"):
        found.answered([(1, 2, True), (0, 2, False)])


def test_pairs_say_how_many_clusters_there_are_at_least():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert quick("auto").fit(X).n_clusters_ == 1
    model = quick("auto", cannot_link=[(0, 1), (1, 2), (0, 2)]).fit(X)
    assert model.n_clusters_ >= 3 and len(set(model.labels_[:3])) == 3
    assert quick("auto", must_link=[(0, 1)]).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("method", ["auto", "odm", "mkc"])
def test_answers_on_the_command_line(tmp_path, monkeypatch, capsys, method):
    monkeypatch.chdir(tmp_path)
    X, y, _ = grid(120)
    pd.DataFrame(X, columns=["a", "b"]).to_csv("x.csv", index=False)
    told = [(i, j, bool(y[i] == y[j])) for i, j in [(0, 1), (0, 2), (1, 3), (4, 7), (5, 6)]]
    write_answers("a.csv", told)
    command = ["fit", "x.csv", "--method", method, "--clusters", "2", "--seed", "0"]
    more = ["--max-seconds", "0.001"] if method == "auto" else []
    command += [*more, "--answers", "a.csv", "--out", "run", "--no-report", "--quiet"]
    assert main(command) == 0
    labels = np.asarray(zarr.open("run/labels.zarr", mode="r"))
    assert all((labels[i] == labels[j]) == same for i, j, same in told)
    capsys.readouterr()
    if method != "mkc":
        (tmp_path / "m.csv").write_text("0,1\n")
        assert main([*command, "--force", "--must-link", "m.csv"]) == 2
        assert "give one" in capsys.readouterr().err


def test_a_run_with_pairs_is_taken_up_again(tmp_path):
    X, y, _ = grid()
    must, cannot = random_pairs(y, 10, random_state=3)
    found = []
    for _ in range(2):
        with dmkc.checkpoint(tmp_path):
            found.append(quick(must_link=must, cannot_link=cannot).fit(X).labels_)
    np.testing.assert_array_equal(*found)
