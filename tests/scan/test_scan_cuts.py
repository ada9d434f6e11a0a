"""The scan of margin clustering against a few lines of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.data import RowRecord, as_record
from dmkc.scan.base import MappedScan
from dmkc.scan.cuts import FUSED_MODELS, Affine, CutRequest, CutScan
from dmkc.scan.engine import Held, ThreadEngine
from dmkc.scan.grid import Grid
from dmkc.scan.requests import GivenLabels

COUNTS = [1, 2, FUSED_MODELS, FUSED_MODELS + 1, 3 * FUSED_MODELS]


def reference(X, label, model):
    """Sums of one model, in float64."""
    X = X.astype(np.float64)
    z = np.where(X @ label.w + label.b >= 0, 1.0, -1.0)
    f = X @ model.w + model.b
    own = np.where(f >= 0, 1.0, -1.0)
    inside = z * f < 1
    return {
        "row_sum": (z * inside) @ X,
        "masked": inside.sum(),
        "signed": (z * inside).sum(),
        "hinge": np.maximum(1 - z * f, 0).sum(),
        "own_hinge": np.maximum(1 - own * f, 0).sum(),
        "changed": (own != z).sum(),
        "positive": (f >= 0).sum(),
        "score": f.sum(),
        "total": len(X),
    }


class Copied:
    """Rows in a place of their own."""

    def room(self, n_rows):
        return None

    def __call__(self, rows, out=None):
        return np.ascontiguousarray(rows)


def scanned(X, requests, leaf_rows=256, first=0):
    scan = CutScan.of(requests, as_record(X).rows.dtype)
    return scan.unpack(scan.block(X, first, leaf_rows))


def random_requests(rng, width, counts):
    def model():
        return Affine(rng.normal(size=width), float(rng.normal()))

    return [CutRequest(model(), tuple(model() for _ in range(count))) for count in counts]


def lattice_requests(rng, width, counts):
    """Models whose scores on rows of eighths are exact in either precision, ties included."""

    def model():
        return Affine(rng.integers(-2, 3, size=width) / 2.0, float(rng.integers(-4, 5)) / 4)

    return [CutRequest(model(), tuple(model() for _ in range(count))) for count in counts]


def lattice_rows(rng, n, width, dtype):
    return (rng.integers(-8, 9, size=(n, width)) / 8.0).astype(dtype)


def assert_same(found, expected, **tolerance):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name, **tolerance)


@pytest.mark.parametrize("n_models", COUNTS)
@pytest.mark.parametrize("n", [1, 63, 256, 1000, 2049])
def test_float64_sums_match_numpy(n, n_models):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 32)) / 4
    requests = random_requests(rng, 32, [n_models])
    (answers,) = scanned(X, requests)
    for model, sums in zip(requests[0].models, answers, strict=True):
        assert_same(sums, reference(X, requests[0].label, model), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_models", COUNTS)
def test_float32_sums_match_numpy_to_their_precision(n_models):
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(3000, 48)) / 6).astype(np.float32)
    requests = random_requests(rng, 48, [n_models])
    (answers,) = scanned(X, requests, leaf_rows=1024)
    for model, sums in zip(requests[0].models, answers, strict=True):
        expected = reference(X, requests[0].label, model)
        # a row at the edge of a side or of the margin may fall on either side of it
        assert_same(sums, expected, rtol=1e-4, atol=3.0)
        assert sums.total == len(X)
        np.testing.assert_allclose(sums.hinge, expected["hinge"], rtol=1e-4)
        np.testing.assert_allclose(sums.own_hinge, expected["own_hinge"], rtol=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 700),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**20),
)
def test_exact_arithmetic_is_exact_with_ties_on_every_path(n, counts, dtype, seed):
    rng = np.random.default_rng(seed)
    X = lattice_rows(rng, n, 16, dtype)
    requests = lattice_requests(rng, 16, counts)
    for request, answers in zip(requests, scanned(X, requests, leaf_rows=64), strict=True):
        for model, sums in zip(request.models, answers, strict=True):
            assert_same(sums, reference(X, request.label, model), rtol=0, atol=0)


def test_the_lattice_has_ties():
    """Rows on the plane and rows exactly on the margin are among those compared above."""
    rng = np.random.default_rng(0)
    X = lattice_rows(rng, 700, 16, np.float64)
    (request,) = lattice_requests(rng, 16, [1])
    f = X @ request.models[0].w + request.models[0].b
    assert (f == 0).any() and (abs(f) == 1).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("counts", [(1, 1), (2, 2), (3, 1, 4), (1,) * 9, (12,)])
def test_a_batch_gives_what_single_models_give(counts, dtype):
    rng = np.random.default_rng(len(counts))
    X = lattice_rows(rng, 900, 32, dtype)
    requests = lattice_requests(rng, 32, counts)
    batch = scanned(X, requests)
    for request, answers in zip(requests, batch, strict=True):
        for model, sums in zip(request.models, answers, strict=True):
            ((alone,),) = scanned(X, [CutRequest(request.label, (model,))])
            assert_same(sums, vars(alone), rtol=0, atol=0)


def test_the_two_ways_of_scanning_agree_on_random_rows():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2000, 32)) / 4
    (request,) = random_requests(rng, 32, [2 * FUSED_MODELS])
    (many,) = scanned(X, [request])
    for model, sums in zip(request.models, many, strict=True):
        ((one,),) = scanned(X, [CutRequest(request.label, (model,))])
        assert sums.label_hash == one.label_hash
        assert_same(sums, {k: v for k, v in vars(one).items() if k != "label_hash"}, rtol=1e-11)


@pytest.mark.parametrize("n_models", [1, 2 * FUSED_MODELS])
def test_label_hashes_add_up_row_by_row_and_know_the_row_number(n_models):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(130, 16))
    requests = random_requests(rng, 16, [n_models])
    (whole,) = scanned(X, requests, leaf_rows=64, first=64)
    alone = [scanned(X[i : i + 1], requests, leaf_rows=64, first=64 + i)[0] for i in range(130)]
    for p, model in enumerate(requests[0].models):
        positive = X @ model.w + model.b >= 0
        hashes = [sums[p].label_hash for sums in alone]
        assert all((value != 0) == side for value, side in zip(hashes, positive, strict=True))
        assert len({m for m in hashes if m}) == positive.sum()
        assert whole[p].label_hash == sum(hashes) % 2**64


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(2, 300), seed=st.integers(0, 2**20), data=st.data())
def test_label_hashes_differ_when_one_row_changes_side(rows, seed, data):
    side = np.where(np.random.default_rng(seed).random(rows) < 0.5, -1.0, 1.0)
    X = np.zeros((rows, 16))
    X[:, 0] = side
    reader = Affine(np.eye(16)[0], 0.0)
    ((before,),) = scanned(X, [CutRequest(reader, (reader,))])
    X[data.draw(st.integers(0, rows - 1)), 0] *= -1
    ((after,),) = scanned(X, [CutRequest(reader, (reader,))])
    assert before.label_hash != after.label_hash
    assert after.changed == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_models", [1, FUSED_MODELS, FUSED_MODELS + 3])
@pytest.mark.parametrize("n", [64, 65, 777, 1024])
def test_bits_do_not_depend_on_the_blocks(n, n_models, dtype):
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, 48)) * 10.0 ** rng.integers(-3, 3, size=48)).astype(dtype)
    requests = random_requests(rng, 48, [n_models])
    scan, engine, found = CutScan.of(requests, X.dtype), ThreadEngine(), []
    for level in range(6):
        grid = Grid(n, 64, level)
        blocks = [
            Held(X[a : a + grid.block_rows].copy(), a, min(n, a + grid.block_rows))
            for a in range(0, n, grid.block_rows)
        ]
        found.append(scan.unpack(engine.scan(scan, blocks, grid)))
        anew = engine.scan(MappedScan(Copied(), scan), blocks, grid)
        found.append(scan.unpack(anew))
    for other in found[1:]:
        for a, b in zip(found[0][0], other[0], strict=True):
            assert_same(b, vars(a), rtol=0, atol=0)


@pytest.mark.parametrize("n_models", [1, 2 * FUSED_MODELS])
def test_scores_that_are_never_reached_are_counted_once(n_models):
    """The zero model under a one-sided labeling masks everything: its sum is the column sum."""
    X = np.random.default_rng(1).normal(size=(500, 16)) + 3
    zero, everyone = Affine(np.zeros(16), 0.0), Affine(np.zeros(16), 1.0)
    (answers,) = scanned(X, [CutRequest(everyone, (zero,) * n_models)])
    for sums in answers:
        np.testing.assert_allclose(sums.row_sum, X.sum(axis=0), rtol=1e-12)
        assert (sums.masked, sums.signed, sums.total, sums.positive) == (500, 500, 500, 500)
        assert (sums.hinge, sums.own_hinge, sums.changed, sums.score) == (500, 500, 0, 0)


@pytest.mark.parametrize("n_models", COUNTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_given_labels_are_as_good_as_a_model_that_makes_them(n_models, weighted):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1000, 16)) / 4
    weights = rng.random(1000) if weighted else None
    (by_model,) = random_requests(rng, 16, [n_models])
    sides = (X @ by_model.label.w + by_model.label.b >= 0).astype(np.int32)
    record = RowRecord(X, weights, labels=np.column_stack([1 - sides, sides]))
    given = CutRequest(GivenLabels(1), by_model.models)
    for a, b in zip(*scanned(record, [given, by_model]), strict=True):
        assert_same(a, vars(b), rtol=1e-12)


@pytest.mark.parametrize("n_models", [1, 3])
def test_a_weight_is_a_repetition(n_models):
    rng = np.random.default_rng(8)
    X, times = rng.normal(size=(200, 16)), rng.integers(0, 4, 200)
    requests = random_requests(rng, 16, [n_models])
    (weighted,) = scanned(RowRecord(X, times.astype(float)), requests)
    (repeated,) = scanned(np.repeat(X, times, axis=0), requests)
    for a, b in zip(weighted, repeated, strict=True):
        assert_same(a, {k: v for k, v in vars(b).items() if k != "label_hash"}, rtol=1e-9)
