"""Rows of real data sets, by the names of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from dmkc.datasets import load


def digits(*classes: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    some = np.isin(data.target, classes)
    return data.data[some], data.target[some]


def folder(name: str, *classes: Any, sample: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some classes (by name), or a sample of the rows, of a stored data set."""
    data = load(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    if classes:
        names = np.asarray(data.classes).astype(str)
        wanted = [int(np.flatnonzero(names == str(c))[0]) for c in classes]
        some = np.isin(y, wanted)
        X, y = X[some], y[some]
    if sample is not None:
        some = np.sort(np.random.default_rng(0).choice(len(X), sample, replace=False))
        X, y = X[some], y[some]
    return X, y


def mnist(*classes: int) -> tuple[np.ndarray, np.ndarray]:
    """28 x 28 pixels averaged over 2 x 2 squares: 196 columns."""
    X, y = folder("mnist", *classes)
    pooled = X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    return pooled, y
