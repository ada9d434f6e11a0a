"""Planes from the command line: a run folder with labels, selected columns and a report."""

from __future__ import annotations

import json

import numpy as np

import dmkc
from dmkc.cli.app import main


def test_fit_writes_selected_columns_and_a_report(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X[:, 3] += 8.0 * rng.integers(0, 2, size=200)
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / "run"
    options = ["--method", "planes", "--c2", "0.03", "--seed", "0", "--quiet"]
    assert main(["fit", str(tmp_path / "x.npy"), "--out", str(out), *options]) in (0, None)
    found = json.loads((out / "metrics.json").read_text())
    assert found["selected"] == [3] and found["c2"] == 0.03
    report = (out / "report.html").read_text()
    assert "Selected features: 1 of 6" in report and "synchronisation" in report
    model = dmkc.load(out / "model.zarr")
    assert model.selected_features_.tolist() == [3]
    assert "selected" in capsys.readouterr().out
