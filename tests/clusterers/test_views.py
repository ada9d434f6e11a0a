"""Several tables of the same rows, and kernels that are bound to some columns."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr

import dmkc
from dmkc import Gaussian, Linear, MultipleKernelClustering
from dmkc.kernels import per_view
from dmkc.metrics import all_metrics
from dmkc.modelfile import ESTIMATORS


def tables(n=300, clusters=3, seed=0):
    """Two views that show the clusters, in very different units and widths, and one of noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % clusters
    wide = rng.normal(size=(clusters, 40))[y] + 0.7 * rng.normal(size=(n, 40))
    narrow = 1000.0 * (2.5 * rng.normal(size=(clusters, 2))[y] + rng.normal(size=(n, 2)))
    noise = rng.normal(size=(n, 30))
    return {"wide": wide, "narrow": narrow, "noise": noise}, y


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("clusters", [1, 2, 3])
def test_every_method_takes_views(method, clusters, tmp_path):
    X, _ = tables(150)
    model = ESTIMATORS[method](clusters, random_state=0).fit(X)
    assert model.n_features_in_ == 72
    turned = {name: X[name] for name in ("noise", "wide", "narrow")}
    np.testing.assert_array_equal(model.predict(turned), model.labels_)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(turned), model.labels_)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_the_default_bank_is_there_for_each_view_and_noise_gets_little_weight():
    X, y = tables()
    model = MultipleKernelClustering(3, random_state=0).fit(X)
    assert [kernel.columns for kernel in model.kernels_] == 3 * ["wide", "narrow", "noise"]
    assert all_metrics(y, model.labels_)["accuracy"] > 0.97
    weights = model.view_weights_
    assert list(weights) == ["wide", "narrow", "noise"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["noise"] < 0.1 < min(weights["wide"], weights["narrow"])


def test_methods_without_a_bank_of_views():
    X, y = tables(clusters=2)
    sparse = dmkc.SparseKernelMMC(basis="sparse", random_state=0).fit(X)
    assert sparse.view_weights_ == {"wide": 0, "narrow": 0, "noise": 0, "other columns": 1}
    planes = dmkc.NonparallelPlaneClustering(random_state=0).fit(X)
    for model in (sparse, planes):
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert dmkc.KMeans(2).fit(X["wide"]).views_ == {}
    assert MultipleKernelClustering(random_state=0).fit(X["wide"]).view_weights_ == {}
    links = {"must_link": [(0, 2)], "cannot_link": [(0, 1)]}
    constrained = dmkc.MarginDistributionClustering(**links, random_state=0).fit(X)
    assert all_metrics(y, constrained.labels_)["accuracy"] > 0.97
    assert constrained.view_weights_["other columns"] == 1.0


def forms(X):
    """The same views in other containers."""
    first = next(iter(X))
    yield "list", list(X.values())
    yield "frames", {k: pd.DataFrame(v) for k, v in X.items()}
    yield "sparse", X | {first: sp.csr_array(X[first])}
    yield "dask", {k: da.from_array(v, chunks=(77, -1)) for k, v in X.items()}
    yield (
        "other chunks",
        {k: da.from_array(v, chunks=(50 + 9 * i, 7)) for i, (k, v) in enumerate(X.items())},
    )
    yield "mixed", X | {first: da.from_array(X[first], chunks=(100, -1))}
    yield "dataset", xr.Dataset({k: (("row", f"{k} column"), v) for k, v in X.items()})


@pytest.mark.parametrize("method", ["mkc", "mkkm", "kmeans"])
def test_the_form_of_the_views_does_not_matter(method):
    X, _ = tables()
    expected = np.asarray(ESTIMATORS[method](3, random_state=0).fit(X).labels_)
    for name, form in forms(X):
        model = ESTIMATORS[method](3, random_state=0).fit(form)
        np.testing.assert_array_equal(np.asarray(model.labels_), expected, err_msg=name)
        np.testing.assert_array_equal(np.asarray(model.predict(form)), expected, err_msg=name)


def test_flat_variables_of_a_dataset_are_columns():
    X, _ = tables()
    data = xr.Dataset(
        {
            "wide": (("row", "pixel"), X["wide"]),
            "age": ("row", X["narrow"][:, 0]),
            "income": ("row", X["narrow"][:, 1]),
        }
    )
    model = MultipleKernelClustering(3, random_state=0).fit(data)
    assert model.views_ == {"wide": (0, 40), "columns": (40, 42)}
    assert list(model.feature_names_in_[-2:]) == ["age", "income"]
    assert isinstance(model.labels_, xr.DataArray)
    turned = data[["income", "wide", "age"]]
    xr.testing.assert_equal(model.predict(data), model.labels_)
    with pytest.raises(ValueError, match="names should match"):
        model.predict(turned)  # columns are told by name, and their order counts as in scikit-learn
    with pytest.raises(ValueError, match="no view 'wide'"):
        model.predict(data[["age", "income"]])
    flat = data[["age", "income"]]
    assert list(dmkc.KMeans(2, random_state=0).fit(flat).feature_names_in_) == ["age", "income"]


@pytest.mark.parametrize(
    "columns", [[2, 5], (5, 2), slice(2, 6, 3), ["c2", "c5"], np.array([2, 5]), [-6, -3]]
)
def test_a_bound_kernel_is_the_kernel_of_these_columns_alone(columns):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 8)) + 2.0 * y[:, None]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    settings = {"init": y, "random_state": 0, "rank": 20}
    part = MultipleKernelClustering(kernels=[Gaussian(0.5)], **settings).fit(X[:, [2, 5]])
    bound = [Gaussian(0.5, columns=columns)]
    whole = MultipleKernelClustering(kernels=bound, **settings).fit(frame)
    np.testing.assert_array_equal(np.asarray(whole.transform(frame)), part.transform(X[:, [2, 5]]))
    np.testing.assert_array_equal(np.asarray(whole.labels_), part.labels_)


