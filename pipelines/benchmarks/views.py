"""Several tables of the same rows: each alone, all together, and with useless ones among them.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/views.py [--seeds 5] [--most 6]

2000 handwritten digits in six views of 6 to 240 columns (mfeat.npz).  True labels are used to
measure only.  Useless views are 100 columns of noise, or of ten clusters of their own that have
nothing to do with the digits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import dmkc
from common import left_out, one_by_one, write
from dmkc.datasets import load
from dmkc.metrics import accuracy, adjusted_rand_index
from views_page import CHECK, EVEN, NAME, Page

Views = dict[str, np.ndarray]

METHODS: dict[str, Any] = {
    "MultipleKernelClustering": dmkc.MultipleKernelClustering,
    "SparseKernelMMC": dmkc.SparseKernelMMC,
    "KernelKMeans": dmkc.KernelKMeans,
    "MultipleKernelKMeans": dmkc.MultipleKernelKMeans,
    "HierarchicalKernelKMeans": dmkc.HierarchicalKernelKMeans,
    "MarginDistributionClustering": dmkc.MarginDistributionClustering,
    "NonparallelPlaneClustering": dmkc.NonparallelPlaneClustering,
    "KMeans": dmkc.KMeans,
}
WEIGHED = tuple(METHODS)[:5]
"""Those whose kernels see one view each; the others see all columns side by side."""
FOLLOWED = tuple(METHODS)[:4]
"""Those that are given useless views."""
NAMES = ("fou", "fac", "kar", "pix", "zer", "mor")
CLUSTERS, WIDTH = 10, 100
"""Clusters of a useless view, and its columns."""
SPREADS = {"noise": 0.0, "own clusters": 0.5}
"""How far the centres of a useless view lie apart in each column; rows lie 1 around a centre."""
WIDER = (1.0, 2.0, 4.0)
"""The same for more views with clusters of their own, which k-means alone is given."""


def digits() -> tuple[Views, np.ndarray]:
    """The six views and the digits."""
    data = load("mfeat")
    with np.load(data.source) as stored:
        views = {name: np.asarray(stored[name], dtype=np.float64) for name in NAMES}
    return views, np.unique(data.y, return_inverse=True)[1]


def useless(spread: float, n: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A view that says nothing of the digits, and its own clusters (at spread 0 it is noise)."""
    rng = np.random.default_rng([seed, number])
    own = rng.integers(CLUSTERS, size=n)
    centres = spread * rng.normal(size=(CLUSTERS, WIDTH))
    return rng.normal(size=(n, WIDTH)) + centres[own], own


def side_by_side(views: Iterable[np.ndarray], even: bool) -> np.ndarray:
    """All columns standardised; `even` divides each view by the root of its width."""
    scaled = [StandardScaler().fit_transform(view) for view in views]
    return np.hstack([view / np.sqrt(view.shape[1]) if even else view for view in scaled])


def k_means(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    model = KMeans(CLUSTERS, n_init=10, random_state=seed)
    return scored(y, lambda: model.fit(X).labels_)


def own_method(name: str, views: Views, y: np.ndarray, seed: int) -> dict[str, Any]:
    model = METHODS[name](CLUSTERS, random_state=seed)
    found = scored(y, lambda: model.fit(views).labels_)
    return found | ({"weights": model.view_weights_} if name in WEIGHED else {})


def scored(y: np.ndarray, fit: Callable[[], Any]) -> dict[str, Any]:
    began = time.perf_counter()
    with threadpool_limits(1):  # threads of other programs would be waited for
        labels = np.asarray(fit())
    seconds = time.perf_counter() - began
    found = {"accuracy": 100 * accuracy(y, labels), "ARI": adjusted_rand_index(y, labels)}
    return found | {"seconds": seconds}


def digits_only(seed: int) -> dict[str, Any]:
    """Every view alone, and all of them in every way."""
    views, y = digits()
    found = {
        f"k-means, {name} alone ({X.shape[1]} columns)": k_means(side_by_side([X], False), y, seed)
        for name, X in views.items()
    }
    found["k-means, side by side"] = k_means(side_by_side(views.values(), False), y, seed)
    found[EVEN] = k_means(side_by_side(views.values(), True), y, seed)
    return found | {name: own_method(name, views, y, seed) for name in METHODS}


def with_useless(kind: str, count: int, seed: int) -> dict[str, Any]:
    """The digits' views and `count` useless ones: a kind, or a spread for k-means alone."""
    views, y = digits()
    spread = SPREADS[kind] if kind in SPREADS else float(kind)
    for number in range(count):
        views[f"useless {number}"], own = useless(spread, len(y), number, seed)
    last = views[f"useless {count - 1}"]  # those before were checked with fewer views
    found = {CHECK: k_means(last, own, seed)} if spread else {}
    found[EVEN] = k_means(side_by_side(views.values(), True), y, seed)
    if kind in SPREADS:
        found |= {name: own_method(name, views, y, seed) for name in FOLLOWED}
    return found


def measure(key: str) -> dict[str, Any]:
    """What a run found: "digits/seed", or "kind of useless views, or spread/number/seed"."""
    kind, *count, seed = key.split("/")
    return with_useless(kind, int(count[0]), int(seed)) if count else digits_only(int(seed))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=6, help="the largest number of useless views")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds, counts = range(options.seeds), range(1, options.most + 1)
    keys = [f"digits/{seed}" for seed in seeds]
    keys += [f"{kind}/{count}/{seed}" for kind in SPREADS for count in counts for seed in seeds]
    keys += [f"{spread}/{options.most}/{seed}" for spread in WIDER for seed in seeds]
    data, absent = one_by_one(NAME, keys, measure)
    page = Page(data, list(SPREADS), [str(spread) for spread in WIDER], counts, FOLLOWED, NAMES)
    page.picture()
    parts = [*page.parts(), *left_out(absent)]
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/views.py"
    for name, value in vars(options).items():
        command += f" --{name} {value}" if value != parser.get_default(name) else ""
    write(NAME, "Several tables of the same rows", command, parts, data)


if __name__ == "__main__":
    main()
