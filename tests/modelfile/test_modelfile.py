"""Model files: the same bits after a round trip, and a sentence for every broken file."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import dmkc
from dmkc import Cosine, Gaussian, Laplacian, Linear, MultipleKernelClustering, Polynomial
from dmkc.datasets import make_ringnorm
from dmkc.kernels.base import Matrix
from dmkc.modelfile import ModelFileError
from dmkc.modelfile import files as model_files

EVERY_KERNEL = [Linear(), Polynomial(3, coef0=0.5), Gaussian(0.5), Laplacian(2.0), Cosine()]


def fitted(X, **parameters):
    settings = {"random_state": 0, "rank": 30, "tol": 1e-2} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultipleKernelClustering(**settings).fit(X)


@pytest.fixture(scope="module")
def rows():
    return make_ringnorm(300, 6, seed=1)[0]


@pytest.fixture(scope="module")
def model(rows):
    return fitted(rows)


@pytest.fixture
def stored(model, tmp_path):
    model.save(tmp_path / "model.zarr")
    return tmp_path / "model.zarr"


def same(one, other, X):
    for method in ("predict", "decision_function", "transform"):
        a, b = getattr(one, method)(X), getattr(other, method)(X)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(np.asarray(b), np.asarray(a), err_msg=method)


def plain(value):
    return repr(value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel_keeps_its_bits(tmp_path, rows, dtype):
    model = fitted(rows, kernels=EVERY_KERNEL, dtype=dtype)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    same(model, loaded, rows)
    same(model, loaded, make_ringnorm(500, 6, seed=2)[0])
    assert loaded.kernels_ == model.kernels_
    assert loaded.kernels == EVERY_KERNEL


def test_sparse_rows_and_centroid_landmarks(tmp_path):
    X = sp.random_array((400, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    model = fitted(X, kernels=["linear", "gaussian", "cosine"], landmarks="kmeans", scale=None)
    model.save(tmp_path / "m")
    same(model, dmkc.load(tmp_path / "m"), X)


def test_wide_rows_whose_linear_kernel_goes_through_landmarks(tmp_path):
    X = make_ringnorm(120, 2100, seed=0)[0]
    model = fitted(X, kernels=["linear", "gaussian:0.5"])
    assert model.model_.features.maps[0].array is not None
    model.save(tmp_path / "m")
    same(model, dmkc.load(tmp_path / "m"), X)


@pytest.mark.parametrize("shift", [1, 3, 5])
def test_scores_do_not_depend_on_where_in_memory_a_model_lies(model, rows, shift):
    def moved(array):
        room = np.empty(array.size + 8)
        room[shift : shift + array.size] = array.ravel()
        return room[shift : shift + array.size].reshape(array.shape)

    kernel_model = model.model_
    features = kernel_model.features
    other = replace(
        kernel_model,
        weights=moved(kernel_model.weights),
        features=replace(
            features,
            maps=tuple(m if m.array is None else Matrix(moved(m.array)) for m in features.maps),
            mean=tuple(map(moved, features.mean)),
        ),
    )
    for one, two in zip(kernel_model.affines(), other.affines(), strict=True):
        np.testing.assert_array_equal(one.w, two.w)
        assert one.b == two.b


def test_parameters_and_attributes_come_back(tmp_path, rows):
    names = [f"column {i}" for i in range(rows.shape[1])]
    frame = pd.DataFrame(rows, columns=names)
    model = fitted(frame, C=12.5, init=("k-means", "random"), kernels=("gaussian:2", "linear"))
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    there = {name for name in vars(model) if name.endswith("_")} - {"labels_"}
    assert {name for name in vars(loaded) if name.endswith("_")} == there
    for name in there - {"model_"}:
        assert plain(getattr(loaded, name)) == plain(getattr(model, name)), name
        assert type(getattr(loaded, name)) is type(getattr(model, name)) or np.isscalar(
            getattr(model, name)
        )
    assert list(loaded.feature_names_in_) == names
    assert not hasattr(loaded, "labels_")
    assert loaded.predict(frame).index.equals(frame.index)


def test_one_cluster_and_several(tmp_path, rows):
    model = fitted(rows, n_clusters=1)
    model.save(tmp_path / "one")
    same(model, dmkc.load(tmp_path / "one"), rows)
    several = fitted(rows, n_clusters=4)
    several.save(tmp_path / "four")
    loaded = dmkc.load(tmp_path / "four")
    assert loaded.decision_function(rows).shape == (len(rows), 4)
    assert loaded.get_params() == several.get_params()
    same(several, loaded, rows)


def test_arrays_given_as_parameters_are_left_out_and_noted(tmp_path, rows):
    labels = (np.arange(len(rows)) % 2).astype(int)
    model = fitted(rows, init=labels, landmarks=rows[:20], client=None)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    same(model, loaded, rows)
    assert loaded.landmarks == "uniform"
    described = dmkc.modelfile.read_description(tmp_path / "m")
    assert set(described["left_out"]) == {"init", "landmarks"}
    assert "client" not in described["parameters"]


def test_a_loaded_model_can_be_saved_fitted_and_loaded_in_another_process(stored, rows, tmp_path):
    loaded = dmkc.load(stored)
    loaded.save(tmp_path / "again")
    np.save(tmp_path / "x.npy", rows)
    code = (
        "import sys, numpy as np, dmkc\n"
        "X = np.load(sys.argv[2])\n"
        "np.save(sys.argv[3], dmkc.load(sys.argv[1]).decision_function(X))\n"
    )
    paths = [str(tmp_path / name) for name in ("again", "x.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True, timeout=120)
    assert np.array_equal(np.load(paths[2]), loaded.decision_function(rows))


def test_strict_json_and_urls(stored, rows, model):
    def refuse(text):
        raise AssertionError(text)

    json.loads((stored / "zarr.json").read_text(), parse_constant=refuse)
    same(model, dmkc.load(f"file://{stored}"), rows)


def test_functions_and_foreign_kernels_are_refused(tmp_path, rows):
    def mine(A, B):
        return A @ B.T

    class Other(Linear):
        pass

    for kernel in (mine, Other()):
        with pytest.raises(ModelFileError, match="code of yours"):
            fitted(rows, kernels=["gaussian", kernel]).save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_overwrite_replaces_models_only(stored, model, tmp_path):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(stored)
    model.save(stored, overwrite=True)
    dmkc.load(stored)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    zarr.create_array(store=tmp_path / "data.zarr", data=np.ones((2, 2)))
    (tmp_path / "link").symlink_to(stored)
    for name in ("mine", "data.zarr", "link"):
        with pytest.raises(ModelFileError, match="not overwritten"):
            model.save(tmp_path / name, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["data.zarr", "link", "mine", "model.zarr"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.save(tmp_path / "no" / "folder")


def test_an_interrupted_save_leaves_nothing(tmp_path, model, monkeypatch):
    calls = []

    def stop(self, name, **kwargs):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, name, **kwargs)

    original = zarr.Group.create_array
    monkeypatch.setattr(zarr.Group, "create_array", stop)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def edit(path, change, digest=True):
    """Change the description of a model file, with a checksum that fits unless told otherwise."""
    stored = json.loads((path / "zarr.json").read_text())
    described = stored["attributes"]["dmkc"]
    change(described)
    if digest:
        group = zarr.open_group(store=path, mode="r")
        arrays = {name: np.asarray(array[...]) for name, array in group.arrays()}
        described["sha256"] = model_files._digest(described, arrays)
    (path / "zarr.json").write_text(json.dumps(stored))


def put(path, name, values):
    zarr.open_group(store=path, mode="r+").create_array(name, data=values, overwrite=True)
    edit(path, lambda described: described["shapes"].update({name: list(values.shape)}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(version=99), "format version 99"),
        (lambda d: d.update(version="1"), "unknown version"),
        (lambda d: d.update(estimator="os.system"), "known are only"),
        (lambda d: d.update(estimator=None), "known are only"),
        (lambda d: d["parameters"].update(nonsense=1), "do not fit the estimator"),
        (lambda d: d["parameters"].update(C={"kind": "pickle", "data": "x"}), "unknown kind"),
        (lambda d: d["parameters"].update(init={"kind": "tuple"}), "malformed"),
        (lambda d: d.update(parameters=[]), "missing"),
        (lambda d: d["fitted"].update(predict=1), "not the name of a fitted value"),
        (lambda d: d["fitted"].update(__class__=1), "not the name of a fitted value"),
        (lambda d: d["fitted"].update(n_features_in_=7), "for 7 columns"),
        (lambda d: d["model"].update(dtype="object"), "precision"),
        (lambda d: d["model"].update(leaf_rows=0), "leaf"),
        (lambda d: d["model"]["kernels"].pop(), "directly"),
        (lambda d: d["model"].update(kernels=[{"kind": "linear"}] * 3), "describe a fitted kernel"),
        (lambda d: d["model"]["kernels"][1].update(view=1), "view 1"),
        (lambda d: d["model"]["kernels"][1].update(state={"landmarks": "other"}), "missing"),
        (lambda d: d["model"]["kernels"][1].update(state={}), "no landmarks"),
        (lambda d: d["model"].update(views=[]), "which columns"),
        (lambda d: d["model"].update(views=[[2, 1]]), "ascending"),
        (lambda d: d["model"].update(views=[[0, 6]]), "factor_of_view_0.*missing"),
        (lambda d: d["shapes"].pop("biases"), "missing"),
        (lambda d: d.update(shapes=[]), "malformed"),
        (lambda d: d["shapes"].update(biases=[2]), "not \\[2\\]"),
        (lambda d: d["model"].update(decision="none"), "cannot be decided"),
        (lambda d: d["model"].update(decision="nearest"), "cannot be decided"),
        (lambda d: d["model"].update(kernels=[]), "list the kernels"),
        (lambda d: d["model"]["kernels"][2]["kernel"].update(kind="eval"), "not a kernel"),
        (lambda d: d["model"]["kernels"][2]["kernel"].update(gamma="1"), "must be a number"),
        (lambda d: d["model"]["kernels"][2]["kernel"].update(gamma=-1.0), "impossible"),
        (lambda d: d["model"]["kernels"][2]["kernel"].update(gamma=None), "no width"),
        (lambda d: d["model"]["kernels"][2]["kernel"].update(path="../x"), "no parameter"),
        (lambda d: d["model"]["direct"].__setitem__(0, False), "missing"),
        (lambda d: d["model"].update(direct=[1, 0, 0]), "directly"),
        (lambda d: d.pop("model"), "missing"),
    ],
)
def test_descriptions_that_are_wrong(stored, change, sentence):
    edit(stored, change)
    with pytest.raises(ModelFileError, match=sentence) as caught:
        dmkc.load(stored)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_a_single_score_may_be_called_the_largest(stored, rows):
    """As files did before models said how their scores decide."""
    before = dmkc.load(stored)
    edit(stored, lambda described: described["model"].update(decision="largest"))
    loaded = dmkc.load(stored)
    assert loaded.model_.decision == "sign" and loaded.n_clusters_ == 2
    np.testing.assert_array_equal(loaded.predict(rows), before.predict(rows))


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("landmarks_0", np.ones((30, 5)), "5 columns"),
        ("whitening_1", np.ones((29, 4)), "does not fit"),
        ("whitening_2", np.ones(29), "does not fit"),
        ("mean_0", np.ones(7), "ask for"),
        ("weights", np.ones((1, 3)), "ask for"),
        ("biases", np.ones(3), "ask for"),
        ("scales", np.ones(4), "ask for"),
        ("kernel_weights", np.ones(3, np.float32), "float64"),
        ("shift", np.full(6, np.nan), "not finite"),
    ],
)
def test_arrays_that_do_not_fit(stored, name, values, sentence):
    put(stored, name, values)
    with pytest.raises(ModelFileError, match=sentence):
        dmkc.load(stored)


def test_damage_is_noticed(stored, tmp_path):
    def copy(name):
        return shutil.copytree(stored, tmp_path / name)

    edit(copy("changed"), lambda d: d["fitted"].update(objective_=0.0), digest=False)
    shutil.rmtree(copy("no array") / "biases")
    chunk = next(p for p in (copy("cut") / "landmarks_0" / "c").rglob("*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:20])
    next(p for p in (copy("no chunk") / "factor" / "c").rglob("*") if p.is_file()).unlink()
    (copy("no metadata") / "zarr.json").unlink()
    (copy("cut metadata") / "zarr.json").write_text('{"zarr_format": 3')
    (copy("array metadata") / "shift" / "zarr.json").write_text("{}")
    zarr.create_group(store=tmp_path / "group")
    zarr.create_array(store=tmp_path / "array", data=np.ones(3))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for path in sorted(set(tmp_path.iterdir()) - {stored}):
        with pytest.raises(ModelFileError) as caught:
            dmkc.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError, match="no model file"):
        dmkc.load(tmp_path / "absent")


def test_other_codecs_and_old_formats_are_not_opened(stored, tmp_path):
    meta = json.loads((stored / "biases" / "zarr.json").read_text())
    meta["codecs"].append({"name": "gzip", "configuration": {"level": 1}})
    (stored / "biases" / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(ModelFileError, match="unknown way"):
        dmkc.load(stored)
    zarr.create_group(store=tmp_path / "old", zarr_format=2)
    with pytest.raises(ModelFileError, match="not a model file"):
        dmkc.load(tmp_path / "old")


def save_often(model, path, times):
    for _ in range(times):
        model.save(path, overwrite=True)


def test_a_model_is_there_at_every_instant_of_its_replacement(stored, model, rows, tmp_path):
    context = multiprocessing.get_context("fork")
    savers = [context.Process(target=save_often, args=(model, stored, 20)) for _ in range(2)]
    for saver in savers:
        saver.start()
    loads = 0
    while loads < 5 or any(saver.is_alive() for saver in savers):
        loaded = dmkc.load(stored)
        assert dmkc.modelfile.is_model_file(stored)
        loads += 1
    same(model, loaded, rows)
    for saver in savers:
        saver.join(60)
    assert [saver.exitcode for saver in savers] == [0, 0]
    assert os.listdir(tmp_path) == ["model.zarr"]
    assert len(os.listdir(stored)) == 2  # the metadata and one folder of arrays
    same(model, dmkc.load(stored), rows)


def test_what_a_killed_saver_left_goes_with_the_next_one(stored, model, rows):
    (stored / f"arrays-{'0' * 32}" / "biases").mkdir(parents=True)
    same(model, dmkc.load(stored), rows)
    model.save(stored, overwrite=True)
    assert len(os.listdir(stored)) == 2
    same(model, dmkc.load(stored), rows)


@pytest.mark.parametrize("inside", ["../elsewhere", 1, f"arrays-{'0' * 32}"])
def test_a_place_of_arrays_that_is_wrong(stored, inside):
    edit(stored, lambda described: described.update(inside=inside))
    with pytest.raises(ModelFileError, match=r"malformed|missing"):
        dmkc.load(stored)
