"""Objectives of k-means and of multiple-kernel k-means only ever get better."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc import KMeans
from dmkc.master.partition import (
    Hierarchy,
    fit_layers,
    kernel_shares,
    mkkm,
    random_masks,
    simple_mkkm,
    tie_breaker,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@st.composite
def kernel_banks(draw):
    """A few positive semidefinite matrices, some of low rank, of very different sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, size = draw(st.integers(1, 6)), draw(st.integers(4, 24))
    ranks = [draw(st.integers(1, size)) for _ in range(count)]
    scales = [10.0 ** draw(st.integers(-3, 3)) for _ in range(count)]
    roots = [s * rng.normal(size=(size, r)) for r, s in zip(ranks, scales, strict=True)]
    return np.stack([root @ root.T for root in roots])


def check_falling(values, size):
    """No value is above the one before, but for rounding at the size of the problem."""
    assert (np.diff(values) <= 1e-9 * size).all(), values


@settings(max_examples=60, deadline=None)
@given(kernels=kernel_banks(), k=st.integers(1, 4), penalty=st.sampled_from([0.0, 0.1, 10.0]))
def test_multiple_kernel_k_means_never_rises(kernels, k, penalty):
    traces = np.trace(kernels, axis1=1, axis2=2)
    found = mkkm(kernels, traces, k, 0.0, 20, penalty)
    check_falling(found.values, traces.max())
    assert found.kernel_weights.sum() == pytest.approx(1.0)


@settings(max_examples=60, deadline=None)
@given(kernels=kernel_banks(), k=st.integers(1, 4))
def test_simple_multiple_kernel_k_means_never_rises(kernels, k):
    traces = np.trace(kernels, axis1=1, axis2=2)
    found = simple_mkkm(kernels, traces, k, 0.0, 20)
    check_falling(found.values, traces.max())
    assert found.kernel_weights.min() >= 0


@settings(max_examples=40, deadline=None)
@given(kernels=kernel_banks(), seed=st.integers(0, 10**6), sparsity=st.floats(0, 0.9))
def test_the_hierarchy_never_loses(kernels, seed, sparsity):
    rng = np.random.default_rng(seed)
    masks = random_masks(len(kernels), (4, 3), sparsity, rng)
    assert all(m.any(axis=0).all() and m.any(axis=1).all() for m in masks)
    extra = tie_breaker(kernels, 0.01)
    widths = min(6, len(kernels[0])), min(3, len(kernels[0]))
    state = fit_layers(kernels, 2, Hierarchy(widths, masks, 0.0, 15), extra)
    check_falling([-v for v in state.values], state.values[-1])
    assert kernel_shares(state).sum() == pytest.approx(1.0)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(10, 200),
    d=st.integers(1, 6),
    k=st.integers(2, 5),
    copies=st.booleans(),
)
def test_k_means_never_rises(seed, n, d, k, copies):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X = np.repeat(X, 3, axis=0) if copies else X
    model = KMeans(k, n_init=1, tol=0.0, max_iter=30, random_state=seed).fit(X)
    check_falling([record["objective"] for record in model.history_], np.square(X).sum())
