"""Fits of every estimator to rows of all kinds, in all forms, with all sorts of parameters.

A fit ends with labels of the right length, kind and range, which `predict` gives again and which
do not depend on the form of the rows; or with one true sentence.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp
import xarray as xr
import zarr

from dmkc.clusterers.parameters import Flag, Integer, Number, OneOf
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.errors import UserError

SECONDS = 60.0
GROWTH = 1024
"""MiB that a case may add; none of the tables has more than some thousand numbers."""
FIT, REFUSE, EITHER = "fit", "refuse", "either"


def _blobs(rng: Any, n: int = 60, p: int = 4) -> np.ndarray:
    return rng.normal(size=(n, p)) + 6.0 * (np.arange(n) % 2)[:, None]


def _with(value: Any) -> Any:
    def put(rng: Any) -> np.ndarray:
        X = _blobs(rng)
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = value
        return X

    return put


def _columns(*factors: float) -> Any:
    return lambda rng: _blobs(rng, p=len(factors)) * factors


ROWS: dict[str, tuple[str, Any]] = {
    "blobs": (FIT, _blobs),
    "no clusters": (FIT, lambda rng: rng.normal(size=(50, 3))),
    "heavy tails": (FIT, lambda rng: rng.standard_t(1.1, size=(70, 3))),
    "one outlier": (EITHER, _with(1e12)),
    "constant columns": (FIT, lambda rng: _blobs(rng) * [1, 0, 1, 0] + [0, 5, 0, 0]),
    "all constant": (EITHER, lambda rng: np.full((40, 3), rng.normal())),
    "all zero": (EITHER, lambda rng: np.zeros((30, 2))),
    "duplicates": (EITHER, lambda rng: _blobs(rng)[rng.integers(3, size=60)]),
    "collinear": (FIT, lambda rng: rng.normal(size=(60, 1)) * [1.0, 2.0, -3.0]),
    "one row": (EITHER, lambda rng: _blobs(rng, 1)),
    "two rows": (EITHER, lambda rng: _blobs(rng, 2)),
    "few rows": (EITHER, lambda rng: _blobs(rng, int(rng.integers(3, 8)))),
    "one column": (FIT, lambda rng: _blobs(rng, p=1)),
    "wide": (FIT, lambda rng: _blobs(rng, 30, 300)),
    "mixed units": (FIT, _columns(1e-6, 1.0, 1e6)),
    "huge": (EITHER, _columns(1e60, 1e60)),
    "enormous": (EITHER, _columns(1.0, 1e200)),
    "largest": (EITHER, _with(1.7e308)),
    "tiny": (EITHER, _columns(1e-60, 1e-60)),
    "denormal": (EITHER, _columns(1.0, 1e-310)),
    "far from zero": (EITHER, lambda rng: _blobs(rng) + 1e9),
    "nearly equal": (EITHER, lambda rng: 1.0 + 1e-15 * _blobs(rng)),
    "NaN": (REFUSE, _with(np.nan)),
    "infinite": (REFUSE, _with(-np.inf)),
    "integers": (FIT, lambda rng: rng.integers(-9, 9, size=(60, 4))),
    "long integers": (EITHER, lambda rng: rng.integers(-(2**62), 2**62, size=(40, 3))),
    "bytes": (FIT, lambda rng: rng.integers(0, 255, size=(60, 4), dtype=np.uint8)),
    "truth values": (EITHER, lambda rng: rng.random((60, 4)) < 0.5),
    "float32": (FIT, lambda rng: _blobs(rng).astype(np.float32)),
    "float16": (EITHER, lambda rng: _blobs(rng).astype(np.float16)),
    "big-endian": (EITHER, lambda rng: _blobs(rng).astype(">f8")),
    "long double": (EITHER, lambda rng: _blobs(rng).astype(np.longdouble)),
    "complex": (REFUSE, lambda rng: _blobs(rng) + 1j),
    "strings": (REFUSE, lambda rng: np.array([["a", "b"]] * 20)),
    "objects": (EITHER, lambda rng: _blobs(rng).astype(object)),
    "odd objects": (REFUSE, lambda rng: np.array([[1.0, None], [{}, "x"]] * 9, dtype=object)),
    "dates": (REFUSE, lambda rng: np.full((20, 2), np.datetime64("2020-01-01"))),
    "no rows": (REFUSE, lambda rng: np.empty((0, 3))),
    "no columns": (REFUSE, lambda rng: np.empty((20, 0))),
    "one dimension": (REFUSE, lambda rng: rng.normal(size=30)),
    "three dimensions": (REFUSE, lambda rng: rng.normal(size=(20, 3, 2))),
}
"""What is to come of rows, with parameters that are in order, and how they are made."""


def _read_only(X: np.ndarray, _: Path) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _zarr(X: np.ndarray, folder: Path) -> str:
    chunks = tuple(max(1, size // 2) for size in X.shape)
    store = zarr.create_array(
        store=folder / "x.zarr", shape=X.shape, chunks=chunks, dtype=X.dtype, overwrite=True
    )
    store[...] = X
    return str(folder / "x.zarr")


def _npy(X: np.ndarray, folder: Path) -> str:
    np.save(folder / "x.npy", X)
    return str(folder / "x.npy")


FORMS: dict[str, Any] = {
    "array": lambda X, _: X,
    "list": lambda X, _: X.tolist(),
    "Fortran": lambda X, _: np.asfortranarray(X),
    "read-only": _read_only,
    "strided": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "frame": lambda X, _: pd.DataFrame(X, index=np.arange(len(X)) // 2),
    "Dask": lambda X, _: da.from_array(X, chunks=tuple(max(1, s // 3) for s in X.shape)),
    "Dask, unknown": lambda X, _: da.from_array(X, chunks=17)[da.ones(len(X), bool, chunks=17)],
    "Dask frame": lambda X, _: dd.from_pandas(pd.DataFrame(X), npartitions=3),
    "CSR": lambda X, _: sp.csr_array(X),
    "CSC": lambda X, _: sp.csc_matrix(X),
    "COO": lambda X, _: sp.coo_array(X),
    "xarray": lambda X, _: xr.DataArray(X, dims=("row", "column")),
    "Zarr": _zarr,
    "npy": _npy,
    "views": lambda X, _: {"a": X[:, :1], "b": X[:, 1:]},
}
SAME_BITS = ("Fortran", "read-only", "strided", "frame", "Dask", "Dask, unknown", "Zarr", "npy")
"""Forms that hold the very numbers of the array, so that labels are the same."""
LABELS = {"frame": "Series", "Dask frame": "Series", "xarray": "DataArray"} | dict.fromkeys(
    ("Dask", "Dask, unknown", "Zarr"), "Array"
)
SMALL = {"rank": 15, "n_members": 2, "anchors": 30}
"""What makes fits quick."""
FINE: dict[str, tuple] = {
    "n_clusters": (1, 2, 3, 4),
    "scale": ("standard", "minmax", "if-mixed", None),
    "C": (2.0, 30.0, 1e3),
    "kernels": (["linear"], ["gaussian"], ["gaussian:0.5", "laplacian"], ["cosine", "linear"]),
    "train_rows": (0.9, 25),
    "sample_rows": (25, 1000),
    "max_iter": (1, 20),
    "feature_mode": ("persist", "recompute", "store"),
    "random_state": (0, 7),
}
"""Values that are in order with rows enough."""
ODD: tuple = (0, -1, 1e300, 1e-300, 2.5, "nonsense", None, True, [], {}, "nan", "inf", "auto")
ODD_FOR: dict[str, tuple] = {
    "n_clusters": (1000, "auto", [2, 4], [4, 2]),
    "kernels": ("polynomial:100", "gaussian:0", "gaussian:1e-200", "neighbours", ["linear"] * 40),
    "rank": (1, 2, 10**6),
    "init": ("random", "pca", "k-means", "radius", [0, 1, 0]),
    "sample_rows": (2, 3),
    "train_rows": (1, 2, 0.01),
    "polish": (2,),
}
WEIGHTS = (
    ("none",) * 8
    + ("ones", "random", "some zero", "all zero")
    + (
        "negative",
        "NaN",
        "short",
        "huge",
        "tiny",
        "text",
    )
)
FINE_WEIGHTS = ("none", "ones", "random")
NUMPY_WARNS = re.compile("encountered in|divide by zero")


def draw(rng: Any, number: int) -> dict[str, Any]:
    """A fit; estimators take turns, all else is random."""
    method = list(ESTIMATORS)[number % len(ESTIMATORS)]
    plain = rng.random() < 0.5
    kinds = [kind for kind, (ought, _) in ROWS.items() if ought != REFUSE or rng.random() < 0.5]
    given: dict[str, Any] = {}
    known = list(ESTIMATORS[method].parameters())
    for name in rng.choice(known, size=min(len(known), int(rng.integers(0, 4))), replace=False):
        if name not in ("client", "verbose", "store_path"):
            fine = FINE.get(name) or _fine(ESTIMATORS[method].parameters()[name].kind)
            odd = (*ODD, *ODD_FOR.get(name, ()))
            values = fine if fine and (plain or rng.random() < 0.5) else odd
            given[str(name)] = values[rng.integers(len(values))]
    return {
        "method": method,
        "rows": kinds[rng.integers(len(kinds))],
        "form": list(FORMS)[rng.integers(len(FORMS))],
        "given": given,
        "weights": "none" if plain else WEIGHTS[rng.integers(len(WEIGHTS))],
        "seed": int(rng.integers(1000)),
    }


def _fine(kind: Any) -> tuple:
    """Values in order for a declared kind of parameter."""
    if isinstance(kind, OneOf):
        return tuple(kind.words)
    return {Integer: (3,), Number: (0.5, 1.0), Flag: (True, False)}.get(type(kind), ())


def play(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fit, and judge what came of it."""
    if plan["method"] not in ESTIMATORS:
        return {"outcome": "skipped", "said": "there is no such estimator"}
    rng = np.random.default_rng(plan["seed"])
    ought, make = ROWS[plan["rows"]]
    X = make(rng)
    form = plan["form"]
    try:
        given = FORMS[form](X, folder)
    except Exception:  # SciPy, Dask and so on cannot hold everything
        form, given = "array", X
    if X.ndim == 1 and form == "CSC":  # SciPy takes a list of numbers for a row
        X = X[None, :]
    weights = _weights(plan["weights"], len(X), rng)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = _fit(plan, given, weights, X, form)
    said = [str(each.message) for each in heard if NUMPY_WARNS.search(str(each.message))]
    if said and found["outcome"] in ("done", "refused"):
        found = {"outcome": "warning", "said": said[0]}
    return _judged(found, plan, ought, X)


