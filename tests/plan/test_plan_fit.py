"""`dmkc.plan`: what it says of a fit, beside what the fit then does."""

import json
import re
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import dmkc
from dmkc.datasets import make_blobs
from dmkc.modelfile import ESTIMATORS
from dmkc.planning.pilot import Pilot, first_run
from dmkc.scan import engine as engines
from dmkc.scan.meter import Call, Meter, metering

SMALL = {"random_state": 0, "sample_rows": 500}
QUICK = {"mkc": {"rank": 20}, "skmmc": {"rank": 20}, "odm": {"rank": 20}}
QUICK |= {name: {"rank": 20} for name in ("mkkm", "kernel-kmeans", "hmkkm")}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(3000, 4, 2, seed=0)[0]


@pytest.fixture(scope="module")
def many():
    return make_blobs(60_000, 4, 2, seed=0)[0]


@pytest.fixture
def one_thread():
    """The smaller pilots have four blocks a thread, which bounds the size of these tests."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_method_can_be_planned(method, blobs):
    model = ESTIMATORS[method](2, **SMALL, **QUICK.get(method, {}))
    before = model.get_params()
    found = dmkc.plan(blobs, model)
    assert model.get_params() == before and not hasattr(model, "labels_")
    model.fit(blobs)
    assert found.scans == (model.n_scans_,) * 3  # so few rows are fitted whole
    assert found.method == type(model).__name__ and found.rows == 3000
    assert 0 < found.seconds_low < found.seconds < found.seconds_high
    spent = sum(step.count * step.seconds for step in found.steps) + found.coordinator_seconds
    assert spent == pytest.approx(found.seconds)
    assert found.memory_per_worker > found.held_bytes / found.workers
    assert json.loads(json.dumps(found.as_dict()))["walltime"] == found.walltime


def test_a_first_run_is_what_the_first_pilot_took_beyond_what_it_did():
    def made(seconds, each):
        calls = (Call("cuts", True, False, 10, each, 0), Call("cuts", True, False, 10, each, 0))
        return Pilot(10, seconds, calls, 2, True)

    pilots = [made(3.0, 1.0), made(0.5, 0.2), made(0.5, 0.2)]  # 0.1 s are between the calls
    assert first_run(pilots) == pytest.approx(3.0 - 0.1 - 2 * 0.2)
    assert first_run(pilots[1:]) == 0


def test_a_fresh_process_is_told_what_its_first_run_costs(tmp_path):
    code = (
        "import dmkc, numpy as np\n"
        "X = np.random.default_rng(0).normal(size=(500, 3))\n"
        "for _ in range(2):\n"
        "    found = dmkc.plan(X, dmkc.MultipleKernelClustering(2, random_state=0))\n"
        "    print(found.first_run_seconds, 'a first run' in str(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (cold, told), (warm, _) = (line.split() for line in done.stdout.splitlines())
    assert told == "True" and float(warm) < float(cold)


def test_pilots_are_of_some_rows(many, one_thread):
    model = dmkc.MultipleKernelClustering(rank=20, **SMALL)
    found = dmkc.plan(many, model)
    assert found.pilot_rows == (16_884, 16_884, 60_000)  # runs and the sample; all rows
    model.fit(many)
    names = {step.name for step in found.steps}
    assert {"survey", "columns", "cuts", "labels"} <= names
    low, expected, high = found.scans
    assert low <= expected <= high and low / 2 <= model.n_scans_ <= 2 * high
    assert found.feature_bytes == found.held_bytes


def small_memory(monkeypatch, n_bytes):
    plain = engines.ThreadEngine.__init__

    def less(self):
        plain(self)
        self.memory = n_bytes

    monkeypatch.setattr(engines.ThreadEngine, "__init__", less)


def test_pilots_hold_features_as_all_rows_would(many, one_thread, monkeypatch):
    small_memory(monkeypatch, 10_000_000)
    params = {"rank": 20, "feature_mode": "auto", **SMALL}
    found = dmkc.plan(many, dmkc.MultipleKernelClustering(**params))
    # 16,384 rows would fit, 60,000 do not
    assert found.feature_bytes / 60_000 * 16_384 < 10_000_000 < found.feature_bytes
    assert found.feature_mode in ("recompute", "store")
    assert "columns" not in {step.name for step in found.steps}
    assert found.held_bytes == 0


def test_precision_is_that_of_all_rows(many, one_thread, monkeypatch):
    """Few rows would be float64, all rows are float32."""
    from dmkc.clusterers import prepare

    monkeypatch.setattr(prepare, "EXACT_BYTES", 10_000_000)
    model = dmkc.MultipleKernelClustering(rank=20, feature_mode="persist", **SMALL)
    found = dmkc.plan(many, model)
    width = found.feature_bytes // (4 * 60_000)
    assert found.feature_bytes == 4 * 60_000 * width
    assert 8 * 16_384 * width < 10_000_000 < 8 * 60_000 * width
    assert found.held_bytes == found.feature_bytes
    assert model.fit(many).model_.features.plan.dtype == np.float32


def test_training_rows_are_planned_for_themselves(many, one_thread):
    model = dmkc.MultipleKernelClustering(rank=20, train_rows=20_000, **SMALL)
    found = dmkc.plan(many, model)
    assert found.train_rows == 20_000
    by_rows = {
        on: {s.name for s in found.steps if s.on == on} for on in ("all rows", "training rows")
    }
    assert by_rows["all rows"] == {"take", "predict"}
    assert {"survey", "cuts"} <= by_rows["training rows"]
    assert found.scans == (2, 2, 2)


def test_lazy_rows_are_planned_with_their_labels(many, one_thread):
    X = da.from_array(many, chunks=(7000, 4))
    found = dmkc.plan(X, dmkc.KMeans(2, **SMALL))
    assert {"labels", "rows"} <= {step.name for step in found.steps}
    assert found.held_bytes == pytest.approx(many.nbytes, rel=0.01)


def test_on_a_cluster(many, thread_client):
    found = dmkc.plan(many, dmkc.KMeans(2, client=thread_client, **SMALL))
    assert found.workers == 2 and "2 Dask worker(s)" in found.where
    assert found.held_bytes == pytest.approx(many.nbytes, rel=0.01)


def test_open_parameters_are_chosen_first(blobs):
    found = dmkc.plan(blobs[:600], dmkc.MultipleKernelClustering(C="auto", rank=20, **SMALL))
    assert found.seconds > found.coordinator_seconds > 0


def test_a_metered_fit_is_the_same_fit(blobs):
    meter, model = Meter(), dmkc.MultipleKernelClustering(rank=20, **SMALL)
    plain = clone(model).fit(blobs)
    with metering(meter):
        model.fit(blobs)
    assert np.array_equal(model.labels_, plain.labels_) and model.objective_ == plain.objective_
    over_all = [c for c in meter.calls if c.is_scan or c.name == "labels"]
    assert len(over_all) == model.n_scans_
    assert {c.rows for c in meter.calls} == {3000}
    clone(model).fit(blobs)
    assert len([c for c in meter.calls if c.is_scan or c.name == "labels"]) == len(over_all)


def test_a_plan_is_a_table(blobs):
    text = str(dmkc.plan(blobs, dmkc.KMeans(2, max_iter=1, **SMALL)))
    assert re.search(r"^rows +3,000 x 4$", text, re.M)
    assert re.search(r"^suggested walltime +\d\d:\d\d:\d\d$", text, re.M)
    for name in ("feature mode", "blocks", "memory per worker", "time per scan", "expected time"):
        assert re.search(rf"^{name} +\S", text, re.M)


def test_mistakes_are_named(blobs, tmp_path):
    with pytest.raises(TypeError, match="not for a list"):
        dmkc.plan(blobs, [])
    model = dmkc.MultipleKernelClustering(init=np.arange(3000) % 2)
    with pytest.raises(ValueError, match="the given init does not hold"):
        dmkc.plan(blobs, model)
    linked = dmkc.MarginDistributionClustering(must_link=[(0, 1)])
    with pytest.raises(ValueError, match="the given must_link does not hold"):
        dmkc.plan(blobs, linked)
    with dmkc.checkpoint(tmp_path), pytest.raises(ValueError, match="plan before it"):
        dmkc.plan(blobs, dmkc.KMeans(2, random_state=0))
    with pytest.raises(ValueError, match="n_clusters must be an integer"):
        dmkc.plan(blobs, dmkc.KMeans("two"))


def test_missing_values_are_named_by_their_own_rows(many, one_thread):
    holed = many.copy()
    holed[45_000:, 1] = np.nan
    with pytest.raises(ValueError, match=r"first at row (4[5-9]|5)\d+, column 1"):
        dmkc.plan(holed, dmkc.KMeans(2, **SMALL))


def test_a_plan_is_shown_as_a_table_and_takes_rows_first(blobs):
    model = dmkc.KMeans(2, max_iter=1, **SMALL)
    found = dmkc.plan(blobs, model)
    assert repr(found) == str(found) and len(repr(found).splitlines()) < 25
    assert found._repr_html_().count("<tr>") == len(found.pairs())
    with pytest.raises(TypeError, match=r"Rows come first.*dmkc\.plan\(X, estimator\)"):
        dmkc.plan(model, blobs)
