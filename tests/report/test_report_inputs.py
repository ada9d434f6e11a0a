"""Reports of every kind of model and rows speak of the user's own columns."""

import json
import re
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans as PlainKMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dmkc
from dmkc import ConsensusClustering, KMeans, MarginDistributionClustering, TableColumns
from dmkc.datasets import make_blobs, make_moons
from dmkc.errors import UserTypeError
from dmkc.report import Command, write_report
from dmkc.report.subject import shuffled, subject_of

pytestmark = pytest.mark.usefixtures("quick_reports")


def customers(n=300, seed=0):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    return pd.DataFrame(
        {
            "age": 30.0 + 25 * group + rng.normal(0, 3, n),
            "plan": np.where(rng.random(n) < 0.9, group, 1 - group),
            "signup": pd.Timestamp("2024-01-01") + pd.to_timedelta(300 * group + 5, "D"),
            "noise": rng.normal(size=n),
        },
        index=[f"C{i:04d}" for i in range(n)],
    ).assign(plan=lambda frame: np.array(["free", "paid"])[frame["plan"]])


def written(model, X, tmp_path, **more):
    """The text of a report, and what its script knows of rows."""
    path = write_report(model, X, tmp_path / "r.html", title="t", **more)
    text = path.read_text(encoding="utf-8")
    return text, json.loads(re.search(r'id="rows">(.*?)</script>', text, re.S)[1])


def check_customers(text, data, frame):
    assert set(data["columns"]) == set(frame.columns)
    place = data["columns"].index("plan")
    ids = frame.index.astype(str).tolist()
    for i in range(0, len(data["ids"]), 37):
        row = frame.iloc[ids.index(data["ids"][i])]
        assert data["values"][place][i] == row["plan"]
        day = data["values"][data["columns"].index("signup")][i]
        assert day == row["signup"].strftime("%Y-%m-%d")
    assert "plan=paid" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.S)
    assert re.search(r"<b>(age|plan|signup)[^<]*(&gt;|≤|is|after|until)[^<]*</b>", text)


@pytest.fixture(scope="module")
def frame():
    return customers()


def test_numbers_that_a_recipe_made_and_the_table_itself(frame, tmp_path):
    table = TableColumns().fit(frame)
    numbers = table.transform(frame)
    model = table.keep_in(KMeans(2, scale="standard", random_state=0).fit(numbers))
    for X in (numbers, frame):
        text, data = written(model, X, tmp_path)
        check_customers(text, data, frame)
        assert "300 rows of 4 columns in 2 clusters" in text
    model.save(tmp_path / "m.zarr")
    check_customers(*written(dmkc.load(tmp_path / "m.zarr"), frame, tmp_path), frame)


def test_pipelines(frame, tmp_path):
    scaled = make_column_transformer(
        (StandardScaler(), ["age", "noise"]), (OneHotEncoder(sparse_output=False), ["plan"])
    )
    for first in (TableColumns(), scaled):
        pipe = make_pipeline(first, KMeans(2, random_state=0)).fit(frame)
        text, data = written(pipe, frame, tmp_path, truth=np.arange(300) % 2)
        check_customers(text, data, frame)
        assert "kmeans__n_clusters=3" in text and "Agreement with the given classes" in text
    numbers = make_pipeline(StandardScaler(), KMeans(2, random_state=0))
    X = np.random.default_rng(0).normal(size=(150, 3))
    text, data = written(numbers.fit(X), X, tmp_path)
    assert data["columns"] and set(data["columns"]) <= {"column 0", "column 1", "column 2"}
    place = data["columns"].index("column 1")
    assert float(data["values"][place][0].replace("−", "-")) == pytest.approx(X[0, 1], abs=0.01)


def test_a_pipeline_that_drops_rows(frame, tmp_path):
    holed = frame.copy()
    holed.iloc[[4, 9], 0] = np.nan
    pipe = make_pipeline(TableColumns(missing="drop"), KMeans(2, random_state=0)).fit(holed)
    text, data = written(pipe, holed, tmp_path)
    assert "298 rows of 4 columns" in text and "C0004" not in data["ids"]
    check_customers(text, data, frame)


