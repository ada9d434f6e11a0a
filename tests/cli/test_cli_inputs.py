"""Every kind of input file, and the same labels from all of them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from dmkc.cli import reading

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def table(data):
    frame = pd.DataFrame(data[0], columns=NAMES)
    frame.insert(0, "id", [f"row{i}" for i in range(len(frame))])
    frame["class"] = data[1]
    return frame


@pytest.fixture
def expected(shared_run):
    return stored(shared_run / "run" / "labels.zarr")


def stored(path):
    return zarr.open_array(store=path, mode="r")[:]


def write(folder, data, table):
    X = data[0]
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", X=X, other=X[:3])
    np.savez(folder / "named.npz", rows=X, y=data[1])
    zarr.create_array(store=folder / "x.zarr", data=X, chunks=(64, 4))
    group = zarr.create_group(store=folder / "group.zarr")
    group.create_array("X", data=X)
    group.create_array("Z", data=X * 0)
    table[NAMES].to_parquet(folder / "x.parquet")
    (folder / "parts.parquet").mkdir()
    table[NAMES][:90].to_parquet(folder / "parts.parquet" / "part.0.parquet")
    table[NAMES][90:].to_parquet(folder / "parts.parquet" / "part.1.parquet")
    table[NAMES].to_csv(folder / "x.csv", index=False)
    table.to_csv(folder / "full.csv", index=False)
    table[NAMES].to_csv(folder / "bare.csv", index=False, header=False)
    table[NAMES].to_csv(folder / "semi.csv", index=False, sep=";")
    table[NAMES].to_csv(folder / "x.tsv", index=False, sep="\t")
    table[NAMES].to_csv(folder / "x.csv.gz", index=False)
    np.savetxt(folder / "x.txt", X, fmt="%.17g")


@pytest.mark.parametrize(
    "words",
    [
        ("x.npy",),
        ("x.npz",),
        ("named.npz", "--variable", "rows"),
        ("named.npz::rows",),
        ("x.zarr",),
        ("group.zarr", "--variable", "X"),
        ("group.zarr::X",),
        ("x.parquet",),
        ("parts.parquet",),
        ("x.csv",),
        ("bare.csv",),
        ("bare.csv", "--no-header"),
        ("full.csv", "--columns", "a,b,c,d"),
        ("full.csv", "--exclude", "id,class"),
        ("full.csv", "--index-column", "id", "--exclude", "class"),
        ("semi.csv", "--delimiter", ";"),
        ("x.tsv",),
        ("x.csv.gz",),
        ("x.txt",),
        ("x.csv", "--column-dtype", "float64"),
    ],
)
def test_every_format_gives_the_same_labels(
    call, shared_run, tmp_path, data, table, expected, words
):
    write(tmp_path, data, table)
    call("predict", shared_run / "run", *words, "--out", "labels.zarr", "--quiet")
    assert stored("labels.zarr").dtype == np.int32
    assert np.array_equal(stored("labels.zarr"), expected)


def test_large_csv_goes_through_dask(
    call, shared_run, tmp_path, data, table, expected, monkeypatch
):
    write(tmp_path, data, table)
    monkeypatch.setattr(reading, "LARGE_BYTES", 1000)
    words = ("--index-column", "id", "--exclude", "class", "--out", "labels.zarr")
    call("predict", shared_run / "run", "full.csv", *words)
    assert np.array_equal(stored("labels.zarr"), expected)
    said = call("predict", shared_run / "run", "full.csv", "--out", "l.zarr", code=2)
    assert "id" in said.err


def test_fitting_tables_keeps_names_and_finds_them_again(fit, call, tmp_path, data, table):
    write(tmp_path, data, table)
    fit("full.csv", "--columns", "a,b,c,d", "--truth", "full.csv::class", "--out", "run")
    call("predict", "run", "full.csv", "--out", "again.zarr")
    first = stored("run/labels.zarr")
    assert np.array_equal(first, stored("again.zarr"))
    call("predict", "run", "full.csv", "--columns", "d,b,a,c", "--out", "order.zarr")
    assert np.array_equal(first, stored("order.zarr"))
    said = call("predict", "run", "full.csv", "--exclude", "b", "--out", "o.zarr", code=2)
    assert "lacks a column that the model was fitted on: b" in said.err
    said = call("predict", "run", "full.csv", "--include", "id", "--out", "o.zarr", code=2)
    assert "leave --include out" in said.err
    table[["a", "b", "c"]].to_csv(tmp_path / "less.csv", index=False)
    said = call("predict", "run", "less.csv", "--out", "o.zarr", code=2)
    assert "lacks a column that the model was fitted on: d" in said.err
    fit("parts.parquet", "--truth", "full.csv::class", "--out", "lazy")
    assert np.array_equal(stored("lazy/labels.zarr"), first)


def test_sparse_rows(fit, call, tmp_path):
    X = sp.random_array((150, 30), density=0.3, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "s.npz", X)
    fit("s.npz", "--out", "run", "--kernels", "gaussian")
    call("predict", "run", "s.npz", "--out", "l.zarr")
    assert stored("l.zarr").shape == (150,)
    assert np.array_equal(stored("l.zarr"), stored("run/labels.zarr"))


def test_missing_values(fit, tmp_path, table):
    table.loc[3, "a"] = -999
    table.loc[7, "b"] = np.nan
    table.to_csv(tmp_path / "m.csv", index=False)
    words = ("m.csv", "--columns", "a,b,c,d", "--missing=-999", "--out", "run")
    said = fit(*words, code=2)
    assert "2 of 200 rows have missing values (a 1, b 1)" in said.err
    for word in ("--drop-missing", "--impute-missing", "--exclude a,b"):
        assert word in said.err
    fit(*words, "--drop-missing", "--truth", "m.csv::class")
    assert np.flatnonzero(stored("run/labels.zarr") == -2).tolist() == [3, 7]


def test_missing_values_of_lazy_tables(fit, tmp_path, table, monkeypatch):
    table.loc[7, "b"] = np.nan
    table[NAMES].to_parquet(tmp_path / "m.parquet", row_group_size=50)
    np.save(tmp_path / "y.npy", table["class"])
    monkeypatch.setattr(reading, "LARGE_BYTES", 1000)
    assert "1 of 200 rows has missing values" in fit("m.parquet", "--out", "run", code=2).err
    fit("m.parquet", "--out", "run", "--drop-missing", "--truth", "y.npy")
    assert np.flatnonzero(stored("run/labels.zarr") == -2).tolist() == [7]
    np.save(tmp_path / "short.npy", table["class"][:3])
    said = fit("m.parquet", "--out", "other", "--drop-missing", "--truth", "short.npy", code=2)
    assert "3 labels" in said.err and "200 rows" in said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("gone.npy",), "There is nothing at gone.npy"),
        (("gone.zarr",), "There is nothing"),
        (("full.csv", "--include", "zz"), "no column 'zz'"),
        (("full.csv", "--kinds", "id=word"), "--kinds takes NAME=KIND"),
        (("full.csv", "--kinds", "id=number"), "is used as a number, but 'row0'"),
        (("x.npy", "--include", "a"), "is an array and not a table"),
        (("nothing-*.csv",), "There is nothing at nothing-*.csv"),
        (("x.csv", "--columns", "a,zz"), "no column 'zz'"),
        (("x.csv", "--exclude", "a,b,c,d"), "No column is left"),
        (("x.csv", "--variable", "X"), "--columns"),
        (("x.csv", "--column-dtype", "text"), "not a type of numbers"),
        (("x.csv", "--column-dtype", "int64"), "cannot be read as numbers"),
        (("x.parquet", "--missing", "1"), "for CSV files"),
        (("group.zarr",), "choose one"),
        (("group.zarr::Q",), "no array 'Q'"),
        (("group.zarr::Q", "--variable", "X"), "--variable says"),
        (("named.npz",), "has no array X"),
        (("broken.npz",), "plain arrays"),
        (("broken.npy",), "memory-mapped"),
        (("broken.parquet",), "as Parquet"),
        (("empty.csv",), "empty"),
        (("ragged.csv",), "as a table"),
        (("photo.png",), "no known kind"),
        (("folder",), "not a Zarr store"),
        (("flat.npy",), "Expected 2D array"),
        (("pickled.npy",), "could not be memory-mapped"),
    ],
)
def test_bad_inputs(fit, tmp_path, data, table, words, sentence):
    write(tmp_path, data, table)
    for name in ("broken.npz", "broken.npy", "broken.parquet", "photo.png"):
        (tmp_path / name).write_bytes(b"not what it says")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3,4\n")
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "flat.npy", np.arange(9.0))
    np.save(tmp_path / "pickled.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    assert sentence in fit(*words, "--out", "run", code=2).err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("first", "header"),
    [("0,1,2", True), ("a,b,c", True), ("1.5,,3", False), ("0,1,3", False), ("x,,3", True)],
)
def test_what_is_taken_for_a_header(tmp_path, first, header):
    from dmkc.cli.reading import csv_has_header

    path = tmp_path / "table.csv"
    path.write_text(first + "\n4,5,6\n")
    assert csv_has_header(str(path), ",") is header
