"""Tables of mixed columns, every format with every way to treat missing values and every method."""

import json

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr

import dmkc
from dmkc.cli import reading, results

N = 90
FEW = ("--method", "mkc", "--rank", "20", "--tol", "1e-2", "--init", "k-means")
METHODS = {
    "mkc": FEW,
    "kmeans": ("--scale", "standard"),
    "spectral": (),
    "skmmc": ("--rank", "20"),
    "odm": ("--rank", "20"),
}
HOLED = [4, 17, 33]
"""Rows with missing values in columns that are used."""


def customers(seed=0):
    rng = np.random.default_rng(seed)
    side = np.arange(N) % 3
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{number:03d}" for number in rng.permutation(N)],
            "age": rng.normal(20 + 20 * side, 2).round(1),
            "income": rng.normal(1e4 * (1 + 2 * side), 500).round(2),
            "country": np.array(["DE", "FR", "IT"])[side],
            "member": rng.random(N) < 0.5,
            "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(side * 300, "D")).strftime(
                "%Y-%m-%d"
            ),
            "currency": "EUR",
            "segment": np.array(["a", "b", "c"])[side],
            "orders": rng.integers(1, 4, N),
        }
    )
    return frame


@pytest.fixture
def table():
    return customers()


@pytest.fixture
def holed(table):
    table.loc[4, "age"] = np.nan
    table.loc[[17, 33], "country"] = None
    return table


def write(frame, name):
    """Write a table in the format of its name."""
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".feather"):
        frame.to_feather(name)
    elif name.endswith(".parquet"):
        frame.to_parquet(name, index=False)
    else:
        frame.to_parquet(name, index=False, partition_cols=["segment"])


def read(path):
    return pd.read_csv(path) if str(path).endswith(".csv") else pd.read_parquet(path)


def facts(run="run"):
    with open(f"{run}/metrics.json") as stream:
        return json.load(stream)


COMMON = ("--seed", "0", "--no-report", "--quiet", "--exclude", "orders")


@pytest.mark.parametrize(
    ("method", "clusters"),
    [(name, k) for name in METHODS for k in (2, 3) if (name, k) != ("odm", 3)],
)
@pytest.mark.parametrize("missing", ["refuse", "drop", "impute"])
@pytest.mark.parametrize("format", ["csv", "parquet", "feather"])
def test_every_combination(call, table, holed, method, clusters, missing, format):
    name = f"t.{format}"
    write(holed, name)
    words = ["fit", name, "--method", method, "--clusters", clusters, *METHODS[method], *COMMON]
    words += ["--truth", "segment", "--out", "run"]
    if missing == "refuse":
        said = call(*words, code=2)
        assert "3 of 90 rows have missing values (age 1, country 2)" in said.err
        return
    call(*words, f"--{missing}-missing", "--append" if format == "csv" else "--quiet")
    labels = read("run/labels.csv" if format == "csv" else "run/labels.parquet")
    dropped = HOLED if missing == "drop" else []
    assert len(labels) == N and list(labels.index[labels["cluster"].isna()]) == dropped
    of_all = labels["cluster"].astype("Int64").fillna(-2).astype(int)
    assert np.array_equal(of_all, zarr.open_array(store="run/labels.zarr", mode="r")[:])
    assert facts()["columns_left_out"] == {"customer_id": "id-like", "currency": "constant"}
    assert facts().get("rows_dropped", 0) == len(dropped)
    if format == "csv":
        assert list(labels)[:9] == list(holed) and list(labels["age"].dropna()) == list(
            holed["age"].dropna()
        )
    else:
        assert list(labels["row"]) == list(range(N))
    if clusters == 3:
        assert facts()["metrics"]["accuracy"] > 0.9
    call("predict", "run", name, "--out", "again.parquet", "--quiet")
    again = read("again.parquet")
    assert list(again["row"]) == list(range(N))
    assert again["cluster"].astype("Int64").equals(labels["cluster"].astype("Int64"))


