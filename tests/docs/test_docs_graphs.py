"""The examples of the page about neighbour graphs run."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_examples_about_graphs_print_what_the_page_shows(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "pipelines" / "docs"))
    import tour

    page = (PROJECT / "docs" / "neighbour-graphs.md").read_text("utf-8")
    printed = tour.run_blocks(page)
    assert len(printed) == len(re.findall(r"^```(?:sh|python)$", page, re.M)) == 5
    assert tour.filled(page, printed) == page
