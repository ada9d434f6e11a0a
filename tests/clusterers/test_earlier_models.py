"""Fits that begin from an earlier model, and warnings about rows from elsewhere or cut groups."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dmkc
from dmkc import AutoClustering, ConsensusClustering, KMeans, SparseKernelMMC
from dmkc.cli.app import main
from dmkc.clusterers.reach import Reach
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_moons
from dmkc.errors import UserError

QUICK = {
    "auto": {"max_seconds": 1e-3},
    "hmkkm": {"n_masks": 1},
    "consensus": {"n_members": 4},
    "mkkm": {"rank": 20},
}


def balls(sizes, d=3, apart=8.0, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(n, d)) + apart * np.eye(d)[i] for i, n in enumerate(sizes)]
    return np.concatenate(parts), np.repeat(np.arange(len(sizes)), sizes)


def made(method, k):
    return ESTIMATORS[method](k, random_state=0, **QUICK.get(method, {}))


@pytest.mark.parametrize("method", [*ESTIMATORS])
def test_every_method_goes_on_from_a_file_with_grown_data(tmp_path, method):
    few, _ = balls([40, 50, 60])
    grown, y = balls([150, 120, 90], seed=1)
    made(method, 3).fit(few).save(tmp_path / "m.zarr")
    model = made(method, 3).fit(grown, start=tmp_path / "m.zarr")
    assert model.start_ == "given model" and adjusted_rand_score(y, model.labels_) > 0.95
    again = made(method, 3).fit(
        da.from_array(grown, (100, 3)), start=dmkc.load(tmp_path / "m.zarr")
    )
    np.testing.assert_array_equal(np.asarray(again.labels_), model.labels_)


def test_centroids_begin_where_the_model_says():
    X, _ = balls([60, 60])
    first = KMeans(2, random_state=0, max_iter=1).fit(X)
    labels = first.predict(X)
    means = np.array([X[labels == c].mean(axis=0) for c in range(2)])
    from_model = KMeans(2, random_state=5).fit(X, start=first)
    from_means = KMeans(2, init=means).fit(X)
    np.testing.assert_allclose(from_model.cluster_centers_, from_means.cluster_centers_)


def test_nothing_is_chosen_anew():
    X, _ = balls([80, 80, 80])
    first = AutoClustering(random_state=0).fit(X)
    grown, y = balls([200, 200, 200], seed=2)
    model = AutoClustering(random_state=0).fit(grown, start=first)
    assert (model.method_, model.parameters_) == (first.method_, first.parameters_)
    assert model.candidates_ == first.candidates_ and model.verdict_ == first.verdict_
    assert adjusted_rand_score(y, model.labels_) > 0.95
    with pytest.raises(UserError, match="goes on from a model of its own, not from KMeans"):
        AutoClustering().fit(X, start=KMeans(3).fit(X))


def test_noise_has_clusters_to_begin_from():
    X, _ = make_moons(400, noise=0.1, seed=0)
    members = {"members": ["kmeans", "spectral"], "least_agreement": 0.8}
    first = ConsensusClustering(2, **members, random_state=0).fit(X)
    assert (first.labels_ < 0).any()
    for method in ("kmeans", "mkc", "consensus"):
        assert made(method, 2).fit(X, start=first).start_ == "given model"


def test_other_columns_are_told_in_a_sentence():
    X, _ = balls([40, 40])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    first = KMeans(2, random_state=0).fit(frame)
    for other, sentence in (
        (X[:, :2], "has 3 columns, but X has 2"),
        (frame.rename(columns={"c": "d"}), "has the columns c, and X has d"),
        (frame[["b", "a", "c"]], "another order"),
    ):
        with pytest.raises(UserError, match=sentence):
            KMeans(2).fit(other, start=first)
    with pytest.raises(UserError, match="has 2 clusters, but n_clusters is 3"):
        KMeans(3).fit(frame, start=first)
    with pytest.raises(UserError, match="not a int"):
        KMeans(2).fit(frame, start=3)
    with pytest.raises(UserError, match="chooses nothing"):
        dmkc.MultipleKernelClustering(C="auto").fit(frame, start=first)


@pytest.mark.parametrize("method", [[], ["--method", "mkc"]])
def test_start_on_the_command_line(tmp_path, monkeypatch, capsys, method):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("few", 0), ("grown", 1)):
        X, _ = balls([60, 60], seed=seed)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["town"] = np.array(["x", "y", "z"])[np.arange(120) % (3 - seed)]
        frame.to_csv(f"{name}.csv", index=False)
    quiet = ["--no-report", "--quiet"]
    more = ["--max-seconds", "0.001"] if not method else []
    first = ["fit", "few.csv", *method, *more, "--clusters", "2", "--seed", "3", "--out", "one"]
    assert main([*first, *quiet]) == 0
    assert main(["fit", "grown.csv", "--start", "one", "--out", "two", *quiet]) == 0
    one, two = (dmkc.load(f"{run}/model.zarr") for run in ("one", "two"))
    assert type(one) is type(two) and two.start_ == "given model"
    assert two.get_params() == one.get_params() and two.table_ == one.table_
    other = ["fit", "grown.csv", "--start", "one", "--method", "kmeans", "--clusters", "2"]
    assert main([*other, "--out", "three", *quiet]) == 0
    assert isinstance(dmkc.load("three/model.zarr"), KMeans)


DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "lognormal": lambda rng, shape: np.exp(2.0 * rng.normal(size=shape)),
    "rare categories": lambda rng, shape: (rng.random(shape) < 0.05).astype(float),
}


@pytest.mark.parametrize("d", [1, 6, 200])
@pytest.mark.parametrize("draw", DRAWS)
def test_rows_of_the_same_kind_raise_no_alarm(draw, d):
    rng = np.random.default_rng(d)
    shares = []
    for n in (100, 1000) * 10:
        X = DRAWS[draw](rng, (n, d))
        reach = Reach.of(X, np.ones(n))
        shares.append(reach.far(DRAWS[draw](rng, (200, d))).mean())
    assert max(shares) < 0.2 and np.mean(shares) < 0.03


@pytest.mark.parametrize("method", ["kmeans", "mkc", "spectral", "auto"])
def test_rows_in_other_units_are_noticed(tmp_path, method):
    X, _ = balls([150, 150])
    X = 50.0 + X * [1.0, 10.0, 100.0]
    scaler = StandardScaler().fit(X)
    made(method, 2).fit(scaler.transform(X)).save(tmp_path / "m")
    model = dmkc.load(tmp_path / "m")
    new = 50.0 + balls([60, 60], seed=1)[0] * [1.0, 10.0, 100.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(scaler.transform(new))
        model.predict(da.from_array(new, (50, 3)))  # lazy rows are not looked at
        model.predict(new[:2])
    for other in (new, scaler.transform(new) + 30.0, scaler.transform(new) * [1.0, 1000.0, 1.0]):
        with pytest.warns(UserWarning, match="farther from all rows of the fit"):
            model.predict(other)


def test_the_command_line_notices_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, _ = balls([100, 100])
    for name, rows in (("x", X), ("same", X + 0.01), ("other", 1000.0 * X)):
        np.save(f"{name}.npy", rows)
    assert main(["fit", "x.npy", "--method", "kmeans", "--out", "run", "--no-report"]) == 0
    capsys.readouterr()
    for name, said in (("same", False), ("other", True)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert main(["predict", "run", f"{name}.npy", "--out", f"{name}.csv"]) == 0
        text = capsys.readouterr().err + " ".join(str(w.message) for w in heard)
        assert ("farther from all rows" in text) == said


@pytest.mark.parametrize("method", [m for m in ESTIMATORS if m != "auto"])
def test_a_group_that_is_cut_is_told(method):
    X, y = balls([570, 30], d=5, apart=10.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        labels = made(method, 2).fit(X).labels_
    right = adjusted_rand_score(y, labels) > 0.8
    assert any("(95%, 5%) with nothing between" in str(w.message) for w in said) != right


def test_two_equal_halves_of_a_wide_gap_are_found_without_a_word():
    X, _ = balls([1900, 100], d=2, apart=9.0)
    with pytest.warns(UserWarning, match="SparseKernelMMC cuts through one"):
        SparseKernelMMC(random_state=0, init="random", n_init=1).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseKernelMMC(random_state=0).fit(balls([200, 200])[0])
        KMeans(3, random_state=0).fit(balls([200, 200])[0])  # more clusters than groups
        KMeans(2, random_state=0).fit(np.random.default_rng(0).integers(0, 3, (300, 4)))


@pytest.mark.parametrize("method", ESTIMATORS)
def test_a_plain_mixed_table_in_a_pipeline(method):
    rng, y = np.random.default_rng(0), np.arange(360) % 3
    frame = pd.DataFrame(rng.normal(size=(360, 3)) + 6.0 * np.eye(3)[y], columns=["a", "b", "c"])
    frame = frame * [1.0, 50.0, 0.02] + [0.0, 300.0, 7.0]
    frame["colour"] = rng.choice(["red", "green", "blue", "grey"], 360)
    frame["town"] = rng.choice([f"town {i}" for i in range(8)], 360)
    frame["member"] = rng.random(360) < 0.5
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]),
        (OneHotEncoder(sparse_output=False), ["colour", "town"]),
        ("passthrough", ["member"]),
    )
    labels = make_pipeline(columns, made(method, 3)).fit_predict(frame)
    assert adjusted_rand_score(y, labels) > 0.95


def test_one_default_of_scale():
    declared = [cls.parameters() for cls in ESTIMATORS.values()]
    own = {each["scale"].default for each in declared if "scale" in each}
    assert own == {"if-mixed"}
