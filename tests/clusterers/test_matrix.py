"""Every method with every number of clusters, form of rows and option: products of features.

A new method joins by being registered; a new form of rows or option is one more line here.
"""

from __future__ import annotations

import warnings
from itertools import product

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dmkc
from dmkc.kernels import per_view
from dmkc.modelfile import ESTIMATORS

N = 90


def rows(kind: str) -> np.ndarray:
    """Rows without surprises, with heavy tails, without clusters, and of unequal clusters."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 6))
    if kind == "heavy":
        return rng.standard_t(1.5, size=(N, 6)) * [1, 1, 1, 50, 1, 1]
    if kind == "unequal":
        X[: N // 10, :3] += 8.0
    elif kind == "clear":
        X[:, :3] += 5.0 * (np.arange(N) % 3)[:, None]
    return X


FORMS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)),
    "frame": lambda X: pd.DataFrame(X, columns=list("abcdef"), index=np.arange(N) + 7),
    "dask": lambda X: da.from_array(X, chunks=(37, 3)),
    "dask frame": lambda X: dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3),
    "xarray": lambda X: xr.DataArray(X, dims=("row", "column")),
    "views": lambda X: {"left": X[:, :2], "right": X[:, 2:]},
    "mixed views": lambda X: [sp.csr_array(X[:, :3]), da.from_array(X[:, 3:], chunks=(40, 3))],
}
OPTIONS = {
    "defaults": {},
    "weights": {},
    "no scaling": {"scale": None},
    "subset": {"train_rows": 60, "polish": 2},
    "small sample": {"sample_rows": 45},
    "kernels": {"kernels": ["linear", "gaussian:0.5", "laplacian"], "rank": 20},
    "each view": {"kernels": per_view(["linear", "gaussian:0.5"]), "rank": 20},
    "some columns": {"kernels": [dmkc.Linear(columns=[0, 3]), dmkc.Gaussian()], "rank": 20},
    "graph": {"kernels": [dmkc.Neighbours(8), "linear"], "rank": 20},
    "graphs": {"kernels": ["neighbours", dmkc.Neighbours(5, anchors=30, steps=0)]},
    "recomputed": {"feature_mode": "recompute", "sample_rows": 45},
    "stored": {"feature_mode": "store", "sample_rows": 45, "dtype": "float32"},
    "pipeline": {},
}
KINDS = ("clear", "heavy", "nothing", "unequal")


def cases():
    """All pairs of a form and an option, with methods, clusters and kinds of rows in turn."""
    for i, (form, option) in enumerate(product(FORMS, OPTIONS)):
        for j, method in enumerate(ESTIMATORS):
            if (
                i + j
            ) % 4 == 0:  # a quarter of all products; every pair of two things is among them
                yield method, 1 + (i // 4 + j) % 3, form, option, KINDS[(i + 2 * j) % len(KINDS)]


@pytest.mark.parametrize(("method", "clusters", "form", "option", "kind"), cases())
@pytest.mark.filterwarnings("ignore")
def test_product(method, clusters, form, option, kind, tmp_path):
    known = ESTIMATORS[method].parameters()
    options = {name: value for name, value in OPTIONS[option].items() if name in known}
    if options.get("dtype") and method in ("kernel-kmeans", "mkkm", "hmkkm"):
        options.pop("dtype")
    X = FORMS[form](rows(kind))
    model = ESTIMATORS[method](clusters, random_state=0, **options)
    weights = 1.0 + np.arange(N) % 3 if option == "weights" else None
    scaled = option == "pipeline" and form in ("array", "float32", "frame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if scaled:
            whole = make_pipeline(StandardScaler(), model).fit(X)
            labels = np.asarray(whole.predict(X))
        else:
            model.fit(X, sample_weight=weights)
            labels = np.asarray(model.predict(X))
    assert labels.shape == (N,) and labels.min() >= 0 and labels.max() < max(clusters, 1)
    np.testing.assert_array_equal(labels, np.asarray(model.labels_))
    assert np.isfinite(model.objective_)
    assert (
        f"# {clusters} cluster" in repr(model) and f"<b>{clusters} cluster" in model._repr_html_()
    )
    typical = model.medoid_indices_ >= 0
    np.testing.assert_array_equal(labels[model.medoid_indices_[typical]], np.flatnonzero(typical))
    if not scaled:
        assert model._scored is not None and np.isfinite(model.score(X, sample_weight=weights))
        made = model.transform(X)
        assert made.shape[1] == len(model.get_feature_names_out())
        if hasattr(made, "columns"):
            assert list(made.columns) == list(model.get_feature_names_out())
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    if not scaled:
        np.testing.assert_array_equal(np.asarray(loaded.predict(X)), labels)
