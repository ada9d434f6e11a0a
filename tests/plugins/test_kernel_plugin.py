"""A kernel with fitted state from a file outside the package, wherever kernels are used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster
from said import sentences

import dmkc
from dmkc import registry
from dmkc.kernels import KERNELS, Kernel
from dmkc.modelfile import ESTIMATORS, ModelFileError
from dmkc.report import write_report

PLUGIN = Path(__file__).parent / "outside" / "rank_kernel.py"


@pytest.fixture(autouse=True)
def plugin(monkeypatch):
    monkeypatch.setenv(registry.PLUGINS, str(PLUGIN))
    registry.import_plugins()


def heavy_tails(n=400, clusters=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(n, 5))
    X[:, :2] += 6.0 * (np.arange(n) % clusters)[:, None]
    return X


WITH_A_BANK = [m for m, cls in ESTIMATORS.items() if "kernels" in cls.parameters()]


@pytest.mark.parametrize("method", WITH_A_BANK)
@pytest.mark.parametrize("clusters", [2, 3])
def test_in_every_bank(method, clusters, tmp_path):
    X = heavy_tails(clusters=clusters)
    bank = ["ranks:50", "gaussian:0.5"]
    model = ESTIMATORS[method](clusters, kernels=bank, random_state=0, rank=30).fit(X)
    assert model.kernels_[0].steps == 50
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_features_are_ranks_and_chunks_do_not_matter():
    import dask.array as da

    X = heavy_tails(3000)
    model = dmkc.MultipleKernelClustering(kernels="ranks", random_state=0, sample_rows=500)
    labels, features = model.fit(X).labels_, model.transform(X)
    np.testing.assert_array_equal(model.fit(da.from_array(X, chunks=(700, 2))).labels_, labels)
    monotone = np.arctan(X)
    others = model.fit(monotone).transform(monotone)
    assert np.mean(np.abs(others - features)) < 1e-4


def test_from_the_command_line_and_in_model_files(command, tmp_path):
    np.save(tmp_path / "x.npy", heavy_tails())
    fit = ("fit", tmp_path / "x.npy", "--method", "mkc")
    fit += ("--kernels", "ranks,gaussian:0.5", "--seed", 0)
    done = command(*fit, "--out", tmp_path / "run", DMKC_PLUGINS=str(PLUGIN))
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Ranks" in report
    without = command("info", tmp_path / "run" / "model.zarr")
    assert without.returncode == 2 and "'ranks'" in without.stderr
    assert len(sentences(without.stderr)) == 1
    unknown = command(*fit, "--out", tmp_path / "other")
    assert unknown.returncode == 2 and "Unknown kernel 'ranks'" in unknown.stderr
    wrong = command(*fit, "--out", tmp_path / "other", DMKC_PLUGINS="no_such_module")
    assert wrong.returncode != 0 and "no_such_module" in wrong.stderr
    assert len(sentences(wrong.stderr)) == 1


def test_a_damaged_state_is_refused(tmp_path):
    import zarr

    from dmkc.modelfile import files

    model = dmkc.MultipleKernelClustering(kernels="ranks", random_state=0).fit(heavy_tails())
    model.save(tmp_path / "m")
    group = zarr.open_group(store=tmp_path / "m", mode="r+")
    group.create_array("edges_0", data=np.ones((5, 7)), overwrite=True)
    described = dict(group.attrs["dmkc"])
    described["shapes"]["edges_0"] = [5, 7]
    arrays = {name: np.asarray(array[...]) for name, array in group.arrays()}
    described["sha256"] = files._digest(described, arrays)
    group.attrs["dmkc"] = described
    with pytest.raises(ModelFileError, match="table of quantiles does not fit"):
        dmkc.load(tmp_path / "m")


def test_in_a_report(tmp_path):
    X = heavy_tails()
    model = dmkc.MultipleKernelClustering(kernels=["ranks", "linear"], random_state=0).fit(X)
    text = write_report(model, X, tmp_path / "r.html", title="Ranks").read_text()
    assert "Ranks" in text


def test_on_a_cluster_that_has_to_be_sent_the_file():
    X = heavy_tails(3000)
    model = dmkc.MultipleKernelClustering(kernels=["ranks", "linear"], random_state=0)
    expected = model.fit(X).labels_
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        with pytest.raises(ImportError, match=r"cannot import 'rank_kernel'.*client\.upload_file"):
            model.fit(X)
        client.upload_file(str(PLUGIN))
        np.testing.assert_array_equal(model.fit(X).labels_, expected)


def test_names_that_are_taken_and_things_that_are_no_kernels():
    class Other(KERNELS["ranks"]):
        pass

    with pytest.raises(ValueError, match=r"the kernel rank_kernel\.Ranks by the name 'ranks'"):
        KERNELS.register("ranks", Other)
    with pytest.raises(TypeError, match="must be a subclass of Kernel"):
        KERNELS.register("number", int)
    assert KERNELS.name_of(KERNELS["ranks"]) == "ranks"
    assert KERNELS.name_of(Other) is None and issubclass(Other, Kernel)


def test_entry_points(monkeypatch):
    from importlib.metadata import EntryPoint

    good = EntryPoint("ranks-too", "rank_kernel:Ranks", "dmkc.kernels")
    bad = EntryPoint("broken", "no_such_module:Kernel", "dmkc.kernels")
    monkeypatch.setattr(registry, "entry_points", lambda group: [good, bad])
    found = registry.Registry("dmkc.kernels", "kernel", Kernel)
    with pytest.warns(UserWarning, match="'broken' of 'no_such_module:Kernel' is left out"):
        assert list(found) == ["ranks-too"]
    assert found["ranks-too"] is KERNELS["ranks"]
