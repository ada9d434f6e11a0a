"""Raw kernel columns against scikit-learn's pairwise kernels on standardised rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from dask.sizeof import sizeof
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from dmkc.data import RowRecord
from dmkc.kernels import (
    Cosine,
    Gaussian,
    KernelPlan,
    Laplacian,
    Linear,
    Polynomial,
    Scaling,
    as_bank,
)
from dmkc.kernels.kernels import WIDE
from dmkc.kernels.plan import LANES


def rational_quadratic(A, B):
    """A kernel given as a function."""
    return 1 / (1 + pairwise.euclidean_distances(A, B, squared=True))


CASES = {
    "polynomial 1": (
        Polynomial(1, gamma=0.3, coef0=0.0),
        lambda A, B: pairwise.polynomial_kernel(A, B, 1, 0.3, 0.0),
    ),
    "polynomial 2": (
        Polynomial(2, gamma=0.2),
        lambda A, B: pairwise.polynomial_kernel(A, B, 2, 0.2, 1.0),
    ),
    "polynomial 5": (
        Polynomial(5, gamma=0.1, coef0=2.0),
        lambda A, B: pairwise.polynomial_kernel(A, B, 5, 0.1, 2.0),
    ),
    "gaussian": (Gaussian(gamma=0.15), lambda A, B: pairwise.rbf_kernel(A, B, 0.15)),
    "narrow gaussian": (Gaussian(gamma=40.0), lambda A, B: pairwise.rbf_kernel(A, B, 40.0)),
    "laplacian": (Laplacian(gamma=0.2), lambda A, B: pairwise.laplacian_kernel(A, B, 0.2)),
    "cosine": (Cosine(), pairwise.cosine_similarity),
    "function": (as_bank(rational_quadratic)[0], rational_quadratic),
}


def rows_with_scaling(n=300, d=6, offset=0.0, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (offset + rng.normal(size=(n, d)) * np.linspace(0.5, 3, d)).astype(dtype)
    exact = X.astype(np.float64)
    scaling = Scaling(exact.mean(axis=0), 1 / exact.std(axis=0))
    return X, scaling, (exact - exact.mean(axis=0)) / exact.std(axis=0)


def columns_of(X, scaling, kernel, marks, dtype, leaf_rows=128):
    maker = KernelPlan.on(scaling, (kernel,), marks, np.dtype(dtype), leaf_rows)
    columns = maker(X).rows
    assert columns.dtype == dtype and columns.shape == (X.shape[0], maker.width)
    assert maker.width % LANES == 0
    assert not columns[:, maker.offsets[-1] :].any()
    return columns[:, : maker.offsets[-1]]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_the_pairwise_kernel(name, dtype, tolerance, sparse):
    kernel, expected = CASES[name]
    X, scaling, Z = rows_with_scaling()
    marks = Z[::13]
    rows = sp.csr_array(X) if sparse else X
    found = columns_of(rows, scaling, kernel, marks, dtype)
    np.testing.assert_allclose(found, expected(Z, marks), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_rows_with_an_offset_of_a_thousand(name):
    kernel, expected = CASES[name]
    X, scaling, Z = rows_with_scaling(offset=1000.0, dtype=np.float32)
    found = columns_of(X, scaling, kernel, Z[::13], np.float32)
    np.testing.assert_allclose(found, expected(Z, Z[::13]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_exact_matrix_is_the_pairwise_kernel(name):
    kernel, expected = CASES[name]
    _, _, Z = rows_with_scaling(60)
    np.testing.assert_allclose(kernel.matrix(Z, Z[:9]), expected(Z, Z[:9]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_columns_are_the_standardised_rows(dtype, sparse):
    X, scaling, Z = rows_with_scaling()
    found = columns_of(sp.csr_array(X) if sparse else X, scaling, Linear(), Z[:5], dtype)
    np.testing.assert_allclose(found, Z, rtol=1e-6, atol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_kernel_of_very_many_columns_goes_through_landmarks(sparse):
    X, scaling, Z = rows_with_scaling(40, WIDE + 5)
    found = columns_of(sp.csr_array(X) if sparse else X, scaling, Linear(), Z[:7], np.float64)
    np.testing.assert_allclose(found, Z @ Z[:7].T, rtol=1e-9, atol=1e-9)


def test_sparse_rows_with_many_zeros_equal_dense_ones():
    rng = np.random.default_rng(3)
    X = rng.poisson(0.2, size=(200, 30)).astype(float)
    scaling = Scaling(X.mean(axis=0), 1 / X.std(axis=0))
    marks = (X[:20] - scaling.shift) * scaling.factor
    for kernel, _ in CASES.values():
        a = columns_of(X, scaling, kernel, marks, np.float64)
        b = columns_of(sp.csr_array(X), scaling, kernel, marks, np.float64)
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)


def test_a_bank_is_its_kernels_side_by_side():
    X, scaling, Z = rows_with_scaling()
    kernels = (Linear(), *(kernel for kernel, _ in CASES.values()))
    maker = KernelPlan.on(scaling, kernels, Z[:11], np.dtype(np.float64), 128)
    whole = maker(X).rows
    for kernel, a, b in zip(kernels, maker.offsets[:-1], maker.offsets[1:], strict=True):
        np.testing.assert_array_equal(
            whole[:, a:b], columns_of(X, scaling, kernel, Z[:11], np.float64)
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_bits_of_a_row_do_not_depend_on_the_block_it_is_in(dtype, sparse):
    X, scaling, Z = rows_with_scaling(1000)
    kernels = (Linear(), *(kernel for kernel, _ in CASES.values()))
    maker = KernelPlan.on(scaling, kernels, Z[:37], np.dtype(dtype), 64)
    rows = sp.csr_array(X) if sparse else X
    whole = maker(rows).rows
    for size in (64, 128, 512):
        parts = np.concatenate([maker(rows[a : a + size]).rows for a in range(0, 1000, size)])
        np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_equal_to_a_landmark_has_kernel_one(dtype):
    X, scaling, Z = rows_with_scaling(offset=50.0)
    for kernel in (Gaussian(gamma=1.0), Laplacian(gamma=1.0), Cosine()):
        found = columns_of(X[:30], scaling, kernel, Z[:30], dtype)
        np.testing.assert_allclose(np.diag(found), 1.0, atol=1e-5)
        assert found.max() <= 1 + 1e-6


def test_the_cosine_of_a_zero_row_is_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    found = columns_of(X, Scaling(np.zeros(2), np.ones(2)), Cosine(), X, np.float64)
    np.testing.assert_allclose(found, [[0, 0], [0, 1]], atol=1e-15)


def test_constant_columns_are_left_out_of_every_kernel():
    X, scaling, Z = rows_with_scaling(d=4)
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    scaling = Scaling(np.append(scaling.shift, 7.0), np.append(scaling.factor, 0.0))
    marks = np.column_stack([Z[:5], np.zeros(5)])
    for kernel, expected in CASES.values():
        found = columns_of(wider, scaling, kernel, marks, np.float64)
        np.testing.assert_allclose(found, expected(Z, Z[:5]), rtol=1e-10, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(exponent=st.floats(-6, 6), seed=st.integers(0, 100))
def test_single_precision_gaussian_stays_in_range_for_any_width(exponent, seed):
    X, scaling, Z = rows_with_scaling(50, seed=seed)
    found = columns_of(X, scaling, Gaussian(gamma=10.0**exponent), Z[:10], np.float32)
    assert np.isfinite(found).all() and found.min() >= 0 and found.max() <= 1 + 1e-6


def test_a_function_of_the_wrong_shape_is_refused():
    X, scaling, Z = rows_with_scaling(20)
    (kernel,) = as_bank(lambda A, B: np.ones(len(A)))
    with pytest.raises(ValueError, match="one value per pair"):
        columns_of(X, scaling, kernel, Z[:5], np.float64)


def test_parts_of_a_record_go_with_the_rows_and_stay_exact():
    X, scaling, Z = rows_with_scaling(5)
    numbers = np.array([0, 2**24 + 1, 0, 2**24 + 3, 2**40 + 1])
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    plan = KernelPlan.on(
        scaling, (Linear(), Gaussian(gamma=1.0)), Z, np.float32, 64, diagonals=True
    )
    stored = plan(RowRecord(X, weights, numbers))
    np.testing.assert_array_equal(stored.constrained, numbers)
    np.testing.assert_array_equal(stored.weights, weights)
    np.testing.assert_allclose(stored.diagonals[:, 0], np.sum(Z**2, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(stored.diagonals[:, 1], 1.0)
    part = stored[1:3]
    assert part.rows.base is not None and len(part) == 2
    np.testing.assert_array_equal(part.constrained, numbers[1:3])
    whole = stored.rows.nbytes + stored.weights.nbytes + numbers.nbytes + stored.diagonals.nbytes
    assert sizeof(stored) >= whole
