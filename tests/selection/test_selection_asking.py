"""Asking about pairs of rows: in a program, a notebook, a terminal, and through a file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dmkc
from dmkc import Gaussian, Linear, MultipleKernelClustering
from dmkc.cli import main
from dmkc.cli.answers import read_answers, write_answers
from dmkc.selection.choose import Selection
from dmkc.selection.questions import Asking

OPTIONS = [
    "--method",
    "mkc",
    "--kernels",
    "linear,gaussian:0.5",
    "--scale",
    "standard",
    "--rank",
    "20",
    "--seed",
    "0",
]


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
    gathered = replace(found.gathered, candidates=[found.best])
    alone = Asking(Selection.of(gathered))
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
    with pytest.raises(ValueError, match="'1,2,perhaps'; a line holds two rows and yes or no"):
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
        (["select", "--kernels", "linear"], "name one with --method, such as --method mkc"),
    ],
)
def test_mistakes_in_asking(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    square()[0].to_csv("x.csv", index=False)
    write_answers("a.csv", [(0, 1, True)])
    assert main([words[0], "x.csv", *words[1:]]) == 2
    assert sentence in capsys.readouterr().err


def test_answers_are_kept_where_nothing_is_chosen():
    X = square()[0].to_numpy()
    model = MultipleKernelClustering(random_state=0)
    plain = model.fit(X).labels_
    other = int(np.flatnonzero(plain != plain[0])[0])
    with pytest.warns(UserWarning, match=f"1 of 1 pairs contradict .* {other}"):
        model.fit(X, answers=[(0, other, True)])
    assert model.labels_[0] == model.labels_[other] and (model.labels_ != plain).sum() == 1


@pytest.mark.parametrize("number", ["auto", (2, 4)])
def test_an_open_number_keeps_answers_where_nothing_else_is_chosen(number):
    X = square()[0].to_numpy()
    apart = [(0, 1, False), (1, 2, False), (0, 2, False)]
    model = MultipleKernelClustering(number, random_state=0).fit(X, answers=apart)
    assert model.n_clusters == number and model.n_clusters_ >= 3
    assert len(set(model.labels_[:3])) == 3
    assert set(model.predict(X)) <= set(range(model.n_clusters_))


def two_meanings(n=90, seed=0):
    """A table of customers that can be cut by columns a or by columns b, with gaps in some rows."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(3, size=n), rng.integers(3, size=n)
    frame = pd.DataFrame({"customer": [f"c{i:03d}" for i in rng.permutation(n)]})
    for j in range(2):
        frame[f"a{j}"] = 4.0 * (one == j) + rng.normal(scale=0.3, size=n)
        frame[f"b{j}"] = 4.0 * (other == j) + rng.normal(scale=0.3, size=n)
    frame.loc[[4, 50], "a0"] = np.nan
    return frame, one


@pytest.mark.parametrize(
    ("form", "index"), [("csv", False), ("parquet", True), ("lazy csv", True), ("lazy csv", False)]
)
def test_rows_are_named_as_the_table_names_them(tmp_path, monkeypatch, capsys, form, index):
    monkeypatch.chdir(tmp_path)
    frame, one = two_meanings()
    name = f"t.{form.split()[-1]}"
    frame.to_csv(name, index=False) if name == "t.csv" else frame.to_parquet(name)
    if form.startswith("lazy"):
        monkeypatch.setattr("dmkc.cli.reading.LARGE_BYTES", 100)
    known = dict(zip(frame["customer"], one, strict=True)) if index else dict(enumerate(one))
    known = {str(row): cluster for row, cluster in known.items()}
    told = []

    class Customer:
        def readline(self):
            printed = capsys.readouterr().out
            i, j = re.findall(r"rows (\S+) and (\S+) belong", printed)[-1]
            assert f"row {i}" in printed and f"row {j}" in printed
            values = printed.split("row " + j + "\n")[-1].splitlines()[0].split()
            column = frame.set_index("customer")[values[0]] if index else frame[values[0]]
            wanted = [column[i if index else int(i)], column[j if index else int(j)]]
            np.testing.assert_allclose(list(map(float, values[1:])), wanted, rtol=1e-3)
            told.append((i, j, "yes" if known[i] == known[j] else "no"))
            return f"{told[-1][2]}\n"

    monkeypatch.setattr("sys.stdin", Customer())
    words = [name, "--clusters", "3", "--seed", "0", "--drop-missing", "--quiet"]
    words += ["--index-column", "customer"] if index else ["--exclude", "customer"]
    command = ["select", *words, "--ask", "4", "--answers", "a.csv", "--out", "choice.yaml"]
    assert main(command) == 0
    assert "below 0.8" in capsys.readouterr().out  # what confidence means
    written = pd.read_csv("a.csv", dtype=str)
    assert list(written.itertuples(index=False, name=None)) == told and len(told) > 0
    assert main(["fit", *words, "--auto", "--answers", "a.csv", "--no-report", "--out", "r"]) == 0
    assert main(["fit", *words, "--params", "choice.yaml", "--no-report", "--out", "run"]) == 0
    runs = [zarr.open_array(store=f"{run}/labels.zarr", mode="r")[:] for run in ("r", "run")]
    assert list(np.flatnonzero(runs[0] == -2)) == [4, 50] == list(np.flatnonzero(runs[1] == -2))
    assert adjusted_rand_score(*runs) == 1.0  # the choice is what the answers lead to


