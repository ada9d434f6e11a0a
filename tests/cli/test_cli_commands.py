"""predict, evaluate, info, datasets, demo, completion, and the program as a process."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import zarr
from said import sentences

import dmkc
from dmkc.cli import main
from dmkc.cli.app import COMMANDS, build_parser


def process(*words, **kwargs):
    command = [sys.executable, "-m", "dmkc", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **kwargs)


def test_predict_equals_fit_and_guards_its_output(call, shared_run, tmp_path):
    words = ("predict", shared_run / "run" / "model.zarr", shared_run / "x.npy")
    said = call(*words, "--out", "l.zarr")
    assert "cluster 0" in said.out
    first = zarr.open_array(store=shared_run / "run" / "labels.zarr", mode="r")[:]
    assert np.array_equal(zarr.open_array(store="l.zarr", mode="r")[:], first)
    assert "--force" in call(*words, "--out", "l.zarr", code=2).err
    call(*words, "--out", "l.zarr", "--force")
    zarr.create_array(store=tmp_path / "data.zarr", data=np.ones((3, 3)))
    (tmp_path / "folder").mkdir()
    for name in ("data.zarr", "folder"):
        assert "not written by dmkc" in call(*words, "--out", name, "--force", code=2).err
    assert zarr.open_array(store="data.zarr", mode="r").shape == (3, 3)
    np.save(tmp_path / "narrow.npy", np.ones((5, 3)))
    said = call("predict", shared_run / "run", "narrow.npy", "--out", "n.zarr", code=2)
    assert "expecting 4 features" in said.err
    for model in ("gone", tmp_path / "data.zarr"):
        call("predict", model, shared_run / "x.npy", "--out", "n.zarr", code=2)
    assert sorted(os.listdir(tmp_path)) == ["data.zarr", "folder", "l.zarr", "narrow.npy"]


def test_evaluate_reads_every_form(call, shared_run, tmp_path, data):
    y = data[1]
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "y.npz", y=y, X=data[0])
    zarr.create_array(store=tmp_path / "y.zarr", data=y, chunks=(30,))
    zarr.create_group(store=tmp_path / "g.zarr").create_array("y", data=y)
    pd.DataFrame({"class": y}).to_csv(tmp_path / "y.csv", index=False)
    frame = pd.DataFrame({"id": range(len(y)), "class": np.where(y == 1, "one", "other")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "y.txt").write_text("\n".join(map(str, y)) + "\n")
    (tmp_path / "words.txt").write_text("\n".join(frame["class"]) + "\n")
    names = ["y.npy", "y.npz", "y.zarr", "g.zarr", "g.zarr::y", "y.csv", "t.csv::class"]
    names += ["t.parquet::class", "y.txt", "words.txt"]
    found = []
    for name in names:
        said = call("evaluate", shared_run / "run", name, "--json")
        found.append(json.loads(said.out)["metrics"])
    assert all(metrics == found[0] for metrics in found)
    text = call("evaluate", shared_run / "run" / "labels.zarr", "t.csv::class").out
    assert set(found[0]) <= {line.split()[0] for line in text.splitlines() if line}
    assert "cluster 1" in text and "other" in text


@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        ("short.npy", "has 200 labels, but short.npy has 3"),
        ("gone.npy", "There is nothing"),
        ("square.npy", "2 dimensions"),
        ("gaps.npy", "missing values"),
        ("t.csv", "Name a column"),
        ("t.csv::zz", "no column 'zz'"),
        ("g.zarr", "Name an array"),
        ("empty.txt", "empty"),
        ("bad.npy", "cannot be read"),
    ],
)
def test_evaluate_mistakes(call, shared_run, tmp_path, truth, sentence):
    np.save(tmp_path / "short.npy", np.arange(3))
    np.save(tmp_path / "square.npy", np.ones((200, 2)))
    np.save(tmp_path / "gaps.npy", np.full(200, np.nan))
    pd.DataFrame({"a": [1], "b": [2]}).to_csv(tmp_path / "t.csv", index=False)
    group = zarr.create_group(store=tmp_path / "g.zarr")
    for name in "pq":
        group.create_array(name, data=np.ones(200))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bad.npy").write_text("bad")
    assert sentence in call("evaluate", shared_run / "run", truth, code=2).err


def test_info(call, shared_run, tmp_path):
    said = call("info", shared_run / "run" / "model.zarr").out
    for text in ("gaussian", "20 landmarks", "training rows", "scikit-learn", "random_state"):
        assert text in said
    found = json.loads(call("info", shared_run / "run", "--json").out)
    assert found["rows"] == 200 and "model.zarr" in found["files"]
    assert "cluster sizes" in call("info", shared_run / "run").out
    assert "int32" in call("info", shared_run / "run" / "labels.zarr").out
    (tmp_path / "folder").mkdir()
    for name in ("gone", "folder"):
        call("info", name, code=2)


def test_info_knows_centroids(fit, call, shared_run):
    fit(shared_run / "x.npy", "--landmarks", "kmeans", "--out", "run")
    assert "centroids" in call("info", "run/model.zarr").out


def test_datasets(call, tmp_path, monkeypatch):
    assert "ringnorm" in call("datasets", "list").out
    call("datasets", "make", "ringnorm", "--rows", "1e3", "--d", "5", "--out", "r.zarr")
    group = zarr.open_group(store="r.zarr", mode="r")
    X, y = dmkc.datasets.make_ringnorm(1000, 5, seed=0)
    assert np.array_equal(group["X"][:], X) and np.array_equal(group["y"][:], y)
    assert "array X" in call("info", "r.zarr").out
    call("datasets", "make", "flower", "--rows", "50", "--noise", "0.5", "--out", "f.zarr")
    group = zarr.open_group(store="f.zarr", mode="r")
    assert np.array_equal(group["X"][:], dmkc.datasets.make_flower(50, noise=0.5)[0])
    make = ("datasets", "make", "waveform", "--rows", "10", "--classes", "1,2", "--out", "r.zarr")
    call(*make, code=2)
    call(*make, "--force")
    call("datasets", "copy", "wdbc", "--out", "w.zarr")
    assert zarr.open_group(store="w.zarr", mode="r")["X"].shape == (569, 30)
    np.savez(tmp_path / "mine.npz", X=np.ones((4, 2)), y=np.arange(4))
    monkeypatch.setenv("DMKC_DATA_DIR", str(tmp_path))
    assert "mine" in call("datasets", "list").out
    call("datasets", "copy", "mine", "--out", "mine.zarr")
    for words in (
        ("copy", "nothing", "--out", "n.zarr"),
        ("make", "rignorm", "--rows", "5", "--out", "n.zarr"),
        ("make", "ringnorm", "--rows", "0", "--out", "n.zarr"),
        ("make", "ringnorm", "--rows", "many", "--out", "n.zarr"),
        ("make", "ringnorm", "--rows", "5", "--dtype", "int8", "--out", "n.zarr"),
        ("make", "ringnorm", "--rows", "5", "--dtype", "x", "--out", "n.zarr"),
        ("make", "rings", "--rows", "5", "--factor", "2", "--out", "n.zarr"),
        ("make",),
        (),
    ):
        call("datasets", *words, code=2)
    assert not (tmp_path / "n.zarr").exists()


def test_fetch(call, monkeypatch):
    import sklearn.datasets

    class Found:
        data = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
        target = pd.Series(["no", "yes"])

    def fetch(**kwargs):
        if kwargs.get("name") == "offline":
            raise OSError("no network")
        return Found

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    assert "left out: b" in call("datasets", "fetch", "some", "--out", "o.zarr").err
    assert zarr.open_group(store="o.zarr", mode="r")["y"][:].tolist() == [0, 1]
    said = call("datasets", "fetch", "offline", "--out", "p.zarr", code=1)
    assert "OpenML" in said.err and not os.path.exists("p.zarr")


def test_demo(call, monkeypatch):
    import dmkc.demo

    calls = []
    monkeypatch.setattr(dmkc.demo, "run", lambda out, seed=0: calls.append((str(out), seed)))
    call("demo", "--out", "d", "--seed", "3")
    assert calls == [("d", 3)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_words(call, shell):
    text = call("completion", shell).out
    for word in ("predict", "ringnorm", "kernels", "standard"):
        assert word in text
    call("completion", "tcsh", code=2)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dmkc datasets ma", {"make"}),
        ("dmkc fit rows.np", {"rows.npy"}),
        ("dmkc fit rows.npy --res", {"--resume"}),
        ("dmkc fit --scale st", {"standard"}),
        ("dmkc fit rows.npy --method kernel", {"kernel-kmeans"}),
        ("dmkc fit --truth rows.np", {"rows.npy"}),
        ("dmkc fit rows.npy --out fol", {"folder"}),
        ("dmkc predict folder rows.np", {"rows.npy"}),
        ("dmkc completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(call, tmp_path, typed, offered):
    (tmp_path / "script").write_text(call("completion", "bash").out)
    (tmp_path / "rows.npy").touch()
    (tmp_path / "folder").mkdir()
    ask = (
        'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_dmkc; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "-c", ask, "bash", *typed.split(" ")]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) == offered


@pytest.mark.parametrize("words", [(), ("fit",), ("predict",), ("datasets", "make", "rings")])
def test_help_fits_and_shows_an_example(call, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = call(*words, "--help").out
    assert "example:\n  dmkc " in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_same_parser_alone_and_among_all(name):
    def shown(parser):
        return next(a for a in parser._actions if a.dest == "command").choices[name].format_help()

    assert shown(build_parser(name)) == shown(build_parser())
    assert f"example:\n  dmkc {name}" in shown(build_parser(name))


def test_no_or_unknown_command(capsys, call):
    assert main([]) == 2
    assert "usage: dmkc" in capsys.readouterr().err
    call("cluster", code=2)
    call("fit", code=2)
    assert "'fitt' is no command. Did you mean fit?" in call("fitt", code=2).err
    assert "Unknown argument '--loud'" in call("--loud", "info", "run", code=2).err
    assert call("--version").out == f"dmkc {dmkc.__version__}\n"


def test_debug_shows_the_place(capsys, tmp_path):
    assert main(["info", str(tmp_path / "gone"), "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_as_a_process(shared_run, tmp_path):
    where = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
    said = process("predict", shared_run / "run", shared_run / "x.npy", "--out", "l.zarr", **where)
    assert said.returncode == 0
    stages = sentences(said.stderr)
    assert stages == ["dmkc: reading x.npy", "dmkc: labelling rows"]  # and seconds of slow ones
    said = process("evaluate", "l.zarr", "gone.npy", **where)
    assert said.returncode == 2 and said.stdout == "" and len(sentences(said.stderr)) == 1


def test_a_real_interruption(shared_run, tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    np.save(tmp_path / "big.npy", np.random.default_rng(0).normal(size=(60_000, 60)))
    command = [sys.executable, "-m", "dmkc", "fit", "big.npy", "--method", "mkc"]
    command += ["--out", "run", "--tol", "1e-9"]
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # what a shell has put behind ignores Ctrl-C, and so does all that it starts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "run" / "log.txt").exists() and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err and "interrupted" in err.splitlines()[-1]
    left = sorted(os.listdir(tmp_path / "run"))
    assert left == ["journal.dmkc", "log.txt", "run.json", "status.json"]  # to go on from


def test_what_a_killed_predict_left_is_cleared_and_said(call, shared_run, tmp_path):
    left = tmp_path / ".labels.zarr.abcdefgh.part"
    (left / "new").mkdir(parents=True)
    (left / "lock").touch()
    words = ("predict", shared_run / "run", shared_run / "x.npy", "--out", "labels.zarr")
    said = call(*words).err
    assert f"dmkc: warning: Removed {left}" in said
    assert [path.name for path in tmp_path.iterdir()] == ["labels.zarr"]


def test_warm_compiles_the_loops_of_every_method(call, monkeypatch):
    fitted = []

    class Watched(dmkc.KMeans):
        def fit(self, X, *args):
            fitted.append((self.n_clusters, X.dtype.name, X.flags.writeable))
            return super().fit(X, *args)

    monkeypatch.setattr("dmkc.clusterers.registry.ESTIMATORS", {"kmeans": Watched, "auto": None})
    assert "The loops are compiled" in call("warm").out
    assert set(fitted) == {
        (2, "float64", True),
        (2, "float32", True),
        (3, "float64", False),
        (3, "float32", False),
    }
