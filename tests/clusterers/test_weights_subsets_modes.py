"""RowRecord rows, training on a subset, and the ways to hold columns."""

from __future__ import annotations

import dask
import dask.array as da
import dask.threaded
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from dmkc import Gaussian, Linear, MultipleKernelClustering, Polynomial
from dmkc.datasets import make_ringnorm
from dmkc.kernels.sample import weighted_median
from dmkc.metrics import accuracy
from dmkc.scan.engine import ThreadEngine
from dmkc.scan.survey import sample_positions

BANK = [Linear(), Polynomial(2, gamma=0.1), Gaussian(gamma=0.1)]


def blobs(n, seed=0, m=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    centres = 4.0 * np.eye(5)[:m]
    return centres[y] + rng.normal(size=(n, 5)), y


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("sample_rows", [10_000, 200])
def test_a_row_of_weight_three_is_three_equal_rows(m, sample_rows):
    X, y = blobs(600, m=m)
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    repeated, labels = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    common = {"kernels": BANK, "landmarks": X[:40], "random_state": 0, "tol": 1e-6, "C": 10.0}
    weighted = MultipleKernelClustering(m, init=y, sample_rows=sample_rows, **common)
    weighted.fit(X, sample_weight=weights)
    plain = MultipleKernelClustering(m, init=labels, sample_rows=sample_rows, **common)
    plain.fit(repeated)
    tolerance = 1e-5 if sample_rows > len(repeated) else 5e-2  # features are scaled on samples
    assert weighted.objective_ == pytest.approx(plain.objective_, rel=tolerance)
    assert accuracy(plain.predict(X), weighted.labels_) > 0.998
    np.testing.assert_allclose(weighted.kernel_weights_, plain.kernel_weights_, atol=2e-2)


def test_weights_travel_with_lazy_rows():
    X, _ = blobs(9000)
    weights = np.random.default_rng(1).uniform(0.1, 2, len(X))
    common = {"random_state": 0, "sample_rows": 500}
    expected = MultipleKernelClustering(**common).fit(X, sample_weight=weights)
    lazy = da.from_array(X, chunks=(1234, 2))
    for given in (weights, da.from_array(weights, chunks=777)):
        found = MultipleKernelClustering(**common).fit(lazy, sample_weight=given)
        np.testing.assert_array_equal(found.labels_.compute(), expected.labels_)
        assert found.objective_ == expected.objective_


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(3), "one weight per row"),
        (-np.ones(50), "not negative"),
        (np.zeros(50), "not only zeros"),
        (np.full(50, np.nan), "finite"),
    ],
)
def test_weights_that_make_no_sense(weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        MultipleKernelClustering().fit(blobs(50)[0], sample_weight=weights)


@pytest.mark.parametrize("seed", range(5))
def test_the_weighted_median_is_the_median_of_repeated_values(seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.integers(0, 9, 20).astype(float), rng.integers(0, 4, 20).astype(float)
    expected = np.median(np.repeat(values, weights.astype(int)))
    assert weighted_median(values, weights) == expected


@pytest.mark.parametrize("train_rows", [400, 0.05])
def test_a_subset_is_nearly_as_good_as_all_rows(train_rows):
    X, y = make_ringnorm(20_000, seed=1)
    full = MultipleKernelClustering(random_state=0).fit(X)
    some = MultipleKernelClustering(random_state=0, train_rows=train_rows).fit(X)
    assert some.n_scans_ == 2
    assert len(some.labels_) == len(X)
    assert accuracy(y, some.labels_) > accuracy(y, full.labels_) - 0.02


def test_polishing_goes_on_from_the_subset_and_lowers_the_objective():
    X, _ = make_ringnorm(20_000, seed=1)
    some = MultipleKernelClustering(random_state=0, train_rows=300, rank=50).fit(X)
    more = MultipleKernelClustering(random_state=0, train_rows=300, rank=50, polish=5).fit(X)
    assert more.C_ == some.C_
    records = [r for r in more.history_ if r["on"] == "all"]
    assert records and records[-1]["objective"] <= records[0]["objective"]
    scores = some.decision_function(X)
    assert more.n_scans_ > some.n_scans_
    assert abs(float(scores.mean())) < 1.0


def test_the_subset_does_not_depend_on_chunks():
    X, _ = make_ringnorm(9_000, seed=2)
    common = {"random_state": 3, "train_rows": 500, "polish": 2}
    expected = MultipleKernelClustering(**common).fit(X)
    lazy = MultipleKernelClustering(**common).fit(da.from_array(X, chunks=(701, 7)))
    np.testing.assert_array_equal(lazy.labels_.compute(), expected.labels_)
    assert lazy.objective_ == expected.objective_


def test_a_given_labeling_is_cut_down_to_the_subset():
    X, y = blobs(3000)
    model = MultipleKernelClustering(random_state=0, train_rows=500, init=[y, "k-means"]).fit(X)
    assert accuracy(y, model.labels_) > 0.98


@pytest.mark.parametrize("weighted", [False, True])
def test_starts_and_scaling_do_not_depend_on_the_luck_of_a_small_subset(weighted):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2, 3], [1200, 800, 600, 400]))
    X = rng.normal(size=(len(y), 6)) + 6.0 * np.eye(6)[y]
    weights = np.ones(len(y)) if weighted else None
    model = MultipleKernelClustering(4, scale="standard", random_state=0, train_rows=100)
    model.fit(X, sample_weight=weights)
    assert accuracy(y, model.labels_) > 0.99
    np.testing.assert_allclose(model.model_.features.plan.scaling.shift, X.mean(axis=0))
    np.testing.assert_allclose(1 / model.model_.features.plan.scaling.factor, X.std(axis=0))
    missing = np.setdiff1d(np.arange(len(y)), sample_positions(len(y), 100, 1))[:3]
    X[missing, 2] = np.nan  # rows that are not trained on
    with pytest.raises(ValueError, match="3 NaN"):
        model.fit(X, sample_weight=weights)


