"""Model files of strangers: refused in a sentence, and with little memory."""

import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest
import zarr
from numcodecs import Zstd

import dmkc
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.data.chunks import ZSTD
from dmkc.datasets import make_blobs
from dmkc.modelfile import ModelFileError, files, folder, is_model_file


@pytest.fixture(scope="module")
def rows():
    return make_blobs(120, 6, 2, seed=1)[0]


@pytest.fixture(scope="module")
def models(tmp_path_factory, rows):
    """A file of every method."""
    place = tmp_path_factory.mktemp("models")
    for name, cls in ESTIMATORS.items():
        small = {"rank": 20, "n_members": 2}
        more = {key: value for key, value in small.items() if key in cls.parameters()}
        cls(2, random_state=0, **more).fit(rows).save(place / name)
    return place


@pytest.fixture
def stored(models, tmp_path):
    return shutil.copytree(models / "mkc", tmp_path / "model.zarr")


def refused(path, words):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=words) as caught:
            dmkc.load(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def edit(path, change):
    """Change the description of a model file, with a checksum that fits."""
    stored = json.loads((path / "zarr.json").read_text())
    described = stored["attributes"]["dmkc"]
    change(described)
    group = zarr.open_group(store=path, mode="r")
    arrays = {name: np.asarray(array[...]) for name, array in group.arrays()}
    described["sha256"] = files._digest(described, arrays)
    (path / "zarr.json").write_text(json.dumps(stored))


def metadata(path, change):
    """Change the metadata of one array."""
    meta = json.loads((path / "zarr.json").read_text())
    change(meta)
    (path / "zarr.json").write_text(json.dumps(meta))


def chunk_of(path):
    return next(p for p in sorted((path / "c").rglob("*")) if p.is_file())


def test_files_of_every_method_load(models, rows):
    for name in ESTIMATORS:
        assert set(dmkc.load(models / name).predict(rows)) == {0, 1}, name


@pytest.mark.parametrize("one", ESTIMATORS)
def test_a_model_of_another_kind_of_method_is_refused(models, tmp_path, one):
    for other, cls in ESTIMATORS.items():
        if cls._model_class is ESTIMATORS[one]._model_class:
            continue
        path = shutil.copytree(models / one, tmp_path / other)

        def rename(described, cls=cls):
            names = {name: p.default for name, p in cls.parameters().items() if name != "client"}
            described.update(estimator=cls.__name__, parameters=files.encode(names))

        edit(path, rename)
        refused(path, f"a {cls.__name__} has no")


def test_chunks_that_unpack_to_more_than_the_array_are_not_unpacked(stored):
    array = stored / "landmarks_0"
    shape = json.loads((array / "zarr.json").read_text())["shape"]
    packed = Zstd().encode(np.zeros(1 << 22))
    assert len(packed) < 10_000
    chunk_of(array).write_bytes(packed)
    refused(stored, f"a chunk holds {8 << 22} bytes and not {8 * shape[0] * shape[1]}")


def test_frames_that_do_not_say_their_size_and_other_bytes_are_refused(stored):
    chunk_of(stored / "shift").write_bytes(ZSTD + b"\x00\x58\x01\x00\x00")
    refused(stored, "unknown number of bytes")
    chunk_of(stored / "shift").write_bytes(b"nonsense")
    refused(stored, "unknown number of bytes")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[50_000_000, 6]), "chunks"),
        (lambda m: m.update(shape=[50_000_000, 6]), "shape"),
        (lambda m: m.update(data_type="float32"), "float64"),
        (lambda m: m.update(data_type="int8", fill_value=0), "float64"),
        (lambda m: m["codecs"].append(m["codecs"][-1]), "unknown way"),
        (lambda m: m.update(chunk_key_encoding={"name": "v2"}), "unknown way"),
        (lambda m: m.update(shape=[-1, 6]), "damaged|shape"),
        (lambda m: m.update(shape="x"), "damaged|shape"),
    ],
)
def test_metadata_of_arrays_is_checked_before_a_chunk_is_read(stored, change, words, monkeypatch):
    monkeypatch.setattr(files, "_read", lambda *_: pytest.fail("a chunk was read"))
    metadata(stored / "landmarks_0", change)
    refused(stored, words)


def test_shapes_that_agree_with_each_other_are_bounded_too(stored):
    def grow(shape, meta):
        meta["shape"] = shape
        meta["chunk_grid"]["configuration"]["chunk_shape"] = [1, 6]

    for shape, words in (([1 << 40, 6], "larger than any"), ([1 << 23, 6], "chunk holds|than its")):
        metadata(stored / "landmarks_0", lambda meta, shape=shape: grow(shape, meta))
        meta = json.loads((stored / "zarr.json").read_text())
        meta["attributes"]["dmkc"]["shapes"]["landmarks_0"] = shape
        (stored / "zarr.json").write_text(json.dumps(meta))
        refused(stored, words)
    shutil.rmtree(stored / "landmarks_0" / "c")
    refused(stored, "larger than its files can be")


