"""The page about several tables of the same rows: its tables and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from common import RESULTS, table

NAME = "views"
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
finds its clusters with an adjusted Rand index of {lowest:.3f} to {highest:.3f}. With even views,
and in `KernelKMeans`, which does not learn weights, each view has an equal share."""
FALLS = """\
Of the {runs} runs with useless views, {low} of k-means with even views stay below {limit} %,
probably in other local solutions. A row's place in an independent view is about as far from every
centre of the digits, so that such views need not disturb k-means."""
LIMIT = 90.0


def span(found: Sequence[float]) -> str:
    return f"{np.mean(found):.1f} ({min(found):.1f} to {max(found):.1f})"


@dataclass(frozen=True)
class Page:
    """The page about the runs in `data`, by "digits/seed" or "kind/number of views/seed"."""

    data: dict[str, dict[str, Any]]
    kinds: Sequence[str]
    wider: Sequence[str]
    """Spreads at which only k-means was tried, with the largest number of useless views."""
    counts: Sequence[int]
    methods: Sequence[str]
    names: Sequence[str]
    """The digits' views."""

    def runs(self, begins: str) -> list[dict[str, Any]]:
        """One for each seed."""
        return [run for key, run in self.data.items() if key.startswith(f"{begins}/")]

    def accuracy(self, begins: str, method: str) -> list[float]:
        return [run[method]["accuracy"] for run in self.runs(begins)]

    def useless_weight(self, begins: str, method: str) -> list[float]:
        """The share of the views that are not the digits', in %."""
        every = [run[method]["weights"].items() for run in self.runs(begins)]
        return [100 * sum(w for view, w in one if view not in self.names) for one in every]

    def parts(self) -> list[str]:
        found = [run[CHECK]["ARI"] for run in self.data.values() if CHECK in run]
        about = ABOUT.format(seeds=len(self.runs("digits")))
        parts = [about, self._digits(), DIGITS, "## Useless views"]
        parts += [
            USELESS.format(lowest=min(found), highest=max(found)),
            f"![accuracy and weight of useless views against their number]({NAME}.png)",
            "Dots are seeds, lines their means.",
            self._falls(),
        ]
        for kind in self.kinds:
            added = [f"{count} added" for count in self.counts]
            parts += [
                f"### {TITLES[kind].capitalize()}",
                table(("accuracy, %", "none added", *added), self._accuracies(kind)),
                table(("weight of useless views, %", *added), self._weights(kind)),
            ]
        return parts

    def _digits(self) -> str:
        rows = []
        for method in self.runs("digits")[0]:
            runs = [run[method] for run in self.runs("digits")]
            own = [run["weights"] for run in runs if "weights" in run]
            weights = [f"{100 * np.mean([w[view] for w in own]):.0f}" for view in self.names if own]
            index = f"{np.mean([run['ARI'] for run in runs]):.3f}"
            seconds = f"{np.median([run['seconds'] for run in runs]):.1f}"
            more = weights or [""] * len(self.names)
            rows.append((method, span(self.accuracy("digits", method)), index, seconds, *more))
        header = ("method", "accuracy, %", "adjusted Rand index", "seconds")
        return table((*header, *(f"weight of {view}, %" for view in self.names)), rows)

    def _falls(self) -> str:
        """Runs that went wrong, and whether those of k-means did so too."""
        runs = [run for kind in self.kinds for run in self.runs(kind)]

        def low(run: dict[str, Any], method: str) -> bool:
            return run[method]["accuracy"] < LIMIT

        even = sum(low(run, EVEN) for run in runs)
        text = FALLS.format(runs=len(runs), low=even, limit=f"{LIMIT:g}")
        for method in self.methods:
            own = [run for run in runs if low(run, method)]
            if 0 < len(own) < len(runs):
                same = sum(low(run, EVEN) for run in own)
                text += f" {method}: {len(own)} runs, {same} of them with seeds at which k-means "
                text += "went wrong as well."
        if self.wider:
            times = ", ".join(f"{2 * float(spread):g}" for spread in self.wider)
            found = ", ".join(span(self.accuracy(spread, EVEN)) for spread in self.wider)
            text += f" Among {max(self.counts)} views whose clusters lie {times} times as far "
            text += f"apart, k-means with even views has {found} %."
        return text

    def _accuracies(self, kind: str) -> list[tuple[str, ...]]:
        places = ["digits", *(f"{kind}/{count}" for count in self.counts)]
        return [
            (method, *(span(self.accuracy(place, method)) for place in places))
            for method in (EVEN, *self.methods)
        ]

    def _weights(self, kind: str) -> list[tuple[str, ...]]:
        places = [f"{kind}/{count}" for count in self.counts]
        return [
            (method, *(span(self.useless_weight(place, method)) for place in places))
            for method in self.methods
        ]

    def picture(self) -> None:
        """Accuracy, and the weight of useless views, against their number."""
        figure, axes = plt.subplots(
            2, len(self.kinds), figsize=(10, 7), sharex=True, sharey="row", layout="constrained"
        )
        every = (0, *self.counts)
        for (above, below), kind in zip(axes.T, self.kinds, strict=True):
            places = ["digits", *(f"{kind}/{count}" for count in self.counts)]
            for method, colour in zip((EVEN, *self.methods), COLOURS, strict=True):
                line(above, every, [self.accuracy(p, method) for p in places], colour, method)
                if method != EVEN:
                    shares = [self.useless_weight(p, method) for p in places]
                    line(below, every, shares, colour, method)
            above.set_title(TITLES[kind])
            below.set(xlabel="added views", xticks=every)
            for ax in (above, below):
                ax.grid(alpha=0.3)
        axes[0, 0].set(ylabel="accuracy, %", ylim=(60, 100))
        axes[1, 0].set(ylabel="weight of the added views, %", ylim=(-1, 55))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        RESULTS.mkdir(parents=True, exist_ok=True)
        figure.savefig(RESULTS / f"{NAME}.png", dpi=120)


def line(ax: Any, at: Sequence[int], found: list[list[float]], colour: str, label: str) -> None:
    """Means as a line, and every seed as a dot."""
    ax.plot(at, [np.mean(values) for values in found], color=colour, label=label)
    dots = [(x, value) for x, values in zip(at, found, strict=True) for value in values]
    ax.scatter(*zip(*dots, strict=True), s=16, color=colour, alpha=0.5, lw=0)