@pytest.mark.parametrize("train_rows", [0, -3, 1.5, "half", True])
def test_train_rows_that_make_no_sense(train_rows):
    with pytest.raises(ValueError, match="train_rows must be"):
        MultipleKernelClustering(train_rows=train_rows).fit(blobs(50)[0])


def test_polish_goes_with_train_rows():
    with pytest.raises(ValueError, match="polish goes with train_rows"):
        MultipleKernelClustering(polish=2).fit(blobs(50)[0])


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr", "sparse"])
@pytest.mark.parametrize("m", [2, 3])
def test_the_ways_to_hold_columns_agree_to_the_bit(kind, m, tmp_path):
    X, _ = blobs(9000, m=m)
    rows = {
        "numpy": lambda: X,
        "dask": lambda: da.from_array(X, chunks=(1000, 3)),
        "zarr": lambda: _stored(X, tmp_path / "x.zarr"),
        "sparse": lambda: sp.csr_array(X),
    }[kind]()
    found = {}
    for mode in ("persist", "recompute", "store"):
        model = MultipleKernelClustering(
            m, random_state=0, sample_rows=600, feature_mode=mode, store_path=str(tmp_path)
        )
        found[mode] = (np.asarray(model.fit(rows).labels_), model.objective_)
    for mode in ("recompute", "store"):
        np.testing.assert_array_equal(found[mode][0], found["persist"][0])
        assert found[mode][1] == found["persist"][1]
    leftovers = [p.name for p in tmp_path.iterdir() if p.name.startswith("dmkc-columns")]
    assert leftovers == []


def _stored(X, path):
    zarr.save_array(path, X)
    return str(path)


