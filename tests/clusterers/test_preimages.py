"""Pre-images against a dense search, and every way in which the iteration can go wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

from dmkc.clusterers.margin.preimage import Basis, Target, gaussian, pre_image

GAMMA = 0.4


def rows_and_signs(seed=0, n=60, d=2):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0) / n


def filled(rows, vectors=5, seed=1):
    basis = Basis(GAMMA, rows)
    for vector in np.random.default_rng(seed).normal(size=(vectors, rows.shape[1])):
        assert basis.add(vector)
    return basis


def test_the_kernel_is_the_gaussian_one():
    A, B = np.random.default_rng(0).normal(size=(2, 7, 3))
    np.testing.assert_allclose(gaussian(A, B, GAMMA), rbf_kernel(A, B, GAMMA))


def test_features_have_the_inner_products_of_the_projected_images():
    rows, _ = rows_and_signs()
    basis = filled(rows)
    K, inner = rbf_kernel(rows, basis.vectors, GAMMA), rbf_kernel(basis.vectors, gamma=GAMMA)
    np.testing.assert_allclose(
        basis.features @ basis.features.T, K @ np.linalg.solve(inner, K.T), atol=1e-8
    )


def test_expansion_is_the_least_squares_fit():
    rows, signs = rows_and_signs()
    basis = filled(rows)
    K, inner = rbf_kernel(rows, basis.vectors, GAMMA), rbf_kernel(basis.vectors, gamma=GAMMA)
    expected = np.linalg.solve(inner, K.T @ signs)  # eq. 49
    np.testing.assert_allclose(basis.expansion(signs @ basis.features), expected, atol=1e-8)


def test_a_vector_that_is_there_already_is_not_added():
    rows, _ = rows_and_signs()
    basis = filled(rows)
    before = basis.features.copy()
    assert not basis.add(basis.vectors[2])
    np.testing.assert_array_equal(basis.features, before)


@pytest.mark.parametrize("vectors", [0, 3])
def test_the_fixed_point_has_no_slope(vectors):
    rows, signs = rows_and_signs(2)
    basis = filled(rows, vectors)
    target = Target.of(basis, signs)
    b = rows[int(np.abs(target.reach(rows)).argmax())]
    for _ in range(500):
        b = target.step(b)
    steps = 1e-5 * np.eye(2)
    slope = [(target.reach((b + e)[None]) - target.reach((b - e)[None]))[0] / 2e-5 for e in steps]
    np.testing.assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("vectors", [0, 4])
def test_pre_images_are_nearly_as_good_as_a_dense_search(seed, vectors):
    rows, signs = rows_and_signs(seed)
    basis = filled(rows, vectors)
    target = Target.of(basis, signs)
    found = abs(target.reach(pre_image(basis, signs, np.random.default_rng(0))[None])[0])
    best = max(
        -minimize(lambda b: -abs(target.reach(b[None])[0]), start, method="Nelder-Mead").fun
        for start in rows[::3]
    )
    assert found >= 0.8 * best


def test_every_vector_brings_the_target_closer():
    rows, signs = rows_and_signs(4, n=200, d=5)
    basis, rng = Basis(GAMMA, rows), np.random.default_rng(0)
    whole = signs @ rbf_kernel(rows, gamma=GAMMA) @ signs
    left = [whole]
    for _ in range(12):
        if basis.add(pre_image(basis, signs, rng)):
            covered = signs @ basis.features
            left.append(whole - covered @ covered)
    assert len(left) > 8
    assert all(a > b for a, b in pairwise(left))
    assert left[-1] < 0.2 * whole


def test_a_target_of_nothing_has_no_pre_image():
    rows, _ = rows_and_signs()
    assert pre_image(Basis(GAMMA, rows), np.zeros(len(rows)), np.random.default_rng(0)) is None


def test_a_vanishing_denominator_ends_the_iteration():
    rows = np.array([[-1.0], [1.0]])
    signs = np.array([-0.5, 0.5])  # at zero the two pulls cancel
    target = Target.of(Basis(1.0, rows), signs)
    assert target.step(np.zeros(1)) is None


@pytest.mark.parametrize("seed", range(20))
def test_pre_images_stay_within_the_range_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 3))
    signs = rng.normal(size=30)
    signs -= signs.mean()
    basis = filled(rows, 3, seed)
    b = pre_image(basis, signs, rng)
    assert np.all(b >= rows.min(axis=0)) and np.all(b <= rows.max(axis=0))
    start = rows[np.argmax(np.abs(Target.of(basis, signs).reach(rows)))]
    target = Target.of(basis, signs)
    assert abs(target.reach(b[None])[0]) >= abs(target.reach(start[None])[0]) - 1e-12
