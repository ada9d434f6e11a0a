"""How often the verdict on structure is right: rows without clusters, and planted ones.

    python pipelines/benchmarks/auto_noise.py [--draws 5]

Noise is normal, uniform, skewed or with long tails, in 2 to 50 columns and 200 to 20,000 rows.
Planted clusters are normal balls of equal or unequal size that k-means finds (adjusted Rand index
above .9); of those that it does not find, others are drawn.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from common import table, write
from dmkc.scan.engine import one_blas_thread
from dmkc.selection.structure import structure

COLUMNS = (2, 5, 10, 20, 50)
ROWS = (200, 1000, 5000, 20_000)
SAMPLE = 1000
"""As many rows as AutoClustering looks at."""
COMMAND = "python pipelines/benchmarks/auto_noise.py"


NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "Student's t, 3": lambda rng, shape: rng.standard_t(3, size=shape),
    "Cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
}


def noise(kind: str, rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """A cloud without clusters, whose columns are correlated in every other draw."""
    X = NOISE[kind](rng, (n, d))
    return X @ rng.normal(size=(d, d)) if rng.integers(2) else X


def planted(kind: str, rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal balls, so far apart that k-means finds them."""
    while True:
        k = int(rng.integers(2, 7))
        shares = np.ones(k) if kind == "equal" else 1.0 + 2.0 * np.arange(k)
        y = rng.choice(k, n, p=shares / shares.sum())
        centres = rng.normal(size=(k, d)) * rng.uniform(3.0, 8.0) / np.sqrt(min(d, 4)) * 1.5
        X = centres[y] + rng.normal(size=(n, d))
        few = X[:2000]
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(few)
        if adjusted_rand_score(y[:2000], labels) > 0.9:
            return X


def found(X: np.ndarray, rng: np.random.Generator) -> tuple[bool, int]:
    """Whether there is evidence of clusters, and how many there seem to be."""
    some = np.sort(rng.permutation(len(X))[:SAMPLE])
    with one_blas_thread():
        seen = structure(X[some], 2, 10, 0)
    return seen.found, seen.best


def counts(make: Any, kinds: tuple[str, ...], draws: int) -> list[dict[str, Any]]:
    """The share of draws with evidence, for every kind, number of columns and of rows."""
    rows = []
    for kind, d, n in product(kinds, COLUMNS, ROWS):
        rng = np.random.default_rng([d, n, len(kind)])
        seen = [found(make(kind, rng, n, d), rng)[0] for _ in range(draws)]
        rows.append({"kind": kind, "columns": d, "rows": n, "draws": draws, "found": sum(seen)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5, help="of every kind, columns and rows")
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    data = {
        "noise": counts(noise, tuple(NOISE), draws),
        "planted": counts(planted, ("equal", "unequal"), draws),
    }
    write_page(data, draws)


def write_page(data: dict[str, Any], draws: int) -> None:
    """docs/results/auto-noise.md and .json."""
    lines = []
    for name, aim in (("noise", "at most 5 %"), ("planted", "at least 99 %")):
        kinds = dict.fromkeys(row["kind"] for row in data[name])
        for kind in (*kinds, "all"):
            rows = [row for row in data[name] if kind in (row["kind"], "all")]
            total, hits = sum(r["draws"] for r in rows), sum(r["found"] for r in rows)
            lines.append((name, kind, total, hits, f"{100 * hits / total:.1f} %", aim))
    missed = [r for r in data["planted"] if r["found"] < r["draws"]]
    wrong = [r for r in data["noise"] if r["found"]]
    parts = [
        f"{draws} draws of every kind, of {', '.join(map(str, COLUMNS))} columns and "
        f"{', '.join(f'{n:,}' for n in ROWS)} rows each; a sample of {SAMPLE} is looked at. "
        "The threshold of the verdict was chosen on other draws.",
        table(("rows", "kind", "draws", "evidence of clusters", "share", "aim"), lines),
        "## Where it was wrong",
        table(
            ("rows", "kind", "columns", "number of rows", "evidence in"),
            [
                (name, r["kind"], r["columns"], f"{r['rows']:,}", f"{r['found']} of {r['draws']}")
                for name, some in (("noise", wrong), ("planted", missed))
                for r in some
            ],
        ),
    ]
    write("auto-noise", "Is there anything to find", COMMAND, parts, data)


if __name__ == "__main__":
    main()