def test_what_does_not_fit_is_not_held(monkeypatch):
    X, _ = blobs(9000)
    init = ThreadEngine.__init__

    def small(self):
        init(self)
        self.memory = 1000

    monkeypatch.setattr(ThreadEngine, "__init__", small)
    expected = MultipleKernelClustering(random_state=0, sample_rows=600, feature_mode="persist")
    model = MultipleKernelClustering(random_state=0, sample_rows=600, verbose=2)
    np.testing.assert_array_equal(model.fit(X).labels_, expected.fit(X).labels_)


def test_a_store_path_that_is_no_folder(tmp_path):
    model = MultipleKernelClustering(
        feature_mode="store", store_path=str(tmp_path / "absent"), sample_rows=100
    )
    with pytest.raises(ValueError, match="store_path must be an existing folder"):
        model.fit(blobs(500)[0])


def test_wide_sparse_rows_stay_sparse(monkeypatch):
    """Text-like rows: far more columns than could be made dense."""
    rng = np.random.default_rng(0)
    n, d = 1500, 100_000
    y = rng.integers(0, 2, n)
    topics = rng.choice(d, size=(2, 300), replace=False)
    columns = np.where(
        rng.random((n, 40)) < 0.6,
        topics[y][np.arange(n)[:, None], rng.integers(0, 300, (n, 40))],
        rng.integers(0, d, (n, 40)),
    )
    X = sp.csr_array((np.ones(n * 40), (np.repeat(np.arange(n), 40), columns.ravel())), (n, d))
    toarray = sp.csr_array.toarray

    def few_only(self, *args, **kwargs):
        assert self.shape[0] < 1000, "all rows were made dense"
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(sp.csr_array, "toarray", few_only)
    model = MultipleKernelClustering(
        kernels=[Linear(), Gaussian()], scale=None, random_state=0, sample_rows=400
    ).fit(X)
    assert accuracy(y, model.labels_) > 0.95


def test_rows_in_memory_are_labelled_here_even_with_a_client(process_client):
    """What is in this process is not sent to workers just to be labelled or trained on."""
    X, _ = blobs(6000)
    expected = MultipleKernelClustering(random_state=0, train_rows=2000).fit(X)
    with process_client.as_current(), dask.config.set(scheduler="dask.distributed"):
        engine = ThreadEngine()
        assert engine._get is dask.threaded.get
        model = MultipleKernelClustering(random_state=0, train_rows=2000).fit(X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_large_numbers_are_not_taken_for_a_constant_kernel(factor):
    X, y = blobs(300)
    model = MultipleKernelClustering(kernels=["polynomial", "linear"], scale=None, random_state=0)
    model.fit(X * factor)
    assert (model.kernel_weights_ > 0).all()
    assert accuracy(y, model.labels_) > 0.9


def test_a_dask_labeling_is_a_start():
    X, y = blobs(300)
    model = MultipleKernelClustering(init=da.from_array(y, chunks=70), random_state=0).fit(X)
    assert model.start_ == "given"


def test_a_given_labeling_that_the_sample_misses_is_not_dropped_silently():
    X, y = blobs(3000)
    y[:] = 0
    y[np.setdiff1d(np.arange(3000), sample_positions(3000, 100, 0))[0]] = 1
    model = MultipleKernelClustering(init=y, sample_rows=100, random_state=0)
    with pytest.warns(UserWarning, match="A given labeling is left out"):
        model.fit(X)


def test_a_failed_fit_leaves_the_old_model_whole():
    X, _ = blobs(200)
    model = MultipleKernelClustering(random_state=0).fit(X)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((10, 3), np.nan))
    np.testing.assert_array_equal(model.predict(X), expected)


def test_weights_of_two_rows_cannot_form_three_clusters():
    weights = np.zeros(200)
    weights[:2] = 1
    with pytest.raises(ValueError, match="Fewer than 3 of the sampled rows"):
        MultipleKernelClustering(3).fit(blobs(200)[0], sample_weight=weights)
