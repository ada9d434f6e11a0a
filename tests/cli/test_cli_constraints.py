"""`dmkc fit --method odm`: pairs from files, and what is said about bad ones."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
import zarr

import dmkc
from dmkc.constraints import check_labeling, random_pairs

ODM = ("--method", "odm")


@pytest.fixture
def files(tmp_path, data):
    """Rows as an array and as a table with row names, and pairs for both."""
    X, y = data
    must, cannot = random_pairs(y, 50, random_state=0)
    np.save(tmp_path / "x.npy", X)
    names = np.array([f"r{i}" for i in range(len(X))])
    pd.DataFrame(X, index=pd.Index(names, name="id")).to_csv(tmp_path / "x.csv")
    pd.DataFrame(must, columns=["a", "b"]).to_csv(tmp_path / "must.csv", index=False)
    zarr.create_array(tmp_path / "cannot.zarr", data=cannot)
    pd.DataFrame(names[must]).to_csv(tmp_path / "must-names.csv", index=False, header=False)
    pd.DataFrame(names[cannot]).to_csv(tmp_path / "cannot-names.csv", index=False, header=False)
    return must, cannot


def test_pairs_from_csv_and_zarr_are_kept(fit, files, tmp_path):
    fit("x.npy", *ODM, "--must-link", "must.csv", "--cannot-link", "cannot.zarr", "--out", "run")
    labels = zarr.open_array(store=tmp_path / "run" / "labels.zarr", mode="r")[:]
    assert len(check_labeling(labels, *files)) == 0
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["violated_pairs"] == 0
    params = yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())
    assert params["method"] == "odm" and params["must_link"] == "must.csv"
    model = dmkc.load(tmp_path / "run" / "model.zarr")
    assert isinstance(model, dmkc.MarginDistributionClustering)


def test_rows_of_a_table_are_named_by_its_index(fit, files, tmp_path):
    words = ("--must-link", "must-names.csv", "--cannot-link", "cannot-names.csv")
    fit("x.csv", *ODM, *words, "--index-column", "id", "--out", "named")
    fit("x.npy", *ODM, "--must-link", "must.csv", "--cannot-link", "cannot.zarr", "--out", "run")
    stored = [zarr.open_array(store=tmp_path / f / "labels.zarr")[:] for f in ("named", "run")]
    np.testing.assert_array_equal(*stored)


def test_soft_constraints(fit, files, tmp_path):
    words = ("--must-link", "must.csv", "--hard", "false", "--penalty", "0.5")
    fit("x.npy", *ODM, *words, "--out", "run")
    assert dmkc.load(tmp_path / "run" / "model.zarr").hard is False


def test_a_contradiction_is_one_sentence(fit, files, tmp_path):
    pd.DataFrame([[0, 1], [1, 2]]).to_csv(tmp_path / "m.csv", index=False, header=False)
    pd.DataFrame([[2, 0]]).to_csv(tmp_path / "c.csv", index=False, header=False)
    said = fit(
        "x.npy", *ODM, "--must-link", "m.csv", "--cannot-link", "c.csv", "--out", "r", code=2
    )
    assert "contradict each other: row" in said.err
    said = fit("x.npy", *ODM, "--must-link", "nowhere.csv", "--out", "r", code=2)
    assert "There is no file nowhere.csv" in said.err


def test_another_method_has_no_constraints(fit, files):
    said = fit("x.npy", "--must-link", "must.csv", "--out", "r", code=2)
    assert "has no --must-link" in said.err
