"""Files and names of strangers on the command line: a sentence and exit code 2, or a result."""

import gzip
import json
import os
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from dmkc.cli import raw

EVIL = "a\x1b[31m\nb"
SHOWN = "a\\x1b[31m\\nb"


@pytest.fixture
def x(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    return "x.npy"


def clean(said):
    """Whether what was said holds nothing but text and ends of lines."""
    text = (said.out + said.err).replace("\n", "")
    return text.isprintable()


def damaged(path, **changes):
    X = sp.random_array((60, 8), density=0.4, rng=np.random.default_rng(0), format="csr")
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    parts |= {"format": b"csr", "_is_array": True}
    for name, change in changes.items():
        parts[name] = change(np.array(parts[name]))
    np.savez(path, **parts)


def with_value(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"indices": with_value(5, 10**8)}, "damaged"),
        ({"indices": with_value(5, -4)}, "damaged"),
        ({"indptr": with_value(7, 2**30)}, "damaged"),
        ({"indptr": with_value(-1, 2**30)}, "plain arrays"),
        ({"format": lambda _: np.array(b"lil")}, "plain arrays"),
        ({"format": lambda _: np.array([1, 2])}, "plain arrays"),
        ({"shape": lambda _: np.array([60, 10**14])}, "claims to be"),
        ({"shape": lambda _: np.array([60])}, "plain arrays|Expected 2D"),
        ({"data": lambda data: data.astype(complex)}, "Complex"),
    ],
)
def test_sparse_files(fit, tmp_path, changes, sentence):
    damaged(tmp_path / "s.npz", **changes)
    said = fit("s.npz", "--out", "run", "--kernels", "gaussian", code=2)
    assert any(words in said.err for words in sentence.split("|")), said.err


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("p.yaml", "C: 2020-01-01", "date"),
        ("p.yaml", "method: [kmeans]", "no method"),
        ("p.yaml", "method: {a: 1}", "no method"),
        ("p.yaml", "method: mkc\nscale: [standard]", "scale must be one of"),
        ("p.yaml", "kernels: [{kind: [gaussian]}]", "kernel"),
        ("p.yaml", "kernels: {kind: {a: b}}", "kernel"),
        ("p.yaml", 'method: mkc\nkernels: ["polynomial:1000000000"]', "at most 100"),
        ("p.yaml", "method: mkc\nkernels: [{kind: polynomial, degree: 1000000000}]", "at most 100"),
        ("p.yaml", "n_clusters: " + "9" * 5000, "cannot be read"),
        ("p.yaml", "n_clusters: " + "9" * 1000, "2^64"),
        ("p.yaml", 'n_clusters: "' + "9" * 5000 + '"', "--clusters"),
        ("p.yaml", 'method: mkc\nC: "1e400"', "C must be"),
        ("p.yaml", "C: &a [*a]", "refers to itself"),
        ("p.yaml", "a: &a [x,x,x,x]\nb: &b [*a,*a]\nC: " + "[" * 60, "nested deeper"),
        ("p.json", '{"C": ' + "[" * 5000 + "]" * 5000 + "}", "nested"),
        ("p.toml", "C = 12:00:00", "time"),
    ],
)
def test_params_files(call, x, tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    said = call("fit", x, "--out", "run", "--params", name, "--no-report", "--quiet", code=2)
    assert sentence in said.err and len(said.err) < 3000
    assert not (tmp_path / "run").exists()


def test_the_degree_of_a_polynomial_on_the_command_line(fit, x):
    assert "at most 100" in fit(x, "--out", "run", "--kernels", "polynomial:1e9", code=2).err


def test_escapes_in_names_of_files_and_columns_are_shown(fit, call, tmp_path, data):
    frame = pd.DataFrame(data[0], columns=[f"{EVIL}{i}" for i in range(4)])
    frame.to_csv(tmp_path / f"{EVIL}.csv", index=False)
    done = fit(f"{EVIL}.csv", "--out", f"run{EVIL}", report=True)
    assert clean(done) and f"run{SHOWN}" in done.out
    said = call("info", f"run{EVIL}/model.zarr")
    assert clean(said) and f"{SHOWN}0" in said.out
    assert clean(call("info", f"run{EVIL}"))
    params = (tmp_path / f"run{EVIL}" / "params.yaml").read_text()
    assert params.splitlines()[0].endswith(f"{SHOWN}.csv")
    assert "\x1b" not in (tmp_path / f"run{EVIL}" / "report.html").read_text()
    assert "\x1b" not in (tmp_path / f"run{EVIL}" / "log.txt").read_text()
    assert clean(call("logs", f"run{EVIL}"))
    assert clean(call("status", f"run{EVIL}"))
    for words in ((f"no{EVIL}.csv",), (f"{EVIL}.csv", "--columns", "z")):
        said = fit(*words, "--out", "other", code=2)
        assert clean(said) and SHOWN in said.err, said.err
    frame[frame.columns[0]] = "text"
    frame.to_csv(tmp_path / "text.csv", index=False)
    said = call("fit", "text.csv", "--method", "mkc", "--out", "other", "--no-report")
    assert clean(said) and f"Columns left out: {SHOWN}0 (constant)" in said.err
    frame[frame.columns[1]] = np.where(np.arange(len(frame)) % 9, f"{EVIL}1", f"{EVIL}2")
    frame[frame.columns[2]] = np.nan
    frame.loc[5, frame.columns[3]] = np.nan
    frame.to_csv(tmp_path / "words.csv", index=False)
    said = fit("words.csv", "--out", "words", code=2)
    assert clean(said) and f"({SHOWN}3 1)" in said.err
    fit("words.csv", "--out", "words", "--impute-missing", report=True)
    assert "\x1b" not in (tmp_path / "words" / "report.html").read_text()
    frame[frame.columns[1]] = f"{EVIL}3"
    frame.to_csv(tmp_path / "strange.csv", index=False)
    said = call("predict", "words", "strange.csv", "--out", "p.csv")
    assert clean(said) and "no column of their own" in said.err
    assert clean(call("info", "words.csv")) and clean(call("info", "words/model.zarr"))


def test_progress_shows_escapes_too(call, tmp_path, data):
    frame = pd.DataFrame(data[0], columns=[f"{EVIL}{i}" for i in range(4)])
    frame.to_csv(tmp_path / f"{EVIL}.csv", index=False)
    words = ("--method", "planes", "--seed", "0", "--no-report", "--verbose")
    assert clean(call("fit", f"{EVIL}.csv", "--out", "run", *words))


def test_names_that_look_like_formulas_or_markup_are_drawn_as_they_are(fit, tmp_path, data):
    names = ["$\\frac$", "a$b$_^", "<script>x</script>", "\\$"]
    pd.DataFrame(data[0], columns=names).to_csv(tmp_path / "x.csv", index=False)
    fit("x.csv", "--method", "planes", "--out", "run", report=True)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>x" not in page and "a$b$_^" in page


def test_classes_of_a_file_are_shown_escaped(call, tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 1, 0, 1]))
    pd.DataFrame({"y": [EVIL, "c", EVIL, "c"]}).to_csv(tmp_path / "y.csv", index=False)
    said = call("evaluate", "labels.npy", "y.csv::y")
    assert clean(said) and SHOWN in said.out


