"""Clustering error of nonparallel planes beside the published figures and k-means.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/planes_accuracy.py [--sets digits38 ...]

"oracle" follows the paper's protocol: c1, c2, kernel and start are chosen by the *true labels*,
which no user has.  "default" is what the library gives without labels.  What the oracle has tried
is kept in a state file (--state): a run that was ended goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from accuracy import digits, folder
from common import table, write
from dmkc import NonparallelPlaneClustering
from dmkc.clusterers.starts import Start
from dmkc.metrics import accuracy
from planes_oracle import (
    C1,
    FEW_COLUMNS,
    LOSSES,
    MOST_MAPS,
    SCALES,
    STRENGTHS,
    WIDER_C1,
    WIDER_STRENGTHS,
    WIDTHS,
    oracle,
)
from planes_starts import by_other_methods

SETS: dict[str, tuple[Any, str, str]] = {
    "digits38": (lambda: digits(3, 8), "5.28", "2.13"),
    "digits17": (lambda: digits(1, 7), "0.57", "0.25"),
    "digits27": (lambda: digits(2, 7), "3.12", "0.0"),
    "digits89": (lambda: digits(8, 9), "9.45", "1.37"),
    "ionosphere": (lambda: folder("ionosphere"), "34", "18.65"),
    "letterAB": (lambda: folder("letter", "A", "B"), "18.23", "4.19"),
    "satellite": (lambda: folder("satellite", "red soil", "cotton crop"), "4.16", "0.16"),
    "ringnorm": (lambda: folder("ringnorm", sample=1000), "22", "8.5"),
}
"""Rows, and the paper's errors of k-means and of its own method (table 4)."""
MORE_STARTS = ("digits89", "letterAB", "satellite")
"""Sets where the library's own starts do not reach the printed error: other methods start too."""


def error(truth: np.ndarray, labels: np.ndarray) -> float:
    return 100.0 * (1.0 - accuracy(truth, labels))


def label_free(name: str, X: np.ndarray, y: np.ndarray, state: Path) -> dict[str, Any]:
    """k-means and the default fit, once."""
    kept = json.loads(state.read_text())
    done = kept.setdefault("label-free", {})
    if name not in done:
        model = NonparallelPlaneClustering(scale="minmax", random_state=0).fit(X)
        done[name] = {
            "default": error(y, model.labels_),
            "k-means": error(y, KMeans(2, n_init=10, random_state=0).fit_predict(X)),
            "picked": f"{len(model.selected_features_)} of {X.shape[1]}",
        }
        state.write_text(json.dumps(kept))
    return done[name]


@cache
def more_starts(name: str) -> Callable[[], list[Start]] | None:
    """Makes the labelings of other methods once, when they are first asked for."""
    return cache(lambda: by_other_methods(SETS[name][0]()[0])) if name in MORE_STARTS else None


def verdict(found: dict[str, Any], printed: float, n: int) -> str:
    """Whether the printed error was reached, and what was in the way if not."""
    if found["error"] <= printed:
        return "reached"
    rows = int(np.floor(printed * n / 100))
    missed = f"no: {round(found['error'] * n / 100)} rows wrong, at most {rows} allowed; "
    if found["from the truth"] <= printed:
        return missed + "the start (a fit from the true labels stays there)"
    return missed + "the objective (fits from the true labels leave them)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--state", type=Path, default=Path("planes-oracle-state.json"))
    parser.add_argument("--oracle-only", action="store_true", help="fill the state file alone")
    parser.add_argument("--as-is", action="store_true", help="search no further than the state")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.oracle_only:  # every set's first map, then every set's second, ...
        for most, name in itertools.product(range(1, MOST_MAPS + 1), options.sets):
            X, y = SETS[name][0]()
            oracle(name, X, y, float(SETS[name][2]), options.state, most, more_starts(name))
        return
    rows, data = [], {}
    for name in options.sets:
        make, paper_kmeans, paper = SETS[name]
        X, y = make()
        most = 0 if options.as_is else MOST_MAPS
        found = oracle(name, X, y, float(paper), options.state, most, more_starts(name))
        plain = label_free(name, X, y, options.state)
        both = plain["k-means"], plain["default"]
        numbers = [f"{v:.2f}" for v in (*both, found["error"], found["from the truth"])]
        said = verdict(found, float(paper), len(X))
        rows.append([name, len(X), paper_kmeans, paper, *numbers, said, found["how"]])
        rows[-1] += [f"{found['points']}, {found['maps']}", plain["picked"]]
        data[name] = {**plain, "oracle": found, "verdict": said}
        print(rows[-1], flush=True)
    header = ["data", "rows", "k-means (paper)", "paper", "k-means", "default", "oracle"]
    header += ["oracle from the true labels", "printed error", "oracle choice"]
    header += ["fits of the oracle, maps tried", "columns selected by default"]
    reached = sum(row[8] == "reached" for row in rows)
    about = (
        "Errors in percent. The paper's are with its own best parameters; those with zero variance "
        "are not multiples of 1/n, so they cannot all be exact. **default** looks at no labels. "
        f"**oracle** is the best by the true labels of a grid over {len(LOSSES)} losses, "
        f"{len(C1)} values of c1, {len(STRENGTHS)} pairs of c2 and ridge, {len(SCALES)} scalings "
        f"of columns and of Gaussians of {len(WIDTHS)} widths (up to {FEW_COLUMNS} columns also a "
        "Gaussian per column), and of up to eight starts that look at no labels: no result that a "
        f"user can count on. On {', '.join(MORE_STARTS)}, where these do not reach the printed "
        "error, there are up to 16 more starts, the labelings of other methods, which look at no "
        "labels either (multiple kernels and single Gaussians by maximum margin, margin "
        "distribution, normalised cuts with 5 to 40 neighbours, on both scalings), and columns are "
        f"also tried with c1 up to {max(WIDER_C1):g} and {len(WIDER_STRENGTHS)} pairs of weaker c2 "
        "and ridge (the wider grid). The search of a set ends with the map that reaches the "
        "printed error. **From the true labels** is the best of the same grid when the true labels "
        "are the start: where it is above the printed error, the problems of this grid move even "
        "true labels away. Maps that were not tried are left for want of time. "
        f"The printed error is reached on {reached} of {len(rows)} sets."
    )
    command = "python pipelines/benchmarks/planes_accuracy.py"
    title = "Nonparallel planes: clustering error"
    write("planes-accuracy", title, command, [about, table(header, rows)], data)


if __name__ == "__main__":
    main()