def test_columns_that_no_kernel_sees_do_not_matter():
    X, _ = tables()
    kernels = [Linear(columns="wide"), Gaussian(columns="narrow")]
    model = MultipleKernelClustering(3, kernels=kernels, init="kernel-k-means", random_state=0)
    labels = model.fit(X).labels_
    other = X | {"noise": 100.0 * X["noise"][::-1]}
    np.testing.assert_array_equal(model.fit(other).labels_, labels)


def test_names_of_kernels_may_say_the_view():
    X, _ = tables()
    bank = ["linear@wide", "gaussian:0.5@narrow", "gaussian@*"]
    model = MultipleKernelClustering(3, kernels=bank, random_state=0).fit(X)
    assert [k.columns for k in model.kernels_] == ["wide", "narrow", "wide", "narrow", "noise"]
    assert per_view("linear") == [Linear(columns="*")]
    one_table = MultipleKernelClustering(2, kernels="gaussian@*", random_state=0).fit(X["wide"])
    assert one_table.kernels_[0].columns is None


def labelled(values, first):
    return pd.DataFrame(values, index=np.arange(len(values)) + first)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X: X | {"noise": X["noise"][:-1]}, "do not line up: 'wide' has 300 rows"),
        (
            lambda X: {
                k: pd.DataFrame(v, index=np.arange(300) + (k == "noise")) for k, v in X.items()
            },
            "different row labels",
        ),
        (lambda X: {}, "no view"),
        (lambda X: {1: X["wide"]}, "must have names"),
        (
            lambda X: xr.Dataset({"a": (("r", "c"), X["wide"]), "b": (("s", "d"), X["noise"])}),
            "do not line up: the rows of 'a' are 'r'",
        ),
        (lambda X: xr.Dataset({"a": (("r", "c", "d"), np.ones((3, 2, 2)))}), "3 dimensions"),
    ],
)
def test_views_that_do_not_line_up(change, sentence):
    X, _ = tables()
    with pytest.raises((ValueError, TypeError), match=sentence):
        MultipleKernelClustering(random_state=0).fit(change(X))


def test_new_rows_need_the_views_of_the_fit():
    X, _ = tables()
    model = MultipleKernelClustering(random_state=0).fit(X)
    with pytest.raises(ValueError, match="no view 'noise', which the fit had"):
        model.predict({"wide": X["wide"], "narrow": X["narrow"]})
    with pytest.raises(ValueError, match="a view 'more', which the fit did not have"):
        model.predict(X | {"more": X["wide"]})
    with pytest.raises(ValueError, match=r"now missing:\n- narrow\.1"):
        model.predict(X | {"narrow": X["narrow"][:, :1]})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("nose", "unknown column or view 'nose'.*Did you mean 'noise'"),
        (["wide.0", "nothing"], "unknown column or view 'nothing'"),
        ([3, 99], "column 99, but X has 72"),
        ([3, 3], "a column twice"),
        (slice(5, 5), "no column"),
        ([True], "not to True"),
        ([1.5], "not to 1.5"),
    ],
)
def test_kernels_that_are_bound_to_nothing(columns, sentence):
    X, _ = tables()
    with pytest.raises((ValueError, TypeError), match=sentence):
        MultipleKernelClustering(kernels=[Gaussian(columns=columns)], random_state=0).fit(X)


def test_a_table_without_names_is_asked_by_numbers():
    with pytest.raises(ValueError, match="no column names, so give numbers"):
        MultipleKernelClustering(kernels=[Linear(columns="age")]).fit(np.ones((9, 2)))


def test_bound_kernels_survive_a_model_file(tmp_path):
    X, _ = tables()
    bank = [
        Linear(columns="wide"),
        Gaussian(columns=slice(1, 9)),
        Gaussian(columns=["narrow.1", 3]),
    ]
    model = MultipleKernelClustering(3, kernels=bank, random_state=0).fit(X)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    assert loaded.kernels[1] == bank[1]
    assert loaded.kernels_[2].columns == ("narrow.1", 3)


def test_training_on_a_subset_and_weights():
    X, y = tables(600)
    model = MultipleKernelClustering(3, random_state=0, train_rows=200, polish=2)
    model.fit(X, sample_weight=np.arange(600) % 3 + 1.0)
    assert [kernel.columns for kernel in model.kernels_] == 3 * ["wide", "narrow", "noise"]
    assert all_metrics(y, model.labels_)["accuracy"] > 0.97
