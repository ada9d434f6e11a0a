"""Members that are fitted together: the bits of members alone, in fewer passes over the rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dmkc import (
    ConsensusClustering,
    HierarchicalKernelKMeans,
    KernelKMeans,
    KMeans,
    MarginDistributionClustering,
    MultipleKernelClustering,
    MultipleKernelKMeans,
    NonparallelPlaneClustering,
    SparseKernelMMC,
    SpectralClustering,
)
from dmkc.data import Read, as_rows
from dmkc.data.blocks import bounds
from dmkc.errors import UserError
from dmkc.kernels import Gaussian, Linear
from dmkc.scan.engine import ThreadEngine

N = 9000
SMALL = {"random_state": 0, "sample_rows": 300}
MARGIN = {**SMALL, "rank": 10, "kernels": [Linear(), Gaussian(0.5)]}
OF_TIME = ("seconds", "rows_per_second")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(3, 3))
    return centres[rng.integers(0, 3, N)] + rng.normal(size=(N, 3))


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).random(N)


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    """The same values, all the way down, but for what a clock has said."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, (np.ndarray, da.Array)):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs), err_msg=where)
    elif sp.issparse(ours):
        assert_same(ours.toarray(), theirs.toarray(), where)
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for name in set(ours) - set(OF_TIME):
            assert_same(ours[name], theirs[name], f"{where}.{name}")
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs), where
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, f"{where}[{number}]")
    elif is_dataclass(ours) and not isinstance(ours, type):
        for field in fields(ours):
            assert_same(getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field}")
    elif hasattr(ours, "__dict__") and not isinstance(ours, (type, np.dtype)):
        assert_same(vars(ours), vars(theirs), where)
    else:
        np.testing.assert_equal(ours, theirs, err_msg=where)


def assert_as_alone(members: list[Any], X: Any, sample_weight: Any = None) -> ConsensusClustering:
    joined = ConsensusClustering(2, members=members, random_state=0, sample_rows=300)
    joined.fit(X, sample_weight=sample_weight)
    for number, member in enumerate(members):
        alone = clone(member).fit(X, sample_weight=sample_weight)
        names = {name for name in vars(alone) if name.endswith("_") and name[0] != "_"}
        assert {"labels_", "model_", "history_", "n_scans_"} <= names
        for name in names:
            ours = getattr(joined.members_[number], name)
            assert_same(ours, getattr(alone, name), f"{number} {name}")
    return joined


def of_all_methods(k: int) -> list[Any]:
    few = {"rank": 10, **SMALL}
    return [
        KMeans(k, **SMALL),
        KMeans(k + 1, init="k-means||", n_init=2, **SMALL),
        MultipleKernelClustering(k, C=1.0, **MARGIN),
        MultipleKernelClustering(k, C=5.0, max_iter=4, tol=0.1, **MARGIN),
        SparseKernelMMC(k, **few),
        MarginDistributionClustering(k, **few),
        NonparallelPlaneClustering(k, max_iter=3, **SMALL),
        KernelKMeans(k, **few),
        MultipleKernelKMeans(k, kernels=["linear", "gaussian:0.5"], **few),
        HierarchicalKernelKMeans(k, kernels=["linear", "gaussian:0.5"], **few),
        SpectralClustering(k, anchors=60, **SMALL),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("k", "lazy", "weighted"),
    [(2, False, False), (2, True, True), (3, False, True), (3, True, False)],
)
def test_every_method_comes_out_as_alone(X, weights, k, lazy, weighted):
    rows = da.from_array(X, chunks=(2500, 3)) if lazy else X
    assert_as_alone(of_all_methods(k), rows, weights if weighted else None)


@dataclass(frozen=True, eq=False)
class CountedReads:
    """Rows that are read from somewhere else on every pass, and how often."""

    values: np.ndarray
    reads: list[int]

    def blocks(self, block_rows: int) -> list[Read]:
        return [Read(self, start, stop) for start, stop in bounds(len(self.values), block_rows)]

    def read(self, start: int, stop: int) -> np.ndarray:
        self.reads.append(stop - start)
        return self.values[start:stop]


def passes(model: Any, X: np.ndarray) -> int:
    """How often a fit reads all rows."""
    source = CountedReads(X, [])
    model.fit(replace(as_rows(X), source=source, in_memory=False))
    total = sum(source.reads)
    assert total % len(X) == 0
    return total // len(X)


def joined(members: list[Any]) -> ConsensusClustering:
    return ConsensusClustering(2, members=members, random_state=0, sample_rows=300)


def own_passes(X: np.ndarray) -> int:
    """Passes of the consensus itself: survey, clusters of the members."""
    return passes(joined([KMeans(2, max_iter=1, **SMALL)] * 2), X) - passes(
        KMeans(2, max_iter=1, **SMALL), X
    )


