"""As many columns as rows: ten far-apart blobs are found exactly."""

from __future__ import annotations

import numpy as np
import pytest

from dmkc import MultipleKernelClustering
from dmkc.datasets import make_blobs
from dmkc.metrics import accuracy


@pytest.mark.slow
def test_ten_thousand_rows_and_columns():
    X, y = make_blobs(10_000, 10_000, 10, seed=0, chunks=1000)
    model = MultipleKernelClustering(10, random_state=0, train_rows=3000).fit(X)
    assert accuracy(np.asarray(y), np.asarray(model.labels_)) == 1.0


@pytest.mark.parametrize("m", [2, 10])
def test_more_columns_than_rows(m):
    X, y = make_blobs(300, 3000, m, seed=0)
    model = MultipleKernelClustering(m, random_state=0).fit(X)
    assert accuracy(y, model.labels_) == 1.0
