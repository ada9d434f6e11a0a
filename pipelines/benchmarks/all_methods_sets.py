"""The data sets of the table over all methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from dmkc.datasets import make_moons, make_rings
from real_sets import digits, folder, mnist

Rows = tuple[np.ndarray, np.ndarray]

SETS: dict[str, Any] = {
    "rings": lambda: make_rings(800, noise=0.08),
    "moons": lambda: make_moons(800, noise=0.12),
    "digits17": lambda: digits(1, 7),
    "digits38": lambda: digits(3, 8),
    "digits89": lambda: digits(8, 9),
    "wdbc": lambda: load_breast_cancer(return_X_y=True),
    "breast": lambda: folder("breast_wisconsin_original"),
    "australian": lambda: folder("australian"),
    "heart": lambda: folder("heart_statlog"),
    "haberman": lambda: folder("haberman"),
    "votes": lambda: folder("housevotes84"),
    "ionosphere": lambda: folder("ionosphere"),
    "sonar": lambda: folder("sonar"),
    "spectf": lambda: folder("spectf"),
    "musk": lambda: folder("musk_clean1"),
    "leukemia": lambda: folder("leukemia_golub"),
    "kr-vs-kp": lambda: folder("kr_vs_kp"),
    "letterAB": lambda: folder("letter", "A", "B"),
    "ringnorm": lambda: folder("ringnorm"),
    "satellite, 2": lambda: folder("satellite", "red soil", "cotton crop"),
    "svmguide1": lambda: folder("svmguide1"),
    "waveform12": lambda: folder("waveform40", "1", "2"),
    "wilt": lambda: folder("wilt"),
    "a9a": lambda: folder("a9a"),
    "mnist38": lambda: mnist(3, 8),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits0689": lambda: digits(0, 6, 8, 9),
    "letterABCD": lambda: folder("letter", *"ABCD"),
    "vehicle": lambda: folder("vehicle"),
    "waveform": lambda: folder("waveform40"),
    "mnist01234": lambda: mnist(0, 1, 2, 3, 4),
    "satellite": lambda: folder("satellite"),
    "covertype": lambda: folder("covertype"),
    "digits": lambda: digits(*range(10)),
    "semeion": lambda: folder("semeion"),
    "ar10p": lambda: folder("ar10p"),
}
"""Two clusters first, then several."""


def rows_of(name: str, most: int) -> Rows:
    """Rows and class numbers from 0 on; a uniform sample where there are more than `most` rows."""
    X, y = SETS[name]()
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if len(X) > most:
        some = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        X, y = X[some], y[some]
    return X, np.unique(y, return_inverse=True)[1]


def found(names: list[str], most: int) -> tuple[dict[str, Rows], list[str]]:
    """The sets that are there, and the names of those that are not."""
    there, absent = {}, []
    for name in names:
        try:
            there[name] = rows_of(name, most)
        except FileNotFoundError:
            absent.append(name)
    return there, absent
