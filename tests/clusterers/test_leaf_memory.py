"""Features that are made anew exist for a leaf of rows at a time, whatever is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import dmkc
from dmkc.kernels import KernelPlan

ROWS, LEAF, SAMPLE = 20_000, 4096, 500


@pytest.mark.parametrize("method", ["mkc", "odm", "mkkm", "spectral"])
def test_features_are_made_of_a_leaf_at_a_time(method, monkeypatch):
    X = np.random.default_rng(0).normal(size=(ROWS, 2)) + 6.0 * (np.arange(ROWS) % 2)[:, None]
    made, make = [], KernelPlan.__call__

    def counted(self, rows, out=None):
        made.append(rows.shape[0])
        return make(self, rows, out)

    monkeypatch.setattr(KernelPlan, "__call__", counted)
    estimator = dmkc.modelfile.ESTIMATORS[method]
    weights = np.ones(ROWS)
    model = estimator(2, sample_rows=SAMPLE, feature_mode="recompute", random_state=0)
    labels = model.fit(X, sample_weight=weights).labels_
    assert sum(made) > 2 * ROWS
    assert max(made) <= LEAF
    np.testing.assert_array_equal(model.predict(X), labels)
