"""Every k-means method as a file and from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import dmkc
from dmkc import HierarchicalKernelKMeans, KernelKMeans, KMeans, MultipleKernelKMeans
from dmkc.cli import main
from dmkc.modelfile import ModelFileError

MODELS = (
    KMeans(3, scale="standard"),
    KMeans(3),
    KernelKMeans(3, rank=40),
    KernelKMeans(3, rank=40, relaxed=False, normalise="trace"),
    MultipleKernelKMeans(3, kernels=["linear", "gaussian", "laplacian"], rank=40),
    HierarchicalKernelKMeans(3, kernels=["linear", "cosine"], rank=40, nodes=[3, 2], n_masks=2),
    KernelKMeans(1),
)


def blobs(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return 4.0 * rng.normal(size=(3, d))[rng.integers(0, 3, n)] + rng.normal(size=(n, d)) + 50.0


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_loaded_model_predicts_the_same_bits(model, tmp_path):
    X = blobs()
    model.set_params(random_state=0).fit(X)
    model.save(tmp_path / "m")
    again = dmkc.load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    for rows in (X, blobs(50, seed=1), sp.csr_array(X)):
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    assert again.inertia_ == model.inertia_ and not hasattr(again, "labels_")


def test_what_lies_between_kernels_and_clusters_is_stored(tmp_path):
    model = MODELS[5].set_params(random_state=0).fit(blobs())
    model.save(tmp_path / "m")
    again = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(again.agreement_, model.agreement_)
    for ours, stored in zip(model.connections_, again.connections_, strict=True):
        for a, b in zip(ours, stored, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=lambda m: type(m).__name__)
def test_files_whose_arrays_do_not_fit_together_are_refused(model, tmp_path):
    import zarr

    from dmkc.modelfile import files

    model.set_params(random_state=0).fit(blobs())
    model.save(tmp_path / "m")
    group = zarr.open_group(tmp_path / "m", mode="r+")
    centres = np.asarray(group["centres"][...])
    del group["centres"]
    group.create_array("centres", data=np.ascontiguousarray(centres[:, :-1]))
    described = group.attrs.asdict()["dmkc"]
    arrays = {name: np.asarray(array[...]) for name, array in group.arrays()}
    described["sha256"] = files._digest(described, arrays)
    group.attrs["dmkc"] = described
    with pytest.raises(ModelFileError, match=r"shape|columns"):
        dmkc.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("method", "extra"),
    [
        ("kmeans", ["--init", "k-means||", "--n-init", "2"]),
        ("kernel-kmeans", ["--kernels", "linear,gaussian:0.5", "--rank", "30"]),
        ("mkkm", ["--weights", "mkkm-mr", "--kernels", "linear,gaussian", "--rank", "30"]),
        ("hmkkm", ["--kernels", "linear,gaussian", "--nodes", "3,2", "--n-masks", "2"]),
    ],
)
def test_the_command_line(method, extra, tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs())
    run = tmp_path / "run"
    words = ["fit", str(tmp_path / "x.npy"), "--method", method, "--clusters", "3", "--seed", "0"]
    assert main([*words, "--quiet", "--out", str(run), *extra]) == 0
    found = json.loads((run / "metrics.json").read_text())
    assert sum(found["cluster_sizes"]) == 300 and len(found["cluster_sizes"]) == 3
    assert "<svg" in (run / "report.html").read_text()
    out = str(tmp_path / "labels.zarr")
    assert main(["predict", str(run), str(tmp_path / "x.npy"), "--out", out, "--quiet"]) == 0
    assert main(["info", str(run / "model.zarr")]) == 0
    text = capsys.readouterr().out
    assert ("landmarks" in text) == (method != "kmeans")
