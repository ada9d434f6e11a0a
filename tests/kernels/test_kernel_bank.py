"""Names of kernels and widths taken from the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dmkc.kernels import (
    DEFAULT_BANK,
    Cosine,
    Gaussian,
    KernelSample,
    Laplacian,
    Linear,
    Polynomial,
    as_bank,
)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("linear", Linear()),
        ("cosine", Cosine()),
        ("polynomial", Polynomial()),
        ("polynomial:3", Polynomial(3)),
        ("gaussian", Gaussian()),
        ("gaussian:0.5", Gaussian(0.5)),
        ("rbf:2", Gaussian(2.0)),
        ("laplacian", Laplacian()),
        ("laplacian:1e-1", Laplacian(0.1)),
    ],
)
def test_names(text, kernel):
    assert as_bank(text) == (kernel,)
    assert as_bank([kernel, text]) == (kernel, kernel)


def test_the_default_bank():
    assert as_bank(None) == DEFAULT_BANK == (Linear(), Polynomial(2), Gaussian(0.5))


def test_functions_and_mixtures():
    bank = as_bank(["linear", Gaussian(2.0), lambda A, B: A @ B.T])
    assert bank[:2] == (Linear(), Gaussian(2.0))
    np.testing.assert_array_equal(bank[2].matrix(np.eye(2), np.eye(2)), np.eye(2))


@pytest.mark.parametrize(
    ("kernels", "sentence"),
    [
        ("gausian", "Unknown kernel 'gausian'.*Did you mean 'gaussian'"),
        ("polynomail:3", "Did you mean 'polynomial'"),
        ("zzz", "Unknown kernel 'zzz'; known are linear"),
        ("linear:2", "takes no parameter"),
        ("cosine:1", "takes no parameter"),
        ("gaussian:wide", "not a number"),
        ("gaussian:-1", "must be a positive number"),
        ("gaussian:0", "must be a positive number"),
        ("gaussian:nan", "must be a positive number"),
        ("laplacian:inf", "must be a positive number"),
        ("polynomial:0", "positive integer"),
        ("polynomial:2.5", "positive integer"),
        ("polynomial:inf", "positive integer"),
        ("polynomial:nan", "positive integer"),
        ([], "non-empty list"),
        (3, "must be a kernel"),
    ],
)
def test_errors(kernels, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_bank(kernels)


def test_something_that_is_no_kernel():
    with pytest.raises(TypeError, match="kernel object, name or function"):
        as_bank([3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polynomial(0),
        lambda: Polynomial(1.5),
        lambda: Polynomial(2, gamma=-1.0),
        lambda: Gaussian(0.0),
        lambda: Gaussian(gamma=np.nan),
        lambda: Laplacian(gamma=0.0),
    ],
)
def test_impossible_parameters(make):
    with pytest.raises(ValueError, match="must be a positive"):
        make()


@pytest.mark.parametrize("width", [0.5, 1.0, 4.0])
def test_widths_follow_the_median_distance(width):
    rows = np.random.default_rng(0).normal(size=(400, 7))
    scale = KernelSample(rows)
    squared, manhattan = pdist(rows, "sqeuclidean"), pdist(rows, "cityblock")
    gaussian, laplacian = Gaussian(width).resolve(scale), Laplacian(width).resolve(scale)
    assert gaussian.gamma == pytest.approx(1 / (width * np.median(squared)), rel=1e-12)
    assert laplacian.gamma == pytest.approx(1 / (width * np.median(manhattan)), rel=1e-12)
    assert Polynomial(3).resolve(scale).gamma == pytest.approx(1 / 7)


def test_a_given_width_is_kept():
    scale = KernelSample(np.random.default_rng(0).normal(size=(50, 3)))
    for kernel in (Gaussian(gamma=3.0), Laplacian(gamma=3.0), Polynomial(gamma=3.0), Linear()):
        assert kernel.resolve(scale) == kernel


def test_the_median_of_many_rows_is_close_to_that_of_all():
    rows = np.random.default_rng(1).normal(size=(3000, 4))
    assert KernelSample(rows).median_squared == pytest.approx(
        np.median(pdist(rows, "sqeuclidean")), rel=0.05
    )


def test_coinciding_rows_do_not_make_the_width_zero():
    rows = np.zeros((100, 3))
    rows[:20] = np.random.default_rng(2).normal(size=(20, 3))
    scale = KernelSample(rows)
    distances = pdist(rows, "sqeuclidean")
    assert np.median(distances) == 0
    assert scale.median_squared == pytest.approx(np.median(distances[distances > 0]))
    assert KernelSample(np.zeros((5, 2))).median_squared > 0


def test_an_unresolved_kernel_says_so():
    with pytest.raises(RuntimeError, match="not been resolved"):
        Gaussian().matrix(np.eye(2), np.eye(2))


def test_kernels_are_shown_without_what_is_not_known_yet():
    shown = "Gaussian(width=0.5)"
    assert repr(Gaussian(0.5)) == shown and eval(shown) == Gaussian(0.5)
    assert repr(Gaussian(gamma=2.0, columns=[0, 1])).endswith("gamma=2.0, columns=[0, 1])")
