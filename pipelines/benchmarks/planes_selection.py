"""Selected columns of nonparallel planes: synchronisation, and planted columns found again.

DMKC_DATA_DIR=folder python pipelines/benchmarks/planes_selection.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_selection import f_classif
from sklearn.svm import LinearSVC

from common import table, write
from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.planes.selection import cosines, synchronisation
from dmkc.datasets import load
from dmkc.reference.planes import fit_planes

TOPS = {"sonar": (5, 10, 20, 30, 40, 50)}
WIDE_TOPS = (20, 50, 100, 250, 500, 1000)
PLANTED, COLUMNS, ROWS = 10, 10_000, 400
SHIFTS = (3.0, 2.0, 1.0)


def l1_planes(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """An L1 weight vector per class; without weights those of two classes mirror each other."""
    found = []
    for k in np.unique(y):
        svc = LinearSVC(penalty="l1", dual=False, C=1.0, random_state=int(k))
        weights = np.where(y == k, 1.0, 3.0)
        found.append(svc.fit(X, y == k, sample_weight=weights).coef_[0])
    return np.array(found)


def agreement(weights: np.ndarray, tops: tuple[int, ...]) -> tuple[float, float]:
    """Largest and mean synchronisation over numbers of columns that have weights at all."""
    most = int((np.abs(weights) > 0).sum(axis=1).min())
    values = [synchronisation(weights, r) for r in tops if r <= most] or [synchronisation(weights)]
    return max(values), float(np.mean(values))


def synchronised(name: str) -> list:
    data = load(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    size = np.ptp(X, axis=0)
    Z = ((X - X.mean(axis=0)) / np.where(size > 0, size, 1.0))[:, size > 0]
    tops = TOPS.get(name, WIDE_TOPS)
    began = time.perf_counter()
    ours = fit_planes(Z, y, c1=0.25, c2=0.005, tol=1e-3)
    seconds = time.perf_counter() - began
    twins = fit_planes(Z, y, c1=0.25, c2=0.0025, hinge=True, together=False, tol=1e-3)
    row = [name, f"{X.shape[0]} x {X.shape[1]}", int(np.any(ours.weights, axis=0).sum())]
    for weights in (ours.weights, twins.weights, l1_planes(Z, y)):
        row += [f"{value:.2f}" for value in agreement(weights, tops)]
    return [*row, f"{cosines(ours.weights)[0, 1]:.3f}", f"{seconds:.1f}"]


def scores(chosen: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    hits = len(np.intersect1d(chosen, true))
    return hits / max(len(chosen), 1), hits / len(true)


def planted(shift: float) -> list[list]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=ROWS)
    X = rng.normal(size=(ROWS, COLUMNS))
    true = np.sort(rng.choice(COLUMNS, PLANTED, replace=False))
    X[:, true] += shift * y[:, None]
    began = time.perf_counter()
    model = NonparallelPlaneClustering(scale="standard", random_state=0).fit(X)
    seconds = time.perf_counter() - began
    labels = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    top = np.argsort(-model.feature_importances_)[:PLANTED]
    ways = {
        "planes, all selected": model.get_support(indices=True),
        "planes, the 10 largest": top,
        "k-means, 10 largest F of ANOVA": np.argsort(-f_classif(X, labels)[0])[:PLANTED],
        "10 largest variances": np.argsort(-X.var(axis=0))[:PLANTED],
        "sparse k-means (10 columns, alternating)": sparse_k_means(X),
    }
    rows = []
    for way, chosen in ways.items():
        precision, recall = scores(chosen, true)
        cost = f"{seconds:.1f}" if way == "planes, all selected" else ""
        rows.append([f"{shift:g}", way, len(chosen), f"{precision:.2f}", f"{recall:.2f}", cost])
    return rows


def sparse_k_means(X: np.ndarray) -> np.ndarray:
    """k-means on the ten columns with the most variance between clusters, in turn."""
    chosen = np.argsort(-X.var(axis=0))[:1000]
    for _ in range(10):
        labels = KMeans(2, n_init=3, random_state=0).fit_predict(X[:, chosen])
        chosen = np.argsort(-f_classif(X, labels)[0])[:PLANTED]
    return chosen


def main() -> None:
    warnings.simplefilter("ignore")
    sets = ("sonar", "leukemia_golub", "prostate_ge")
    agree = [synchronised(name) for name in sets]
    found = [row for shift in SHIFTS for row in planted(shift)]
    first = table(
        [
            "data",
            "size",
            "columns used",
            "joint planes, max",
            "mean",
            "twin planes, max",
            "mean",
            "L1 SVC per class, max",
            "mean",
            "cosine of the joint planes",
            "seconds",
        ],
        agree,
    )
    second = table(["shift / sd", "way", "chosen", "precision", "recall", "seconds"], found)
    parts = [
        "Synchronisation with known classes (the paper's tables 2 and 3): Pearson's correlation of "
        "the indicators of the two planes' r largest weights, over r as in the paper but no more "
        "than the planes have weights. A cosine of -1 is a pair of parallel planes.",
        first,
        f"{PLANTED} of {COLUMNS:,} columns separate two clusters of {ROWS} rows; no labels given.",
        second,
    ]
    command = "python pipelines/benchmarks/planes_selection.py"
    data = {"synchronisation": agree, "planted": found}
    write("planes-selection", "Nonparallel planes: selected columns", command, parts, data)


if __name__ == "__main__":
    main()
