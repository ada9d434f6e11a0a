"""Model files that the first version of the format holds still load, to the bit."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import dmkc


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("version1")
    with zipfile.ZipFile(Path(__file__).with_name("version1.zip")) as stored:
        stored.extractall(folder)
    return folder


@pytest.mark.parametrize("name", ["scores", "several", "planes", "centroids", "partition"])
def test_models_of_the_first_version(folder, tmp_path, name):
    expected = np.load(folder / "expected.npz")
    X = expected["X"]
    model = dmkc.load(folder / f"{name}.zarr")
    np.testing.assert_array_equal(model.predict(X), expected[name])
    np.testing.assert_array_equal(model.transform(X), expected[f"{name}_features"])
    model.save(tmp_path / "again")
    again = dmkc.load(tmp_path / "again")
    np.testing.assert_array_equal(again.transform(X), expected[f"{name}_features"])