def test_lazy_and_polars_tables(frame, tmp_path):
    for X in (dd.from_pandas(frame.reset_index(drop=True), npartitions=3), pl.from_pandas(frame)):
        pipe = make_pipeline(TableColumns(), KMeans(2, random_state=0)).fit(X)
        text, data = written(pipe, X, tmp_path)
        check_customers(text, data, frame.reset_index(drop=True))
        assert "300 rows of 4 columns" in text


def test_rows_in_a_cluster_and_sparse_rows_and_views(tmp_path):
    X, _ = make_blobs(240, 3, 3, seed=2)
    lazy = da.from_array(X.astype(float), chunks=(80, -1))
    text, data = written(KMeans(3, random_state=0).fit(lazy), lazy, tmp_path)
    assert "240 rows of 3 columns in 3 clusters" in text and len(data["ids"]) == 240
    wide = sp.random_array((200, 500), density=0.05, format="csr", rng=np.random.default_rng(0))
    text, data = written(KMeans(2, random_state=0).fit(wide), wide, tmp_path)
    assert "of 500 columns" in text and len(data["columns"]) == 24
    views = {"a": X[:, :2].astype(float), "b": X[:, 2:].astype(float)}
    text, data = written(KMeans(3, random_state=0).fit(views), views, tmp_path)
    assert set(data["columns"]) == {"a.0", "a.1", "b.0"}


@pytest.mark.parametrize("n", [300, 5000])
def test_medoids_are_those_of_the_model(n, tmp_path):
    X = make_blobs(n, 3, 3, seed=2)[0].astype(float)
    model = KMeans(3, random_state=0).fit(X)
    subject = subject_of(model, X)
    assert [subject.positions[subject.medoids[k]] for k in range(3)] == [*model.medoid_indices_]
    text, data = written(model, X, tmp_path)
    shown = re.findall(r'data-row="(\d+)">(\d+)</button></th><td[^>]*>.*?<td[^>]*>medoid', text)
    assert [int(row) for _, row in shown] == [*model.medoid_indices_]
    assert [data["ids"][int(i)] for i, _ in shown] == [row for _, row in shown]
    other = subject_of(model, X[::-1].copy())  # rows of the same number that are not those of it
    assert all(
        np.allclose(X[::-1][other.positions[i]], model.medoids_[k])
        for k, i in other.medoids.items()
    )


def test_noise_has_a_place_of_its_own(tmp_path):
    X, _ = make_moons(300, noise=0.1, seed=0)
    model = ConsensusClustering(2, noise=0.1, random_state=0).fit(X)
    text, data = written(model, X, tmp_path)
    noise = int((np.asarray(model.labels_) == -1).sum())
    assert f"{noise} rows of noise" in text and data["k"].count(-1) == noise
    assert 'data-pick="-1"' in text and ">Noise<" in text and "cluster -1" not in text


def test_constrained_rows_have_the_labels_of_the_fit(tmp_path):
    X, y = make_moons(200, noise=0.15, seed=0)
    pairs = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 2)]}
    model = MarginDistributionClustering(random_state=0, **pairs).fit(X)
    text, data = written(model, X, tmp_path, truth=y)
    np.testing.assert_array_equal(data["k"], np.asarray(model.labels_))
    assert "must_link" in text


def test_other_rows_than_those_of_the_fit(tmp_path):
    X, _ = make_blobs(240, 3, 3, seed=2)
    model = KMeans(3, random_state=0).fit(X[:150])
    text, data = written(model, X, tmp_path)
    assert "240 rows of 3 columns" in text
    np.testing.assert_array_equal(data["k"], model.predict(X))


