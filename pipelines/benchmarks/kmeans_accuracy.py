"""Kernel k-means methods on the data sets of hierarchical multiple-kernel k-means, tables 2 to 4.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/kmeans_accuracy.py [--points N]

The paper reports the best of about 1250 parameter settings, chosen by the true labels.  "oracle" is
the best of N settings drawn from the paper's grid, "null" the best of N *random* subspaces spanned
by the leading directions of the average kernel: what choosing by the labels gives for free.
"default" columns use no labels.  A data set's result is kept, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import normalized_mutual_info_score

from common import left_out, one_by_one, table, write
from dmkc import HierarchicalKernelKMeans, KernelKMeans, MultipleKernelKMeans
from dmkc.clusterers.kmeans.partitions import Reduction, reduce
from dmkc.clusterers.prepare import FeatureSettings, prepare
from dmkc.data import RowRecord, as_rows
from dmkc.datasets import load
from dmkc.kernels.bank import TWELVE
from dmkc.master.partition import (
    Hierarchy,
    combined,
    fit_layers,
    leading,
    random_masks,
    tie_breaker,
)
from dmkc.metrics import accuracy, rand_index
from dmkc.progress import Progress
from dmkc.scan.engine import ThreadEngine, one_blas_thread

NAME = "kmeans-accuracy"
Quality = tuple[float, float, float]
PUBLISHED = {
    "prostate_ge": ("86.2 / 85.3", 2),
    "ar10p": ("56.4 / 42.9", 10),
    "ionosphere": ("90.0 / 87.5", 2),
    "wdbc": ("93.2 / 90.5", 2),
    "australian": ("69.6 / 68.4", 2),
    "vehicle": ("53.7 / 45.5", 4),
    "yaleb_32x32": ("40.1 / 32.1", 38),
}
"""Accuracy of the sparse and the fully connected hierarchy in the paper, and the clusters."""
METHODS: dict[str, Any] = {
    "average kernel": lambda k: KernelKMeans(k, kernels="twelve", scale=None, random_state=0),
    "MKKM": lambda k: MultipleKernelKMeans(k, weights="mkkm", scale=None, random_state=0),
    "MKKM-MR": lambda k: MultipleKernelKMeans(k, weights="mkkm-mr", scale=None, random_state=0),
    "SimpleMKKM": lambda k: MultipleKernelKMeans(k, weights="simple", scale=None, random_state=0),
    "sparse, default": lambda k: HierarchicalKernelKMeans(k, scale=None, random_state=0),
    "full": lambda k: HierarchicalKernelKMeans(k, sparsity=0.0, scale=None, random_state=0),
}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "wdbc":
        return load_breast_cancer(return_X_y=True)
    data = load(name)
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def quality(y: np.ndarray, labels: np.ndarray) -> Quality:
    return (
        100 * accuracy(y, labels),
        100 * float(normalized_mutual_info_score(y, labels, average_method="geometric")),
        100 * rand_index(y, labels),
    )


def grid(k: int) -> list[tuple[int, int, float, int, int]]:
    """The paper's settings: widths, sparsity and nodes of two layers."""
    return [
        (c1 * k, c2 * k, sparsity, n1, n2)
        for c1, c2, sparsity, n1, n2 in itertools.product(
            range(3, 11), range(2, 6), (0.5, 0.6, 0.7, 0.8), (8, 10, 12, 14), (6, 8, 10)
        )
        if c1 > c2
    ]


def embedded(reduction: Reduction, stored: RowRecord, coefficients: np.ndarray) -> np.ndarray:
    return reduction.embedding(coefficients, True)(stored)


def clustered(H: np.ndarray, k: int, seed: int) -> np.ndarray:
    return SklearnKMeans(k, n_init=3, random_state=seed).fit(H).labels_


