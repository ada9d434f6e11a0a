"""`dmkc fit`: the run folder, parameters, and what is replaced."""

import json
import os
import stat

import numpy as np
import pytest
import yaml
import zarr

import dmkc
import dmkc.cli.fit as fit_command
from dmkc.cli import labels as label_files
from dmkc.cli.options import parameters
from dmkc.clusterers.registry import ESTIMATORS

RESULTS = {"log.txt", "params.yaml", "model.zarr", "labels.zarr", "metrics.json"}
RESULTS |= {"run.json", "status.json"}


def labels_of(folder):
    return zarr.open_array(store=folder / "labels.zarr", mode="r")[:]


@pytest.fixture
def x(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    np.save(tmp_path / "y.npy", data[1])
    return "x.npy"


def test_run_folder(fit, x, tmp_path, data):
    said = fit(x, "--clusters", 2, "--out", "run", "--truth", "y.npy")
    run = tmp_path / "run"
    assert set(os.listdir(run)) == RESULTS
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    model = dmkc.load(run / "model.zarr")
    assert np.array_equal(labels_of(run), model.predict(data[0]))
    found = json.loads((run / "metrics.json").read_text())
    assert found["rows"] == 200 and sum(found["cluster_sizes"]) == 200
    assert found["metrics"]["accuracy"] > 0.9
    assert "accuracy" in said.out and said.err == ""
    assert yaml.safe_load((run / "params.yaml").read_text())["random_state"] == 0
    assert "scan" in (run / "log.txt").read_text()


def test_several_clusters(fit, call, x, tmp_path, data):
    fit(x, "--clusters", 3, "--out", "run")
    found = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert len(found["cluster_sizes"]) == 3
    assert "3" in call("info", "run/model.zarr").out
    call("predict", "run", x, "--out", "l.zarr")
    assert np.array_equal(labels_of(tmp_path / "run"), zarr.open_array(store="l.zarr")[:])


def test_report_is_asked_for(fit, x, tmp_path, monkeypatch):
    calls = []

    def write_report(model, X, path, *, title, truth=None, seconds=None, notes=(), command):
        calls.append((title, truth is not None, seconds > 0))
        assert command.words[0] == "fit" and (command.input, command.folder) == ("x.npy", "run")
        path.write_text("<h1></h1>")
        return path

    import dmkc.report

    monkeypatch.setattr(dmkc.report, "write_report", write_report)
    fit(x, "--out", "run", "--truth", "y.npy", report=True)
    assert calls == [("x.npy", True, True)]
    assert (tmp_path / "run" / "report.html").exists()


def test_params_file_and_command_line(fit, call, x, tmp_path):
    (tmp_path / "p.yaml").write_text("kernels: [linear, 'gaussian:0.5']\ntol: 5e-2\nC: 3\n")
    fit(x, "--out", "a", "--params", "p.yaml", "--C", "4")
    stored = yaml.safe_load((tmp_path / "a" / "params.yaml").read_text())
    assert stored["kernels"] == ["linear", "gaussian:0.5"]
    assert stored["C"] == 4.0 and stored["tol"] == 1e-2
    assert len(dmkc.load(tmp_path / "a" / "model.zarr").kernels_) == 2
    call("fit", x, "--out", "b", "--params", "a/params.yaml", "--no-report")
    assert np.array_equal(labels_of(tmp_path / "a"), labels_of(tmp_path / "b"))
    (tmp_path / "p.toml").write_text('clusters = 2\nkernels = [{kind = "gaussian", gamma = 0.1}]\n')
    fit(x, "--out", "c", "--params", "p.toml")
    assert dmkc.load(tmp_path / "c" / "model.zarr").kernels_ == [dmkc.Gaussian(gamma=0.1)]


MKC = ("--method", "mkc")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("p.yaml", "n_cluster: 2", "Did you mean 'n_clusters'"),
        ("p.yaml", "C: !!python/object/apply:os.system [ls]", "cannot be read"),
        ("p.yaml", "- 1", "names and values"),
        ("p.toml", "C = = 1", "cannot be read"),
        ("p.json", "{", "cannot be read"),
        ("p.ini", "C=1", "must end in"),
        ("p.yaml", "method: k-medians", "no method"),
        ("p.yaml", "method: mkc\nC: many", "must be a number"),
        ("p.yaml", "C: 1", "the method 'auto' has no such parameter; mkc"),
        ("p.yaml", "max_iter: 2.5", "max_iter"),
        ("p.yaml", "method: mkc\nkernels: [{kind: gaussian, wide: 1}]", "no parameter"),
    ],
)
def test_bad_params_files(call, x, tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    said = call("fit", x, "--out", "run", "--params", name, "--no-report", "--quiet", code=2)
    assert sentence in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--clusters", "two"), "not a whole number"),
        (("--clusters", "0"), "--clusters must be an integer of at least 1, a range such as 2-8"),
        (
            ("--kernels", "linear"),
            "--kernels is an option of single methods: name one with --method",
        ),
        ((*MKC, "--kernels", "gausian"), "Did you mean 'gaussian'"),
        ((*MKC, "--kernels", "gaussian:wide"), "not a number"),
        ((*MKC, "--scale", "standrad"), "Did you mean 'standard'"),
        ((*MKC, "--C", "-1"), "greater than 0"),
        ((*MKC, "--C", "x"), "must be a number"),
        ((*MKC, "--balance", "defualt"), "must be a number"),
        ((*MKC, "--init", "nothing"), "Unknown --init"),
        ((*MKC, "--init", "none.npy"), "There is no file"),
        ((*MKC, "--landmarks", "gone.npy"), "There is no file"),
        ((*MKC, "--landmarks", "unifrom"), "Did you mean 'uniform'"),
        (("--method", "other"), "no method"),
        (("--clustres", "2"), "Did you mean --clusters?"),
        (("--columns", "a", "b"), "lists are written with commas"),
        (("--variable", "X"), "leave --variable"),
        (("--columns", "a"), "not a table"),
        (("--truth", "gone.npy"), "There is nothing at gone.npy"),
        (("--truth", "short.npy"), "has 3 labels, but the input has 200 rows"),
        (("--quiet", "--verbose"), "not allowed with"),
        (("--params", "gone.yaml"), "no such file"),
        (("--out", "no/such/folder"), "does not exist"),
        (("--out", "s3://bucket/run"), "local folders"),
        (("--scheduler", "nonsense://x"), "tcp://host:8786"),
    ],
)
def test_mistakes(call, x, tmp_path, words, sentence):
    np.save(tmp_path / "short.npy", np.arange(3))
    said = call("fit", x, "--out", "run", "--no-report", *words, code=2)
    assert sentence in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_parameter_has_an_option(call, method):
    text = call("fit", "--method", method, "--help").out
    for name in parameters(ESTIMATORS[method]):
        assert f"--{name.replace('_', '-')}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_arrays_as_parameters(fit, x, tmp_path, data):
    np.save(tmp_path / "marks.npy", data[0][:15])
    fit(x, "--out", "run", "--landmarks", "marks.npy", "--init", "y.npy")
    model = dmkc.load(tmp_path / "run" / "model.zarr")
    assert model.model_.features.plan.n_landmarks == 15 and model.start_ == "given"
    assert yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())["init"] == ["y.npy"]


