"""Every estimator as it is, beside k-means: what somebody gets who sets nothing.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/defaults.py [--sets iris ...]

The sets are those of auto.py, at most 1,000 rows of each; the true number of clusters is given.
AutoClustering has a page of its own.  A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from auto import DESIGN, REAL, SHAPES, rand, rows_of
from common import left_out, one_by_one, table, write
from dmkc.clusterers.registry import ESTIMATORS

ROWS = 1000
METHODS = [name for name in ESTIMATORS if name != "auto"]
TRIED = {"planes": "minmax"}
"""Another scaling of columns, on design sets; column-scale.md has those of other methods."""
SLOW = ("hmkkm",)
"""Methods that take most of the time, measured on the design sets alone."""
PEERS = ("k-means, raw", "k-means, standardised", "k-means, if-mixed")
FAILED = 0.0
"""The index of a fit that ended in an error: nothing was found."""


def measured(name: str) -> dict[str, Any]:
    """Adjusted Rand index and seconds of every estimator."""
    X, y = rows_of(name)
    some = np.sort(np.random.default_rng(1).permutation(len(X))[:ROWS])
    X, y = X[some], y[some]
    k = len(np.unique(y[y >= 0]))
    plain = KMeans(k, n_init=10, random_state=0)
    ten = ESTIMATORS["kmeans"](k, n_init=10, random_state=0)
    found: dict[str, Any] = {
        PEERS[0]: rand(y, plain.fit_predict(X)),
        PEERS[1]: rand(y, plain.fit_predict(StandardScaler().fit_transform(X))),
        PEERS[2]: rand(y, ten.fit(X).labels_),
    }
    fits = {m: {} for m in METHODS if name in DESIGN or m not in SLOW}
    if name in DESIGN:
        fits |= {f"{method}, scale={scale}": {"scale": scale} for method, scale in TRIED.items()}
    for words, parameters in fits.items():
        method = words.partition(",")[0]
        began = time.perf_counter()
        try:
            model = ESTIMATORS[method](k, random_state=0, **parameters).fit(X)
            found[words] = rand(y, model.labels_)
        except ValueError as problem:
            found[words] = FAILED
            print(f"{name}, {words}: {problem}", flush=True)
        found[f"{words}, seconds"] = time.perf_counter() - began
    return found


def page(data: dict[str, Any]) -> list[str]:
    groups = {
        f"{kind}, {part}": [n for n in sets if n in data and (n in DESIGN) == (part == "design")]
        for kind, sets in (("real", REAL), ("shapes", SHAPES))
        for part in ("design", "unseen")
    }
    groups["all"] = list(data)
    groups = {group: names for group, names in groups.items() if names}

    def cells(words: str, which: list[str]) -> list[str]:
        known = ([data[n][words] for n in groups[g] if words in data[n]] for g in which)
        return [f"{np.mean(v):.3f}" if v else "" for v in known]

    def beside(words: str) -> float:
        """What a method has more than the best k-means, over the sets that it was fitted to."""
        some = [found for found in data.values() if words in found]
        best = max(np.mean([found[peer] for found in some]) for peer in PEERS)
        return float(np.mean([found[words] for found in some]) - best)

    rows = []
    for words in (*PEERS, *METHODS):
        seconds = "" if words in PEERS else f"{np.median(times(data, words)):.2f}"
        more = "" if words in PEERS else f"{beside(words):+.3f}"
        rows.append((words, *cells(words, list(groups)), more, seconds))
    header = ("method", *(f"{g} ({len(groups[g])})" for g in groups))
    parts = [
        "Mean adjusted Rand index of every estimator at its defaults, with the true number of "
        "clusters. k-means is scikit-learn's with ten starts, raw and standardised, and ours with "
        '`scale="if-mixed"`, the default of all estimators; none of them has seen labels. '
        "The last but one column says how much better an estimator is than the best of these on "
        "average over all sets that it was fitted to; seconds are the median of a fit. "
        f"{', '.join(SLOW)} was fitted to the design sets alone.",
        table((*header, "beside k-means", "seconds"), rows),
    ]
    tried = [g for g in groups if "design" in g]
    words = [w for method, scale in TRIED.items() for w in (method, f"{method}, scale={scale}")]
    if tried:
        shown = [(w, *cells(w, tried)) for w in words]
        parts.append(
            "What columns are divided by, where that was another default before:\n\n"
            + table(("method", *tried), shown)
        )
    every = (*PEERS, *METHODS)
    each = [(n, *(f"{v[w]:.2f}" if w in v else "" for w in every)) for n, v in data.items()]
    return [*parts, table(("set", *every), each)]


def times(data: dict[str, Any], words: str) -> list[float]:
    return [found[f"{words}, seconds"] for found in data.values() if words in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*REAL, *SHAPES]
    parser.add_argument("--sets", nargs="+", default=sorted(every, key=lambda n: n not in DESIGN))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, absent = one_by_one("defaults", options.sets, measured)
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/defaults.py"
    text = [*page(data), *left_out(absent)]
    write("defaults", "Every estimator at its defaults", command, text, data)


if __name__ == "__main__":
    main()
