"""Leading eigenvectors against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from dmkc.master.partition import leading


@pytest.mark.parametrize("count", [1, 6, 7, 20, 39, 40])
def test_few_and_many_leading_eigenvectors(count):
    half = np.random.default_rng(count).normal(size=(40, 40))
    matrix = half @ half.T
    found = leading(matrix, count)
    np.testing.assert_allclose(found.T @ found, np.eye(count), atol=1e-10)
    if count < 40:
        values = np.linalg.eigvalsh(matrix)[::-1][:count]
        np.testing.assert_allclose(found.T @ matrix @ found, np.diag(values), atol=1e-9)
