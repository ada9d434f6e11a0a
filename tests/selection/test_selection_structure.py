"""The verdict on structure: clouds of one mode, and rows that have clusters or none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ks_2samp

from dmkc.scan.engine import one_blas_thread
from dmkc.selection.structure import Structure, structure, unimodal

COLUMNS = arrays(np.float64, st.integers(2, 40), elements=st.integers(-50, 50).map(float))


def seen(X: np.ndarray, most: int) -> Structure:
    with one_blas_thread():
        return structure(X, 2, most, 0)


@given(COLUMNS)
def test_gaps_between_quantiles_fall_up_to_one_mode_and_rise_after_it(column):
    moved = unimodal(column)
    gaps = np.diff(moved)
    turns = np.sign(np.diff(gaps))[np.abs(np.diff(gaps)) > 1e-9]
    assert np.all(np.diff(turns) >= 0)  # first only falling, then only rising
    np.testing.assert_allclose(moved[[0, -1]], [column.min(), column.max()], atol=1e-9)


def test_a_column_of_one_mode_stays_as_it_is():
    even = np.linspace(-1.0, 1.0, 101)
    for column in (even, even**3, np.exp(3.0 * even)):
        np.testing.assert_allclose(unimodal(column), column, atol=1e-9)


@pytest.mark.parametrize("draw", ["normal", "exponential", "standard_cauchy"])
def test_samples_of_one_mode_are_hardly_moved(draw):
    column = getattr(np.random.default_rng(0), draw)(size=500)
    assert ks_2samp(unimodal(column), column).statistic < 0.05


def test_the_gap_between_two_modes_is_filled():
    rng = np.random.default_rng(0)
    column = np.concatenate([rng.normal(0.0, 1.0, 250), rng.normal(20.0, 1.0, 250)])
    assert np.diff(np.sort(column)).max() > 10.0
    assert np.count_nonzero((unimodal(column) > 5.0) & (unimodal(column) < 15.0)) > 50


def test_skewed_and_long_tailed_noise_is_no_evidence():
    found = []
    for draw in ("standard_cauchy", "lognormal", "exponential"):
        for columns in (2, 6):
            X = getattr(np.random.default_rng(3), draw)(size=(600, columns))
            found.append(seen(X, 4).found)
    assert sum(found) <= 1  # one in twenty draws is allowed to be mistaken


def test_clusters_of_skewed_columns_are_found():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(600, 3)) + 9.0 * (np.arange(600) % 3)[:, None]
    found = seen(X, 6)
    assert found.found
    assert found.best == 3


@pytest.mark.parametrize("distinct", [1, 3])
def test_rows_of_few_distinct_values_bring_no_warning_of_a_library(distinct):
    X = np.column_stack([np.arange(60) % distinct, np.ones(60)]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = structure(X, 2, 6, 0)
    assert np.isfinite(seen.evidence) and len(seen.numbers) == 5
