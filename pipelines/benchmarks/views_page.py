"""The page about several tables of the same rows: its tables and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from common import RESULTS, table

NAME = "views"
Data = dict[str, dict[str, Any]]
EVEN = "k-means, even views"
CHECK = "k-means, useless view alone, its own clusters"
COLOURS = ("#7f7f7f", "#1f77b4", "#d62728", "#2ca02c", "#9467bd")
TITLES = {
    "noise": "added views of noise",
    "own clusters": "added views with clusters of their own",
}
ABOUT = """\
2000 handwritten digits, ten clusters, six views: fou (Fourier coefficients), fac (profile
correlations), kar (Karhunen-Loève coefficients), pix (averages of pixels), zer (Zernike moments),
mor (morphology). Default settings and the true number of clusters; labels are used to measure
only. **k-means** is scikit-learn's with ten starts on standardised columns; **even views** are
divided by the root of their width as well, so that all of them weigh the same. Means over {seeds}
seeds, with the lowest and the highest accuracy. Seconds are medians; other programs shared the two
cores, so they show an order of magnitude."""
DIGITS = """\
Methods without weights see the columns of all views side by side. `KMeans` by default has one
start and does not scale, so that the view with the largest numbers decides."""
USELESS = """\
Views were added that say nothing of the digits: 100 columns of normal **noise** each, or 100
columns with ten **clusters of their own**, drawn anew for every view. k-means on such a view alone
finds its clusters with an adjusted Rand index of {lowest:.3f} to {highest:.3f}: each of them shows
its clusters more clearly than any view shows the digits. With even views, and in `KernelKMeans`,
which does not learn weights, useless views have an equal share: one of seven up to six of
twelve."""


def values(data: Data, begins: str, method: str, of: str) -> list[float]:
    """What the seeds of a run found of a method."""
    return [run[method][of] for key, run in data.items() if key.startswith(f"{begins}/")]


def useless_weights(data: Data, begins: str, method: str, names: Sequence[str]) -> list[float]:
    """The share of the views that are not the digits', in %, for every seed."""
    return [
        100 * sum(w for view, w in run[method]["weights"].items() if view not in names)
        for key, run in data.items()
        if key.startswith(f"{begins}/")
    ]


def span(found: Sequence[float], digits: int = 1) -> str:
    mean, low, high = np.mean(found), min(found), max(found)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def digits_table(data: Data, names: Sequence[str]) -> str:
    rows = []
    for method in next(run for key, run in data.items() if key.startswith("digits/")):
        runs = [run[method] for key, run in data.items() if key.startswith("digits/")]
        weights = [
            f"{100 * np.mean([run['weights'][view] for run in runs]):.0f}"
            if "weights" in runs[0]
            else ""
            for view in names
        ]
        seconds = f"{np.median([run['seconds'] for run in runs]):.1f}"
        index = f"{np.mean([run['ARI'] for run in runs]):.3f}"
        rows.append((method, span([run["accuracy"] for run in runs]), index, seconds, *weights))
    header = ("method", "accuracy, %", "adjusted Rand index", "seconds")
    return table((*header, *(f"weight of {view}, %" for view in names)), rows)


def accuracy_table(data: Data, kind: str, counts: Sequence[int], methods: Sequence[str]) -> str:
    rows = []
    for method in (EVEN, *methods):
        cells = [span(values(data, "digits", method, "accuracy"))]
        cells += [span(values(data, f"{kind}/{count}", method, "accuracy")) for count in counts]
        rows.append((method, *cells))
    return table(("accuracy, %", "none added", *(f"{count} added" for count in counts)), rows)


def weight_table(
    data: Data, kind: str, counts: Sequence[int], methods: Sequence[str], names: Sequence[str]
) -> str:
    rows = [
        (method, *(span(useless_weights(data, f"{kind}/{n}", method, names)) for n in counts))
        for method in methods
    ]
    return table(("weight of useless views, %", *(f"{count} added" for count in counts)), rows)


def parts_of(
    data: Data,
    kinds: Sequence[str],
    counts: Sequence[int],
    methods: Sequence[str],
    names: Sequence[str],
) -> list[str]:
    """The page, part by part."""
    seeds = sum(key.startswith("digits/") for key in data)
    found = [run[CHECK]["ARI"] for run in data.values() if CHECK in run]
    parts = [
        ABOUT.format(seeds=seeds),
        digits_table(data, names),
        DIGITS,
        "## Useless views",
        USELESS.format(lowest=min(found), highest=max(found)),
        f"![accuracy and weight of useless views against their number]({NAME}.png)",
        "Lines are means over the seeds, bands go from the lowest to the highest; the dotted line "
        "is an equal share for every view.",
    ]
    for kind in kinds:
        parts += [
            f"### {TITLES[kind].capitalize()}",
            accuracy_table(data, kind, counts, methods),
            weight_table(data, kind, counts, methods, names),
        ]
    return parts


def picture(
    data: Data,
    kinds: Sequence[str],
    counts: Sequence[int],
    methods: Sequence[str],
    names: Sequence[str],
) -> None:
    """Accuracy, and the weight of useless views, against their number."""
    figure, axes = plt.subplots(
        2, len(kinds), figsize=(10, 7), sharex=True, sharey="row", layout="constrained"
    )
    every = (0, *counts)
    for column, kind in enumerate(kinds):
        above, below = axes[:, column]
        for method, colour in zip((EVEN, *methods), COLOURS, strict=True):
            found = [values(data, "digits", method, "accuracy")]
            found += [values(data, f"{kind}/{count}", method, "accuracy") for count in counts]
            band(above, every, found, colour, method)
        for method, colour in zip(methods, COLOURS[1:], strict=True):
            shares = [useless_weights(data, f"{kind}/{n}", method, names) for n in counts]
            band(below, every, [[0.0], *shares], colour, method)
        equal = [100 * count / (len(names) + count) for count in every]
        below.plot(every, equal, color="black", lw=1, ls=":")
        above.set_title(TITLES[kind])
        below.set(xlabel="added views", xticks=every)
        for ax in (above, below):
            ax.grid(alpha=0.3)
    axes[0, 0].set(ylabel="accuracy, %", ylim=(0, 102))
    axes[1, 0].set(ylabel="weight of the added views, %", ylim=(-1, 55))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(RESULTS / f"{NAME}.png", dpi=120)


def band(ax: Any, at: Sequence[int], found: list[list[float]], colour: str, label: str) -> None:
    """Means as a line, and from the lowest to the highest as a band."""
    ax.plot(at, [np.mean(v) for v in found], marker="o", ms=4, color=colour, label=label)
    low, high = [min(v) for v in found], [max(v) for v in found]
    ax.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
