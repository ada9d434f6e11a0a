"""The registry of estimators: entry points, names that are taken, classes from elsewhere."""

import warnings
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import dmkc
from dmkc import KMeans, registry
from dmkc.cli import main
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.parameters import Integer, Parameter
from dmkc.clusterers.registry import ESTIMATORS, Estimators
from dmkc.datasets import make_blobs
from dmkc.errors import UserError


class EveryOther(KMeans):
    """k-means that does more steps than it is asked for."""

    summary = "k-means with a few more steps"
    declared = (*KMeans.declared, Parameter("extra", Integer(least=0), 5, "How many more."))

    def __init__(
        self,
        n_clusters=2,
        *,
        init="k-means++",
        n_init=None,
        max_iter=300,
        tol=1e-4,
        scale="if-mixed",
        sample_rows=16384,
        random_state=None,
        verbose=0,
        client=None,
        extra=5,
    ):
        super().__init__(
            n_clusters,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            scale=scale,
            sample_rows=sample_rows,
            random_state=random_state,
            verbose=verbose,
            client=client,
        )
        self.extra = extra

    def _facts(self):
        return [("steps more", self.extra)]


class Undeclared(KMeans):
    """An estimator whose default is another than it declares."""

    def __init__(self, n_clusters=3):
        super().__init__(n_clusters)


def entry(name, value):
    return EntryPoint(name, f"{__name__}:{value}", ESTIMATORS.group)


@pytest.fixture
def fresh(monkeypatch):
    """A registry of its own, which finds some entry points."""

    def make(*entries):
        monkeypatch.setattr(registry, "entry_points", lambda group: list(entries))
        found = Estimators(ESTIMATORS.group, "estimator", RowClusterer)
        found.register("kmeans", KMeans)
        return found

    return make


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(ESTIMATORS, "_known", dict(ESTIMATORS))
    dmkc.register_estimator("every-other", EveryOther)


def test_entry_points_are_loaded_when_somebody_asks(fresh):
    found = fresh(entry("every-other", "EveryOther"))
    assert list(found._known) == ["kmeans"]
    assert list(found) == ["kmeans", "every-other"] and found["every-other"] is EveryOther
    assert len(found) == 2 and "every-other" in found


def test_a_broken_package_is_left_out_with_one_sentence(fresh):
    broken = [
        entry("gone", "Nothing"),
        EntryPoint("absent", "no_such_module:X", ESTIMATORS.group),
        entry("function", "entry"),
        entry("undeclared", "Undeclared"),
        entry("kmeans", "EveryOther"),
    ]
    for each in broken:
        found = fresh(each, entry("every-other", "EveryOther"))
        with pytest.warns(
            UserWarning, match=f"The estimator '{each.name}' .* is left out: "
        ) as told:
            assert list(found) == ["kmeans", "every-other"]
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert found["kmeans"] is KMeans


def test_what_is_refused(registered):
    dmkc.register_estimator("every-other", EveryOther)  # once more is no harm
    same_name = type("KMeans", (KMeans,), {})
    for name, cls, sentence in (
        ("mkc", EveryOther, "the estimator .*MultipleKernelClustering by the name 'mkc'"),
        ("other", same_name, "the estimator .*KMeans by the name 'kmeans'"),
        ("Two Words", Undeclared, "small letters"),
        ("undeclared", Undeclared, "is not taken by __init__|The default of 'n_clusters'"),
        ("object", object, "must be a subclass of RowClusterer"),
    ):
        with pytest.raises(UserError, match=sentence):
            dmkc.register_estimator(name, cls)


def test_a_registered_estimator_is_saved_loaded_fitted_and_reported(registered, tmp_path, capsys):
    X, _ = make_blobs(200, 3, 2, seed=0)
    np.save(tmp_path / "x.npy", X)
    words = ["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "run"), "--seed", "0"]
    assert main([*words, "--method", "every-other", "--extra", "7", "--quiet"]) == 0
    model = dmkc.load(tmp_path / "run" / "model.zarr")
    assert type(model) is EveryOther and model.extra == 7
    assert "steps more" in (tmp_path / "run" / "report.html").read_text()
    assert main(["fit", "--help"]) == 0
    assert "every-other     k-means with a few more steps" in capsys.readouterr().out
    assert main([*words, "--method", "mkc", "--extra", "7"]) == 2
    assert "every-other alone has it" in capsys.readouterr().err


def test_a_model_of_an_unknown_estimator_says_what_to_do(registered, tmp_path, monkeypatch):
    X, _ = make_blobs(100, 3, 2, seed=0)
    EveryOther(random_state=0).fit(X).save(tmp_path / "m.zarr")
    known = {name: cls for name, cls in ESTIMATORS.items() if cls is not EveryOther}
    monkeypatch.setattr(ESTIMATORS, "_known", known)
    with pytest.raises(dmkc.modelfile.ModelFileError, match=r"dmkc\.register_estimator"):
        dmkc.load(tmp_path / "m.zarr")