def test_large_arrays_are_written_so_that_they_can_be_read(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(files, "FREE_BYTES", 40)
    monkeypatch.setattr(folder, "FREE_BYTES", 40)
    monkeypatch.setattr(folder, "MOST_RATIO", 1)
    zeros = np.zeros((120, 6))
    zeros[:, 0] = rows[:, 0]
    model = dmkc.KMeans(3, random_state=0).fit(zeros)
    model.save(tmp_path / "m")
    assert (dmkc.load(tmp_path / "m").predict(zeros) == model.labels_).all()


@pytest.mark.parametrize("name", ["zarr.json", "shift/zarr.json", "chunk"])
def test_what_is_no_regular_file_is_not_opened(stored, name, tmp_path):
    path = chunk_of(stored / "shift") if name == "chunk" else stored / name
    moved = tmp_path / "outside"
    os.rename(path, moved)
    os.mkfifo(path)
    refused(stored, "neither a regular file nor a folder")
    if name == "zarr.json":
        assert not is_model_file(stored)
    for target in (moved, "/dev/zero", tmp_path / "nowhere"):
        path.unlink()
        path.symlink_to(target)
        refused(stored, "link to something outside")
    path.unlink()
    inside = path.with_name("kept")
    shutil.copy(moved, inside)
    path.symlink_to(inside)
    if name != "chunk":  # a second file among the chunks would be taken for one
        dmkc.load(stored)


def test_links_to_a_model_and_file_urls_are_fine(stored, tmp_path, rows):
    (tmp_path / "link").symlink_to(stored)
    labels = dmkc.load(stored).predict(rows)
    for path in (tmp_path / "link", f"file://{stored}"):
        assert (dmkc.load(path).predict(rows) == labels).all()
    chunk_of(stored / "shift").write_bytes(b"nonsense")
    refused(f"file://{stored}", "unknown number of bytes")


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["fitted"].update(history_=nested(800)), "nested deeper"),
        (lambda d: d["parameters"].update(init=nested(800)), "nested deeper"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(kind=["gaussian"]), "not a kernel"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(degree=10**9), "at most 100"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(degree=1e9), "at most 100"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(degree=[2]), "must be a number"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(gamma=10**400), "impossible"),
        (lambda d: d["model"]["kernels"][1]["kernel"].update(coef0=1e300), "impossible"),
        (lambda d: d["model"]["kernels"][1].update(kernel={"kind": "neighbours", "k": 10**9}), "."),
        (lambda d: d["model"]["kernels"][1].update(state={"landmarks": ["x"]}), "no names"),
        (lambda d: d["model"]["kernels"][1].update(state={"landmarks": "../shift"}), "../shift"),
        (lambda d: d["model"].update(leaf_rows=10**12), "rows of a leaf"),
        (lambda d: d["model"].update(dtype=["float64"]), "precision"),
        (lambda d: d["model"].update(decision=["sign"]), "decided"),
        (lambda d: d["model"].update(kind=["centroids"]), "unknown kind"),
        (lambda d: d.update(estimator=["KMeans"]), "known are only"),
        (lambda d: d["parameters"].update(C="many"), "parameters do not fit"),
        (lambda d: d["parameters"].update(C=10**400), "parameters do not fit"),
        (lambda d: d["parameters"].update(n_clusters=[2]), "parameters do not fit"),
        (lambda d: d["parameters"].update(kernels=[["linear"]]), "parameters do not fit"),
        (lambda d: d["fitted"].update(n_features_in_=None), "how many columns"),
        (lambda d: d["fitted"].update(n_features_in_=[6]), "how many columns"),
        (lambda d: d["fitted"].pop("n_features_in_"), "how many columns"),
        (lambda d: d["fitted"].update(feature_names_in_="abcdef"), "name the 6 columns"),
        (lambda d: d["fitted"].update(feature_names_in_=["a"]), "name the 6 columns"),
        (lambda d: d["fitted"].update(views_={"a": [0, 10**9]}), "runs of its 6 columns"),
        (lambda d: d["fitted"].update(views_=[1]), "runs of its 6 columns"),
        (lambda d: d["fitted"].update(n_iter_="many"), "n_iter_"),
        (lambda d: d["fitted"].update(objective_=[1.0]), "objective_"),
        (lambda d: d["fitted"].update(kernel_weights_=0.5), "kernel_weights_"),
        (lambda d: d["fitted"].update(kernels_=[]), "one weight for every kernel"),
        (lambda d: d["fitted"].pop("kernels_"), "lacks what"),
        (lambda d: d.pop("left_out"), "left_out"),
        (lambda d: d.update(libraries={"numpy": [1]}), "libraries"),
        (lambda d: d.update(created=12), "created"),
        (
            lambda d: d["fitted"].update(
                x_={"kind": "array", "dtype": "int64", "shape": [1], "values": [10**30]}
            ),
            "malformed",
        ),
        (
            lambda d: d["fitted"].update(
                x_={"kind": "array", "dtype": "int64", "shape": [10**9], "values": [1]}
            ),
            "malformed",
        ),
    ],
)
def test_every_value_is_of_its_kind(stored, change, words):
    edit(stored, change)
    refused(stored, words)


def test_long_texts_of_a_file_are_cut_in_what_is_said_of_it(stored):
    edit(stored, lambda d: d.update(estimator="x" * 100_000))
    with pytest.raises(ModelFileError, match="known are only") as caught:
        dmkc.load(stored)
    assert len(str(caught.value)) < 3000