def test_formats_give_the_same_labels_and_models_the_same_recipe(call, holed, monkeypatch):
    holed[:40].to_csv("part-0.csv", index=False), holed[40:].to_csv("part-1.csv", index=False)
    for name in ("t.csv", "t.parquet", "t.feather"):
        write(holed, name)
    dd.from_pandas(holed, npartitions=3).to_parquet("many")
    found = {}
    words = ("--clusters", "3", *FEW, *COMMON, "--truth", "segment", "--impute-missing")
    for name in ("t.csv", "t.parquet", "t.feather", "many", "part-*.csv", "many/*.parquet"):
        call("fit", name, *words, "--out", "run", "--force")
        found[name] = zarr.open_array(store="run/labels.zarr", mode="r")[:]
    monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    for name in ("t.csv", "many", "part-*.csv"):
        call("fit", name, *words, "--out", "run", "--force")
        found[f"lazy {name}"] = zarr.open_array(store="run/labels.zarr", mode="r")[:]
        call("predict", "run", "t.csv", "--out", "p.csv", "--force")
        assert list(read("p.csv")["cluster"]) == list(found["t.csv"])
        assert list(read("p.csv")["row"]) == list(range(N))
    for name, labels in found.items():
        assert np.array_equal(labels, found["t.csv"]), name


def test_partitions_in_the_names_of_folders_are_columns(call, table):
    write(table, "folder")
    call("fit", "folder", "--clusters", "3", *FEW, *COMMON, "--out", "run", "--truth", "segment")
    assert facts()["metrics"]["accuracy"] > 0.9 and facts()["columns"] == 7
    assert len(read("run/labels.parquet")) == N


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("append", [False, True])
def test_labels_are_joined_by_the_index_column(call, holed, lazy, format, append, monkeypatch):
    if lazy:
        monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    write(holed, "t.csv")
    words = ("--clusters", "3", *FEW, *COMMON, "--drop-missing", "--truth", "segment")
    more = ("--append",) if append else ()
    call("fit", "t.csv", *words, "--index-column", "customer_id", "--out-format", format,
         "--out", "run", *more)  # fmt: skip
    labels = read(f"run/labels.{format}").set_index("customer_id")
    assert list(labels.index) == list(holed["customer_id"])
    assert ("income" in labels) is append
    joined = holed.set_index("customer_id").drop(columns=list(labels), errors="ignore").join(labels)
    assert list(joined["cluster"].isna()) == [i in HOLED for i in range(N)]
    segments = holed.set_index("customer_id")["segment"]
    assert (labels["cluster"].groupby(segments).nunique() == 1).all()
    shuffled = holed.sample(frac=1, random_state=1)
    shuffled.to_csv("other.csv", index=False)
    found = json.loads(call("evaluate", "run", "other.csv::segment", "--json").out)
    assert found["metrics"]["accuracy"] == 1 and np.sum(found["table"]) == N - 3
    call("predict", "run", "other.csv", "--out", f"p.{format}")
    again = read(f"p.{format}").set_index("customer_id")["cluster"]
    assert again.reindex(labels.index).astype("Int64").equals(labels["cluster"].astype("Int64"))
    assert call("evaluate", f"p.{format}", "t.csv::segment").out.startswith("accuracy")


def test_the_index_of_a_stored_frame_names_rows(call, table):
    table.set_index("customer_id").to_parquet("t.parquet")
    call("fit", "t.parquet", "--clusters", "3", *FEW, *COMMON, "--out", "run")
    assert list(read("run/labels.parquet")["customer_id"]) == list(table["customer_id"])
    table[::2].to_parquet("half.parquet")
    call("predict", "run", "half.parquet", "--out", "p.csv")
    assert list(read("p.csv")["customer_id"]) == list(table["customer_id"][::2])
    table[1::2].drop(columns="customer_id").to_parquet("odd.parquet")
    call("predict", "run", "odd.parquet", "--out", "odd.csv")
    assert list(read("odd.csv")["row"]) == list(range(N // 2))


def test_weights_are_those_of_the_rows_that_are_left(call, holed):
    write(holed, "t.csv")
    holed["orders"].to_csv("w.csv", index=False)
    words = ("fit", "t.csv", "--method", "kmeans", "--scale", "standard", "--clusters", "3")
    words += ("--seed", "0", "--no-report", "--quiet", "--drop-missing", "--exclude", "segment")
    call(*words, "--row-weights", "orders", "--out", "one")
    call(*words, "--row-weights", "t.csv::orders", "--out", "two")
    call(*words, "--exclude", "segment,orders", "--row-weights", "w.csv", "--out", "three")
    whole = holed.drop(columns=["segment", "orders"])
    X = dmkc.TableColumns("drop").fit_transform(whole)
    model = dmkc.KMeans(3, scale="standard", random_state=0)
    model.fit(X, sample_weight=holed["orders"].to_numpy()[X.index])
    for run in ("one", "two", "three"):
        assert facts(run)["objective"] == pytest.approx(model.objective_)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--truth", "nothing"), "There is no column 'nothing'"),
        (("--truth", "nothing.npy"), "There is nothing at nothing.npy"),
        (("--truth", "short.npy"), "short.npy has 3 labels, but the input has 90 rows"),
        (("--truth", "country"), "--truth country: 2 of 90 rows have a missing value"),
        (("--row-weights", "currency"), "these are not numbers"),
        (("--append", "--out-format", "zarr"), "--append writes a table"),
        (("--exclude", "age", "--drop-missing", "--impute-missing"), "not allowed with"),
    ],
)
def test_mistakes_are_told_before_the_fit(call, holed, tmp_path, words, sentence, monkeypatch):
    write(holed, "t.csv")
    np.save(tmp_path / "short.npy", np.arange(3))
    missing = () if "--drop-missing" in words else ("--impute-missing",)
    monkeypatch.setattr(dmkc.MultipleKernelClustering, "fit", None)
    said = call("fit", "t.csv", *FEW, *COMMON, *missing, *words, "--out", "run", code=2)
    assert sentence in said.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_fails_after_its_fit_keeps_it(call, table, tmp_path, monkeypatch):
    from dmkc.cli import results
    from dmkc.errors import UserError

    write(table, "t.csv")

    def refuse(*_, **__):
        raise UserError("No.")

    with monkeypatch.context() as patched:
        patched.setattr(results, "write_labels_of", refuse)
        said = call("fit", "t.csv", "--clusters", "3", *FEW, *COMMON[:2], "--no-report",
                    "--out", "run", code=2)  # fmt: skip
    assert "dmkc fit --resume" in said.err
    assert (tmp_path / "run" / "model.zarr").exists()
    call("fit", "--resume", "run", "--quiet")
    assert len(read("run/labels.csv")) == N and facts()["clusters"] == 3
    call("fit", "t.csv", "--clusters", "3", *FEW, *COMMON[:2], "--no-report", "--out", "whole")
    assert read("whole/labels.csv").equals(read("run/labels.csv"))


