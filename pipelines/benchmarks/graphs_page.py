"""The page of neighbour graphs beside their peers."""

from __future__ import annotations

import argparse
import subprocess
from typing import Any

import numpy as np

from common import left_out, table, write
from graphs_cells import MEASURES, MISSING, PEERS, Cells, failures
from graphs_fit import METHODS

PUBLISHED = {
    "letter-whole": ("28.2", "35.7 (1.4 s)", "37.7 (21 s)"),
    "mnist-whole": ("58.5 (9 s)", "74.3 (7.5 s)", "80.6 (132 s)"),
    "covertype-whole": ("49.1", "49.8 (14 s)", "50.7 (174 s)"),
}
"""k-means, U-SPEC and U-SENC in Huang et al. (2020), on four cores."""
SHORT = {
    "accuracy": "Accuracy",
    "majority_accuracy": "Majority accuracy",
    "normalized_mutual_info": "Normalised mutual information",
    "adjusted_rand_index": "Adjusted Rand index",
}
ABOUT = """
Means over the seeds {seeds}, in %. All methods are told the number of classes, and no set has
settings of its own. The defaults of the two estimators (neighbours, number and weights of
directions, members) were designed while looking at the labels of samples of these sets, of letter,
of MNIST and of the shapes of `graphs_scale.py`; covertype as a whole had no part.
**k-means**: scikit-learn, `n_init=10`. **spectral**: scikit-learn, 10 nearest
neighbours, up to 10,000 rows. **secuer**: 1000 anchors, 5 neighbours, its defaults. **genie**:
genieclust, `gini_threshold=0.3`; it has no seed. **dask-ml**: spectral clustering of 100 Nyström
rows, up to 10,000 rows, gamma = 1 / (2 x sum of the variances of the columns). **dmkc spectral**,
**dmkc consensus**: `SpectralClustering` and `ConsensusClustering` with default parameters on raw
columns, which they scale by their own default. Peers scale nothing, so that they have two columns
of figures: of raw columns and of standardised ones. Sets without "-whole" are those of
[all-methods.md](all-methods.md), sampled in the same way. Bold: within half a point of the best.
Every fit is a process of its own, with all cores, after a small fit that compiles what is
compiled; a method that took more than {limit:g} s was not tried on larger sets.
""".strip()
MAJORITY = """
The published accuracy is probably the majority accuracy. In a trial k-means had 28.1 to 28.8 % of
letter by it (24.1 to 26.7 % by one-to-one matching; published: 28.2), and 58.0 % of every fifth row
of MNIST (53.4 %; published: 58.5).
""".strip()

Column = tuple[str, str]


class Figures:
    """Means over seeds, by set and column of the tables; NaN where there are none."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        pairs = {(c["method"], c["columns"]) for c in cells.found.values() if "failed" not in c}
        order = list(METHODS)
        self.columns: list[Column] = sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1]))
        self.about = {cell["set"]: cell for cell in cells.found.values()}

    def mean(self, name: str, column: Column, measure: str) -> float:
        method, columns = column
        found = self.cells.where(set=name, method=method, columns=columns)
        values = [cell[measure] for cell in found if "failed" not in cell]
        return float(np.mean(values)) if values else np.nan

    def line(self, name: str, measure: str) -> list[float]:
        return [self.mean(name, column, measure) for column in self.columns]

    def header(self, first: str) -> list[str]:
        names = [m if m.startswith("dmkc") else f"{m}, {form}" for m, form in self.columns]
        return [first, *names]

    def label(self, name: str) -> str:
        about = self.about[name]
        width = about["size"] // about["rows"]
        return f"{name} ({about['rows']:,} x {width:,}, {about['clusters']})"


def bold(values: list[float]) -> list[str]:
    if np.isnan(values).all():
        return ["" for _ in values]
    best = np.nanmax(values) - 0.5
    texts = ["" if np.isnan(value) else f"{value:.1f}" for value in values]
    return [f"**{t}**" if v >= best else t for t, v in zip(texts, values, strict=True)]


def seconds(values: list[float]) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]


def summary(figures: Figures, names: list[str]) -> str:
    """Means over the sets on which all columns have a figure, measure by measure.

    Columns that lack a quarter of the figures are left out, lest they take the sets with them.
    """
    lines = []
    for measure in MEASURES:
        values = np.array([figures.line(name, measure) for name in names])
        usual = np.isnan(values).mean(axis=0) < 0.25
        values = values[~np.isnan(values[:, usual]).any(axis=1)]
        if len(values):
            means = bold(np.where(usual, values.mean(axis=0), np.nan).tolist())
            lines.append([f"{SHORT[measure]} ({len(values)} sets)", *means])
    return table(figures.header("mean of"), lines)


def one_by_one(figures: Figures, names: list[str], measure: str) -> str:
    lines = [[figures.label(name), *bold(figures.line(name, measure))] for name in names]
    return table(figures.header("data (rows x columns, clusters)"), lines)


def versions(peers: str, cells: Cells) -> str:
    """What the peers' own Python has installed."""
    used = [m for m in PEERS if cells.where(method=m) and not cells.where(method=m, failed=MISSING)]
    packages = ("secuer", "genieclust", "dask-ml", "scikit-learn", "numpy")
    code = "import importlib.metadata as m, sys; "
    code += "print(*(f'{p} {m.version(p)}' for p in sys.argv[1:]), sep=', ')"
    said = subprocess.run([peers, "-c", code, *packages], capture_output=True, text=True)
    return f"Peers: {said.stdout.strip()}." if used and said.returncode == 0 else ""


def write_page(
    cells: Cells, whole: list[str], absent: list[str], options: argparse.Namespace
) -> None:
    """docs/results/graphs.md and .json."""
    figures = Figures(cells)
    large = [name for name in whole if name in figures.about]
    small = [name for name in figures.about if name not in whole]
    parts = [ABOUT.format(seeds=", ".join(map(str, options.seeds)), limit=options.limit)]
    parts += [text for text in [versions(options.peers, cells)] if text]
    if large:
        parts.append("## Whole sets")
        parts += [f"### {SHORT[m]}\n\n{one_by_one(figures, large, m)}" for m in MEASURES]
        known = [[name, *PUBLISHED[name]] for name in large if name in PUBLISHED]
        if known:
            header = ("data", "k-means", "U-SPEC", "U-SENC")
            parts.append(f"### Published\n\n{MAJORITY}\n\n{table(header, known)}")
    if small:
        parts.append(f"## The sets of all methods\n\n{summary(figures, small)}")
        parts += [
            f"### {SHORT[m]}\n\n{one_by_one(figures, small, m)}"
            for m in ("accuracy", "adjusted_rand_index")
        ]
    times = [[figures.label(n), *seconds(figures.line(n, "seconds"))] for n in [*large, *small]]
    parts.append("## Seconds\n\n" + table(figures.header("data"), times))
    where = failures(cells, ("set", "columns", "seed"))
    parts += [f"## Fits that failed or were stopped\n\n{where}", *left_out(absent)]
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/graphs.py --peers PYTHON"
    stored: list[Any] = list(cells.found.values())
    write("graphs", "Neighbour graphs beside other clusterings", command, parts, stored)