def oracle_and_null(X: np.ndarray, y: np.ndarray, k: int, points: int) -> dict[str, Any]:
    """Best by the labels of N settings of the grid, and of N random subspaces."""
    rank = min(len(X), max(200, 10 * k))
    settings = FeatureSettings(
        TWELVE, None, rank, "uniform", "float64", "persist", None, len(X), 0, diagonals=True
    )
    rng = np.random.default_rng(0)
    with one_blas_thread():
        ready = prepare(as_rows(X), ThreadEngine(), settings, k)
        small = reduce(ready, True, 4096, max(200, 20 * k), Progress(0, 1.0))
        stored = ready.sample.record
        every = grid(k)
        chosen = [every[i] for i in rng.choice(len(every), points, replace=False)]
        extra = tie_breaker(small.kernels, 0.01)
        scores = []
        for seed, (c1, c2, sparsity, n1, n2) in enumerate(chosen):
            masks = random_masks(len(small.kernels), (n1, n2), sparsity, rng)
            widths = min(c1, small.size), min(c2, small.size)
            layers = Hierarchy(widths, masks, 1e-4, 10)
            found = leading(fit_layers(small.kernels, k, layers, extra).top, k)
            scores.append(quality(y, clustered(embedded(small, stored, found), k, seed)))
        m = len(small.kernels)
        lead = leading(combined(small.kernels, np.full(m, 1.0 / m)), min(10 * k, small.size))
        random = []
        for seed in range(points):
            turn, _ = np.linalg.qr(rng.normal(size=(lead.shape[1], k)))
            random.append(quality(y, clustered(embedded(small, stored, lead @ turn), k, seed)))
    return {"oracle": max(scores), "mean": np.mean(scores, axis=0).tolist(), "null": max(random)}


def by_one_kernel(kernel: Any, X: np.ndarray, k: int) -> np.ndarray | None:
    """Labels by one kernel of the bank, or None where it has too few directions for k clusters."""
    try:
        return KernelKMeans(k, kernels=kernel, scale=None, random_state=0).fit(X).labels_
    except ValueError as problem:
        if "directions" not in str(problem):
            raise
        return None


def measure(name: str, points: int) -> dict[str, Any]:
    X, y = rows_of(name)
    k = PUBLISHED[name][1]
    began = time.perf_counter()
    found: dict[str, Any] = {
        "k-means": quality(y, SklearnKMeans(k, n_init=10, random_state=0).fit(X).labels_)
    }
    for method, make in METHODS.items():
        found[method] = quality(y, make(k).fit(X).labels_)
    found["best kernel (oracle)"] = max(
        quality(y, labels)
        for kernel in TWELVE
        if (labels := by_one_kernel(kernel, X, k)) is not None
    )
    found |= oracle_and_null(X, y, k, points)
    found |= {"shape": X.shape, "points": points, "seconds": time.perf_counter() - began}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--points", type=int, default=60, help="settings of the oracle")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, absent = one_by_one(
        NAME, options.sets, lambda name: measure(name, options.points), f"{options.points} points"
    )
    show(options, data, absent)


def show(options: argparse.Namespace, data: dict[str, Any], absent: list[str]) -> None:
    names = ("oracle", "null", "mean", "best kernel (oracle)", *METHODS, "k-means")
    parts = []
    for number, measure_name in enumerate(("Accuracy", "NMI", "Rand index")):
        header = ["data", *(["published, sparse / full"] if number == 0 else []), *names]
        rows = []
        for name, found in data.items():
            row = [name, *([PUBLISHED[name][0]] if number == 0 else [])]
            rows.append([*row, *(f"{found[column][number]:.1f}" for column in names)])
        parts.append(f"## {measure_name}, %\n\n" + table(header, rows))
    parts.append(
        f"**oracle**: the best by the *true labels* of {options.points} settings drawn from the "
        "paper's grid, one random mask each (the paper: about 1250). **null**: the best by the "
        f"true labels of {options.points} random subspaces within the leading directions of the "
        "average kernel. **mean**: the average over the settings of the oracle. **best kernel "
        "(oracle)**: of the twelve kernels alone, by the true labels. All other columns use no "
        "labels. Columns are not scaled, as in the paper."
    )
    parts += left_out(absent)
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/kmeans_accuracy.py"
    command += f" --sets {' '.join(options.sets)} --points {options.points}"
    write(NAME, "Accuracy of kernel k-means methods", command, parts, data)


if __name__ == "__main__":
    main()