def test_columns_are_matched_by_name_and_strangers_are_counted(call, table):
    write(table, "t.csv")
    call("fit", "t.csv", "--clusters", "3", *FEW, *COMMON, "--out", "run")
    other = table[table.columns[::-1]].assign(country=table["country"].replace("IT", "PT"))
    other.to_csv("other.csv", index=False)
    said = call("predict", "run", "other.csv", "--out", "p.csv")
    assert "Column 'country': 30 rows hold values" in said.err and "'PT'" in said.err
    other.drop(columns=["age", "income"]).to_csv("less.csv", index=False)
    said = call("predict", "run", "less.csv", "--out", "q.csv", code=2)
    assert "lacks columns that the model was fitted on: age, income" in said.err
    other.assign(age="old").to_csv("words.csv", index=False)
    said = call("predict", "run", "words.csv", "--out", "q.csv", code=2)
    assert "'age' is used as a number, but 'old' in row 0 is none (90 such rows)" in said.err
    other.assign(age=np.nan).to_csv("gone.csv", index=False)
    assert "90 of 90 rows" in call("predict", "run", "gone.csv", "--out", "q.csv", code=2).err
    said = call("predict", "run", "gone.csv", "--drop-missing", "--out", "q.csv", code=2)
    assert "none is left" in said.err


def test_columns_can_be_included_and_their_kinds_given(call, table):
    write(table.assign(zip=np.arange(N) % 4 + 10), "t.csv")
    words = ("--clusters", "2", *FEW, "--seed", "0", "--no-report")
    said = call("fit", "t.csv", *words, "--out", "run")
    assert "Columns left out: customer_id (id-like), currency (constant)" in said.err
    call("fit", "t.csv", *words, "--include", "currency", "--kinds", "zip=category",
         "--exclude", "customer_id,since", "--out", "run", "--force")  # fmt: skip
    names = list(dmkc.load("run/model.zarr").feature_names_in_)
    assert {"currency=EUR", "zip=10", "zip=13", "member=True"} <= set(names)
    assert "since" not in names and "columns_left_out" not in facts()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_only_columns_that_are_used_are_read_on_every_pass(call, holed, format, monkeypatch):
    from dmkc.cli.recipes import TableOptions, table_of

    name = f"t.{format}"
    write(holed.set_index("customer_id").reset_index(), name)
    monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    options = TableOptions(gaps="drop", index_column="customer_id", exclude=("orders", "income"))
    table = table_of(name, format, options, besides=["segment"])
    wanted = {"customer_id", "age", "country", "member", "since", "segment"}
    assert set(table.source.frame.columns) == wanted
    assert len(table.X) == table.n_rows == N - 3
    assert list(table.source.column("segment")) == list(holed["segment"].drop(HOLED))
    assert set(table_of(name, format, options, whole=True).source.frame.columns) == set(holed)