@pytest.mark.filterwarnings("ignore")
def test_k_means_of_different_numbers_needs_the_passes_of_the_longest(X):
    members = [KMeans(k, random_state=k, sample_rows=300) for k in (2, 3, 5, 8)]
    alone = [passes(clone(member), X) for member in members]
    # labels are made at the end, for all at once
    assert passes(joined(members), X) - own_passes(X) == max(alone) < sum(alone) / 2


@pytest.mark.filterwarnings("ignore")
def test_lazy_rows_are_computed_once_for_all(X, monkeypatch):
    calls, mapped = [], ThreadEngine._map

    def noted(self, func, blocks, name, *args):
        calls.append(name)
        return mapped(self, func, blocks, name, *args)

    monkeypatch.setattr(ThreadEngine, "_map", noted)
    rows = da.from_array(X, chunks=(2500, 3))
    members = [KMeans(k, random_state=k, sample_rows=300) for k in (2, 3, 5)]
    alone = []
    for member in members:
        calls.clear()
        clone(member).fit(rows)
        alone.append(len(calls))
    calls.clear()
    model = joined(members).fit(rows)
    assert calls.count("rows") == 1 and calls.count("survey") == 2  # one of the consensus itself
    assert len(calls) < sum(alone) and model._member_scans == max(alone) - 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lazy", [False, True])
def test_processes_of_a_cluster_come_to_the_same(X, weights, process_client, lazy):
    rows = da.from_array(X, chunks=(2500, 3)) if lazy else X
    members = [
        KMeans(2, **SMALL),
        KMeans(3, **SMALL),
        MultipleKernelClustering(C=1.0, **MARGIN),
        MultipleKernelClustering(C=5.0, **MARGIN),
        KernelKMeans(3, rank=10, **SMALL),
    ]
    model = joined(members).set_params(client=process_client).fit(rows, sample_weight=weights)
    expected = joined(members).fit(X, sample_weight=weights)
    for ours, theirs in zip(model.members_, expected.members_, strict=True):
        np.testing.assert_array_equal(np.asarray(ours.labels_), theirs.labels_)
        assert_same(ours.model_, theirs.model_, "model")
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)


@pytest.mark.filterwarnings("ignore")
def test_members_with_the_same_features_hold_them_once(X, monkeypatch):
    held, collect = [], ThreadEngine.collect

    def noted(self, make, blocks, name):
        held.append(name)
        return collect(self, make, blocks, name)

    monkeypatch.setattr(ThreadEngine, "collect", noted)
    members = [
        MultipleKernelClustering(C=1.0, **MARGIN),
        MultipleKernelClustering(C=10.0, n_init=2, init="random", **MARGIN),
        MultipleKernelClustering(3, **MARGIN),
    ]
    model = joined(members).fit(X)
    assert held.count("columns") == 1
    plans = {id(member.model_.features.plan) for member in model.members_}
    assert len(plans) == 1  # so that labels of all members are made from the same values
    other = clone(members[0]).set_params(rank=11)
    assert_as_alone([*members[:2], other], X)
    assert held.count("columns") == 1 + 1 + 3  # both kinds of features in one pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["recompute", "store", "persist"])
def test_modes_share_passes_and_change_nothing(X, mode):
    members = [
        MultipleKernelClustering(C=C, feature_mode=mode, **MARGIN) for C in (1.0, 10.0, 100.0)
    ]
    model = assert_as_alone([*members, KMeans(4, **SMALL)], X)
    alone = [member.n_scans_ for member in model.members_]
    assert model.n_scans_ < sum(alone)
    if mode == "recompute":
        reads = [passes(clone(member), X) for member in members]
        assert passes(joined(members), X) - own_passes(X) == max(reads)


@pytest.mark.filterwarnings("ignore")
def test_different_methods_read_the_rows_together(X):
    members = [
        KMeans(3, **SMALL),
        KernelKMeans(3, rank=10, **SMALL),
        SpectralClustering(3, anchors=60, **SMALL),
    ]
    alone = [passes(clone(member), X) for member in members]
    assert passes(joined(members), X) - own_passes(X) < sum(alone)


@pytest.mark.filterwarnings("ignore")
def test_equal_scans_are_done_once(X, monkeypatch):
    surveys, scan = [], ThreadEngine.scan

    def noted(self, scanned, blocks, grid):
        surveys.append(len(getattr(scanned, "scans", [0])) if scanned.name == "survey" else 0)
        return scan(self, scanned, blocks, grid)

    monkeypatch.setattr(ThreadEngine, "scan", noted)
    joined([KMeans(k, **SMALL) for k in (2, 3, 4)]).fit(X)
    assert [count for count in surveys if count] == [1, 1]  # of the members, and of the consensus
    surveys.clear()
    joined([KMeans(2, random_state=seed, sample_rows=300) for seed in (0, 0, 1)]).fit(X)
    assert [count for count in surveys if count] == [2, 1]


