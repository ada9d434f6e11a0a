"""The scan of hard margin problems against a few lines of NumPy."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from dmkc.data import RowRecord
from dmkc.scan.cuts import Affine, CutRequest, CutScan
from dmkc.scan.engine import Held, ThreadEngine
from dmkc.scan.grid import Grid
from dmkc.scan.requests import GivenLabels
from dmkc.scan.softcuts import SoftCutRequest, SoftCutScan

WIDTH = 0.2


def made(rng, n=500, d=12, weighted=False, dtype=np.float64):
    X = (rng.normal(size=(n, d)) / 2).astype(dtype)
    weights = rng.uniform(0.5, 2, n).astype(dtype) if weighted else None
    return RowRecord(X, weights, labels=rng.integers(0, 2, (n, 1)).astype(np.int32))


def requested(rng, d=12, n_models=2, curved=True, stride=1, label=None):
    def model():
        return Affine(rng.normal(size=d), float(rng.normal()))

    models = tuple(model() for _ in range(n_models))
    return SoftCutRequest(label or model(), models, WIDTH, curved, stride)


def scanned(record, *requests, leaf_rows=128):
    scan = SoftCutScan.of(requests, record.rows.dtype)
    return scan.unpack(scan.block(record, 0, leaf_rows))


def margins(record, request, model):
    """Sides, scores, weights and soft masks of the rows."""
    X = record.rows.astype(np.float64)
    if isinstance(request.label, GivenLabels):
        z = np.where(record.labels[:, 0] > 0, 1.0, -1.0)
    else:
        z = np.where(X @ request.label.w + request.label.b >= 0, 1.0, -1.0)
    f = X @ model.w + model.b
    w = np.ones(len(X)) if record.weights is None else record.weights.astype(np.float64)
    return X, z, f, w, 1 / (1 + np.exp(-(1 - z * f) / WIDTH))


@pytest.mark.parametrize("label", [None, GivenLabels(0)], ids=["model", "given"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_match_numpy(label, weighted):
    rng = np.random.default_rng(1)
    record = made(rng, weighted=weighted)
    request = requested(rng, label=label)
    (answers,) = scanned(record, request)
    for model, sums in zip(request.models, answers, strict=True):
        X, z, f, w, soft = margins(record, request, model)
        np.testing.assert_allclose(sums.row_sum, (w * z * soft) @ X, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sums.masked, (w * soft).sum())
        np.testing.assert_allclose(sums.signed, (w * z * soft).sum(), atol=1e-9)
        np.testing.assert_allclose(sums.hinge, (w * np.maximum(1 - z * f, 0)).sum())
        smooth = WIDTH * np.logaddexp(0, (1 - z * f) / WIDTH)
        np.testing.assert_allclose(sums.smooth, (w * smooth).sum())
        with_one = np.column_stack([X, np.ones(len(X))])
        bend = w * soft * (1 - soft) / WIDTH
        # rows of almost no curvature are left out
        expected = (with_one * bend[:, None]).T @ with_one
        np.testing.assert_allclose(sums.square, expected, atol=1e-4 * np.abs(expected).max())


def test_a_soft_cut_is_the_slope_of_the_smooth_violation():
    rng = np.random.default_rng(2)
    record = made(rng)
    request = requested(rng, n_models=1)
    (model,) = request.models
    ((here,),) = scanned(record, request)
    way, step = rng.normal(size=12), 1e-6
    ends = tuple(Affine(model.w + s * way, model.b) for s in (step, -step))
    ((up, down),) = scanned(record, SoftCutRequest(request.label, ends, WIDTH, False))
    np.testing.assert_allclose(
        (up.smooth - down.smooth) / (2 * step), -here.row_sum @ way, rtol=1e-6
    )
    bent = (up.smooth + down.smooth - 2 * here.smooth) / step**2
    assert bent == pytest.approx(way @ here.square[:-1, :-1] @ way, rel=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_hard_masks_are_those_of_plain_cuts(weighted):
    rng = np.random.default_rng(3)
    record = made(rng, weighted=weighted)
    request = requested(rng, n_models=3, curved=False)
    (soft,) = scanned(record, request)
    plain = CutScan.of([CutRequest(request.label, request.models)], record.rows.dtype)
    (hard,) = plain.unpack(plain.block(record, 0, 128))
    for a, b in zip(soft, hard, strict=True):
        assert a.square is None and a.label_hash == b.label_hash
        for name, value in vars(b).items():
            np.testing.assert_allclose(getattr(a, name), value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_part_of_the_rows_stands_for_the_curvature_of_all():
    rng = np.random.default_rng(4)
    record, label = made(rng, n=20_000), GivenLabels(0)
    models = requested(rng).models
    (whole,), (part,) = (
        scanned(record, SoftCutRequest(label, models[:1], WIDTH, True, stride), leaf_rows=1024)[0]
        for stride in (1, 7)
    )
    np.testing.assert_allclose(part.row_sum, whole.row_sum)
    np.testing.assert_allclose(part.square, whole.square, atol=0.15 * np.abs(whole.square).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_the_blocks(dtype):
    rng = np.random.default_rng(5)
    n = 777
    record = made(rng, n=n, weighted=True, dtype=dtype)
    requests = [requested(rng, n_models=2, stride=3), requested(rng, curved=False)]
    scan, engine, found = SoftCutScan.of(requests, record.rows.dtype), ThreadEngine(), []
    for level in range(5):
        grid = Grid(n, 64, level)
        edges = [(a, min(n, a + grid.block_rows)) for a in range(0, n, grid.block_rows)]
        blocks = [Held(record[a:b], a, b) for a, b in edges]
        found.append(scan.unpack(engine.scan(scan, blocks, grid)))
    for other in found[1:]:
        for a, b in zip(chain(*found[0]), chain(*other), strict=True):
            for name, value in vars(a).items():
                np.testing.assert_array_equal(getattr(b, name), value, err_msg=name)
