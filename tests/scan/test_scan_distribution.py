"""The scan of margin-distribution losses beside plain NumPy and automatic differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dmkc.data import RowRecord
from dmkc.scan.distribution import (
    STEPS,
    DistributionRequest,
    DistributionScan,
    LossShape,
)
from dmkc.scan.grid import Grid, fold_pieces
from dmkc.scan.multiclass import Scores

SHAPE = LossShape(0.3, 0.4, 0.01, 0.07)
USED, WEIGHT_AT, TIE_AT, WIDTH = 5, 5, 6, 16


def rows(n=300, seed=0, constrained=9):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, WIDTH))
    X[:, :USED] = rng.normal(size=(n, USED))
    X[:, WEIGHT_AT] = rng.integers(0, 4, n)
    X[np.sort(rng.choice(n, constrained, replace=False)), TIE_AT] = np.arange(1, constrained + 1)
    return X


def scores(rng, s):
    w = np.zeros((s, WIDTH))
    w[:, :USED] = rng.normal(size=(s, USED))
    return Scores(w, rng.normal(size=s))


def request(seed, s, constrained=9, curved=True):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, max(2, s), constrained)
    parts = [scores(rng, s) for _ in range(3)]
    return DistributionRequest(parts[0], labels, parts[1], parts[2], s == 1, SHAPE, USED, curved)


def record(X, dtype):
    """Rows whose weights and numbers of constrained rows are columns that no score looks at."""
    return RowRecord(X.astype(dtype), X[:, WEIGHT_AT], X[:, TIE_AT].astype(np.int64))


def run(requests, X, leaf_rows=64, dtype=np.float64):
    scan = DistributionScan.of(requests, np.dtype(dtype))
    node = scan.block(record(X, dtype), 0, leaf_rows)
    return scan.unpack(node)


def at(scores, X):
    return X @ scores.w.T + scores.b


def decided(f):
    return (f[:, 0] >= 0).astype(int) if f.shape[1] == 1 else f.argmax(axis=1)


def plain(request, X):
    """Margins, losses and counts of all rows, without any cleverness."""
    labels, tie = decided(at(request.label, X)), X[:, TIE_AT].astype(int)
    labels[tie > 0] = request.constrained[tie[tie > 0] - 1]
    count = X[:, WEIGHT_AT] * np.where(tie > 0, SHAPE.constrained, SHAPE.free)
    s = len(request.label.b)
    clusters = np.array([1]) if s == 1 else np.arange(s)
    y = np.where(labels[:, None] == clusters, 1.0, -1.0)
    return y, count, tie


def total_loss(request, X, scores):
    y, count, _ = plain(request, X)
    return float((count[:, None] * SHAPE.of(y * at(scores, X))).sum())


@pytest.mark.parametrize("s", [1, 3])
def test_losses_shares_and_scores(s):
    X, r = rows(), request(1, s)
    (found,) = run([r], X)
    assert found.loss == pytest.approx(total_loss(r, X, r.point))
    for part, loss in zip(STEPS, found.shorter, strict=True):
        b = r.before
        between = Scores(b.w + part * (r.point.w - b.w), b.b + part * (r.point.b - b.b))
        assert loss == pytest.approx(total_loss(r, X, between))
    _, count, tie = plain(r, X)
    free, f = tie == 0, at(r.point, X)
    own, w = decided(f), X[:, WEIGHT_AT]
    np.testing.assert_allclose(found.counts, np.bincount(own[free], w[free], minlength=max(2, s)))
    assert found.changed == pytest.approx(w[free & (own != decided(at(r.label, X)))].sum())
    assert found.total == pytest.approx(w.sum())
    sides = np.where(own[:, None] == (np.array([1]) if s == 1 else np.arange(s)), 1, -1)
    assert found.own == pytest.approx((count[:, None] * SHAPE.of(sides * f))[free].sum())
    np.testing.assert_allclose(found.constrained_scores, f[tie > 0].T)


@pytest.mark.parametrize("s", [1, 3])
def test_derivatives_are_those_of_the_losses(s):
    X, r = rows(), request(2, s)
    (found,) = run([r], X)
    (without,) = run([request(2, s, curved=False)], X)
    np.testing.assert_allclose(found.slope, without.slope, atol=1e-12)
    assert without.square is None
    h = 1e-6
    for k in range(s):
        for j in range(USED):
            step = np.zeros_like(r.point.w)
            step[k, j] = h
            up, down = (Scores(r.point.w + e * step, r.point.b) for e in (1, -1))
            slope = (total_loss(r, X, up) - total_loss(r, X, down)) / (2 * h)
            assert 2 * found.slope[k, j] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    y, count, _ = plain(r, X)
    margin = y * at(r.point, X)
    second = np.where(margin < 0.7, 1.0, np.where(margin > 1.3, SHAPE.nu, 0.0)) * count[:, None]
    for k in range(s):
        rows_ = X[:, :USED]
        np.testing.assert_allclose(found.square[k], (rows_.T * second[:, k]) @ rows_, atol=1e-12)
        np.testing.assert_allclose(found.cross[k], second[:, k] @ rows_, atol=1e-12)
        assert found.bias_square[k] == pytest.approx(second[:, k].sum())


def test_a_batch_is_its_members():
    X = rows()
    requests = [request(seed, 1) for seed in range(4)]
    for alone, r in zip(run(requests, X), requests, strict=True):
        (one,) = run([r], X)
        assert one.loss == pytest.approx(alone.loss) and one.label_hash == alone.label_hash
        np.testing.assert_allclose(one.square, alone.square)
        np.testing.assert_allclose(one.constrained_scores, alone.constrained_scores)


def test_blocks_do_not_change_a_bit():
    X, r = rows(500), request(3, 1)
    scan = DistributionScan.of([r], np.dtype(np.float32))
    X = record(X, np.float32)
    whole = scan.block(X, 0, 64)
    for level in (0, 1):
        grid = Grid(500, 64, level)
        size = grid.block_rows
        pieces = [
            (level, i, scan.block(X[i * size : (i + 1) * size], i * size, 64))
            for i in range(grid.n_blocks)
        ]
        ((_, _, node),) = fold_pieces(pieces, grid.n_leaves, scan.merge)
        for a, b in zip(whole, node, strict=True):
            np.testing.assert_array_equal(a, b)


def test_without_ties_and_weights():
    X = rows()
    r = request(4, 1, constrained=0)
    free = replace(r, constrained=np.empty(0, int))
    scan = DistributionScan.of([free], np.dtype(np.float64))
    (found,) = scan.unpack(scan.block(X, 0, 64))
    assert found.total == len(X) and found.constrained_scores.shape == (1, 0)
    y = np.where(at(r.label, X) >= 0, 1, -1)
    assert found.loss == pytest.approx(SHAPE.free * SHAPE.of(y * at(r.point, X)).sum())