@pytest.mark.filterwarnings("ignore")
def test_members_that_cannot_share_are_fitted_alone(X):
    members = [
        KMeans(3, **SMALL),
        KMeans(3, scale="standard", **SMALL),
        MultipleKernelClustering(train_rows=500, polish=1, **MARGIN),
        MarginDistributionClustering(
            rank=10, must_link=[[0, 5], [3, 8]], cannot_link=[[1, 2]], **SMALL
        ),
        MultipleKernelClustering(dtype="float32", **MARGIN),
        MultipleKernelClustering((2, 3), **MARGIN),
    ]
    assert_as_alone(members, X)


class Foreign(KMeans):
    """A method of another package, which runs in the thread that it was asked in."""

    def fit(self, X, y=None, sample_weight=None):
        assert threading.current_thread() is threading.main_thread()
        self.asked_ = X
        return super().fit(X, y, sample_weight)


@pytest.mark.filterwarnings("ignore")
def test_methods_of_others_are_given_the_rows_as_they_came(X):
    model = joined([Foreign(3, **SMALL), KMeans(3, **SMALL)]).fit(X)
    assert model.members_[0].asked_ is X
    np.testing.assert_array_equal(model.members_[0].labels_, model.members_[1].labels_)


@pytest.mark.filterwarnings("ignore")
def test_little_memory_means_fewer_members_at_once(X, monkeypatch):
    members = [
        MultipleKernelClustering(rank=rank, random_state=0, sample_rows=300, kernels=["gaussian"])
        for rank in (10, 12, 14)
    ]
    expected, plain = joined(members).fit(X), ThreadEngine.__init__
    memory = {"bytes": 2 * N * 16 * 8}

    def less(self):
        plain(self)
        self.memory = memory["bytes"]

    monkeypatch.setattr(ThreadEngine, "__init__", less)
    scans = []
    for size in (2 * N * 16 * 8, N * 16 * 8, 100_000):
        memory["bytes"] = size
        model = joined(members).fit(X)
        scans.append(model.n_scans_)
        for ours, theirs in zip(model.members_, expected.members_, strict=True):
            assert_same(ours.labels_, theirs.labels_, "labels")
            assert_same(ours.model_, theirs.model_, "model")
    assert scans[1] == sum(member.n_scans_ for member in expected.members_) + (
        expected.n_scans_ - expected._member_scans
    )


@pytest.mark.filterwarnings("ignore")
def test_a_generator_gives_the_seeds_that_it_would_give_one_after_the_other(X):
    model = ConsensusClustering(
        3, members=["kmeans"] * 3, random_state=np.random.RandomState(0), sample_rows=300
    ).fit(X)
    seeds = np.random.RandomState(0)
    for member in model.members_:
        alone = KMeans(3, random_state=seeds).fit(X)
        assert_same(member.cluster_centers_, alone.cluster_centers_, "centres")


def test_an_error_says_which_member_it_is_of(X):
    before = threading.active_count()
    few = X[:4]
    with pytest.raises(UserError, match=r"^Member 2 of 3, KMeans: n_samples=4 should be >= ") as e:
        joined([KMeans(2), KMeans(5), KMeans(3)]).fit(few)
    assert "\n" not in str(e.value)
    with pytest.raises(UserError, match=r"^Member 1 of 2, KMeans: Input X contains 1 NaN"):
        joined([KMeans(2), KMeans(3)]).fit(np.where(np.arange(12).reshape(4, 3) == 7, np.nan, few))
    assert threading.active_count() == before


@pytest.mark.filterwarnings("ignore")
def test_a_failure_in_a_shared_pass_is_that_of_one_member(X, monkeypatch):
    from dmkc.scan.assign import GramScan

    def fail(self, *args):
        raise ZeroDivisionError("as a bug would")

    monkeypatch.setattr(GramScan, "leaf", fail, raising=False)
    monkeypatch.setattr(GramScan, "block", fail)
    before = threading.active_count()
    members = [KMeans(3, **SMALL), KernelKMeans(3, rank=10, **SMALL), KMeans(4, **SMALL)]
    with pytest.raises(ZeroDivisionError) as caught:
        joined(members).fit(X)
    assert caught.value.__notes__ == ["Member 2 of 3, KernelKMeans, failed."]
    assert threading.active_count() == before


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_is_interrupted_leaves_no_fit_behind(X, monkeypatch):
    scan, calls = ThreadEngine.scan, []

    def interrupted(self, *args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return scan(self, *args)

    monkeypatch.setattr(ThreadEngine, "scan", interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        joined([KMeans(3, **SMALL), KMeans(4, **SMALL)]).fit(X)
    assert threading.active_count() == before
