"""What other clusterers say of rows in a folder; run by auto.py, by an interpreter that has them.

    PYTHON auto_peers.py FOLDER

Every FOLDER/NAME.npz holds rows X and a number of clusters k; FOLDER/NAME.peers.npz is written, one
array of labels per method.  All are at their defaults with k given, on columns as they are and
standardised; mixtures of more than 100 columns are diagonal.  HDBSCAN does not take k: it is tried
with several smallest clusters, each kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

try:
    from genieclust import Genie
except ImportError:
    Genie = None

SMALLEST = (5, 10, 15, 25, 50, 100)


def methods(k: int, d: int) -> dict[str, Callable[[], Any]]:
    """Ready to fit, by name."""
    graph: dict[str, Any] = {"affinity": "nearest_neighbors", "assign_labels": "kmeans"}
    found: dict[str, Callable[[], Any]] = {
        "k-means": lambda: KMeans(k, n_init=10, random_state=0),
        "mixture": lambda: GaussianMixture(
            k, covariance_type="full" if d <= 100 else "diag", random_state=0, reg_covar=1e-4
        ),
        "spectral": lambda: SpectralClustering(k, random_state=0, **graph),
    }
    for size in SMALLEST:
        found[f"hdbscan {size}"] = lambda size=size: HDBSCAN(min_cluster_size=size)
    if Genie is not None:
        found["genie"] = lambda: Genie(n_clusters=k)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        out = path.with_suffix(".peers.npz")
        if path.name.endswith(".peers.npz") or out.exists():
            continue
        stored = np.load(path)
        labels = {}
        for scaling, X in {
            "raw": stored["X"],
            "standardised": StandardScaler().fit_transform(stored["X"]),
        }.items():
            for name, made in methods(int(stored["k"]), X.shape[1]).items():
                try:
                    labels[f"{name}, {scaling}"] = np.asarray(made().fit_predict(X))
                except ValueError as problem:  # rows that a peer cannot take
                    print(f"{path.stem}: {name}, {scaling}: {problem}", flush=True)
        np.savez(out, **labels)
        print(path.stem, len(labels), flush=True)


if __name__ == "__main__":
    main()
