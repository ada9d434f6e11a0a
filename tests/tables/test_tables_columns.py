"""The transformer among others: Dask, polars, xarray, pipelines, estimators and model files."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dmkc
from dmkc import KMeans, MultipleKernelClustering, SpectralClustering, TableColumns
from dmkc.data import as_rows
from dmkc.errors import UserError
from dmkc.metrics import accuracy


@pytest.mark.parametrize("missing", ["drop", "impute"])
@pytest.mark.parametrize("parts", [1, 3])
def test_dask_frames_have_the_same_recipe_and_columns(gaps, missing, parts):
    here, lazy = TableColumns(missing).fit(gaps), dd.from_pandas(gaps, npartitions=parts)
    there = TableColumns(missing).fit(lazy)
    assert there.recipe_ == here.recipe_
    made = there.transform(lazy)
    assert isinstance(made, dd.DataFrame)
    pd.testing.assert_frame_equal(made.compute(), here.transform(gaps))


def test_lazy_frames_are_refused_when_they_are_computed(gaps):
    lazy = dd.from_pandas(gaps, npartitions=4)
    made = TableColumns().fit(lazy).transform(lazy)
    with pytest.raises(UserError, match="missing values"):
        made.compute()


def test_polars_frames(gaps):
    import polars

    frame = polars.from_pandas(gaps.drop(columns=["size", "empty"]))
    made = TableColumns("impute").fit_transform(frame)
    theirs = TableColumns("impute").fit_transform(gaps.drop(columns=["size", "empty"]))
    pd.testing.assert_frame_equal(made, theirs)


def test_datasets_of_columns(table):
    frame = table[["age", "visits", "country"]]
    made = TableColumns().fit_transform(frame.to_xarray())
    assert np.array_equal(made, TableColumns().fit_transform(frame))


@pytest.mark.parametrize("lazy", [False, True])
def test_in_a_pipeline(gaps, lazy):
    X = dd.from_pandas(gaps, npartitions=3) if lazy else gaps
    columns = TableColumns("impute", exclude=["since", "seen"])
    pipeline = make_pipeline(columns, KMeans(2, scale="standard", random_state=0))
    pipeline.fit(X)
    labels = pipeline[-1].labels_
    labels = labels.compute() if lazy else labels
    assert labels.index.equals(gaps.index)
    again = clone(pipeline).fit(gaps)[-1].labels_
    assert np.array_equal(labels, again)
    assert list(pipeline[0].get_feature_names_out()) == list(pipeline[0].transform(gaps))
    assert accuracy(np.arange(80) % 2, labels) > 0.98


def test_estimators_name_it_when_they_refuse_text(table):
    for X in (table, dd.from_pandas(table, npartitions=2)):
        with pytest.raises(UserError, match=r"dmkc\.TableColumns"):
            KMeans().fit(X)


def test_a_model_that_keeps_the_recipe_labels_tables(gaps, tmp_path):
    columns = TableColumns("drop")
    X = columns.fit_transform(gaps)
    model = columns.keep_in(SpectralClustering(2, random_state=0).fit(X))
    model.save(tmp_path / "model.zarr")
    again = dmkc.load(tmp_path / "model.zarr")
    labels = again.predict(gaps[gaps.columns[::-1]])
    assert labels.equals(model.labels_)
    assert again.predict(X).equals(model.labels_)
    lazy = again.predict(dd.from_pandas(gaps, npartitions=3)).compute()
    assert np.array_equal(lazy, model.labels_) and lazy.index.equals(X.index)
    with pytest.raises(UserError, match="lacks a column"):
        again.predict(gaps.drop(columns="age"))
    with pytest.raises(UserError, match="fitted on 2 columns"):
        columns.keep_in(KMeans(2).fit(X[["age", "visits"]]))
    assert not hasattr(model.fit(X), "table_")


def test_what_was_made_of_a_table_is_not_made_again(gaps):
    names = ["age", "visits", "since"]
    columns = TableColumns("impute")
    X = columns.fit_transform(gaps[names])
    model = columns.keep_in(MultipleKernelClustering(2, rank=20, random_state=0).fit(X))
    scores = model.decision_function(X)
    assert scores.equals(model.decision_function(gaps))
    changed = X.assign(**{"age=missing": 1 - X["age=missing"]})
    assert not np.allclose(scores, model.decision_function(changed))


def test_columns_of_one_category_belong_together():
    names = ["a", "b=x", "b=y", "c=x", "c=y", "c=z", "d", "e=missing", "f"]
    assert as_rows(pd.DataFrame(np.ones((2, 9)), columns=names)).together == [
        (1, 3),
        (3, 6),
        (7, 8),
    ]
    assert as_rows(np.ones((2, 9))).together == []


def scaled(X, scale):
    """What k-means sees of a frame."""
    return X.to_numpy() * KMeans(1, scale=scale).fit(X).model_.frame.factor


@pytest.mark.parametrize("scale", ["standard", "if-mixed"])
@pytest.mark.parametrize("count", [2, 3, 40])
def test_a_category_has_the_variance_of_a_number_at_most(scale, count):
    number = np.linspace(0, 900, 240)
    even = pd.DataFrame({"n": number, "word": [f"w{i % count}" for i in range(240)]})
    spread = scaled(TableColumns().fit_transform(even), scale).var(axis=0)
    assert spread[0] == pytest.approx(1) and spread[1:].sum() == pytest.approx(1)
    rare = even.assign(word=np.where(np.arange(240) < 5, even["word"], "often"))
    assert scaled(TableColumns().fit_transform(rare), scale).var(axis=0)[1:].sum() < 0.2


def test_categories_in_ranges_are_as_far_apart_as_the_ends_of_a_number():
    frame = pd.DataFrame({"n": np.linspace(0, 9, 30), "word": list("abc") * 10})
    values = scaled(TableColumns().fit_transform(frame), "minmax")
    assert np.ptp(values[:, 0]) == pytest.approx(1)
    assert np.linalg.norm(values[0, 1:] - values[1, 1:]) == pytest.approx(1)


def test_columns_of_other_values_are_no_categories():
    X = pd.DataFrame({"a=1": [0.0, 5, 9, 4], "a=2": [1.0, 0, 0, 1]})
    assert scaled(X, "standard").var(axis=0) == pytest.approx([1, 1])


def test_noise_in_many_categories_does_not_hide_clusters():
    rng = np.random.default_rng(1)
    side = np.arange(300) % 2
    numbers = pd.DataFrame(rng.normal(8.0 * side[:, None], 1, (300, 3)), columns=list("xyz"))
    frame = numbers.assign(word=rng.choice([f"w{i}" for i in range(40)], 300))
    X = TableColumns().fit_transform(frame)
    model = MultipleKernelClustering(2, rank=40, random_state=0).fit(X)
    assert accuracy(side, model.labels_) > 0.99
