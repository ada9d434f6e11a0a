"""Fits that are interrupted and continued: the result is that of an unbroken one."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dmkc
from dmkc.modelfile import ESTIMATORS
from dmkc.resume import CheckpointError
from dmkc.resume.journal import NAME, digest
from dmkc.scan.engine import ThreadEngine

SMALL = {"random_state": 1, "rank": 10, "sample_rows": 300, "dtype": "float32"}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    side = rng.random(9_000) < 0.4
    return rng.normal(size=(9_000, 4)) + np.where(side, 1.5, -1.0)[:, None]


def estimator(cls=dmkc.MultipleKernelClustering, **params):
    known = cls().get_params()
    return cls(**{k: v for k, v in {**SMALL, **params}.items() if k in known})


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def scans(monkeypatch):
    """Counts the scans that touch rows, and ends the process before a chosen one."""
    scan, state = ThreadEngine.scan, {"count": 0, "end": None}

    def counted(self, *args):
        if state["end"] is not None and state["count"] >= state["end"]:
            raise Killed
        state["count"] += 1
        return scan(self, *args)

    monkeypatch.setattr(ThreadEngine, "scan", counted)
    return state


def assert_identical(model, expected):
    np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(expected.labels_))
    if hasattr(expected, "objective_"):
        assert model.objective_ == expected.objective_
    assert model.n_iter_ == expected.n_iter_ and model.n_scans_ == expected.n_scans_


def fit_with_ends(make, X, folder, scans, step, **fit):
    """Fit with the process ending after every `step` scans; how often it ended."""
    for ends in range(60):
        scans.update(count=0, end=step)
        try:
            with dmkc.checkpoint(folder):
                return make().fit(X, **fit), ends
        except Killed:
            continue
    raise AssertionError("the fit never ends")


# a choice is one step (tests/clusterers/test_auto.py)
CASES = [(name, {}) for name in ESTIMATORS if name != "auto"]
CASES += [("mkc", {"n_clusters": 3}), ("mkc", {"train_rows": 2000, "polish": 2})]
CASES += [("mkc", {"kernels": ["neighbours:8", "linear"]}), ("spectral", {"n_clusters": "auto"})]


@pytest.mark.parametrize(("method", "more"), CASES)
def test_every_method_ends_the_same_however_often_it_is_ended(method, more, X, tmp_path, scans):
    def make():
        return estimator(ESTIMATORS[method], **more)

    expected = make().fit(X)
    model, ends = fit_with_ends(make, X, tmp_path, scans, 2)
    assert ends >= 1
    assert_identical(model, expected)


@pytest.mark.parametrize("mode", ["persist", "recompute", "store"])
def test_a_run_may_go_on_in_another_mode(mode, X, tmp_path, scans):
    expected = estimator().fit(X)
    scans.update(count=0, end=6)
    with pytest.raises(Killed), dmkc.checkpoint(tmp_path):
        estimator(feature_mode="persist").fit(X)
    scans.update(count=0, end=None)
    with dmkc.checkpoint(tmp_path):
        assert_identical(estimator(feature_mode=mode).fit(X), expected)


def test_a_run_may_go_on_elsewhere(X, tmp_path, scans, process_client):
    expected = estimator().fit(X)
    scans.update(count=0, end=6)
    with pytest.raises(Killed), dmkc.checkpoint(tmp_path):
        estimator().fit(X)
    scans.update(end=0)
    with dmkc.checkpoint(tmp_path):
        assert_identical(estimator(client=process_client).fit(X), expected)


def test_a_finished_run_is_replayed_with_one_look_at_the_rows(X, tmp_path, scans):
    with dmkc.checkpoint(tmp_path) as journal:
        expected = estimator().fit(X)
    assert scans["count"] > 6
    scans.update(count=0)
    with dmkc.checkpoint(tmp_path) as journal:
        assert journal.replaying
        model = estimator().fit(X)
        assert not journal.replaying
    assert scans["count"] == 1
    assert_identical(model, expected)


def test_checkpoints_change_nothing(X, tmp_path):
    expected = estimator().fit(X)
    with dmkc.checkpoint(tmp_path / "deep" / "folder"):
        model = estimator().fit(X)
    assert_identical(model, expected)
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    folder = tmp_path / "deep" / "folder"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600


def test_several_fits_in_one_run(X, tmp_path, scans):
    def work():
        return [estimator(C=c).fit(X) for c in (1.0, 5.0)]

    expected = work()
    for _ in range(100):
        scans.update(count=0, end=6)
        try:
            with dmkc.checkpoint(tmp_path):
                models = work()
            break
        except Killed:
            continue
    for model, other in zip(models, expected, strict=True):
        assert_identical(model, other)


@pytest.mark.parametrize(
    "form",
    [
        lambda X: da.from_array(X, chunks=(1000, 4)),
        lambda X: pd.DataFrame(X),
        lambda X: sp.csr_array(X * (np.abs(X) > 1)),
    ],
    ids=["dask", "pandas", "sparse"],
)
def test_other_forms_of_rows(form, X, tmp_path, scans):
    expected = estimator().fit(form(X))
    model, ends = fit_with_ends(estimator, form(X), tmp_path, scans, 4)
    assert ends >= 1
    assert_identical(model, expected)


def test_weighted_rows(X, tmp_path, scans):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    expected = estimator().fit(X, sample_weight=weights)
    model, ends = fit_with_ends(estimator, X, tmp_path, scans, 4, sample_weight=weights)
    assert ends >= 1
    assert_identical(model, expected)
    scans.update(end=None)
    changed = weights.copy()
    changed[5000] *= 1.001
    with dmkc.checkpoint(tmp_path), pytest.raises(CheckpointError, match="other rows"):
        estimator().fit(X, sample_weight=changed)


def interrupted(X, folder, scans, **params):
    scans.update(count=0, end=4)
    with pytest.raises(Killed), dmkc.checkpoint(folder):
        estimator(**params).fit(X)
    scans.update(count=0, end=None)
    return (folder / NAME).read_bytes()


def test_another_runs_rows_are_refused(X, tmp_path, scans):
    before = interrupted(X, tmp_path, scans)
    other = X.copy()
    other[7777, 2] = np.nextafter(other[7777, 2], 9.0)
    for rows in (other, X[:-1], X[:, :3], X[::-1], X.astype(np.float32)):
        with dmkc.checkpoint(tmp_path), pytest.raises(CheckpointError, match="other rows"):
            estimator().fit(rows)
    assert (tmp_path / NAME).read_bytes() == before
    expected = estimator().fit(X)
    with dmkc.checkpoint(tmp_path):
        assert_identical(estimator().fit(X), expected)


def test_another_runs_parameters_are_refused(X, tmp_path, scans):
    before = interrupted(X, tmp_path, scans, C=2.0)
    for params, words in (
        ({"C": 3.0}, "C differ"),
        ({"C": 2.0, "random_state": 2}, "random_state differ"),
        ({"C": 2.0, "kernels": ["linear"]}, "kernels differ"),
        ({"C": 2.0, "landmarks": X[:20]}, "landmarks differ"),
        ({"C": 2.0, "rank": 11, "tol": 1e-2}, "rank, tol differ"),
    ):
        with dmkc.checkpoint(tmp_path), pytest.raises(CheckpointError, match=words):
            estimator(**params).fit(X)
    assert (tmp_path / NAME).read_bytes() == before


def test_rows_may_come_in_another_form(X, tmp_path, scans):
    """The same numbers are the same rows, whatever holds them."""
    expected = estimator().fit(X)
    interrupted(X, tmp_path, scans)
    with dmkc.checkpoint(tmp_path):
        model = estimator().fit(da.from_array(X, chunks=(700, 2)))
    np.testing.assert_array_equal(model.labels_.compute(), expected.labels_)


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0), np.random.default_rng(0)])
def test_a_run_needs_a_seed(seed, X, tmp_path):
    with dmkc.checkpoint(tmp_path), pytest.raises(CheckpointError, match="random_state"):
        estimator(random_state=seed).fit(X)


def test_a_run_that_takes_another_course_goes_on_by_itself(X, tmp_path, scans, monkeypatch, caplog):
    """As after a change of versions: the recorded answers to other questions are not used."""
    expected = estimator().fit(X)
    total = scans["count"]
    interrupted(X, tmp_path, scans)
    before, changed = digest, iter([False, False, True])

    def other(*parts):
        return "another" if next(changed, True) else before(*parts)

    monkeypatch.setattr("dmkc.resume.engine.digest", other)
    with dmkc.checkpoint(tmp_path):
        assert_identical(estimator().fit(X), expected)
    assert "another course" in caplog.text
    assert scans["count"] == total - 1  # one answer was still good


def test_large_statistics_are_made_again(X, tmp_path, scans, monkeypatch):
    monkeypatch.setattr("dmkc.resume.engine.MOST_BYTES", 20_000)  # less than the sample
    expected = estimator(train_rows=3000).fit(X)
    with dmkc.checkpoint(tmp_path):
        estimator(train_rows=3000).fit(X)
    assert (tmp_path / NAME).stat().st_size < 200_000
    with dmkc.checkpoint(tmp_path):
        assert_identical(estimator(train_rows=3000).fit(X), expected)


def test_mistakes(tmp_path):
    for every in (-1, "5", True, float("nan")):
        with pytest.raises(ValueError, match="every"), dmkc.checkpoint(tmp_path, every=every):
            pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError), dmkc.checkpoint(tmp_path / "file"):
        pass
