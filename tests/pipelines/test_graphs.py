"""Benchmarks of neighbour graphs: fits are processes and are kept, pages say what failed."""

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "pipelines" / "benchmarks"


@pytest.fixture
def cells(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import graphs_cells

    return graphs_cells


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("print('noise'); print('{\"seconds\": 2}')", {"seconds": 2}),
        ("import time; time.sleep(9)", {"failed": "too long", "seconds": 0.5}),
        ("import no_such_module", {"failed": "not installed"}),
        ("from sys import no_such_name", {"failed": "not installed"}),
        ("raise ImportError('libsome.so: failed to map')", None),
        ("raise MemoryError", {"failed": "out of memory"}),
        ("raise ValueError('odd')", {"failed": "ValueError: odd"}),
        ("import os; os._exit(7)", {"failed": "ended with 7"}),
    ],
)
def test_what_a_process_says(cells, code, found):
    said = cells.in_process([sys.executable, "-S", "-c", code], limit=0.5 if "9" in code else 30)
    assert said == (found or {"failed": "ImportError: libsome.so: failed to map"})


def test_memory_is_limited(cells):
    code = "bytearray(2 * 10**9)"
    said = cells.in_process([sys.executable, "-S", "-c", code], limit=30, memory="1GB")
    assert said == {"failed": "out of memory"}


def test_a_stopped_run_goes_on_and_what_was_missing_is_tried_again(cells, tmp_path):
    path, key = tmp_path / "kept.jsonl", ("method", "seed")
    first = cells.Cells(path, key)
    first.add({"method": "a", "seed": 0, "size": 10, "seconds": 1.0})
    first.add({"method": "b", "seed": 0, "size": 10, "failed": cells.MISSING})
    assert first.is_hopeless("b", 1) and not first.is_hopeless("a", 10**9)
    again = cells.Cells(path, key)
    assert {"method": "a", "seed": 0} in again and {"method": "b", "seed": 0} not in again
    assert not again.is_hopeless("b", 1)
    again.add({"method": "a", "seed": 1, "size": 50, "failed": cells.TOO_LONG})
    assert again.is_hopeless("a", 50) and not again.is_hopeless("a", 49)


def test_a_fit_to_a_file(cells, tmp_path):
    y = np.arange(60) % 2
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * y[:, None])
    (found,) = cells.fit_in_memory("k-means", tmp_path / "X.npy", y, seeds=[0], limit=100)
    assert [found[name] for name in cells.MEASURES] == pytest.approx([100.0] * 4)
    assert found["seconds"] > 0 and found["peak"] > 10**7


def test_which_fits_are_wanted(cells):
    import graphs

    options = Namespace(methods=list(graphs.METHODS))
    few, many = (list(graphs.wanted(n, options)) for n in (1000, 10**6))
    count = {m: sum(f["method"] == m for f in few) for m in graphs.METHODS}
    assert count["k-means"] == 2 and count["genie"] == 2 and count["dmkc spectral"] == 1
    assert {f["method"] for f in few} - {f["method"] for f in many} == set(graphs.SQUARE)


def test_sizes_of_shapes(cells):
    import graphs_scale

    found = graphs_scale.sizes(list(graphs_scale.SHAPES), 0.01)
    assert len(found) == len(set(found)) == 9 and ("flower", 200_000) in found
    assert sorted(n for shape, n in found if shape == graphs_scale.GROWTH) == [
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
    ]


def test_pages(cells, tmp_path, monkeypatch):
    import common
    import graphs_page
    import graphs_scale

    monkeypatch.setattr(common, "RESULTS", tmp_path)
    scores = dict.fromkeys(cells.MEASURES, 50.0)
    kept = cells.Cells(tmp_path / "a.jsonl", ("set", "method", "columns", "seed"))
    for name, accuracy in (("iris", 80.0), ("mnist-whole", 54.0)):
        for seed in (0, 1):
            about = {"set": name, "rows": 10, "size": 40, "clusters": 3, "columns": "raw"}
            fit = about | {"seed": seed, "seconds": 1.5, **scores}
            kept.add(fit | {"method": "k-means", "accuracy": accuracy + seed})
        kept.add(about | {"seed": 0, "method": "genie", "failed": cells.TOO_LONG})
    options = Namespace(seeds=[0, 1], limit=600.0, peers=sys.executable)
    graphs_page.write_page(kept, ["mnist-whole"], ["wine"], options)
    text = (tmp_path / "graphs.md").read_text()
    assert "| iris (10 x 4, 3) | **80.5** |" in text and "80.6 (132 s)" in text
    assert "- genie: too long (iris, raw, 0; mnist-whole, raw, 0)" in text and "wine" in text

    kept = cells.Cells(tmp_path / "b.jsonl", ("shape", "rows", "method", "seed"))
    for n in (1000, 10_000):
        fit = {"shape": "two bananas", "rows": n, "size": n, "seed": 0, "peak": 10**9, **scores}
        kept.add(fit | {"method": "dmkc spectral", "seconds": n / 1000})
    options = Namespace(memory="2GB", peer_memory="16GB", seed=0, limit=600.0)
    graphs_scale.write_page(kept, options)
    text = (tmp_path / "graphs-scale.md").read_text()
    assert "| dmkc spectral | 1.00 |" in text and "| two bananas | 1,000 | dmkc spectral |" in text
