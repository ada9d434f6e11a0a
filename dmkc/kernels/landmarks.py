"""Which points a Nyström map is built on."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

CHOICES = ("uniform", "kmeans")


def choose_landmarks(how: str, sample: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Standardised landmarks, distinct: sampled rows or centroids."""
    rng = np.random.default_rng([seed, 2])
    if how == "kmeans" and len(sample) > size:
        centres = KMeans(size, n_init=1, random_state=seed % 2**32, max_iter=20).fit(sample)
        return np.unique(centres.cluster_centers_, axis=0)
    order = rng.permutation(len(sample))
    _, first = np.unique(sample[order[: 4 * size]], axis=0, return_index=True)
    chosen = sample[order[np.sort(first)[:size]]]
    return np.unique(chosen, axis=0)  # sorted: the same set of rows always gives the same map