def test_file_names_that_are_no_utf8(fit, call, tmp_path, data):
    name = os.fsdecode(b"caf\xe9")
    np.save(tmp_path / f"{name}.npy", data[0])
    done = fit(f"{name}.npy", "--out", f"run-{name}", report=True)
    assert clean(done) and "run-caf\\xe9" in done.out
    assert (tmp_path / f"run-{name}" / "metrics.json").exists()
    assert "caf\\xe9.npy" in (tmp_path / f"run-{name}" / "report.html").read_text()
    call("predict", f"run-{name}", f"{name}.npy", "--out", f"l-{name}.zarr")
    first = zarr.open_array(store=tmp_path / f"run-{name}" / "labels.zarr")[:]
    assert np.array_equal(zarr.open_array(store=tmp_path / f"l-{name}.zarr")[:], first)
    assert clean(call("info", f"run-{name}"))


def fed(path, content):
    """A pipe that gives its content to the first who opens it."""
    os.mkfifo(path)
    thread = threading.Thread(target=lambda: path.write_bytes(content), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["x.csv", "x.txt"])
def test_a_pipe_is_read_once(fit, tmp_path, data, name):
    frame = pd.DataFrame(data[0])
    text = frame.to_csv(index=False, header=False, sep="," if name == "x.csv" else " ")
    thread = fed(tmp_path / name, text.encode())
    fit(name, "--out", "run")
    thread.join(5)
    assert zarr.open_array(store=tmp_path / "run" / "labels.zarr").shape == (len(frame),)


