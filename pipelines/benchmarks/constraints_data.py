"""Data sets and scores that the benchmarks of constrained clustering share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from dmkc.datasets import load
from dmkc.metrics import all_metrics

PUBLISHED = {
    "leukemia": (0.928, 0.933, 0.827),
    "semeion 4-9": (0.984, 0.983, 0.935),
    "wilt": (0.900, 0.948, 0.040),
    "pageBlocks": (0.818, 0.903, 0.010),
    "JapaneseVowels": (0.728, 0.851, 0.004),
    "letter U": (0.922, 0.960, 0.002),
}
"""Rand index, Fowlkes-Mallows index and NMI of Zhang, Li and Jin (2022), table 2."""


def _classes(name: str, *wanted: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some classes, by name; of all where none are named."""
    data = load(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    if wanted:
        some = np.isin(y, [_number(data, c) for c in wanted])
        X, y = X[some], y[some]
    return X, np.unique(y, return_inverse=True)[1]


def _against_rest(name: str, one: Any) -> tuple[np.ndarray, np.ndarray]:
    data = load(name)
    X = np.asarray(data.X, dtype=np.float64)
    return X, (np.asarray(data.y) == _number(data, one)).astype(int)


def _digits(*wanted: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    some = np.isin(data.target, wanted)
    return data.data[some], np.unique(data.target[some], return_inverse=True)[1]


def _number(data: Any, name: Any) -> int:
    return int(np.flatnonzero(np.asarray(data.classes).astype(str) == str(name))[0])


SETS = {
    "leukemia": lambda: _classes("leukemia_golub"),
    "semeion 4-9": lambda: _classes("semeion", 4, 9),
    "wilt": lambda: _classes("wilt"),
    "pageBlocks": lambda: _against_rest("page_blocks", 1),
    "JapaneseVowels": lambda: _classes("japanese_vowels"),
    "letter U": lambda: _against_rest("letter", "U"),
    "breast": lambda: _classes("breast_wisconsin_original"),
    "ionosphere": lambda: _classes("ionosphere"),
    "digits 3-8": lambda: _digits(3, 8),
    "digits 8-9": lambda: _digits(8, 9),
    "letter A-B": lambda: _classes("letter", "A", "B"),
    "sonar": lambda: _classes("sonar"),
    "svmguide1": lambda: _classes("svmguide1"),
    "housevotes": lambda: _classes("housevotes84"),
}


def in_unit_range(X: np.ndarray) -> np.ndarray:
    """Columns between 0 and 1, the published protocol."""
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def scores(y: np.ndarray, labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> dict:
    """The published indices, and those that a one-cluster labeling does not flatter."""
    found = all_metrics(y, labels)
    free = np.setdiff1d(np.arange(len(y)), np.concatenate([must, cannot]))
    shares = np.bincount(labels, minlength=2) / len(labels)
    return {
        "RI": found["rand_index"],
        "FMI": found["fowlkes_mallows"],
        "NMI": found["normalized_mutual_info"],
        "ARI": found["adjusted_rand_index"],
        "ARI free": all_metrics(y[free], labels[free])["adjusted_rand_index"] if len(free) else 0.0,
        "smaller": float(np.sort(shares)[-2]),
    }


INDICES = ("RI", "FMI", "NMI", "ARI", "ARI free", "smaller")


def summary(draws: list[dict[str, float]]) -> list[str]:
    """Mean and standard deviation of every index."""
    cells = []
    for name in INDICES:
        values = [d[name] for d in draws]
        cells.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
    return cells