def test_info_lists_columns(call, holed, monkeypatch):
    write(holed, "t.csv")
    for _ in range(2):
        said = call("info", "t.csv", "--index-column", "segment", "--exclude", "orders").out
        lines = {line.split()[0]: line for line in said.splitlines() if line}
        assert "90 rows, 9 columns" in said
        assert "id-like" in lines["customer_id"] and "constant" in lines["currency"]
        assert lines["country"].split()[1:4] == ["category", "2", "3"]
        assert "days since 1970" in lines["since"] and "names the rows" in lines["segment"]
        assert "as asked" in lines["orders"] and "--impute-missing" in said
        monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    found = json.loads(call("info", "t.csv", "--json").out)
    assert found["rows"] == N and found["columns"]["age"]["missing"] == 1
    zarr.create_array(store="x.zarr", data=np.ones(3))
    assert "alone has columns" in call("info", "x.zarr", "--exclude", "a", code=2).err


def test_labels_of_arrays_are_numbered(call, fit, data, tmp_path, shared_run):
    np.save(tmp_path / "x.npy", data[0])
    fit("x.npy", "--out-format", "parquet", "--out", "run")
    assert list(read("run/labels.parquet")["row"]) == list(range(len(data[0])))
    call("predict", shared_run / "run", "x.npy", "--out", "p.csv")
    expected = zarr.open_array(store=shared_run / "run" / "labels.zarr", mode="r")[:]
    assert list(read("p.csv")["cluster"]) == list(expected)
    assert list(read("p.csv")["row"]) == list(range(len(expected)))
    said = call("predict", shared_run / "run", "x.npy", "--out", "q.csv", "--append", code=2)
    assert "the input is an array" in said.err
    assert (
        "not to p.xlsx"
        in call("predict", shared_run / "run", "x.npy", "--out", "p.xlsx", code=2).err
    )


def test_what_a_consensus_agrees_on_is_written_too(call, holed):
    write(holed, "t.csv")
    words = ("--method", "consensus", "--clusters", "3", *COMMON, "--drop-missing", "--out", "run")
    call("fit", "t.csv", *words)
    labels = read("run/labels.csv")
    assert list(labels) == ["row", "cluster", "membership"]
    assert list(labels.index[labels["membership"].isna()]) == HOLED
    assert labels["membership"].dropna().between(0, 1).all()


def test_numbers_that_were_filled_in_are_labelled_like_in_the_fit(call, holed):
    write(holed[["age", "income", "orders"]], "t.csv")
    call("fit", "t.csv", *FEW, "--clusters", "3", *COMMON, "--impute-missing", "--out", "run")
    call("predict", "run", "t.csv", "--out", "p.csv")
    assert np.allclose(read("p.csv"), read("run/labels.csv"), rtol=1e-12)
    frame = holed[["income", "age"]]
    again = dmkc.load("run/model.zarr").predict(frame)
    assert list(again) == list(read("p.csv")["cluster"])


def test_views_and_small_tables_are_numbers_as_they_are(call, table):
    table[["age"]].assign(same=1).to_csv("left.csv", index=False)
    table[["income", "orders"]].to_parquet("right.parquet")
    views = ("--view", "l=left.csv", "--view", "r=right.parquet")
    words = ("--seed", "0", "--no-report", "--quiet", "--out", "run")
    call("fit", *views, "--method", "mkc", "--clusters", "3", "--rank", "20", *words)
    assert facts()["columns"] == 4
    call("predict", "run", *views, "--out", "p.csv")
    assert list(read("p.csv")["row"]) == list(range(N))
    table[["segment"]].to_csv("text.csv", index=False)
    said = call("fit", "--view", "l=left.csv", "--view", "t=text.csv", *words, "--force", code=2)
    assert "is used as a number, but 'a'" in said.err
    starts = pd.DataFrame({"age": [20, 40, 60], "orders": [1, 1, 1]})
    starts.to_csv("starts.csv", index=False)
    write(table[["age", "orders"]], "t.csv")
    more = ("--method", "kmeans", "--clusters", "3", "--init", "starts.csv", "--force")
    call("fit", "t.csv", *more, *words)


