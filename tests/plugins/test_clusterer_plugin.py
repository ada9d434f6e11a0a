"""A method from a file outside the package, wherever methods are used."""

from __future__ import annotations

import json
import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from said import sentences
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator
from without_chances import without_chances

import dmkc
from dmkc.cli import main
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_blobs
from dmkc.errors import UserError
from dmkc.extending import KernelClusterer, shared
from dmkc.modelfile import ModelFileError
from dmkc.report import write_report

BANK = ["linear", "gaussian:0.5"]


def apart(n=600, clusters=3, seed=0):
    """Clusters around the corners of a simplex."""
    rng = np.random.default_rng(seed)
    y = rng.integers(clusters, size=n)
    return 6.0 * np.eye(6)[y] + rng.normal(size=(n, 6)), y


@pytest.mark.parametrize("clusters", [2, 3, 5])
@pytest.mark.parametrize("sample_rows", [8192, 100])
def test_it_finds_clusters_and_numbers_them_by_size(directions, clusters, sample_rows):
    X, y = apart(clusters=clusters)
    model = directions(clusters, sample_rows=sample_rows, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    sizes = np.bincount(model.labels_)
    assert sizes.tolist() == sorted(sizes, reverse=True)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    scores = model.decision_function(X)
    decided = scores > 0 if clusters == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(decided, model.labels_)


def test_directions_are_a_fixed_point_of_a_plain_implementation(directions):
    X, _ = apart()
    model = directions(3, kernels=BANK, tol=1e-12, random_state=0).fit(X)
    features, model_ = model.model_.features, model.model_
    phi = features.features(features.plan(X).rows)
    sums = np.stack([phi[model.labels_ == c].sum(axis=0) for c in range(3)])
    unit = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(model_.weights, unit, atol=1e-9)
    reach = (phi @ unit.T).max(axis=1)
    assert model.objective_ == pytest.approx(1 - reach.mean() / np.sqrt(2))


def test_the_objective_never_rises(directions):
    model = directions(4, tol=1e-9, sample_rows=200, random_state=1).fit(apart(2000, 4)[0])
    for on in ("sample", "all"):
        course = [r["objective"] for r in model.history_ if r["on"] == on]
        assert np.diff(course).max() <= 1e-12 and min(course) >= 0


@pytest.mark.parametrize("clusters", [2, 3])
@pytest.mark.parametrize("mode", ["persist", "recompute", "store"])
def test_chunks_and_modes_do_not_matter(directions, clusters, mode):
    X, _ = apart(9000, clusters)
    settings = {"kernels": BANK, "rank": 20, "sample_rows": 500, "random_state": 0}
    expected = directions(clusters, **settings).fit(X)
    for chunks in ((700, 2), (9000, 6)):
        model = directions(clusters, feature_mode=mode, **settings)
        labels = model.fit(da.from_array(X, chunks=chunks)).labels_
        assert isinstance(labels, da.Array)
        np.testing.assert_array_equal(labels, expected.labels_)
        assert model.objective_ == expected.objective_


def test_sparse_rows_and_weights(directions):
    X, _ = apart(400)
    X[np.abs(X) < 1] = 0.0
    model = directions(3, kernels="linear", random_state=0)
    labels = model.fit(X).labels_
    np.testing.assert_array_equal(model.fit(sp.csr_array(X)).labels_, labels)
    times = 1 + np.arange(len(X)) % 3
    model.set_params(landmarks=X[:50])
    weighted = model.fit(X, sample_weight=times.astype(float))
    objective, found = weighted.objective_, weighted.labels_
    repeated = model.fit(np.repeat(X, times, axis=0))
    np.testing.assert_array_equal(repeated.labels_, np.repeat(found, times))
    assert repeated.objective_ == pytest.approx(objective)


def test_views(directions, tmp_path):
    X, y = apart()
    views = {"left": X[:, :3], "right": 1000.0 * X[:, 3:]}
    model = directions(3, kernels="gaussian", random_state=0)
    with pytest.raises(ValueError, match="view"):
        model.set_params(kernels=dmkc.Gaussian(columns="nowhere")).fit(views)
    model = directions(3, random_state=0).fit(views)
    assert model.view_weights_ == pytest.approx({"left": 0.5, "right": 0.5})
    assert adjusted_rand_score(y, model.labels_) > 0.9
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(dmkc.load(tmp_path / "m").predict(views), model.labels_)


@pytest.mark.parametrize("polish", [0, 3])
def test_training_on_a_subset(directions, polish):
    X, y = apart(3000)
    model = directions(3, train_rows=200, polish=polish, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.converged_ and ({r["on"] for r in model.history_} == {"sample", "all"}) == (
        polish > 0
    )
    with pytest.raises(UserError, match="polish goes with train_rows"):
        directions(3, polish=1).fit(X)


def test_one_cluster(directions, tmp_path):
    X, _ = apart(50)
    model = directions(1, random_state=0).fit(X)
    assert not model.labels_.any() and model.objective_ == 0
    assert model.transform(X).shape == (50, model.model_.n_features)
    model.save(tmp_path / "m")
    assert not dmkc.load(tmp_path / "m").predict(X).any()
    text = write_report(model, X, tmp_path / "r.html", title="One").read_text()
    assert "The objective after every step." in text


def test_a_fit_that_ends_early_says_so(directions):
    with pytest.warns(ConvergenceWarning, match="DirectionClustering stopped .*max_iter was"):
        noise = np.random.default_rng(0).normal(size=(500, 6))
        directions(4, max_iter=1, tol=1e-12, random_state=0).fit(noise)


def test_scikit_learn(directions):
    model = directions(3, kernels=BANK, tol=0.01)
    assert clone(model).get_params() == model.get_params()
    assert list(model.get_params()) == sorted(directions.parameters())
    assert repr(directions(3, tol=0.01)) == "DirectionClustering(n_clusters=3, tol=0.01)"
    X, _ = apart(100)
    again = pickle.loads(pickle.dumps(model.fit(X)))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)
    with pytest.raises(TypeError, match="unexpected keyword argument 'turns'"):
        directions(3, turns=2)
    with pytest.raises(TypeError, match="too many positional"):
        directions(3, BANK)
    with pytest.raises(UserError, match="max_iter must be an integer of at least 1"):
        directions(max_iter=0).fit(X)
    for clusters in (2, 3):
        check_estimator(without_chances(directions(clusters)))


def test_from_the_command_line_and_in_model_files(outside, command, tmp_path):
    plugin = {"DMKC_PLUGINS": str(outside / "direction_clusterer.py")}
    np.save(tmp_path / "x.npy", apart()[0])
    words = ("fit", tmp_path / "x.npy", "--method", "directions")
    helped = command(*words, "--help", **plugin)
    assert helped.returncode == 0 and "--max-iter" in helped.stdout, helped.stderr
    fit = (*words, "--clusters", 3, "--seed", 0, "--max-iter", 20, "--out", tmp_path / "run")
    done = command(*fit, **plugin)
    assert done.returncode == 0, done.stderr
    assert "DirectionClustering" in (tmp_path / "run" / "report.html").read_text()
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["clusters"] == 3 and 0 < metrics["objective"] < 1
    without = command("info", tmp_path / "run" / "model.zarr")
    assert without.returncode == 2 and "a model of 'DirectionClustering'" in without.stderr
    assert len(sentences(without.stderr)) == 1


def test_other_commands_know_it_while_it_is_registered(directions, tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "x.npy", apart()[0])
    directions(3, random_state=0).fit(apart()[0]).save(tmp_path / "m")
    assert main(["fit", "--help"]) == 0
    assert "directions      a direction in the space of features" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "DirectionClustering" in capsys.readouterr().out
    words = [str(tmp_path / "x.npy"), "--method", "directions", "--clusters", "3", "--seed", "0"]
    assert main(["plan", *words]) == 0
    assert "suggested walltime" in capsys.readouterr().out
    known = {name: cls for name, cls in ESTIMATORS.items() if cls is not directions}
    monkeypatch.setattr(ESTIMATORS, "_known", known)
    assert main(["plan", *words]) == 2
    assert "directions" in capsys.readouterr().err


def test_a_saved_model_is_the_same_model(directions, tmp_path, monkeypatch):
    X, _ = apart()
    model = directions(3, kernels=BANK, random_state=0).fit(X)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    assert type(loaded) is directions and loaded.objective_ == model.objective_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    known = {name: cls for name, cls in ESTIMATORS.items() if cls is not directions}
    monkeypatch.setattr(ESTIMATORS, "_known", known)
    with pytest.raises(ModelFileError, match=r"'DirectionClustering'.*dmkc\.register_estimator"):
        dmkc.load(tmp_path / "m")


def test_in_a_report(directions, tmp_path):
    X, _ = apart()
    for clusters in (2, 3):
        model = directions(clusters, kernels=BANK, random_state=0).fit(X)
        text = write_report(model, X, tmp_path / f"{clusters}.html", title="D").read_text()
        assert "from direction_clusterer import DirectionClustering" in text
        assert "The objective after every step." in text
        assert dmkc.plot.convergence(model).get_ylabel() == "objective"


def test_in_a_plan_and_after_a_stop(directions, tmp_path):
    X, _ = make_blobs(20_000, centers=3, seed=0)
    model = directions(3, sample_rows=500, rank=20, random_state=0)
    low, _, high = dmkc.plan(X, model).scans
    assert 2 < low <= model.fit(X).n_scans_ <= high
    with dmkc.checkpoint(tmp_path):
        labels = clone(model).fit(X).labels_
    with dmkc.checkpoint(tmp_path):  # answered from the journal
        np.testing.assert_array_equal(model.fit(X).labels_, labels)


def test_on_a_cluster_that_has_to_be_sent_the_file(directions, outside):
    X, _ = apart(9000)
    model = directions(3, sample_rows=500, random_state=0)
    expected = model.fit(X).labels_
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        sentence = r"cannot import 'direction_clusterer'.*client\.upload_file"
        with pytest.raises(ImportError, match=sentence):
            model.fit(X)
        client.upload_file(str(outside / "direction_clusterer.py"))
        np.testing.assert_array_equal(model.fit(X).labels_, expected)


def test_with_the_kernel_of_another_file(outside, command, tmp_path):
    np.save(tmp_path / "x.npy", apart(clusters=2)[0])
    both = ",".join(str(outside / name) for name in ("rank_kernel.py", "direction_clusterer.py"))
    words = ("fit", tmp_path / "x.npy", "--method", "directions", "--kernels", "ranks,linear")
    done = command(*words, "--seed", 0, "--out", tmp_path / "run", DMKC_PLUGINS=both)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert any("ranks" in kernel.lower() for kernel in metrics["kernel_weights"])


def test_a_class_that_lacks_something_is_refused():
    class Unfinished(KernelClusterer):
        declared = (shared.N_CLUSTERS, *shared.FEATURES, *shared.RUNNING)

        def _store_fit(self, learned, prepared, rows):
            raise AssertionError

    with pytest.raises(UserError, match="Unfinished must define _continue_on_all_rows, _learn"):
        dmkc.register_estimator("unfinished", Unfinished)
    with pytest.raises(TypeError, match="abstract"):
        Unfinished()