def _fit(plan: dict, given: Any, weights: Any, X: np.ndarray, form: str) -> dict[str, Any]:
    try:
        model = _estimator(plan)
        model.fit(given, sample_weight=weights)
        problem = _wrong(model, plan, given, weights, X, form)
    except UserError as refusal:
        return {"outcome": "refused", "said": str(refusal)}
    except Exception as failure:
        return {"outcome": "leak", "said": f"{type(failure).__name__}: {failure}"[:500]}
    return {"outcome": "wrong" if problem else "done", "said": problem}


def _estimator(plan: dict[str, Any]) -> Any:
    cls = ESTIMATORS[plan["method"]]
    known = cls.parameters()
    small = {name: value for name, value in SMALL.items() if name in known}
    return cls(**{"random_state": 0, **small, **plan["given"]})


def _wrong(model: Any, plan: dict, given: Any, weights: Any, X: np.ndarray, form: str) -> str:
    """What is wrong with a fitted model, in a few words."""
    labels = np.asarray(model.labels_)
    if labels.shape != (len(X),) or labels.dtype.kind != "i":
        return f"labels are {labels.dtype} of shape {labels.shape} for {len(X)} rows"
    least = -1 if {"noise", "least_agreement"} & set(plan["given"]) else 0
    if labels.min() < least or labels.max() >= model.n_clusters_:
        return f"labels are {labels.min()} to {labels.max()} of {model.n_clusters_} clusters"
    if LABELS.get(form, "ndarray") not in {kind.__name__ for kind in type(model.labels_).__mro__}:
        return f"labels of {form} are a {type(model.labels_).__name__}"
    again = np.asarray(model.predict(given))
    if again.shape != labels.shape or (again != labels).any():
        return f"predict gives {int(np.sum(again != labels))} other labels than the fit"
    features = _dense(model.transform(given))
    if len(features) != len(X) or not np.isfinite(features.astype(float)).all():
        return f"transform gives shape {features.shape} or values that are not finite"
    if form in SAME_BITS:
        plain = _estimator(plan).fit(X, sample_weight=weights)
        if (np.asarray(plain.labels_) != labels).any():
            return f"labels of {form} differ from those of an array"
    return ""


