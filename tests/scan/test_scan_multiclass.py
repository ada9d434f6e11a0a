"""The scan for several clusters against a few lines of NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.data import RowRecord, as_record
from dmkc.scan.engine import Held, ThreadEngine
from dmkc.scan.grid import Grid
from dmkc.scan.multiclass import MulticlassRequest, MulticlassScan, Scores
from dmkc.scan.requests import GivenLabels


def best_except(F, taken):
    """The largest score of every row but for one cluster, and the first cluster that has it."""
    F = F.copy()
    F[np.arange(len(F)), taken] = -np.inf
    return F.argmax(axis=1), F.max(axis=1)


def reference(X, request, model):
    X, m = X.astype(np.float64), len(model.b)
    at = np.arange(len(X))
    z = (X @ request.label.w.T + request.label.b).argmax(axis=1)
    F = X @ model.w.T + model.b
    own = F.argmax(axis=1)
    rival, rival_score = best_except(F, z)
    short = 1 - F[at, z] + rival_score
    step = request.cluster_weights[z] * (short > 0)
    pull = np.zeros((len(X), m))
    pull[at, z] += step
    pull[at, rival] -= step
    own_short = np.maximum(1 - F[at, own] + best_except(F, own)[1], 0)
    return {
        "row_sum": pull.T @ X,
        "pull": pull.sum(axis=0),
        "own_hinge": np.bincount(own, own_short, minlength=m),
        "counts": np.bincount(own, minlength=m),
        "masked": step.sum(),
        "hinge": step @ short,
        "changed": np.sum(own != z),
        "total": len(X),
    }


def scanned(X, requests, leaf_rows=128, first=0):
    scan = MulticlassScan.of(requests, as_record(X).rows.dtype)
    return scan.unpack(scan.block(X, first, leaf_rows))


def requests_of(rng, width, m, counts, lattice=False):
    def scores():
        if lattice:
            return Scores(rng.integers(-1, 2, (m, width)) / 2.0, rng.integers(-2, 3, m) / 4.0)
        return Scores(rng.normal(size=(m, width)), rng.normal(size=m))

    def weights():
        return rng.integers(1, 5, m) / 2.0 if lattice else rng.random(m) + 0.5

    return [
        MulticlassRequest(scores(), weights(), tuple(scores() for _ in range(c))) for c in counts
    ]


def assert_same(found, expected, **tolerance):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name, **tolerance)


@pytest.mark.parametrize("m", [2, 3, 7])
@pytest.mark.parametrize("counts", [(1,), (3, 2)])
@pytest.mark.parametrize("n", [1, 130, 1500])
def test_sums_match_numpy(n, counts, m):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 16)) / 4
    requests = requests_of(rng, 16, m, counts)
    for request, answers in zip(requests, scanned(X, requests), strict=True):
        for model, sums in zip(request.models, answers, strict=True):
            assert_same(sums, reference(X, request, model), rtol=1e-10, atol=1e-10)


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(1, 500),
    m=st.integers(2, 5),
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**20),
)
def test_exact_arithmetic_is_exact_with_ties(n, m, counts, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (rng.integers(-4, 5, size=(n, 16)) / 4).astype(dtype)
    requests = requests_of(rng, 16, m, counts, lattice=True)
    for request, answers in zip(requests, scanned(X, requests), strict=True):
        for model, sums in zip(request.models, answers, strict=True):
            assert_same(sums, reference(X, request, model), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [64, 777])
def test_bits_do_not_depend_on_the_blocks(n, dtype):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 32)).astype(dtype)
    requests = requests_of(rng, 32, 3, (2, 1))
    scan, found = MulticlassScan.of(requests, X.dtype), []
    for level in range(5):
        grid = Grid(n, 64, level)
        step = grid.block_rows
        blocks = [Held(X[a : a + step].copy(), a, min(n, a + step)) for a in range(0, n, step)]
        found.append(scan.unpack(ThreadEngine().scan(scan, blocks, grid)))
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            for a, b in zip(first, second, strict=True):
                assert_same(b, vars(a), rtol=0, atol=0)


@pytest.mark.parametrize("row", [0, 1, 99])
def test_label_hashes_differ_when_one_row_changes_cluster(row):
    X = np.zeros((100, 16))
    X[:, 0] = np.arange(100) % 3
    number = np.arange(3.0)
    reader = Scores(np.outer(2 * number, np.eye(16)[0]), -(number**2))
    request = MulticlassRequest(reader, np.ones(3), (reader,))
    hashes = set()
    for value in range(3):
        X[row, 0] = value
        ((sums,),) = scanned(X, [request])
        hashes.add(sums.label_hash)
    assert len(hashes) == 3


def test_given_labels_are_as_good_as_scores_that_make_them():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(700, 16)) / 4
    (by_scores,) = requests_of(rng, 16, 4, [2])
    labels = (X @ by_scores.label.w.T + by_scores.label.b).argmax(axis=1).astype(np.int32)
    record = RowRecord(X, rng.random(700), labels=labels[:, None])
    given = replace(by_scores, label=GivenLabels(0))
    for a, b in zip(*scanned(record, [given, by_scores]), strict=True):
        for name, value in vars(b).items():
            np.testing.assert_allclose(getattr(a, name), value, rtol=1e-12, err_msg=name)
