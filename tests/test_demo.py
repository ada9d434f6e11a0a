"""The demonstration writes what it says, and only that."""

import re
from pathlib import Path

import numpy as np
import pytest
import zarr

import dmkc
import dmkc.metrics
from dmkc import demo

NAMES = ("digits-2v7", "ringnorm")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def printed(out):
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    text, errors = StringIO(), StringIO()
    with redirect_stdout(text), redirect_stderr(errors):
        demo.run(out, _rows=1500, _names=NAMES)
    assert errors.getvalue() == ""
    return text.getvalue()


def test_output_is_compact_and_complete(printed, out):
    assert re.search(r"compiling the inner loops: [\d.]+ s, once per environment", printed)
    for name in NAMES:
        assert f"\n{name}: " in printed
    assert printed.count("k-means") == 2 and printed.count("labels.zarr, model.zarr") == 2
    assert str(out / "index.html") in printed.splitlines()[-2]
    lines = [line.replace(str(out), "demo-output") for line in printed.splitlines()]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_they_are_called(printed, out, name):
    rows, _ = next(case for case in demo._cases(0, 1500) if case.name == name).load()
    labels = zarr.open_array(out / name / "labels.zarr", mode="r")
    assert labels.dtype == np.int32 and labels.shape == (len(rows),)
    model = dmkc.load(out / name / "model.zarr")
    np.testing.assert_array_equal(np.asarray(model.predict(rows)), labels[:])
    report = (out / name / "report.html").read_text()
    assert name in report and "k-means" in report
    assert f'href="{name}/report.html"' in (out / "index.html").read_text()


def test_the_index_leads_with_what_k_means_cannot_do(printed, out):
    index = (out / "index.html").read_text()
    assert index.index("What k-means cannot do") < index.index("ringnorm/report.html")
    assert index.count("<svg") == 2 * len(NAMES) and "<script" not in index
    assert re.search(r"dmkc: <b>9\d\.\d %</b>.*?k-means: <b>[5-9]\d\.\d %</b>", index, re.S)


def test_only_its_own_output_is_replaced(printed, out):
    folder = out / "ringnorm"
    (folder / "mine.txt").write_text("precious")
    (folder / "report.html").write_text("old")
    case = next(case for case in demo._cases(0, 300) if case.name == "ringnorm")
    demo._cluster(case, folder, 0)
    assert (folder / "mine.txt").read_text() == "precious"
    assert (folder / "report.html").read_text() != "old"
    assert zarr.open_array(folder / "labels.zarr", mode="r").shape == (300,)


@pytest.mark.parametrize("name", ["index.html", "ringnorm/report.html", "wdbc/labels.zarr/x"])
def test_what_others_have_written_is_not_replaced(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="not from an earlier demonstration"):
        demo.run(tmp_path)
    assert path.read_text() == "precious"


def test_all_data_sets_load():
    cases = demo._cases(0, 50)
    assert tuple(case.name for case in cases) == demo.NAMES
    for case in cases:
        rows, truth = case.load()
        assert len(rows) == len(truth) and len(np.unique(truth)) == 2


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    readme = Path(__file__).parents[1] / "README.md"
    example = re.search(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    exec(example[1], space)
    assert dmkc.metrics.accuracy(space["truth"], space["model"].labels_) > 0.99
    assert (tmp_path / "report.html").stat().st_size > 10_000
    np.testing.assert_array_equal(space["new_labels"], space["model"].labels_[:5])


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(NotADirectoryError, match="name a folder"):
        demo.run(tmp_path / "out")
