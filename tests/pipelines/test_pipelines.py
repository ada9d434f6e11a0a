"""The pipelines: small runs of each, and what they do after a stop."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import dmkc
from dmkc.metrics import adjusted_rand_index

PIPELINES = Path(__file__).parents[2] / "pipelines"
PAPERS = ("mkc", "skmmc", "odm", "planes", "hmkkm")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    for folder in (PIPELINES, PIPELINES / "benchmarks", PIPELINES / "papers"):
        monkeypatch.syspath_prepend(str(folder))


def ran(script, *words):
    environment = os.environ | {"PYTHONPATH": str(PIPELINES.parent)}
    command = [sys.executable, str(PIPELINES / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blobs(path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 3)) + 4.0 * y[:, None]
    store = zarr.create_array(store=str(path), shape=X.shape, chunks=(100, 3), dtype="float64")
    store[:] = X
    return y


def test_zarr_to_labels(tmp_path, monkeypatch):
    import zarr_to_labels

    y = blobs(tmp_path / "rows.zarr")
    out = tmp_path / "run"
    words = [str(tmp_path / "rows.zarr"), "--out", str(out), "--method", "kmeans"]
    zarr_to_labels.main(words)
    labels = zarr.open_array(store=out / "labels.zarr", mode="r")[:]
    assert adjusted_rand_index(y, labels) == 1.0
    np.testing.assert_array_equal(
        dmkc.load(out / "model.zarr").predict(labels_rows(tmp_path)), labels
    )
    assert json.loads((out / "result.json").read_text())["cluster sizes"] == [200, 200]
    monkeypatch.setattr(dmkc.KMeans, "fit", lambda *_: pytest.fail("a finished run was fitted"))
    zarr_to_labels.main(words)


def labels_rows(folder):
    return zarr.open_array(store=folder / "rows.zarr", mode="r")[:]


def test_zarr_to_labels_wants_rows(capsys):
    import zarr_to_labels

    with pytest.raises(SystemExit):
        zarr_to_labels.main([])
    assert "--demo" in capsys.readouterr().err


def test_a_run_that_the_queue_ends_is_submitted_again(tmp_path, monkeypatch):
    import hpc_batch

    run, said = tmp_path / "run", []
    states = iter(["queued", "running", "killed", "killed", "running", "finished"])

    def dmkc(*words):
        said.append(words)
        if words[0] == "submit":
            run.mkdir(exist_ok=True)
            (run / "run.json").write_text("{}")
            return "17"
        return json.dumps({"state": next(states)})

    monkeypatch.setattr(hpc_batch, "dmkc", dmkc)
    hpc_batch.main(["rows.zarr", "--clusters", "3", "--out", str(run), "--every", "0"])
    sent = [words for words in said if words[0] == "submit"]
    assert sent == [
        ("submit", "rows.zarr", "--clusters", "3", "--out", str(run)),
        ("submit", "--resume", str(run)),
    ]


def test_a_run_that_never_ends_well_is_given_up(tmp_path, monkeypatch):
    import hpc_batch

    (tmp_path / "run.json").write_text("{}")
    monkeypatch.setattr(hpc_batch, "dmkc", lambda *words: '{"state": "ended early"}')
    with pytest.raises(SystemExit, match="ended 3 times"):
        hpc_batch.watch(tmp_path, 0.0, 2)


@pytest.mark.slow
def test_batch_demonstration():
    said = ran("hpc_batch.py", "--demo")
    assert "is ended early" in said and "goes on with the run" in said
    assert "submitted again 1 times" in said


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_paper_demonstration(paper, tmp_path):
    assert "written to" in ran(f"papers/{paper}.py", "--demo", "--out", tmp_path)
    (page,) = (tmp_path / "demo").glob("*.md")
    assert ("rows are made up" in page.read_text()) == (paper != "mkc")


def test_every_table_of_a_paper_has_its_benchmark():
    for paper in PAPERS:
        module = __import__(paper)
        for table in module.TABLES:
            assert (PIPELINES / "benchmarks" / table.script).exists()
        assert any(table.demo for table in module.TABLES)


def test_sets_that_are_not_there_are_left_out(capsys):
    import planes

    errors, columns = planes.TABLES
    files = set(planes.FILES.values())
    assert errors.arguments(files) == []
    assert errors.arguments(files - {"letter"})[1:] == [s for s in errors.sets if s != "letterAB"]
    assert columns.arguments(files) is None and columns.arguments(planes.WIDE) == []
    assert "sonar" in capsys.readouterr().out


def test_finished_tables_are_not_made_again(tmp_path, monkeypatch):
    import reproduce

    made = []
    tables = [reproduce.Table("one", "a.py", "a"), reproduce.Table("two", "b.py", "b")]
    (tmp_path / reproduce.FINISHED).write_text("a\n")
    monkeypatch.setattr(reproduce, "run", lambda table, *_: made.append(table.page))
    monkeypatch.setattr(sys, "argv", ["paper.py", "--out", str(tmp_path)])
    reproduce.main("a paper", tables)
    assert made == ["b"]
    monkeypatch.setattr(sys, "argv", ["paper.py", "--out", str(tmp_path), "--again"])
    reproduce.main("a paper", tables)
    assert made == ["b", "a", "b"]


@pytest.fixture
def common(tmp_path, monkeypatch):
    import common

    monkeypatch.setattr(common, "RESULTS", tmp_path)
    return common


def test_a_stopped_benchmark_goes_on(common, tmp_path):
    made = []

    def measure(key):
        if key == "c" and len(made) < 3:
            raise KeyboardInterrupt
        made.append(key)
        if key == "b":
            raise FileNotFoundError("b.npz does not exist")
        return {"value": key}

    with pytest.raises(KeyboardInterrupt):
        common.one_by_one("page", "abc", measure)
    made.append("")
    data, absent = common.one_by_one("page", "abc", measure)
    assert made == ["a", "b", "", "b", "c"]
    assert data == {"a": {"value": "a"}, "c": {"value": "c"}} and absent == ["b"]
    assert "b" in common.left_out(absent)[0] and common.left_out([]) == []
    common.write("page", "Title", "command", [], data)
    assert not (tmp_path / "page.partial.json").exists() and (tmp_path / "page.md").exists()


def test_another_setting_starts_anew(common):
    common.one_by_one("page", "a", lambda key: 1, "ten seeds")
    assert common.one_by_one("page", "a", lambda key: 2, "two seeds")[0] == {"a": 2}


def test_no_data_set_at_all_is_a_sentence(common):
    def absent(key):
        raise FileNotFoundError(key)

    with pytest.raises(SystemExit, match="DMKC_DATA_DIR"):
        common.one_by_one("page", "ab", absent)
