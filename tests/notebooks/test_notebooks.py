"""The notebooks run, and what is committed of them is small, complete and without errors."""

from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
BOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000


def outputs(book):
    return [(cell, out) for cell in book.cells for out in cell.get("outputs", ())]


def test_there_are_notebooks():
    assert len(BOOKS) >= 6


@pytest.mark.parametrize("name", BOOKS)
def test_committed_notebook_is_small_and_complete(name):
    path = FOLDER / f"{name}.ipynb"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code" and cell.source.strip()]
    assert path.stat().st_size < MOST_BYTES
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    kinds = [key for _, out in outputs(book) for key in out.get("data", ())]
    assert kinds.count("image/png") >= 1
    assert not [out for _, out in outputs(book) if out.output_type == "error"]
    assert not [out.text for _, out in outputs(book) if out.get("name") == "stderr"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOKS)
def test_notebook_runs(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    fresh = run.executed(name)
    assert not [out.text for _, out in outputs(fresh) if out.get("name") == "stderr"]
    before = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    pictures = [
        sum("image/png" in out.get("data", ()) for _, out in outputs(book))
        for book in (before, fresh)
    ]
    assert pictures[0] == pictures[1]