def test_pipes_that_are_too_long_or_packed_and_devices(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "MOST_PIPE", 100)
    fed(tmp_path / "x.csv", b"1,2\n" * 50)
    assert "is a pipe of more than" in fit("x.csv", "--out", "run", code=2).err
    for name in ("x.csv.gz", "x.npy", "x.npz", "x.parquet"):
        os.mkfifo(tmp_path / name)
        assert "a pipe" in (said := fit(name, "--out", "run", code=2).err) or "regular" in said
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    assert "not a regular file" in fit("zero.csv", "--out", "run", code=2).err


def test_lines_of_very_many_fields(fit, tmp_path, monkeypatch):
    (tmp_path / "wide.csv").write_text(",".join(["1"] * 500_000) + "\n")
    assert "500000 fields" in fit("wide.csv", "--out", "run", code=2).err
    (tmp_path / "wide.txt").write_text("\n\n" + " ".join(["1"] * 500_000) + "\n")
    assert "500000 fields" in fit("wide.txt", "--out", "run", code=2).err
    (tmp_path / "wide.csv.gz").write_bytes(gzip.compress(b"1," * 199_999 + b"1"))
    assert "200000 fields" in fit("wide.csv.gz", "--out", "run", code=2).err
    (tmp_path / "later.csv").write_text("1,2\n3,4\n" + ",".join(["1"] * 500_000) + "\n")
    assert "as a table" in fit("later.csv", "--out", "run", code=2).err
    monkeypatch.setattr(raw, "MOST_LINE", 1000)
    (tmp_path / "long.csv").write_text("1" * 5000)
    assert "first line" in fit("long.csv", "--out", "run", code=2).err


def test_damaged_packed_tables(fit, tmp_path):
    pd.DataFrame(np.ones((50, 3))).to_csv(tmp_path / "x.csv.gz", index=False)
    whole = (tmp_path / "x.csv.gz").read_bytes()
    for content in (whole[: len(whole) // 2], b"not gzip at all", whole[:12] + b"\xff" * 40):
        (tmp_path / "x.csv.gz").write_bytes(content)
        fit("x.csv.gz", "--out", "run", code=2)


@pytest.mark.parametrize("line", [b"1,2\n", b"\n", b"1.5,2.5,3.5\n"])
def test_packed_tables_that_unpack_to_far_too_much(fit, tmp_path, monkeypatch, line):
    monkeypatch.setattr(raw, "MOST_UNPACKED", 1 << 20)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(line * ((1 << 23) // len(line))))
    said = fit("x.csv.gz", "--out", "run", code=2).err
    assert "unpacks to more than 1048576 bytes" in said or "blank characters" in said


def test_packed_tables_of_usual_size(fit, tmp_path, data, monkeypatch):
    monkeypatch.setattr(raw, "MOST_UNPACKED", 100)
    for ending in ("csv.gz", "csv.bz2", "tsv.xz"):
        sign = "\t" if ending.startswith("tsv") else ","
        pd.DataFrame(data[0]).to_csv(tmp_path / f"x.{ending}", index=False, sep=sign)
        fit(f"x.{ending}", "--out", f"run-{ending}")


def test_a_file_is_no_run_to_go_on_with(call, x):
    assert "is not a folder" in call("fit", "--resume", x, code=2).err


@pytest.mark.parametrize("name", ["log.txt", "zarr.json", "metrics.json"])
def test_info_opens_no_pipes(call, tmp_path, name):
    (tmp_path / "run").mkdir()
    if name == "metrics.json":
        (tmp_path / "run" / "log.txt").write_text("# dmkc run\n")
    os.mkfifo(tmp_path / "run" / name)
    if name == "zarr.json":
        return  # a Zarr store of rows is left to Zarr
    call("info", "run", code=2)


def test_a_hostile_order_of_a_run(call, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.txt").write_text("# dmkc run\n")
    for stored in ("[" * 5000, json.dumps({"format": "dmkc-run", "version": 1, "words": 3})):
        (tmp_path / "run" / "run.json").write_text(stored)
        call("fit", "--resume", "run", code=2)


def test_answers_that_are_none(fit, x, tmp_path):
    for content in (b"\xff\xfe", b"1,2,\xc2\xb2", "\u00b2,3,yes".encode(), b'"' + b"a" * 200_000):
        (tmp_path / "a.csv").write_bytes(content)
        fit(x, "--auto", "--answers", "a.csv", "--out", "run", code=2)
