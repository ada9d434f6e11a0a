"""The data sets on which the choice without labels is measured, and what the rule knew of them.

The rule was made on every other set by name of the first list (DESIGN), with the means of all
others (OTHER) in view; no variant of it was tried on the UNSEEN sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from dmkc.datasets import make_moons, make_rings
from real_sets import digits, folder, mnist

ROWS = 1500
"""Larger sets are sampled: the choice is made on a sample anyway."""

FIRST: dict[str, Any] = {
    "a9a": lambda: folder("a9a"),
    "australian": lambda: folder("australian"),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "breast wisconsin": lambda: folder("breast_wisconsin_original"),
    "digits17": lambda: digits(1, 7),
    "digits27": lambda: digits(2, 7),
    "digits38": lambda: digits(3, 8),
    "digits89": lambda: digits(8, 9),
    "haberman": lambda: folder("haberman"),
    "heart": lambda: folder("heart_statlog"),
    "house votes": lambda: folder("housevotes84"),
    "ionosphere": lambda: folder("ionosphere"),
    "japanese vowels": lambda: folder("japanese_vowels"),
    "kr-vs-kp": lambda: folder("kr_vs_kp"),
    "letterAB": lambda: folder("letter", "A", "B"),
    "letterUV": lambda: folder("letter", "U", "V"),
    "leukemia": lambda: folder("leukemia_golub"),
    "mnist17": lambda: mnist(1, 7),
    "mnist38": lambda: mnist(3, 8),
    "mnist49": lambda: mnist(4, 9),
    "moons": lambda: make_moons(800, noise=0.12),
    "musk": lambda: folder("musk_clean1"),
    "prostate": lambda: folder("prostate_ge"),
    "ringnorm": lambda: folder("ringnorm"),
    "rings": lambda: make_rings(800, noise=0.08),
    "satellite, 2": lambda: folder("satellite", "red soil", "cotton crop"),
    "semeion35": lambda: folder("semeion", "3", "5"),
    "sonar": lambda: folder("sonar"),
    "spectf": lambda: folder("spectf"),
    "svmguide1": lambda: folder("svmguide1"),
    "vehicle, bus/van": lambda: folder("vehicle", "bus", "van"),
    "waveform12": lambda: folder("waveform40", "1", "2"),
    "wilt": lambda: folder("wilt"),
    "digits": lambda: digits(*range(10)),
    "digits0689": lambda: digits(0, 6, 8, 9),
    "digits1279": lambda: digits(1, 2, 7, 9),
    "iris": lambda: load_iris(return_X_y=True),
    "letterABCD": lambda: folder("letter", *"ABCD"),
    "mnist": lambda: mnist(*range(10)),
    "mnist01234": lambda: mnist(0, 1, 2, 3, 4),
    "satellite": lambda: folder("satellite"),
    "semeion": lambda: folder("semeion"),
    "vehicle": lambda: folder("vehicle"),
    "waveform": lambda: folder("waveform40"),
    "wine": lambda: load_wine(return_X_y=True),
    "ar10p": lambda: folder("ar10p"),
    "covertype": lambda: folder("covertype"),
    "digits35": lambda: digits(3, 5),
    "digits49": lambda: digits(4, 9),
    "digits345": lambda: digits(3, 4, 5),
    "letterCG": lambda: folder("letter", "C", "G"),
    "letterIJ": lambda: folder("letter", "I", "J"),
    "mnist27": lambda: mnist(2, 7),
    "mnist56": lambda: mnist(5, 6),
    "page blocks": lambda: folder("page_blocks"),
    "semeion17": lambda: folder("semeion", "1", "7"),
    "waveform01": lambda: folder("waveform40", "0", "1"),
    "yale faces, 10": lambda: _first_classes(folder("yaleb_32x32"), 10),
}
DESIGN = sorted(FIRST)[::2]
SECOND: dict[str, Any] = {
    "digits18": lambda: digits(1, 8),
    "digits58": lambda: digits(5, 8),
    "digits2356": lambda: digits(2, 3, 5, 6),
    "letterEF": lambda: folder("letter", "E", "F"),
    "letterOQ": lambda: folder("letter", "O", "Q"),
    "letterMNW": lambda: folder("letter", *"MNW"),
    "mnist35": lambda: mnist(3, 5),
    "mnist79": lambda: mnist(7, 9),
    "satellite, soils": lambda: folder("satellite", "grey soil", "damp grey soil"),
    "semeion49": lambda: folder("semeion", "4", "9"),
    "vehicle, opel/saab": lambda: folder("vehicle", "opel", "saab"),
    "waveform02": lambda: folder("waveform40", "0", "2"),
}
SEEN = FIRST | SECOND
OTHER = [name for name in SEEN if name not in DESIGN]
UNSEEN: dict[str, Any] = {
    "digits36": lambda: digits(3, 6),
    "digits79": lambda: digits(7, 9),
    "digits0145": lambda: digits(0, 1, 4, 5),
    "letterHK": lambda: folder("letter", "H", "K"),
    "letterPR": lambda: folder("letter", "P", "R"),
    "letterVY": lambda: folder("letter", "V", "Y"),
    "letterBDR": lambda: folder("letter", *"BDR"),
    "mnist45": lambda: mnist(4, 5),
    "mnist89": lambda: mnist(8, 9),
    "mnist0679": lambda: mnist(0, 6, 7, 9),
    "semeion38": lambda: folder("semeion", "3", "8"),
    "semeion0123": lambda: folder("semeion", *"0123"),
    "satellite, crops": lambda: folder("satellite", "cotton crop", "vegetation stubble"),
    "covertype12": lambda: folder("covertype", "1", "2"),
}
"""Sets that no rule was tried on before this one was fixed."""
SETS = SEEN | UNSEEN


def _first_classes(data: tuple[np.ndarray, np.ndarray], m: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = data
    return X[y < m], y[y < m]


def prepared(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = SETS[name]()
    if len(X) > ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(X), ROWS, replace=False))
        X, y = X[some], y[some]
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]
