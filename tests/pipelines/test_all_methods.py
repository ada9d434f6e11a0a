"""The table over all methods: fits are kept, failures are named, the page is written."""

import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "pipelines" / "benchmarks"


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import all_methods

    return all_methods


@pytest.fixture
def rows():
    y = np.arange(40) % 2
    return {"blobs": (np.random.default_rng(0).normal(size=(40, 2)) + 8.0 * y[:, None], y)}


def test_a_stopped_table_goes_on(table, rows, tmp_path):
    path = tmp_path / "cells.jsonl"
    table.fill(path, rows, ["kmeans"], {})
    first = path.read_text().splitlines()
    assert [json.loads(line)["setting"] for line in first] == [0, 1, 2]
    assert json.loads(first[0])["accuracy"] == 100.0
    table.fill(path, rows, ["kmeans", "ward"], table.kept(path))
    assert path.read_text().splitlines()[:3] == first
    assert [json.loads(line)["method"] for line in path.read_text().splitlines()[3:]] == [
        "ward"
    ] * 3


def test_slow_methods_are_spared_their_other_settings(table, rows, tmp_path):
    path = tmp_path / "cells.jsonl"
    slow = {("blobs", "kmeans", 0): {"seconds": 100.0}}
    table.fill(path, rows, ["kmeans"], slow)
    assert not path.exists()


def test_a_fit_that_fails_is_told(table, rows, monkeypatch):
    def broken(X, k):
        raise ValueError("no such thing")

    monkeypatch.setitem(table.METHODS, "kmeans", (broken, [{}]))
    assert table.fitted("kmeans", 0, *rows["blobs"])["failed"] == "ValueError: no such thing"


def test_page(table, rows, tmp_path, monkeypatch):
    import all_methods_page
    import common

    for module in (common, all_methods_page):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    figures = {"mkc": 60.0, "kmeans": 90.0, "k-means": 89.8}
    cells = {("blobs", m, 0): {"accuracy": a, "seconds": 1.0} for m, a in figures.items()}
    cells["blobs", "mkc", 1] = {"accuracy": 95.0, "seconds": 1.0}
    cells["blobs", "mkc", 2] = {"failed": "over 60 s", "seconds": 60.0}
    cells["blobs", "kmeans", 1] = {"accuracy": 80.0, "seconds": 1.0}
    cells["blobs", "kmeans", 2] = {"accuracy": 70.0, "seconds": 1.0}
    all_methods_page.write_page(cells, rows, ["absent"], 2000)
    text = (tmp_path / "all-methods.md").read_text()
    assert "| blobs (40 x 2, 2) | 50.0 | 60.0 | **90.0** | **89.8** |" in text
    assert "- mkc (1 of 1 sets): blobs (60, kmeans 90)" in text
    assert "| blobs (40 x 2, 2) | **95.0** | 90.0 |" in text
    assert "| kmeans | 1 | `n_init=10` | 80.0 |" in text
    assert "over 60 s" in text and "left out: absent" in text
    assert (tmp_path / "all-methods.png").stat().st_size > 1000
