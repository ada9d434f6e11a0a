"""Start labelings of rows by other methods, none of which looks at labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dmkc import Gaussian, MarginDistributionClustering, MultipleKernelClustering
from dmkc.clusterers.starts import Start, in_order

SCALERS = {"minmax": MinMaxScaler, "standard": StandardScaler}
WIDTHS = (0.5, 2.0)
NEIGHBOURS = (5, 10, 20, 40)


def by_other_methods(X: np.ndarray) -> list[Start]:
    """Two clusters by other methods, without repetition."""
    found = {in_order(start.labels).tobytes(): start for start in reversed([*_labelings(X)])}
    return [start for start in reversed(found.values()) if len(np.unique(start.labels)) == 2]


def _labelings(X: np.ndarray) -> Iterator[Start]:
    for scale, scaler in SCALERS.items():
        same = {"scale": scale, "random_state": 0}
        methods = {
            "multiple kernels": MultipleKernelClustering(2, **same),
            **{
                f"Gaussian {w:g} by margin": MultipleKernelClustering(
                    2, kernels=Gaussian(w), **same
                )
                for w in WIDTHS
            },
            "margin distribution": MarginDistributionClustering(2, **same),
        }
        for name, method in methods.items():
            yield Start(f"{name} of {scale} columns", method.fit(X).labels_)
        rows = scaler().fit_transform(X)
        for count in NEIGHBOURS:
            cut = SpectralClustering(
                2, affinity="nearest_neighbors", n_neighbors=count, random_state=0
            )
            name = f"normalised cut with {count} neighbours of {scale} columns"
            yield Start(name, cut.fit_predict(rows).astype(np.int64))
