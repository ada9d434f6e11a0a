"""Asking about pairs of rows: in a program, a notebook, a terminal, and through a file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dmkc
from dmkc import Gaussian, Linear, MultipleKernelClustering
from dmkc.cli import main
from dmkc.cli.answers import read_answers, write_answers
from dmkc.selection.questions import Asking

OPTIONS = ["--kernels", "linear,gaussian:0.5", "--scale", "standard", "--rank", "20", "--seed", "0"]


def square(n=120):
    """Four groups on a rectangle: two ways of making two clusters, one for each column."""
    X, corner = make_blobs(n, centers=[[0, 0], [0, 9], [9, 0], [9, 9]], random_state=0)
    return pd.DataFrame(X, columns=["across", "up"]), corner // 2, corner % 2


@pytest.fixture(scope="module")
def two_ways():
    X, across, up = square()
    given = {"kernels": [Linear(), Gaussian(0.5)], "balance": "auto", "rank": 20}
    return X, across, up, dmkc.select(X, MultipleKernelClustering(random_state=0, **given))


@pytest.mark.parametrize("which", [0, 1])
def test_answers_lead_to_the_clusters_that_the_person_means(two_ways, which):
    X, across, up, found = two_ways
    truth, asking = (across, up)[which], found.asking()
    for _ in range(5):
        if asking.pair is None:
            break
        i, j = asking.pair
        asking = asking.same() if truth[i] == truth[j] else asking.different()
    assert adjusted_rand_score(truth[found.positions], asking.selection.best.labels) == 1.0
    model = asking.selection.estimator().fit(X)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert found.answers == ()


def test_a_skipped_pair_is_not_asked_again(two_ways):
    asking = two_ways[3].asking()
    seen = {frozenset(asking.pair)}
    for _ in range(4):
        asking.skip()
        assert frozenset(asking.pair) not in seen
        seen.add(frozenset(asking.pair))
    assert asking.selection.answers == () and len(asking.skipped) == 4


def test_the_two_rows_are_shown_side_by_side(two_ways):
    X, _, _, found = two_ways
    asking = found.asking()
    i, j = asking.pair
    shown = asking.rows()
    assert shown.columns.tolist() == [f"row {i}", f"row {j}"]
    apart = (X.loc[i] - X.loc[j]).abs() / X.std()
    assert shown.index.tolist() == apart.sort_values(ascending=False).index.tolist()
    np.testing.assert_allclose(shown[f"row {i}"], X.loc[i, shown.index])
    text = asking._repr_html_()
    assert f"rows {i} and {j} belong together" in text and "across" in text
    pictures = found.asking(show=lambda row: f"<img alt='picture {row}'>")._repr_html_()
    assert f"picture {i}" in pictures and f"picture {j}" in pictures and "across" not in pictures


def test_where_all_candidates_agree_there_is_nothing_to_ask(two_ways):
    found = two_ways[3]
    one = {name: values[:1] for name, values in found.criteria.items()}
    alone = Asking(replace(found, candidates=found.candidates[:1], criteria=one, score=np.ones(1)))
    assert alone.pair is None
    assert "nothing left to ask" in alone._repr_html_()
    with pytest.raises(ValueError, match="no question left"):
        alone.same()


def test_answers_are_kept_in_a_file(tmp_path):
    path = tmp_path / "answers.csv"
    write_answers(path, [(3, 17, True), (2, 5, False)])
    assert read_answers(path) == [(3, 17, True), (2, 5, False)]
    path.write_text("1, 2, n\n\n4,5,SAME\n")
    assert read_answers(path) == [(1, 2, False), (4, 5, True)]
    path.write_text("1,2,perhaps\n")
    with pytest.raises(ValueError, match="'1,2,perhaps'; a line holds two row numbers"):
        read_answers(path)


class Person:
    """Reads the questions that were printed and answers them by a truth."""

    def __init__(self, capsys, truth, first=()):
        self._printed, self._truth, self._first = capsys, truth, list(first)
        self.asked = []

    def readline(self):
        i, j = map(
            int, re.findall(r"rows (\d+) and (\d+) belong", self._printed.readouterr().out)[-1]
        )
        self.asked.append((i, j))
        if self._first:
            return self._first.pop(0)
        return "y\n" if self._truth[i] == self._truth[j] else "no\n"


def test_the_command_asks_and_the_fit_heeds_the_answers(tmp_path, monkeypatch, capsys):
    X, _, up = square()
    rows, kept = tmp_path / "x.csv", tmp_path / "answers.csv"
    X.to_csv(rows, index=False)
    person = Person(capsys, up, first=["s\n"])
    monkeypatch.setattr("sys.stdin", person)
    command = [str(rows), *OPTIONS, "--answers", str(kept), "--quiet"]
    assert main(["select", *command, "--ask", "6"]) == 0
    out = capsys.readouterr().out
    assert "alternative 0" in out and "confidence" in out
    answers = read_answers(kept)
    assert answers == [(i, j, bool(up[i] == up[j])) for i, j in person.asked[1:]]
    run = tmp_path / "run"
    assert main(["fit", *command, "--auto", "--no-report", "--out", str(run)]) == 0
    labels = np.asarray(dmkc.load(run / "model.zarr").predict(X))
    assert adjusted_rand_score(up, labels) == 1.0
    assert json.loads((run / "metrics.json").read_text())["candidates"] > 1


def test_the_end_of_the_input_ends_the_questions(tmp_path, monkeypatch, capsys):
    X, _, _ = square()
    rows = tmp_path / "x.csv"
    X.to_csv(rows, index=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("what?\n"))
    command = ["select", str(rows), *OPTIONS, "--answers", str(tmp_path / "new.csv")]
    assert main([*command, "--ask", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.count("belong together?") == 2
    assert not (tmp_path / "new.csv").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["select", "--ask"], "--ask needs --answers"),
        (["select", "--answers", "none.csv"], "There is no file none.csv"),
        (["fit", "--method", "kmeans", "--out", "run", "--answers", "a.csv"], "auto, odm and mkc"),
        (["select", "--method", "planes"], "candidates to choose from for --method mkc alone"),
    ],
)
def test_mistakes_in_asking(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    square()[0].to_csv("x.csv", index=False)
    write_answers("a.csv", [(0, 1, True)])
    assert main([words[0], "x.csv", *words[1:]]) == 2
    assert sentence in capsys.readouterr().err


def test_answers_are_kept_where_nothing_is_chosen():
    X, _ = square()
    model = MultipleKernelClustering(random_state=0)
    plain = model.fit(X).labels_
    other = int(np.flatnonzero(plain != plain[0])[0])
    with pytest.warns(UserWarning, match=f"1 of 1 pairs contradict .* {other}"):
        model.fit(X, answers=[(0, other, True)])
    assert model.labels_[0] == model.labels_[other] and (model.labels_ != plain).sum() == 1