def test_answers_about_rows_that_are_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, _ = two_meanings()
    frame.to_csv("t.csv", index=False)
    words = ["select", "t.csv", "--clusters", "3", "--drop-missing", "--answers", "a.csv"]
    for text, index, sentence in (
        (
            "c001,c0002,yes",
            True,
            "names the row 'c0002', which is none of the column customer. Did",
        ),
        ("4,7,yes", False, "names the row 4, which was dropped for missing values."),
        ("3,700,yes", False, "names the row '700'; rows are numbered from 0 to 89."),
    ):
        (tmp_path / "a.csv").write_text(f"row,other_row,same\n{text}\n")
        column = ["--index-column", "customer"] if index else ["--exclude", "customer"]
        assert main([*words, *column]) == 2
        assert sentence in capsys.readouterr().err
    frame.loc[1, "customer"] = frame.loc[0, "customer"]
    frame.to_csv("t.csv", index=False)
    assert main([*words, "--index-column", "customer"]) == 2
    assert "choose another with --index-column" in capsys.readouterr().err


def test_a_choice_is_written_where_it_may_be(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    square()[0].to_csv("x.csv", index=False)
    (tmp_path / "mine.yaml").write_text("mine: 1\n")
    for words, sentence in (
        (["--out", "choice.txt"], "ends in .yaml"),
        (["--out", "mine.yaml"], "exists; replace it with --force"),
        (["--out", "mine.yaml", "--force"], "was not written by dmkc"),
    ):
        assert main(["select", "x.csv", *words]) == 2
        assert sentence in capsys.readouterr().err


def test_a_frame_is_asked_about_by_its_index():
    X, _, _ = square()
    named = X.set_axis([f"r{i}" for i in range(len(X))])
    asking = dmkc.select(named, dmkc.AutoClustering(2, random_state=0)).asking()
    i, j = asking.pair
    assert list(asking.rows().columns) == [f"row r{i}", f"row r{j}"]
    assert f"Do rows r{i} and r{j} belong" in asking._repr_html_()


@pytest.mark.parametrize("method", ["odm", "auto"])
@pytest.mark.parametrize("index", [True, False])
def test_answers_keep_to_their_rows_where_others_are_dropped(
    tmp_path, monkeypatch, capsys, method, index
):
    monkeypatch.chdir(tmp_path)
    X, across, _ = square(80)
    frame = X.assign(customer=[f"c{i}" for i in range(len(X))])
    frame.loc[[0, 1, 2, 30], "up"] = np.nan
    frame.to_csv("t.csv", index=False)
    one, other = np.flatnonzero(across == 0)[[8, 20]]  # as they are numbered in the file
    names = (f"c{one}", f"c{other}") if index else (one, other)
    (tmp_path / "a.csv").write_text(f"{names[0]},{names[1]},no\n")
    words = ["fit", "t.csv", "--method", method, "--clusters", "2", "--seed", "0", "--drop-missing"]
    words += ["--index-column", "customer"] if index else ["--exclude", "customer"]
    assert main([*words, "--answers", "a.csv", "--out", "run", "--no-report", "--quiet"]) == 0
    labels = zarr.open_array(store="run/labels.zarr", mode="r")[:]
    assert labels[one] != labels[other] and list(np.flatnonzero(labels == -2)) == [0, 1, 2, 30]


def test_dates_are_asked_about_as_dates(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, _ = two_meanings()
    days = np.arange(len(frame)) * 40
    frame["since"] = (np.datetime64("2001-05-17") + days.astype("timedelta64[D]")).astype(str)
    frame["spend"] = 5000.0 + days
    frame.drop(columns="customer").dropna().to_csv("t.csv", index=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("s\n"))
    words = ["select", "t.csv", "--clusters", "3", "--seed", "0", "--quiet"]
    assert main([*words, "--ask", "1", "--answers", "a.csv"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^since +20\d\d-\d\d-\d\d +20\d\d-\d\d-\d\d$", printed, re.MULTILINE)
    assert re.search(r"^spend +\d,\d{3} +\d,\d{3}$", printed, re.MULTILINE)
