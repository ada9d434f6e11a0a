"""Several files with the same rows, from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

from dmkc.cli import main


@pytest.fixture
def views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    zarr.save_array("pixels.zarr", rng.normal(size=(200, 12)) + 2.0 * y[:, None])
    np.save("text.npy", rng.normal(size=(200, 3)) - 3.0 * y[:, None])
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "income"])
    frame.to_csv("table.csv", index=False)
    frame.to_parquet("table.parquet")
    np.save("y.npy", y)
    return [f"--view={name}" for name in ("pixels=pixels.zarr", "text=text.npy", "table=table.csv")]


SLOW = pytest.param("hmkkm", marks=pytest.mark.slow)


@pytest.mark.parametrize("method", ["auto", "mkc", "odm", SLOW, "kmeans", "planes", "spectral"])
def test_fit_and_predict(views, method, capsys):
    words = ["fit", *views, "--method", method, "--seed", "0", "--truth", "y.npy", "--out", "run"]
    assert main([*words, "--quiet"]) == 0
    found = json.loads(Path("run/metrics.json").read_text())
    assert found["columns"] == 17 and found["metrics"]["accuracy"] > 0.95
    other = ["--view=table=table.parquet", *views[:2][::-1]]
    assert main(["predict", "run", *other, "--out", "labels.zarr", "--quiet"]) == 0
    stored = zarr.open_array("run/labels.zarr")[:]
    np.testing.assert_array_equal(zarr.open_array("labels.zarr")[:], stored)
    report = Path("run/report.html").read_text()
    assert "pixels, text, table" in report and "&#39;pixels&#39;: ..., " in report


def test_kernels_of_views(views):
    bank = "linear@pixels,gaussian:0.5@*"
    words = [
        "fit",
        *views,
        "--method",
        "mkc",
        "--kernels",
        bank,
        "--seed",
        "0",
        "--quiet",
        "--out",
        "run",
    ]
    assert main(words) == 0
    weights = json.loads(Path("run/metrics.json").read_text())["kernel_weights"]
    assert len(weights) == 4 and "linear of pixels" in next(iter(weights))


@pytest.mark.parametrize("command", ["select", "plan"])
def test_other_commands(views, command, capsys):
    assert main([command, *views, "--seed", "0"]) == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--view", "pixels"], "given as NAME=FILE"),
        (["--view", "a=pixels.zarr", "--view", "a=text.npy"], "two views 'a'"),
        (["--view", "a=pixels.zarr", "text.npy"], "Either INPUT or at least one --view"),
        (["--view", "a=absent.npy"], "nothing at absent.npy"),
        (["--view", "a=table.csv", "--columns", "age"], "go with one INPUT"),
        (
            ["--view", "a=pixels.zarr", "--method", "mkc", "--kernels", "linear@b"],
            "unknown column or view 'b'",
        ),
        ([], "INPUT (or --view)"),
    ],
)
def test_mistakes(views, change, sentence, capsys):
    assert main(["fit", *change, "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert sentence in error.splitlines()[-1] and error.count("dmkc: error: ") == 1
