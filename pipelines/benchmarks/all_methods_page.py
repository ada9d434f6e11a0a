"""The page of the table over all methods: tables, a picture, and what stands out."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from all_methods_fits import METHODS, MOST_COLUMNS, OURS
from common import RESULTS, left_out, table, write

NAME = "all-methods"
BEHIND = 15.0
"""Points behind the best sibling from which a default is named."""
SLOW = 15.0
"""A method whose own setting takes longer than this is spared its other settings on that set."""
CLOSE = 0.5
"""Points within the best of its line that are printed in bold."""
ABOUT = """
Accuracy in % by best matching. Sets of more than {rows:,} rows are a uniform sample of that many.
**mkc ... hmkkm**: the library's estimators with default parameters and `random_state=0`.
**select**: `dmkc.select` (on 1000 rows), then the chosen estimator fitted to all. **k-means**:
scikit-learn, `n_init=10`, on raw or standardised columns, whichever has the larger silhouette by
the ranks of the columns (no labels). **spectral** (10 nearest neighbours), **mixture** (of normal
distributions, whole covariances up to {columns} columns), **ward** and **hdbscan** are
scikit-learn's on standardised columns; **dask-ml** has standardised columns, too, and gamma = 1 /
(2 columns). HDBSCAN finds the number of clusters by itself, and its noise counts as one cluster;
all others are told the number of classes. Clustering with pairs, and peers that need them, is on
the page [constraints.md](constraints.md). Bold: within {close} points of the best of its line.
**one cluster**: the share of the largest class, which a method scores that puts all rows
together; where classes are unequal (wilt, haberman, spectf) a figure near it is no success. Classes
are not always clusters.
""".strip()
ORACLE = """
**oracle**: the best by the *true labels* of the few settings of a method that
`pipelines/benchmarks/all_methods_fits.py` lists (in brackets: how many); no user can choose so. It
shows what a method could do, and rises with the number of settings by itself. Where a method's own
setting took more than {slow:g} s, the others were not tried.
""".strip()

Cells = dict[tuple[str, str, int], dict[str, Any]]


class Table:
    """Figures by set and method; NaN where there are none."""

    def __init__(self, cells: Cells, sets: list[str]) -> None:
        self.cells, self.sets = cells, sets
        self.methods = [m for m in METHODS if any((s, m, 0) in cells for s in sets)]

    def own(self, name: str, method: str, what: str = "accuracy") -> float:
        return self.cells.get((name, method, 0), {}).get(what, np.nan)

    def oracle(self, name: str, method: str) -> float:
        tried = [self.cells.get((name, method, i), {}) for i in range(len(METHODS[method][1]))]
        return max((c["accuracy"] for c in tried if "accuracy" in c), default=np.nan)

    def settings(self, method: str) -> list[list[str]]:
        """The mean of every setting of a method, over the sets on which all of them were fitted."""
        every = METHODS[method][1]
        found = [
            [self.cells.get((s, method, i), {}).get("accuracy", np.nan) for i in range(len(every))]
            for s in self.sets
        ]
        whole = np.array([line for line in found if not np.isnan(line).any()])
        if not len(whole):
            return []
        average = whole.mean(axis=0)
        return [
            [method, str(len(whole)), _words(setting), shown(value, average.max())]
            for setting, value in zip(every, average, strict=True)
        ]

    def waiting(self) -> str:
        """The methods that were not (or not all_rows) fitted yet."""
        counts = {m: sum((s, m, 0) in self.cells for s in self.sets) for m in METHODS}
        missing = [
            f"{method} ({count} of {len(self.sets)} sets)"
            for method, count in counts.items()
            if count < len(self.sets)
        ]
        return ", ".join(missing) or "None."

    def stored(self) -> dict[str, Any]:
        """Accuracy and seconds of every setting, by set and method."""
        kept: dict[str, Any] = {}
        for (name, method, number), cell in sorted(self.cells.items()):
            figures = cell.get("failed", round(cell.get("accuracy", 0.0), 2))
            line = f"{figures}, {cell['seconds']:.2f} s"
            kept.setdefault(name, {}).setdefault(method, {})[str(number)] = line
        return kept

    def failures(self) -> list[str]:
        return [
            f"{method} {METHODS[method][1][number] or ''} on {name}: {cell['failed']}"
            for (name, method, number), cell in self.cells.items()
            if "failed" in cell and name in self.sets
        ]


def _words(setting: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in setting.items()) or "default"


def shown(value: float, best: float) -> str:
    if np.isnan(value):
        return ""
    text = f"{value:.1f}"
    return f"**{text}**" if value >= best - CLOSE else text


def lines(figures: dict[str, list[float]]) -> list[list[str]]:
    """A line a set, the best in bold."""
    return [
        [name, *(shown(v, float(np.nanmax(values))) for v in values)]
        for name, values in figures.items()
    ]


def means(figures: dict[str, list[float]], groups: dict[str, list[str]]) -> list[list[str]]:
    """Means over the sets of a group on which all methods have a figure.

    Methods that lack a quarter of the figures are left out, lest they take the sets with them.
    """
    usual = np.isnan(list(figures.values())).mean(axis=0) < 0.25
    found = []
    for label, names in groups.items():
        values = np.array([figures[name] for name in names])
        if len(values):
            values = values[~np.isnan(values[:, usual]).any(axis=1)]
        if len(values):
            average = np.where(usual, values.mean(axis=0), np.nan)
            name = f"**mean, {label} ({len(values)} sets)**"
            found.append([name, *(shown(v, float(np.nanmax(average))) for v in average)])
    return found


def behind(figures: dict[str, list[float]], methods: list[str]) -> str:
    """The defaults that are far behind a sibling, by method."""
    ours = [i for i, method in enumerate(methods) if method in OURS]
    named: dict[str, list[str]] = {}
    for name, values in figures.items():
        best = max(ours, key=lambda i, values=values: np.nan_to_num(values[i]))
        for i in ours:
            if values[best] - values[i] >= BEHIND:
                text = f"{name} ({values[i]:.0f}, {methods[best]} {values[best]:.0f})"
                named.setdefault(methods[i], []).append(text)
    return "\n".join(
        f"- {method} ({len(texts)} of {len(figures)} sets): {', '.join(texts)}"
        for method, texts in named.items()
    )


def picture(figures: dict[str, list[float]], methods: list[str]) -> None:
    """Accuracy less that of k-means, as colours."""
    values = np.array(list(figures.values()))
    less = values - values[:, [methods.index("k-means")]]
    size = 1.8 + 0.52 * len(methods), 1.6 + 0.24 * len(figures)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    image = axes.imshow(less, cmap="RdBu", vmin=-40, vmax=40, aspect="auto")
    axes.set_xticks(range(len(methods)), methods, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(figures)), list(figures))
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "white" if abs(less[i, j]) > 28 else "black"
            axes.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(image, label="accuracy less k-means, points", shrink=0.6, extend="both")
    axes.set_title("Accuracy in %, without labels")
    RESULTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(RESULTS / f"{NAME}.png", dpi=110)
    plt.close(figure)


def write_page(cells: Cells, rows: dict[str, Any], absent: list[str], most: int) -> None:
    """docs/results/all-methods.md, .json and .png."""
    found = Table(cells, [name for name in rows if any(key[0] == name for key in cells)])
    clusters = {name: int(rows[name][1].max()) + 1 for name in found.sets}
    label = {
        name: f"{name} ({rows[name][0].shape[0]:,} x {rows[name][0].shape[1]:,}, {clusters[name]})"
        for name in found.sets
    }
    own = {label[s]: [found.own(s, m) for m in found.methods] for s in found.sets}
    tuned = [m for m in found.methods if len(METHODS[m][1]) > 1]
    oracle = {label[s]: [found.oracle(s, m) for m in tuned] for s in found.sets}
    seconds = {label[s]: [found.own(s, m, "seconds") for m in found.methods] for s in found.sets}
    groups = {
        "two clusters": [label[s] for s in found.sets if clusters[s] == 2],
        "several": [label[s] for s in found.sets if clusters[s] > 2],
        "all": list(label.values()),
    }
    first = "data (rows x columns, clusters)"
    main = [*lines(own), *means(own, groups)]
    largest = [100 * np.bincount(rows[s][1]).max() / len(rows[s][1]) for s in found.sets]
    shares = [f"{share:.1f}" for share in largest] + [""] * (len(main) - len(largest))
    times = [
        [name, *("" if np.isnan(v) else f"{v:.2f}" for v in values)]
        for name, values in seconds.items()
    ]
    counted = [f"{m} ({len(METHODS[m][1])})" for m in tuned]
    about = ABOUT.format(rows=most, columns=MOST_COLUMNS, close=CLOSE)
    by_name = dict(zip(found.sets, own.values(), strict=True))
    picture(by_name, found.methods)
    parts = [
        about,
        f"![accuracy of every method on every set, coloured by k-means]({NAME}.png)",
        "## Without labels\n\n"
        + table(
            (first, "one cluster", *found.methods),
            [[name, share, *rest] for share, (name, *rest) in zip(shares, main, strict=True)],
        ),
        f"### Defaults far behind a sibling\n\nAt least {BEHIND:g} points below the best default "
        "of the library on the same set:\n\n" + behind(by_name, found.methods),
        "## Oracle\n\n" + ORACLE.format(slow=SLOW),
        table((first, *counted), [*lines(oracle), *means(oracle, groups)]),
        "### One setting for all sets\n\nMeans over the sets on which all settings of a method "
        "were fitted; bold as above.",
        table(
            ("method", "sets", "setting", "mean accuracy"),
            [line for m in tuned for line in found.settings(m)],
        ),
        "## Seconds\n\nOf one fit with the settings of the first table, on one core, after a fit "
        "that compiles the inner loops; other programs were running and paused some fits, so they "
        "show an order of magnitude.",
        table((first, *found.methods), times),
        "## Fits that failed or were stopped\n\n"
        + ("\n".join(f"- {text}" for text in found.failures()) or "None."),
        "## Methods that were not fitted to all sets yet\n\n" + found.waiting(),
        *left_out(absent),
    ]
    command = f"DMKC_DATA_DIR=... python pipelines/benchmarks/all_methods.py --rows {most}"
    write(NAME, "All methods on all data sets", command, parts, found.stored())
