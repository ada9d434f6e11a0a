"""`dmkc plan`."""

import json

import numpy as np
import pytest


@pytest.fixture
def x(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    return "x.npy"


def test_a_plan_is_printed_and_written(call, x, tmp_path):
    said = call("plan", x, "--method", "mkc", "--clusters", 2, "--rank", 20, "--json", "plan.json")
    found = json.loads((tmp_path / "plan.json").read_text())
    assert found["rows"] == 200 and found["method"] == "MultipleKernelClustering"
    lines = dict(line.split("  ", 1) for line in said.out.splitlines() if line[0] != " ")
    assert lines["suggested walltime"].strip() == found["walltime"]
    assert lines["feature mode"].strip() == found["feature_mode"]
    assert set(p.name for p in tmp_path.iterdir()) == {"x.npy", "plan.json"}


def test_methods_and_files_of_parameters(call, x, tmp_path):
    (tmp_path / "p.yaml").write_text("method: kmeans\nclusters: 3\n")
    assert "KMeans" in call("plan", x, "--params", "p.yaml", "--quiet").out
    said = call("plan", x, "--method", "planes", "--train-rows", 100)
    assert "trained on 100 of them" in said.out


def test_mistakes(call, x):
    assert "There is nothing at" in call("plan", "y.npy", code=2).err
    assert "does not exist" in call("plan", x, "--json", "no/plan.json", code=2).err
    assert "is not a file" in call("plan", x, "--json", ".", code=2).err
    assert "has no --rank" in call("plan", x, "--method", "kmeans", "--rank", 3, code=2).err
    assert "required" in call("plan", code=2).err
