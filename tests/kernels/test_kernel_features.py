"""Features: exact at full rank, centred and scaled, and consistent with raw columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.kernels import (
    Cosine,
    FeatureMap,
    Gaussian,
    KernelPlan,
    Laplacian,
    Linear,
    Polynomial,
    Scaling,
)
from dmkc.kernels.sample import choose_landmarks

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(2, gamma=0.25),
    "gaussian": Gaussian(gamma=0.3),
    "laplacian": Laplacian(gamma=0.3),
    "cosine": Cosine(),
}
BANK = tuple(KERNELS.values())


def maker_for(Z, kernels, marks, dtype=np.float64):
    d = Z.shape[1]
    return KernelPlan.on(Scaling(np.zeros(d), np.ones(d)), kernels, marks, np.dtype(dtype), 64)


def centred(K):
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return K / (np.trace(K) / len(K))


@pytest.fixture(scope="module")
def Z():
    return np.random.default_rng(0).normal(size=(90, 4)) + 0.3


def normalised(Z, kernels, marks, dtype=np.float64):
    maker = maker_for(Z, kernels, marks, dtype)
    columns = maker(Z).rows
    mean = columns.astype(np.float64).mean(axis=0)
    return columns, FeatureMap.build(maker).normalised(mean, columns)


@pytest.mark.parametrize("name", KERNELS)
def test_with_all_rows_as_landmarks_features_reproduce_the_kernel(Z, name):
    maker = maker_for(Z, (KERNELS[name],), Z)
    phi = FeatureMap.build(maker).features(maker(Z).rows)
    np.testing.assert_allclose(phi @ phi.T, KERNELS[name].matrix(Z, Z), atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_normalised_features_reproduce_the_centred_scaled_kernel(Z, name):
    columns, features = normalised(Z, (KERNELS[name],), Z)
    phi = features.features(columns)
    np.testing.assert_allclose(phi @ phi.T, centred(KERNELS[name].matrix(Z, Z)), atol=1e-6)
    np.testing.assert_allclose(phi.mean(axis=0), 0, atol=1e-8)
    assert np.mean(np.sum(phi**2, axis=1)) == pytest.approx(1.0, rel=1e-9)


def test_every_kernel_of_a_bank_has_mean_squared_norm_one(Z):
    columns, features = normalised(Z, BANK, Z[:20])
    phi, edges = features.features(columns), features.offsets
    assert len(edges) == len(BANK) + 1 and edges[-1] == phi.shape[1]
    for a, b in itertools.pairwise(edges):
        assert np.mean(np.sum(phi[:, a:b] ** 2, axis=1)) == pytest.approx(1.0, rel=1e-9)


def test_single_precision_features_are_close_to_double_ones(Z):
    columns, features = normalised(Z, BANK, Z[:20])
    columns32, features32 = normalised(Z, BANK, Z[:20], np.float32)
    exact, rough = features.features(columns), features32.features(columns32)
    for k in range(len(BANK)):
        a, b = features.offsets[k : k + 2]
        c, d = features32.offsets[k : k + 2]
        np.testing.assert_allclose(
            rough[:, c:d] @ rough[:, c:d].T, exact[:, a:b] @ exact[:, a:b].T, atol=5e-3
        )


@pytest.mark.parametrize("name", ["polynomial", "gaussian", "laplacian", "cosine"])
def test_more_landmarks_never_fit_the_kernel_worse(Z, name):
    K, errors = KERNELS[name].matrix(Z, Z), []
    for rank in (5, 20, 60, 90):
        maker = maker_for(Z, (KERNELS[name],), Z[:rank])
        phi = FeatureMap.build(maker).features(maker(Z).rows)
        errors.append(np.trace(K - phi @ phi.T))
    assert all(e >= -1e-6 for e in errors)
    assert all(b <= a + 1e-6 for a, b in itertools.pairwise(errors))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), rank=st.integers(2, 30))
def test_models_on_columns_score_like_models_on_features(seed, rank):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(70, 3))
    columns, features = normalised(Z, BANK, Z[:rank])
    phi = features.features(columns)
    v, b = rng.normal(size=phi.shape[1]), float(rng.normal())
    model = features.to_stored(v, b)
    np.testing.assert_allclose(columns @ model.w + model.b, phi @ v + b, rtol=1e-6, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), rank=st.integers(2, 30))
def test_sums_of_columns_become_sums_of_features(seed, rank):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(70, 3))
    columns, features = normalised(Z, BANK, Z[:rank])
    c = rng.integers(-1, 2, size=70).astype(float)
    expected = c @ features.features(columns)
    np.testing.assert_allclose(features.slope(c @ columns, c.sum()), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_kernel_has_scale_zero_and_no_features(Z, dtype):
    dead, alive = Gaussian(gamma=1e-25), Gaussian(gamma=0.3)
    columns, features = normalised(Z, (dead, alive), Z[:20], dtype)
    assert features.scale[0] == 0 and features.scale[1] > 0
    phi, edge = features.features(columns), features.offsets[1]
    assert not phi[:, :edge].any()
    assert np.mean(np.sum(phi[:, edge:] ** 2, axis=1)) == pytest.approx(1.0, rel=1e-5)


def test_a_kernel_that_is_zero_everywhere_is_degenerate(Z):
    columns, features = normalised(Z, (Polynomial(1, 1.0, 0.0), Linear()), 0 * Z[:5])
    assert features.scale[0] == 0 and features.scale[1] > 0
    assert np.isfinite(features.features(columns)).all()


def test_a_very_narrow_gaussian_is_not_degenerate(Z):
    columns, features = normalised(Z, (Gaussian(gamma=1e6),), Z)
    phi = features.features(columns)
    np.testing.assert_allclose(phi @ phi.T, centred(np.eye(len(Z))), atol=1e-9)


def test_repeated_landmarks_add_nothing(Z):
    once, twice = Z[:15], np.concatenate([Z[:15], Z[:15]])
    columns, features = normalised(Z, (KERNELS["gaussian"],), once)
    columns2, features2 = normalised(Z, (KERNELS["gaussian"],), twice)
    assert features2.offsets[-1] == features.offsets[-1]
    a, b = features.features(columns), features2.features(columns2)
    np.testing.assert_allclose(b @ b.T, a @ a.T, atol=1e-7)


@pytest.mark.parametrize("how", ["uniform", "kmeans"])
@pytest.mark.parametrize("size", [1, 10, 90, 200])
def test_chosen_landmarks_are_distinct_and_not_too_many(Z, how, size):
    found = choose_landmarks(how, np.concatenate([Z, Z[:40]]), size, 0)
    assert 1 <= len(found) <= size
    assert len(np.unique(found, axis=0)) == len(found)
    if how == "uniform":
        assert {tuple(row) for row in found} <= {tuple(row) for row in Z}
    np.testing.assert_array_equal(
        found, choose_landmarks(how, np.concatenate([Z, Z[:40]]), size, 0)
    )


def test_all_distinct_rows_are_landmarks_when_there_are_few(Z):
    found = choose_landmarks("uniform", Z, len(Z), 3)
    assert {tuple(row) for row in found} == {tuple(row) for row in Z}
