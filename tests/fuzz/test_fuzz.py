"""The fuzzers: a short run of all of them, and that they would notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dmkc.errors import UserError

ROOT = Path(__file__).parents[2]
FUZZ = ROOT / "pipelines" / "fuzz"
KINDS = ("fits", "models", "commands", "documents", "rows", "kills", "disks", "pairs")


@pytest.fixture
def fuzzers(monkeypatch):
    monkeypatch.syspath_prepend(str(FUZZ))


def run(folder, *words):
    return subprocess.run(
        [sys.executable, str(FUZZ / "run.py"), "--short", "--out", str(folder), *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.slow
def test_a_short_run_finds_nothing_and_goes_on_where_it_was(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = {kind: (tmp_path / f"{kind}-0.jsonl").read_text().splitlines() for kind in KINDS}
    counts = {kind: Counter(json.loads(x)["outcome"] for x in kept[kind]) for kind in KINDS}
    assert counts["fits"]["done"] > 20 and counts["fits"]["refused"] > 20
    assert counts["models"]["done"] and counts["models"]["refused"]
    assert counts["kills"]["resumed"] + counts["kills"]["missed"] == len(kept["kills"])
    began = time.monotonic()
    assert run(tmp_path).stdout == done.stdout
    assert time.monotonic() - began < 30


def test_ends_of_commands_are_judged(fuzzers):
    from commands import judged

    outcomes = {
        (0, ""): "done",
        (2, "dmkc: error: There is no file x."): "refused",
        (1, "dmkc: failed: There is no space left on the disk; make room."): "refused",
        (1, "dmkc: failed: KeyError: 'workers'."): "leak",
        (1, "Traceback (most recent call last):\n"): "leak",
        (2, "dmkc: error: one.\ndmkc: error: two."): "unclear",
        (2, "dmkc: error: \x1b[31m."): "unclear",
        (2, ""): "unclear",
        (-11, ""): "unclear",
    }
    assert {case: judged(*case)["outcome"] for case in outcomes} == outcomes


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (UserError("Choose another kernel."), "refused"),
        (UserError("X has missing values (NaN)."), "untrue"),
        (UserError("no sentence"), "unclear"),
        (np.linalg.LinAlgError("singular"), "leak"),
        (RuntimeWarning("overflow encountered in dot"), "warning"),
    ],
)
def test_what_a_fit_says_is_judged(fuzzers, tmp_path, monkeypatch, failure, outcome):
    import warnings

    import fits
    from dmkc import KMeans

    def fit(self, X, y=None, sample_weight=None):
        if not isinstance(failure, Warning):
            raise failure
        warnings.warn(failure, stacklevel=1)
        raise UserError("Choose another kernel.")

    monkeypatch.setattr(KMeans, "fit", fit)
    plan = {"method": "kmeans", "rows": "one outlier", "form": "array", "seed": 0}
    found = fits.play({**plan, "given": {}, "weights": "none"}, tmp_path)
    assert found["outcome"] == outcome, found


def test_labels_that_are_wrong_are_noticed(fuzzers, tmp_path, monkeypatch):
    import fits
    from dmkc import KMeans

    plan = {"method": "kmeans", "rows": "blobs", "form": "frame", "seed": 0}
    plan |= {"given": {}, "weights": "none"}
    assert fits.play(plan, tmp_path)["outcome"] == "done"
    assert fits.play({**plan, "method": "unknown"}, tmp_path)["outcome"] == "skipped"
    monkeypatch.setattr(KMeans, "predict", lambda self, X: 1 - self.labels_)
    assert fits.play(plan, tmp_path)["outcome"] == "wrong"
