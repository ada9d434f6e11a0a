"""Selected columns of nonparallel planes: synchronisation, and planted columns found again.

DMKC_DATA_DIR=folder python pipelines/benchmarks/planes_selection.py
"""

from __future__ import annotations

import time
import warnings
from statistics import NormalDist

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_selection import f_classif
from sklearn.svm import LinearSVC

from common import table, write
from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.planes.selection import cosines, synchronisation
from dmkc.datasets import load
from dmkc.metrics import accuracy
from dmkc.reference.planes import fit_planes

TOPS = {"sonar": (5, 10, 20, 30, 40, 50)}
WIDE_TOPS = (20, 50, 100, 250, 500, 1000)
PLANTED, COLUMNS = 10, 10_000
CASES = ((400, 3.0), (400, 2.0), (400, 1.0), (400, 0.7), (200, 1.5), (200, 1.0))
"""Rows, and the shift of a planted column in standard deviations."""


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


def planted(n: int, shift: float) -> list[list]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=n)
    X = rng.normal(size=(n, COLUMNS))
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
        "known clusters, 10 largest F of ANOVA": np.argsort(-f_classif(X, y)[0])[:PLANTED],
        "k-means, 10 largest F of ANOVA": np.argsort(-f_classif(X, labels)[0])[:PLANTED],
        "10 largest variances": np.argsort(-X.var(axis=0))[:PLANTED],
        "sparse k-means (10 columns, alternating)": sparse_k_means(X),
    }
    right = 100 * accuracy(y, model.labels_)
    rows = []
    for way, chosen in ways.items():
        precision, recall = scores(chosen, true)
        ours = way == "planes, all selected"
        more = [f"{right:.1f}", model.start_, f"{seconds:.1f}"] if ours else ["", "", ""]
        numbers = [f"{precision:.2f}", f"{recall:.2f}"]
        rows.append([f"{n}", f"{shift:g}", way, len(chosen), *numbers, *more])
    print(rows[0], flush=True)
    return rows


def limits() -> str:
    """What can be hoped for, case by case."""
    rows = []
    for n, shift in CASES:
        own = (shift / 2) ** 2 / (1 + (shift / 2) ** 2)
        noise = np.sqrt(2 * np.log(COLUMNS) / n)
        best = 100 * NormalDist().cdf(shift * np.sqrt(PLANTED) / 2)
        rows.append([n, f"{shift:g}", f"{own:.2f}", f"{noise:.2f}", f"{best:.1f}"])
    header = ["rows", "shift / sd", "correlation of two planted columns"]
    header += ["largest with a column of noise", "accuracy of the best rule, %"]
    return table(header, rows)


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
    found = [row for case in CASES for row in planted(*case)]
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
    header = ["rows", "shift / sd", "way", "chosen", "precision", "recall", "rows right, %"]
    second = table([*header, "start", "seconds"], found)
    parts = [
        "Synchronisation with known classes (the paper's tables 2 and 3): Pearson's correlation of "
        "the indicators of the two planes' r largest weights, over r as in the paper but no more "
        "than the planes have weights. A cosine of -1 is a pair of parallel planes.",
        first,
        f"{PLANTED} of {COLUMNS:,} columns separate two clusters; no labels given but to the line "
        "with known clusters, which is what any method could hope for.",
        second,
        "A planted column looks normal on its own where the shift is small, and is found by its "
        "correlation with the others, as long as that stands out from what columns of noise have "
        "by chance, about the square root of 2 log d / n.",
        limits(),
    ]
    command = "python pipelines/benchmarks/planes_selection.py"
    data = {"synchronisation": agree, "planted": found}
    write("planes-selection", "Nonparallel planes: selected columns", command, parts, data)


if __name__ == "__main__":
    main()
