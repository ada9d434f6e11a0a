"""Members of a consensus that are fitted together, interrupted and continued."""

from __future__ import annotations

import numpy as np
import pytest
from test_resume_fit import Killed, assert_identical, fit_with_ends, scans  # noqa: F401

import dmkc
from dmkc import ConsensusClustering, KernelKMeans, KMeans, MultipleKernelClustering
from dmkc.resume import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    side = rng.random(9_000) < 0.4
    return rng.normal(size=(9_000, 4)) + np.where(side, 1.5, -1.0)[:, None]


def consensus(mode="auto"):
    small = {"random_state": 0, "sample_rows": 300}
    margin = {"rank": 10, "kernels": ["linear", "gaussian:0.5"], "feature_mode": mode, **small}
    members = [
        KMeans(3, **small),
        MultipleKernelClustering(C=1.0, **margin),
        MultipleKernelClustering(C=10.0, **margin),
        KernelKMeans(3, rank=10, **small),
        MultipleKernelClustering(train_rows=500, **margin),
    ]
    return ConsensusClustering(2, members=members, **small)


def assert_same_members(model, expected):
    assert_identical(model, expected)
    for ours, theirs in zip(model.members_, expected.members_, strict=True):
        assert_identical(ours, theirs)


@pytest.mark.parametrize("step", [4, 6])
def test_members_end_the_same_however_often_they_are_ended(X, tmp_path, scans, step):  # noqa: F811
    expected = consensus().fit(X)
    model, ends = fit_with_ends(consensus, X, tmp_path, scans, step)
    assert ends >= 2
    assert_same_members(model, expected)


def test_a_finished_run_is_replayed_with_few_looks_at_the_rows(X, tmp_path, scans):  # noqa: F811
    with dmkc.checkpoint(tmp_path):
        expected = consensus().fit(X)
    recorded = scans["count"]
    scans.update(count=0)
    with dmkc.checkpoint(tmp_path) as journal:
        assert_same_members(consensus().fit(X), expected)
        assert not journal.replaying
    assert scans["count"] == 3 < recorded  # the members, the one of a subset, the consensus


@pytest.mark.parametrize("modes", [("persist", "recompute"), ("recompute", "persist")])
def test_members_may_go_on_in_another_mode(X, tmp_path, scans, modes, caplog):  # noqa: F811
    before, after = modes
    expected = consensus().fit(X)
    scans.update(count=0, end=6)
    with pytest.raises(Killed), dmkc.checkpoint(tmp_path):
        consensus(before).fit(X)
    scans.update(count=0, end=None)
    with dmkc.checkpoint(tmp_path) as journal:
        had = len(journal)
        model = consensus(after).fit(X)
        assert len(journal) > had > 6
    for ours, theirs in zip(model.members_, expected.members_, strict=True):
        assert_identical(ours, theirs)
    assert "took another course" not in caplog.text


def test_members_need_seeds(X, tmp_path):
    members = [KMeans(3, random_state=0), KMeans(4)]
    sentence = r"^Member 2 of 2, KMeans: A fit inside dmkc.checkpoint needs an integer"
    with dmkc.checkpoint(tmp_path), pytest.raises(CheckpointError, match=sentence):
        ConsensusClustering(2, members=members, random_state=0).fit(X)