def _dense(values: Any) -> np.ndarray:
    values = values.compute() if hasattr(values, "compute") else values
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def _weights(kind: str, n: int, rng: Any) -> Any:
    values = 0.5 + rng.random(n)
    factors = {"some zero": 0.0, "negative": -1.0, "NaN": np.nan, "huge": 1e29, "tiny": 1e-29}
    values[: n // 2] *= factors.get(kind, 1.0)
    others = {"none": None, "ones": np.ones(n), "all zero": np.zeros(n), "short": values[1:]}
    return (others | {"text": ["a"] * n}).get(kind, values)


def _judged(found: dict, plan: dict, ought: str, X: np.ndarray) -> dict[str, Any]:
    """Sentences are one line and true, and what is in order is not refused."""
    outcome, said = found["outcome"], found["said"]
    fine = all(name in FINE and value in FINE[name] for name, value in plan["given"].items())
    fine &= not any(value is True for value in plan["given"].values())  # which equals 1
    fine &= plan["weights"] in FINE_WEIGHTS
    if plan["rows"] in ("one column", "collinear"):  # views need two, some kernels and methods more
        fine &= plan["form"] != "views" and not plan["given"]
    # pandas takes a list of numbers for a column, SciPy for a row.
    taken = "rame" in plan["form"] or plan["form"] == "CSC"
    ought = EITHER if plan["rows"] == "one dimension" and taken else ought
    if outcome == "done" and ought == REFUSE:
        return {"outcome": "untrue", "said": f"{plan['rows']} was fitted"}
    if outcome != "refused":
        return found
    finite = X.dtype.kind in "biuf" and bool(np.isfinite(X).all()) and plan["weights"] != "NaN"
    if finite and re.search(r"\bNaN\b|missing|infinit", said) and "nan" not in str(plan["given"]):
        return {"outcome": "untrue", "said": said}
    if "\n" in said or not said.endswith((".", "?")):
        return {"outcome": "unclear", "said": said}
    if ought == FIT and fine:
        return {"outcome": "untrue", "said": f"refused what is in order: {said}"}
    return found
