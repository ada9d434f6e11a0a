"""A small data set, a finished run, and the command line without a process of its own."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dmkc.cli import main
from dmkc.datasets import make_blobs

FAST = ("--method", "mkc", "--rank", "20", "--tol", "1e-2", "--seed", "0", "--init", "k-means")


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder; a call that fails must say one sentence and no more."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        capsys.readouterr()
        found = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert found == code, err
        assert "Traceback" not in err
        if code == 2:
            lines = [line for line in err.splitlines() if line.startswith("dmkc: error: ")]
            assert len(lines) == 1 and lines[0] == err.splitlines()[-1], err
            assert lines[0][-1] in ".?", err
        return SimpleNamespace(out=out, err=err)

    return run


@pytest.fixture
def fit(call):
    """`dmkc fit` in a second or less."""

    def run(*words, code=0, report=False):
        more = () if report else ("--no-report",)
        return call("fit", *FAST, *words, *more, "--quiet", code=code)

    return run


@pytest.fixture(scope="session")
def data():
    X, y = make_blobs(200, 4, 2, spread=1.0, seed=3)
    return X.astype(np.float64), y


@pytest.fixture(scope="session")
def shared_run(tmp_path_factory, data):
    """A run folder to read from, with the rows it was fitted on beside it."""
    folder = tmp_path_factory.mktemp("shared")
    np.save(folder / "x.npy", data[0])
    np.save(folder / "y.npy", data[1])
    words = [folder / "x.npy", "--out", folder / "run", "--no-report", "--quiet", *FAST]
    assert main(["fit", *map(str, words), "--truth", str(folder / "y.npy")]) == 0
    return Path(folder)