def test_what_is_no_clusterer_of_this_package(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(UserTypeError, match="not of a KMeans"):
        write_report(PlainKMeans(2).fit(X), X, tmp_path / "r.html", title="t")


def test_constant_odd_and_missing_columns(tmp_path):
    rng = np.random.default_rng(0)
    names = ["a b", "</script>", "a=b", "", "$x$", "é\x1b"]
    X = pd.DataFrame(rng.normal(size=(120, 6)), columns=names)
    X["a b"] = 7.0
    text, data = written(KMeans(2, random_state=0).fit(X), X, tmp_path)
    assert text.count("</script>") == 2 and "\x1b" not in text
    assert set(data["columns"]) == {*names[:-1], "é\\x1b"}


def test_shuffled_columns_move_rows_as_one_by_one(frame):
    model = make_pipeline(TableColumns(), KMeans(2, scale="standard", random_state=0)).fit(frame)
    subject = subject_of(model, frame)
    found = shuffled(subject, 4, 100, 2)
    rng = np.random.default_rng(0)
    some = frame.iloc[np.sort(rng.permutation(300)[:100])]
    before = np.asarray(model.predict(some))
    for column, moved in zip(subject.columns, found, strict=True):
        each = []
        for _ in range(2):
            order = rng.permutation(100)
            other = some.assign(**{column.name: some[column.name].to_numpy()[order]})
            each.append(np.mean(np.asarray(model.predict(other)) != before))
        assert moved == pytest.approx(np.mean(each))
    assert found[[c.name for c in subject.columns].index("noise")] <= max(found)


def test_a_report_warns_of_nothing(tmp_path):
    X = make_blobs(300, 3, 3, seed=2)[0].astype(float)
    model = KMeans(3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written(model, X, tmp_path)


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_only_the_shuffled_column_is_another(kind):
    X = np.random.default_rng(1).normal(size=(80, 4)) + 4 * (np.arange(80) % 2)[:, None] * [
        1,
        0,
        0,
        0,
    ]
    rows = {"array": X, "frame": pd.DataFrame(X, columns=list("abcd")), "sparse": sp.csr_array(X)}
    subject = subject_of(KMeans(2, random_state=0).fit(rows[kind]), rows[kind])
    found = shuffled(subject, 4, 80, 2)
    assert subject.columns[0].places == (0,)
    assert found[0] > 0.25 and max(found[1:]) < 0.15


def steps(text):
    """The code of the section about what is next."""
    part = text.partition('<section id="next">')[2].partition("</section>")[0]
    found = re.findall(r"<code>(.*?)</code>", part, re.S)
    return [re.sub(r"&#39;|&#x27;|&#34;", "'", each).replace("&amp;", "&") for each in found]


def test_lines_of_python_run(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.asarray(make_blobs(120, 2, 2, seed=1)[0], dtype=float)
    pipe = make_pipeline(StandardScaler(), KMeans(2, random_state=0)).fit(X)
    for model in (KMeans(2, random_state=0).fit(X), pipe):
        text, _ = written(model, X, tmp_path)
        found = steps(text)
        assert len(found) >= 3
        for code in found[:-1]:  # the last one waits for a person
            exec(code, {"model": model, "X": X})
        compile(found[-1], "next", "exec")


def test_commands_name_the_files_at_hand(frame, tmp_path):
    X = np.asarray(make_blobs(120, 2, 2, seed=1)[0], dtype=float)
    words = ["fit", "my rows.csv", "--clusters=2", "--seed", "3", "--delimiter", ";", "--force"]
    command = Command([*words, "--out", "runs/a", "--impute-missing"], "my rows.csv", "runs/a")
    found = steps(written(KMeans(2, random_state=0).fit(X), X, tmp_path, command=command)[0])
    fit = "dmkc fit 'my rows.csv'"
    assert (
        found[0] == "dmkc predict runs/a 'my rows.csv' --delimiter ';' --out runs/a-predicted.csv"
    )
    more = "--seed 3 --delimiter ';' --impute-missing"
    assert f"{fit} {more} --clusters 3 --out runs/a-3" in found
    ask = next(each for each in found if each.startswith("dmkc select"))
    same = f"--clusters 2 {more} --answers runs/a-answers.csv"
    assert ask.splitlines()[1] == f"{fit} {same} --out runs/a-asked"
