"""What a fit says while it runs, and the record it keeps."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_moons

from dmkc import MultipleKernelClustering

KEYS = {
    "start",
    "on",
    "round",
    "step",
    "objective",
    "bound",
    "gap",
    "changed",
    "cuts",
    "scans",
    "seconds",
    "rows_per_second",
}


def fit(verbose=0, **params):
    X = make_moons(1200, noise=0.1, random_state=0)[0]
    params = {"random_state": 0, "sample_rows": 200, "rank": 20, **params}
    return MultipleKernelClustering(verbose=verbose, **params).fit(X)


def test_nothing_is_said_by_default(capfd):
    fit()
    out, err = capfd.readouterr()
    assert out == "" and err == ""


def test_a_line_for_every_scan(capsys):
    model = fit(verbose=2)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if "objective" in line and "gap" in line]
    assert len(lines) == len(model.history_)
    for line, record in zip(lines, model.history_, strict=True):
        value, gap = re.search(r"objective (\S+), gap (\S+),", line).groups()
        assert float(value) == pytest.approx(record["objective"], rel=1e-4)
        assert float(gap) == pytest.approx(record["gap"], rel=0.1)
        assert f"{record['on']} rows" in line
    assert "1200 rows x 2 columns" in err
    assert f"objective {model.objective_:.6g}" in err.splitlines()[-1]


def test_without_a_terminal_there_is_a_line_a_stage(capsys, monkeypatch):
    monkeypatch.setattr("dmkc.surfaces.LINE_SECONDS", 1e9)  # on a machine that takes its time
    model = fit(verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.removeprefix("dmkc: ").split()[0] for line in lines] == [
        *("preparing", "1200", "looking", "fitting", "fitting", "labelling"),
        str(model.n_iter_),
    ]
    assert f"objective {model.objective_:.6g}" in lines[-1]


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_the_record(n_clusters):
    model = fit(n_clusters=n_clusters)
    assert isinstance(model.history_, list) and model.history_
    for record in model.history_:
        assert set(record) == KEYS
        assert record["on"] in ("sample", "all")
        assert record["round"] >= 1 and record["step"] >= 1 and record["cuts"] >= 1
        assert 0 <= record["changed"] <= 1
        assert np.isfinite([record["objective"], record["bound"], record["gap"]]).all()
        expected = (record["objective"] - record["bound"]) / record["objective"]
        assert record["gap"] == pytest.approx(expected, abs=1e-9)
    assert all(b["seconds"] >= a["seconds"] for a, b in pairwise(model.history_))
    on = [record["on"] for record in model.history_]
    assert on == sorted(on, key=("sample", "all").index)
    scans = [record["scans"] for record in model.history_ if record["on"] == "all"]
    assert scans == sorted(scans) and scans[-1] <= model.n_scans_


def test_verbosity_changes_nothing(capsys):
    quiet, loud = fit(), fit(verbose=2)
    assert quiet.objective_ == loud.objective_
    assert len(quiet.history_) == len(loud.history_)


def test_two_fits_do_not_share_their_record():
    model = fit()
    first = len(model.history_)
    model.fit(make_moons(1200, noise=0.1, random_state=0)[0])
    assert len(model.history_) == first