def test_force_replaces_runs_only(fit, x, tmp_path):
    fit(x, "--out", "run")
    assert "--force" in fit(x, "--out", "run", code=2).err
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "report.html").write_text("old")
    fit(x, "--out", "run", "--C", "2", "--force")
    assert set(os.listdir(tmp_path / "run")) == RESULTS | {"notes.txt"}
    assert dmkc.load(tmp_path / "run" / "model.zarr").C_ == 2.0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.zarr").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for name in ("mine", "file", "link"):
        fit(x, "--out", name, "--force", code=2)
    assert (tmp_path / "mine" / "labels.zarr").is_dir()
    (tmp_path / "empty").mkdir()
    fit(x, "--out", "empty")


def test_a_failed_fit_keeps_earlier_results(fit, x, tmp_path):
    fit(x, "--out", "run")
    before = labels_of(tmp_path / "run")
    fit(x, "--out", "run", "--force", "--C", "-1", code=2)
    assert np.array_equal(labels_of(tmp_path / "run"), before)


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_interrupted_while_labels_are_written(fit, x, tmp_path, data, monkeypatch, kind):
    zarr.create_array(store=tmp_path / "x.zarr", data=data[0], chunks=(50, 4))
    written = []
    original = zarr.Array.__setitem__

    def stop(self, where, value):
        written.append(where)
        if len(written) == 2:
            raise KeyboardInterrupt
        original(self, where, value)

    monkeypatch.setattr(label_files, "CHUNK_ROWS", 50)
    monkeypatch.setattr(zarr.Array, "__setitem__", stop)
    real_save = dmkc.MultipleKernelClustering.save

    def save(self, path, overwrite=False):
        monkeypatch.setattr(zarr.Array, "__setitem__", original)
        real_save(self, path, overwrite)
        monkeypatch.setattr(zarr.Array, "__setitem__", stop)

    monkeypatch.setattr(dmkc.MultipleKernelClustering, "save", save)
    said = fit(f"x.{kind}", "--out", "run", code=130)
    assert len(said.err.splitlines()) == 1 and "interrupted" in said.err
    assert len(written) >= 2
    left = {"log.txt", "params.yaml", "model.zarr", "run.json", "status.json", "journal.dmkc"}
    assert set(os.listdir(tmp_path / "run")) == left


def test_failures_are_not_called_mistakes(fit, x, tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError(28, "No space left on device", "labels.zarr")

    monkeypatch.setattr(fit_command, "write_labels", broken)
    said = fit(x, "--out", "run", code=1)
    assert "no space left" in said.err and "failed" in said.err
    assert (tmp_path / "run" / "model.zarr").exists()
    monkeypatch.setattr(fit_command, "write_labels", lambda *a, **k: 1 / 0)
    assert "ZeroDivisionError" in fit(x, "--out", "other", code=1).err


def test_progress_and_warnings(call, x, tmp_path):
    words = ("fit", x, *MKC, "--out", "run", "--no-report", "--seed", "0", "--rank", "20")
    said = call(*words, "--verbose", "--max-iter", "1", "--tol", "1e-6")
    assert "round 1" in said.err and "dmkc: warning: " in said.err
    assert "warning" in (tmp_path / "run" / "log.txt").read_text()
    assert call(*words, "--quiet", "--force").err == ""


def test_a_folder_with_the_name_of_a_start_is_no_labeling(call, fit, x, tmp_path):
    for name in ("auto", "k-means"):
        (tmp_path / name).mkdir()
    fit(x, "--out", "named")
    call("fit", x, "--method", "mkc", "--rank", 20, "--no-report", "--quiet", "--out", "left-open")
    assert labels_of(tmp_path / "named").shape == labels_of(tmp_path / "left-open").shape
