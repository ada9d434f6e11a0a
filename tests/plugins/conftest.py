"""Plug-ins for one test at a time, and the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dmkc
from dmkc import registry
from dmkc.clusterers.registry import ESTIMATORS

OUTSIDE = Path(__file__).parent / "outside"


@pytest.fixture
def outside():
    """The folder of the plug-ins."""
    return OUTSIDE


@pytest.fixture
def directions(monkeypatch):
    """The class of the plug-in, known for the time of a test."""
    monkeypatch.setattr(ESTIMATORS, "_known", dict(ESTIMATORS))
    monkeypatch.setenv(registry.PLUGINS, str(OUTSIDE / "direction_clusterer.py"))
    registry.import_plugins()
    found = sys.modules["direction_clusterer"].DirectionClustering
    dmkc.register_estimator("directions", found)  # by hand, where another test imported the file
    return found


@pytest.fixture
def command():
    """Runs the command with these words and, beside those of this process, these variables."""

    def run(*words, **environment):
        clean = {k: v for k, v in os.environ.items() if k != registry.PLUGINS}
        return subprocess.run(
            [sys.executable, "-m", "dmkc", *map(str, words)],
            env=clean | environment,
            capture_output=True,
            text=True,
        )

    return run
