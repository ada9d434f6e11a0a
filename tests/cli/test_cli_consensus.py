"""Joined clusterings from the command line: members by name, membership, and noise everywhere."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import yaml
import zarr

import dmkc
from dmkc.datasets import make_blobs

WORDS = ("--method", "consensus", "--clusters", 3, "--seed", 0, "--quiet")


@pytest.fixture(scope="module")
def rows():
    return make_blobs(400, 4, 3, spread=2.0, seed=3)


@pytest.fixture(params=["csv", "parquet", "npy"])
def table(request, rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "y.npy", y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    path = tmp_path / f"x.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    elif request.param == "parquet":
        frame.to_parquet(path)
    else:
        np.save(path, X)
    return path


def read(path):
    return np.asarray(zarr.open_array(path, mode="r"))


def test_a_run_with_noise(call, table, tmp_path):
    run = tmp_path / "run"
    call("fit", *WORDS, table, "--noise", 0.1, "--out", run, "--truth", "y.npy")
    labels, membership = read(run / "labels.zarr"), read(run / "membership.zarr")
    noise = int((labels == -1).sum())
    assert 0 < noise <= 40 and membership.shape == labels.shape
    assert membership[labels == -1].max() < membership[labels >= 0].min() and membership.max() <= 1
    found = json.loads((run / "metrics.json").read_text())
    assert found["cluster_sizes"] == np.bincount(labels[labels >= 0]).tolist()
    assert found["noise_rows"] == noise and len(found["stability"]) == 3
    assert 0 < found["metrics"]["accuracy"] <= 1
    page = (run / "report.html").read_text()
    assert f"in 3 clusters and {noise} rows of noise" in page and "in noise" in page
    assert "cluster -1" not in page and "Noise counts as one more cluster." in page
    assert "membership.zarr" in call("info", run).out
    assert "least agreement" in call("info", run / "model.zarr").out.replace("_", " ")
    said = call("predict", run, table, "--out", "again.zarr").out
    assert f"noise      {noise} rows" in said and "cluster -1" not in said
    np.testing.assert_array_equal(read(tmp_path / "again.zarr"), labels)
    said = call("evaluate", run, "y.npy").out
    assert "noise" in said and "cluster -1" not in said
    assert json.loads(call("evaluate", run, "y.npy", "--json").out)["clusters"][0] == -1


def test_members_by_name(call, table, tmp_path):
    call("fit", *WORDS, table, "--members", "kmeans,mkc,spectral", "--out", "run")
    assert yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())["members"] == [
        "kmeans",
        "mkc",
        "spectral",
    ]
    model = dmkc.load(tmp_path / "run" / "model.zarr")
    assert model.members == ["kmeans", "mkc", "spectral"]
    assert model.model_.embedding.plan.width == 3
    assert "members=['kmeans', 'mkc', 'spectral']" in (
        (tmp_path / "run" / "report.html").read_text().replace("&#39;", "'").replace("&#x27;", "'")
    )
    call("fit", table, "--params", "run/params.yaml", "--quiet", "--no-report", "--out", "again")
    np.testing.assert_array_equal(
        read(tmp_path / "again" / "labels.zarr"), read(tmp_path / "run" / "labels.zarr")
    )


def test_where_all_rows_are_in_clusters_nothing_else_is_said(call, table, tmp_path):
    said = call("fit", *WORDS, table, "--n-members", 5, "--no-report", "--out", "run")
    assert "noise" not in said.out
    assert "noise_rows" not in json.loads((tmp_path / "run" / "metrics.json").read_text())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--members", "kmeans"), "at least two"),
        (("--members", "kmeans,nonsense"), "no method 'nonsense'"),
        (("--members", "kmeans,consensus"), "consensus clusterings themselves"),
        (("--noise", 0.1, "--least-agreement", 0.5), "give one"),
        (("--noise", 2), "between 0 and 1"),
        (("--members", "kmeans,spectral", "--n-members", 3), "--n-members is for spectral members"),
    ],
)
def test_mistakes(call, rows, tmp_path, words, sentence):
    np.save(tmp_path / "x.npy", rows[0])
    assert sentence in call("fit", *WORDS, "x.npy", *words, "--out", "run", code=2).err
    assert not (tmp_path / "run").exists()


def test_a_run_that_replaces_another_leaves_no_membership_of_it(call, rows, tmp_path):
    np.save(tmp_path / "x.npy", rows[0])
    call("fit", *WORDS, "x.npy", "--n-members", 4, "--no-report", "--out", "run")
    assert (tmp_path / "run" / "membership.zarr").exists()
    words = ("--method", "kmeans", "--clusters", 3, "--quiet", "--no-report")
    call("fit", "x.npy", *words, "--out", "run", "--force")
    assert not (tmp_path / "run" / "membership.zarr").exists()
