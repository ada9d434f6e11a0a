"""The first pass: moments, values that are not finite, and the sampled rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.scan.engine import Held, ThreadEngine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import SurveyScan, sample_positions

LEAF = 64
BAD = st.sampled_from([np.nan, np.inf, -np.inf])


def surveyed(X, positions=(), level=0):
    n = X.shape[0]
    grid = Grid(n, LEAF, level)
    step = grid.block_rows
    blocks = [Held(X[a : a + step], a, min(n, a + step)) for a in range(0, n, step)]
    return ThreadEngine().scan(SurveyScan(np.array(positions, np.int64)), blocks, grid)


def dense(sample):
    return sample.toarray() if sp.issparse(sample) else sample


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, -1e9])
@pytest.mark.parametrize("spread", [1.0, 1e-2])
@pytest.mark.parametrize("n", [1, 64, 500])
def test_moments_of_columns_with_an_offset(n, spread, offset):
    rng = np.random.default_rng(n)
    X = offset + spread * rng.normal(size=(n, 5))
    found = surveyed(X)
    exact = X.astype(np.longdouble)
    rounding = 4e-16 * max(abs(offset), spread)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(
        found.spread, exact.std(axis=0).astype(float), rtol=1e-9, atol=rounding
    )
    np.testing.assert_array_equal(found.low, X.min(axis=0))
    np.testing.assert_array_equal(found.high, X.max(axis=0))
    assert found.count == n
    assert found.bad.tolist() == [0, 0] and found.first_bad == ()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_offset_of_a_million_keeps_a_spread_of_a_thousandth(kind):
    X = 1e6 + 1e-3 * np.random.default_rng(3).normal(size=(300, 3))
    found = surveyed(X if kind == "dense" else sp.csr_array(X))
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(found.spread, X.std(axis=0), rtol=1e-5)


def test_float32_rows_with_an_offset_are_summed_in_double():
    X = (1000 + np.random.default_rng(5).normal(size=(5000, 4))).astype(np.float32)
    found = surveyed(X)
    np.testing.assert_allclose(found.mean, X.astype(float).mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.spread, X.astype(float).std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.bool_, np.float32])
def test_other_number_types(dtype):
    X = np.random.default_rng(6).integers(0, 2, size=(200, 3)).astype(dtype)
    found = surveyed(X)
    np.testing.assert_allclose(found.mean, X.astype(float).mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.spread, X.astype(float).std(axis=0), rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 400), density=st.floats(0, 1), level=st.integers(0, 3), seed=st.integers(0, 99)
)
def test_sparse_rows_give_what_dense_rows_give(n, density, level, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < density)
    positions = sample_positions(n, 50, seed)
    a, b = surveyed(X, positions, level), surveyed(sp.csr_array(X), positions, level)
    for name in ("mean", "deviation", "low", "high"):
        np.testing.assert_allclose(
            getattr(b, name), getattr(a, name), rtol=1e-10, atol=1e-10, err_msg=name
        )
    np.testing.assert_array_equal(dense(b.sample), a.sample)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 500),
    places=st.lists(
        st.tuples(
            st.integers(0, 499), st.integers(0, 3), st.sampled_from([np.nan, np.inf, -np.inf])
        ),
        min_size=1,
        max_size=12,
    ),
    level=st.integers(0, 4),
    sparse=st.booleans(),
)
def test_bad_values_are_counted_and_the_first_ones_located(n, places, level, sparse):
    X = np.random.default_rng(n).normal(size=(n, 4))
    for i, j, value in places:
        X[i % n, j] = value
    found = surveyed(sp.csr_array(X) if sparse else X, level=level)
    assert found.bad.tolist() == [np.isnan(X).sum(), np.isinf(X).sum()]
    where = [tuple(place) for place in np.argwhere(~np.isfinite(X))]
    assert found.first_bad == tuple((int(i), int(j)) for i, j in where[: len(found.first_bad)])
    assert len(found.first_bad) == min(len(where), 5)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 600), size=st.integers(1, 300), seed=st.integers(0, 999))
def test_the_sample_is_the_rows_at_its_positions_whatever_the_blocks(n, size, seed):
    X = np.arange(3 * n, dtype=float).reshape(n, 3)
    positions = sample_positions(n, size, seed)
    assert len(positions) == min(n, size)
    assert (np.diff(positions) > 0).all() and positions[0] >= 0 and positions[-1] < n
    for level in range(5):
        for rows in (X, sp.csr_array(X)):
            np.testing.assert_array_equal(
                dense(surveyed(rows, positions, level).sample), X[positions]
            )


def test_the_sample_is_spread_over_all_rows():
    counts = np.zeros(1000)
    for seed in range(200):
        counts[sample_positions(1000, 100, seed)] += 1
    assert abs(counts.reshape(10, 100).sum(axis=1) - 2000).max() < 250
    assert not np.array_equal(sample_positions(1000, 100, 0), sample_positions(1000, 100, 1))


@pytest.mark.parametrize("sparse", [False, True])
def test_bits_do_not_depend_on_the_blocks(sparse):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1000, 5)) * 10.0 ** rng.integers(-5, 5, size=5)
    rows = sp.csr_array(X) if sparse else X
    first = surveyed(rows)
    for level in range(1, 6):
        other = surveyed(rows, level=level)
        for name in ("mean", "deviation", "low", "high"):
            np.testing.assert_array_equal(getattr(first, name), getattr(other, name))
