"""The panel of a fit in a notebook, and the names of its tasks on a dashboard."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from dmkc import KMeans, MultipleKernelClustering, panel
from dmkc.datasets import make_rings
from dmkc.display import Display as Shown
from dmkc.display import View


class Display:
    """A display handle that keeps what it is told."""

    def __init__(self):
        self.shown = []

    def update(self, bundle, raw):
        assert raw
        self.shown.append(bundle)


@pytest.fixture
def display(monkeypatch):
    handle = Display()
    monkeypatch.setattr("dmkc.progress.open_panel", lambda: panel.Panel(handle))
    monkeypatch.setattr(Shown, "run", lambda self: None)  # no thread draws between
    monkeypatch.setattr(panel, "SECONDS_BETWEEN", 0.0)
    return handle


@pytest.fixture(scope="module")
def rings():
    return make_rings(2000, seed=0)[0]


def points(html):
    """The values of every curve, by title, as (title, last value, number of points)."""
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>.*?points=\"(.*?)\"", html)
    return {title: (last, len(path.split())) for title, last, path in rows}


def test_a_fit_draws_its_course(display, rings, capsys):
    model = MultipleKernelClustering(
        random_state=0, sample_rows=500, rank=20, init="k-means", verbose=1
    ).fit(rings)
    assert capsys.readouterr().err == ""
    last = display.shown[-1]
    assert f"objective {model.objective_:.6g}" in last["text/plain"]
    assert last["text/plain"] in last["text/html"]
    over_all = [r for r in model.history_ if r["on"] == "all"]
    found = points(last["text/html"])
    assert found["objective"] == (f"{over_all[-1]['objective']:.6g}", len(over_all))
    assert found["gap"] == (f"{over_all[-1]['gap']:.1e}", len(over_all))
    rounds = {r["round"] for r in over_all}
    assert found["relabeled, by round"] == (f"{over_all[-1]['changed']:.2%}", len(rounds))
    assert "all rows, from k-means" in last["text/html"]
    drawn = [b for b in display.shown if "sample rows, round" in b["text/plain"]]
    assert len(drawn) == len(model.history_) - len(over_all)


def test_k_means_shows_what_it_has(display, rings):
    model = KMeans(3, n_init=1, random_state=0, verbose=1).fit(rings)
    found = points(display.shown[-1]["text/html"])
    assert set(found) == {"objective", "centroids moved"}
    assert found["objective"][1] == model.n_iter_


def test_only_one_level_has_a_panel(display, rings, capsys):
    KMeans(2, random_state=0, verbose=2).fit(rings)
    KMeans(2, random_state=0).fit(rings)
    assert display.shown == []
    assert "step 1" in capsys.readouterr().err


def test_it_is_not_redrawn_all_the_time(monkeypatch):
    handle, now = Display(), [0.0]
    monkeypatch.setattr(panel.time, "monotonic", lambda: now[0])
    shown = panel.Panel(handle)
    for i in range(100):
        now[0] = i * panel.SECONDS_BETWEEN / 10
        shown.draw(View(f"line {i}", 0.5, 1.0, None, ""))
    assert len(handle.shown) == 10
    assert '<progress max="1" value="0.500">' in handle.shown[-1]["text/html"]
    shown.line("the end")
    assert handle.shown[-1]["text/plain"] == "the end"
    assert "<progress" not in handle.shown[-1]["text/html"]


def test_long_curves_end_at_the_newest_value():
    shown = panel.Panel(Display())
    for i in range(1000):
        shown.add({"on": "all", "start": "<k>", "round": i, "objective": float(1000 - i)})
    html = shown.html()
    assert points(html)["objective"] == ("1", panel.MOST_POINTS)
    assert "&lt;k&gt;" in html and "<k>" not in html


def test_outside_of_notebooks_there_is_none():
    assert panel.open_panel() is None


def test_in_a_notebook():
    code = (
        "from dmkc import MultipleKernelClustering\n"
        "from dmkc.datasets import make_rings\n"
        "X, y = make_rings(2000, seed=0)\n"
        "model = MultipleKernelClustering(random_state=0, rank=20, verbose=1).fit(X)\n"
        "print(model.objective_)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120).execute()
    outputs = notebook.cells[0].outputs
    (drawn,) = [o for o in outputs if o.output_type == "display_data"]
    (printed,) = [o for o in outputs if o.output_type == "stream"]
    assert printed.name == "stdout"
    assert f"objective {float(printed.text):.6g}" in drawn.data["text/plain"]
    assert "objective" in points(drawn.data["text/html"])


def test_tasks_have_readable_names(thread_client, rings):
    def prefixes(dask_scheduler):
        return {name for name, p in dask_scheduler.task_prefixes.items() if p.state_counts}

    X = np.tile(rings, (10, 1))
    MultipleKernelClustering(random_state=0, sample_rows=500, rank=20, client=thread_client).fit(X)
    found = thread_client.run_on_scheduler(prefixes)
    assert {"survey", "columns", "cuts", "labels"} <= found
    unnamed = [name for name in found if name.startswith("_") or "lambda" in name]
    assert unnamed == []
