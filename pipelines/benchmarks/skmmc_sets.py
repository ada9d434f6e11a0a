"""The data sets of the SKMMC benchmarks, with the published figures, and the balanced error."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from accuracy import folder

PUBLISHED = {
    "spectf": (38.71, 28.30, 18.63, 21.46),
    "heart": (42.10, 40.00, 28.25, 37.92),
    "haberman": (48.25, 48.07, 35.16, 35.31),
    "ionosphere": (29.33, 28.21, 21.29, 23.02),
    "votes": (13.81, 12.71, 11.52, 11.55),
    "clean1": (48.95, 19.18, 7.01, 28.36),
    "breast": (5.86, 3.41, 2.70, 2.89),
    "australian": (49.84, 37.07, 33.49, 33.59),
    "satellite": (6.89, 2.65, 1.37, 2.41),
    "krvskp": (45.39, 43.49, 37.08, 38.04),
    "waveform": (5.26, 48.15, 5.02, 4.78),
}
"""Balanced error (%) of table II: k-means, CPMMC, SKMMC, SKMMCv2."""

NAMES = {
    "spectf": ("spectf",),
    "heart": ("heart_statlog",),
    "haberman": ("haberman",),
    "ionosphere": ("ionosphere",),
    "votes": ("housevotes84",),
    "clean1": ("musk_clean1",),
    "breast": ("breast_wisconsin_original",),
    "australian": ("australian",),
    "satellite": ("satellite", "red soil", "cotton crop"),
    "krvskp": ("kr_vs_kp",),
    "waveform": ("waveform40", "1", "2"),
}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and the two classes (0 and 1) of a data set."""
    X, y = folder(*NAMES[name])
    return X, np.unique(y, return_inverse=True)[1]


def balanced_error(y: np.ndarray, labels: Any) -> float:
    """Mean error of the two classes in %, for the better of the two ways to name the clusters."""
    labels = np.asarray(labels)
    one = 0.5 * (np.mean(labels[y == 0] == 1) + np.mean(labels[y == 1] == 0))
    return 100 * min(one, 1 - one)


def k_means(X: np.ndarray, y: np.ndarray, scale: str | None) -> float:
    rows = StandardScaler().fit_transform(X) if scale else X
    return balanced_error(y, KMeans(2, n_init=10, random_state=0).fit(rows).labels_)
