"""The commands that a report proposes are commands that run."""

import html
import io
import re
import shlex
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmkc import KMeans
from dmkc.cli import main
from dmkc.datasets import make_blobs
from dmkc.report.advice import next_steps


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _ = make_blobs(120, 3, 2, seed=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=["a b", "c", "d"]).assign(noise=rng.normal(size=120))
    frame["plan"] = np.where(rng.random(120) < 0.5, "free", "paid")
    frame.loc[3, "c"] = np.nan
    frame.to_csv("my rows.csv", index=False, sep=";")


def commands(folder):
    page = html.unescape((folder / "report.html").read_text("utf-8"))
    part = page.partition('<section id="next">')[2].partition("</section>")[0]
    code = "\n".join(re.findall(r"<code>(.*?)</code>", part, re.S))
    return [shlex.split(line)[1:] for line in code.splitlines() if line.startswith("dmkc ")]


def test_every_command_runs(table, tmp_path, monkeypatch, quick_reports):
    words = ["fit", "my rows.csv", "--delimiter", ";", "--impute-missing", "--method=skmmc"]
    words += ["--clusters", "2", "--seed", "0", "--rank", "20", "--quiet", "--out", "run one"]
    assert main(words) == 0
    found = commands(tmp_path / "run one")
    assert [each[0] for each in found if each[0] != "fit"] == ["predict", "select"]
    assert len([each for each in found if each[0] == "fit"]) >= 2
    for each in found:
        monkeypatch.setattr("sys.stdin", io.StringIO("y\nq\n"))
        more = ["--no-report"] if each[0] == "fit" else []
        assert main([*each, *more, *(["--quiet"] if each[0] != "select" else [])]) == 0, each
    labels = pd.read_csv("run one-predicted.csv")["cluster"]
    assert labels.tolist() == pd.read_csv("run one/labels.csv")["cluster"].tolist()
    assert (tmp_path / "run one-3" / "labels.csv").exists()


@pytest.mark.parametrize("scaled", [False, True])
def test_the_python_of_a_report_runs(tmp_path, monkeypatch, scaled):
    monkeypatch.chdir(tmp_path)
    X, _ = make_blobs(60, 3, 2, seed=1)
    model = KMeans(2, random_state=0)
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X)
    subject: Any = SimpleNamespace(model=model, n_clusters=2, is_pipeline=scaled)
    known = {"X": X, "model": model}
    for step in next_steps(subject, None, []):
        exec(step.code, known)
    assert known["asked"].labels_.shape == (60,)
    assert known["other"].predict(X).max() == 2


def test_columns_of_arrays_are_not_named(tmp_path, monkeypatch, quick_reports):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("x.npy", np.column_stack([50.0 * (np.arange(200) % 2), rng.normal(size=(200, 3))]))
    words = ["fit", "x.npy", "--method", "kmeans", "--clusters", "2", "--seed", "0", "--quiet"]
    assert main([*words, "--out", "run"]) == 0
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "column 0 alone makes these clusters" in page and "--exclude" not in page
    pd.DataFrame(np.load("x.npy"), columns=["a", "b,c", "d", "e"]).to_csv("x.csv", index=False)
    words[1] = "x.csv"
    assert main([*words, "--out", "table"]) == 0
    named = [each for each in commands(tmp_path / "table") if "--exclude" in each]
    assert named[0][-4:] == ["--exclude", "a", "--out", "table-without"]


def test_a_run_that_was_taken_up_again_has_its_commands(table, tmp_path, quick_reports):
    words = ["fit", "my rows.csv", "--delimiter=;", "--drop-missing", "--method", "kmeans"]
    assert main([*words, "--seed", "0", "--no-report", "--quiet", "--out", "run"]) == 0
    for name in ("metrics.json",):
        (tmp_path / "run" / name).unlink()
    order = (tmp_path / "run" / "run.json").read_text().replace('"--no-report",', "")
    (tmp_path / "run" / "run.json").write_text(order)
    assert main(["fit", "--resume", "run", "--quiet"]) == 0
    predict = commands(tmp_path / "run")[0]
    assert predict == [
        "predict",
        "run",
        "my rows.csv",
        "--delimiter=;",
        "--out",
        "run-predicted.csv",
    ]