def test_files_of_others_are_not_replaced(call, table, tmp_path):
    write(table, "t.csv")
    words = ("--clusters", "2", *FEW, *COMMON, "--out", "run")
    call("fit", "t.csv", *words)
    call("predict", "run", "t.csv", "--out", "p.csv", "--append")
    assert "--force" in call("predict", "run", "t.csv", "--out", "p.csv", code=2).err
    call("predict", "run", "t.csv", "--out", "p.csv", "--force")
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    said = call("predict", "run", "t.csv", "--out", "mine.csv", "--force", code=2)
    assert "not written by dmkc" in said.err
    said = call("predict", "run", "p.csv", "--out", "p.csv", "--force", code=2)
    assert "is the input itself" in said.err
    call("predict", "run", "t.csv", "--out", "p.csv", "--force", "--append")
    said = call("predict", "run", "p.csv", "--append", "--out", "q.csv", code=2)
    assert "has a column 'cluster' already" in said.err


@pytest.mark.parametrize("lazy", [False, True])
def test_appended_cells_are_those_of_the_file(call, table, tmp_path, lazy, monkeypatch):
    table["zip"] = [f"0{i % 7}" for i in range(N)]
    table["age"] = table["age"].map("{:.3f}".format)
    table.loc[5, "age"] = "n/a"
    write(table, "t.csv")
    if lazy:
        monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    words = ("--clusters", "2", *FEW, *COMMON, "--out", "run", "--drop-missing", "--append")
    call("fit", "t.csv", *words, "--index-column", "zip")
    labels = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert all(label.startswith(f"{line},") for label, line in zip(labels, lines, strict=True))
    assert labels[6].endswith(",," if not lazy else ",")


def test_runs_are_compared_with_each_other(call, holed, monkeypatch):
    write(holed, "t.csv")
    words = ("fit", "t.csv", "--clusters", "3", *FEW, *COMMON)
    call(*words, "--out", "drop", "--drop-missing")
    call(*words, "--out", "fill", "--impute-missing")
    said = call("evaluate", "drop", "fill")
    assert "3 rows without a label or a class" in said.err and "cluster 2" in said.out
    assert "3 rows" in call("evaluate", "fill", "drop").err
    assert "cluster 1" in call("evaluate", "fill/labels.zarr", "fill").out
    assert "labels.csv" in call("info", "drop").out
    for one, other in (("drop/labels.zarr", "fill/labels.zarr"), ("fill", "drop/labels.zarr")):
        said = call("evaluate", one, other)
        assert "3 rows without a label or a class" in said.err and "cluster 2" in said.out
    for lazy in (False, True):
        monkeypatch.setattr(reading, "LARGE_BYTES", 100 if lazy else 1 << 28)
        call("predict", "drop", "t.csv", "--out", f"{lazy}.zarr", "--quiet")
        found = zarr.open_array(store=f"{lazy}.zarr", mode="r")
        assert list(np.flatnonzero(found[:] == -2)) == HOLED
        assert found.attrs["dmkc"]["missing"] == -2
        assert np.array_equal(found[:], zarr.open_array(store="drop/labels.zarr", mode="r")[:])
    call(*words, "--init", "drop/labels.zarr", "--drop-missing", "--out", "again")
    bare = holed.drop(columns="customer_id")
    bare.to_csv("bare.csv", index=False)  # nothing in it names rows
    call("fit", "bare.csv", *words[2:], "--drop-missing", "--append", "--out", "appended")
    assert "3 rows" in call("evaluate", "appended", "bare.csv::segment").err
    short = holed[:50]
    short.to_csv("short.csv", index=False)
    call("fit", "t.csv", *words[2:], "--impute-missing", "--index-column", "customer_id",
         "--out", "named")  # fmt: skip
    said = call("evaluate", "named", "short.csv::segment", code=2)
    assert "has no row for 40 of the labels" in said.err


@pytest.mark.parametrize("shape", ["csv", "parquet"])
def test_a_column_that_begins_empty_is_appended(call, table, monkeypatch, shape):
    late = table.copy()
    late["remark"] = [None] * 60 + ["late"] * (N - 60)
    late[:50].to_csv("part-0.csv", index=False), late[50:].to_csv("part-1.csv", index=False)
    monkeypatch.setattr(reading, "LARGE_BYTES", 100)
    monkeypatch.setattr(results, "SLICE_ROWS", 7)
    words = ("fit", "part-*.csv", "--clusters", "3", *FEW, *COMMON, "--append")
    call(*words, "--out-format", shape, "--exclude", "orders,remark", "--out", "run")
    found = read(f"run/labels.{shape}")
    assert list(found["remark"].fillna("")) == [""] * 60 + ["late"] * (N - 60)
    assert list(found["age"]) == list(table["age"])
