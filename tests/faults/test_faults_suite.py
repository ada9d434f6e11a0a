"""Ten cases of the suite of random kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES, SEED = 10, 59
METHODS = ("mkc", "planes", "kmeans")
VICTIMS = {"client", "worker", "all workers", "nanny", "scheduler", "everything"}


@pytest.mark.slow
def test_killed_fits_survive_or_are_resumed(tmp_path):
    """With a seed that kills every part of a cluster, and the client in threads too."""
    script = str(ROOT / "pipelines" / "benchmarks" / "faults.py")
    words = ["--cases", str(CASES), "--seed", str(SEED), "--methods", *METHODS]
    done = subprocess.run(
        [sys.executable, script, *words, "--folder", str(tmp_path), "--no-page"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = list(json.loads((tmp_path / "cases.json").read_text())["cases"].values())
    assert {case["plan"]["victim"] for case in cases} == VICTIMS
    assert {case["on_cluster"] for case in cases} == {False, True}
    assert {case["outcome"] for case in cases} >= {"survived", "resumed"}
    assert sum(case["kills"] > 0 for case in cases) >= CASES - 1  # a fit may end before a blow
