"""Pictures of what a fit has learned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from dmkc.plot.style import (
    COLOURS,
    GREY,
    as_drawn,
    axes_of,
    bars,
    feature_name,
    kernel_names,
    legend,
    note,
)
from dmkc.typing import NamedValues


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Objective and lower bound after every scan; dotted lines are relabelings.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.convergence(model).get_xlabel()
    'scans'
    """
    check_is_fitted(model)
    ax = axes_of(ax, "Objective")
    runs: dict[tuple[str, str], list[NamedValues]] = {}
    for record in model.history_:
        runs.setdefault((record["start"], record["on"]), []).append(record)
    if not any(start == model.start_ for start, _ in runs):
        ax.text(0.5, 0.5, "nothing was optimised", transform=ax.transAxes, ha="center")
        return ax
    shift = len(runs.get((model.start_, "sample"), ()))
    for (start, on), records in runs.items():
        x = np.arange(1, len(records) + 1) + (shift if on == "all" else 0)
        value = [r["objective"] for r in records]
        bound = [r["bound"] for r in records if "bound" in r]
        dot = "." if len(x) == 1 else ""
        if start != model.start_:
            ax.plot(x, value, color="#bdbdbd", lw=1, zorder=1, label="other starts", marker=dot)
            continue
        ax.plot(x, value, color=COLOURS[0], lw=1.8, zorder=3, label="objective", marker=dot)
        if bound:
            ax.plot(x, bound, color=COLOURS[1], lw=1.2, zorder=2, label="lower bound", marker=dot)
            ax.fill_between(x, bound, value, color=COLOURS[0], alpha=0.08, lw=0)
            for place, (before, after) in zip(x, pairwise(records), strict=False):
                if after["round"] != before["round"]:
                    ax.axvline(place + 0.5, color=GREY, lw=0.8, ls=":", zorder=0)
        if max(value) > 0:
            ax.set_ylim(0, max(1.18 * max(value), ax.get_ylim()[1]))
    if max(map(len, runs.values())) == 1:
        ax.set_xlim(0.5, 1.5)  # around a single point Matplotlib leaves no room for a whole number
    # Scans of the sample count as scans of all rows when the sample is all rows.
    if shift and ((model.start_, "all") in runs or shift > model.n_scans_):
        ax.set_xlim(0.5, max(ax.get_xlim()[1], 1.25 * shift + 1))
        ax.axvspan(0.5, shift + 0.5, color="#f3f3f3", lw=0, zorder=-2)
        note(ax, shift + 0.5, "sample", "right")
        note(ax, shift + 0.5, "all rows", "left")
    bounded = any("bound" in record for record in model.history_)
    ax.set(xlabel="scans", ylabel="objective and bound" if bounded else model._minimised)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    # One entry for each kind of line, however many starts and phases there were.
    once = {line.get_label(): line for line in ax.lines if str(line.get_label())[0] != "_"}
    legend(ax, handles=sorted(once.values(), key=Artist.get_zorder, reverse=True), loc=4)
    return ax


def kernel_weights(model: Any, ax: Axes | None = None) -> Axes:
    """The learned weight of every kernel as a horizontal bar.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> len(plot.kernel_weights(model).patches)
    3
    """
    names = list(map(as_drawn, kernel_names(model)))
    weights = np.asarray(model.kernel_weights_, dtype=float)
    ax = axes_of(ax, "Kernel weights", len(names))
    return bars(ax, weights, names, [f"{w:.2f}" for w in weights], [COLOURS[0]], "weight")


def layers(model: Any, draw: int = 0, ax: Axes | None = None) -> Axes:
    """The layers of a hierarchical clusterer: nodes, and connections as thick as they weigh.

    Examples
    --------
    >>> from dmkc import HierarchicalKernelKMeans, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(300, seed=0)
    >>> bank = ["linear", "gaussian:0.5", "gaussian:2"]
    >>> model = HierarchicalKernelKMeans(
    ...     2, kernels=bank, nodes=[3, 2], random_state=0, rank=20
    ... ).fit(X)
    >>> [tick.get_text() for tick in plot.layers(model).get_xticklabels()]
    ['kernels', 'layer 1', 'layer 2', 'clusters']
    """
    check_is_fitted(model)
    links, top = model.connections_[draw], model.consensus_weights_[draw]
    names = list(map(as_drawn, kernel_names(model)))
    ax = axes_of(ax, "Layers from kernels to clusters", max(len(names), *map(len, links)))
    counts = [len(names), *map(len, links), 1]
    heights = [np.linspace(0, 1, n + 2)[1:-1][::-1] for n in counts]
    for layer, weights in enumerate([*links, top[None]]):
        for i, j in zip(*np.nonzero(weights), strict=True):
            width = 3.5 * weights[i, j] / weights.max()
            ends = heights[layer][j], heights[layer + 1][i]
            ax.plot((layer, layer + 1), ends, color=COLOURS[0], lw=width, alpha=0.45, zorder=1)
    for layer, places in enumerate(heights):
        ax.scatter(np.full(len(places), layer), places, 42, COLOURS[1], zorder=2)
    for name, place in zip(names, heights[0], strict=True):
        ax.text(-0.08, place, name, ha="right", va="center", fontsize=8)
    inner = [f"layer {t + 1}" for t in range(len(links))]
    ax.set_xticks(range(len(counts)), ["kernels", *inner, "clusters"])
    ax.set(yticks=[], xlim=(-1.6, len(counts) - 0.8))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def feature_importances(model: Any, top: int = 15, ax: Axes | None = None) -> Axes:
    """The most important selected columns of a model that selects columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import NonparallelPlaneClustering, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> X[:, 3] += 6.0 * rng.integers(0, 2, size=300)
    >>> model = NonparallelPlaneClustering(c2=0.05, random_state=0).fit(X)
    >>> plot.feature_importances(model).get_title(loc="left")
    'Selected features: 1 of 5'
    """
    check_is_fitted(model)
    order = np.argsort(-model.feature_importances_, kind="stable")
    chosen = [j for j in order[:top] if model.feature_importances_[j] > 0]
    names = [as_drawn(feature_name(model, j)) for j in chosen] or ["none"]
    sizes = model.feature_importances_[chosen] if chosen else np.zeros(1)
    count = int((model.feature_importances_ > 0).sum())
    ax = axes_of(ax, f"Selected features: {count} of {len(order)}", len(names))
    return bars(ax, sizes, names, [f"{v:.2g}" for v in sizes], [COLOURS[0]], "largest weight")


def selection_path(path: Any, top: int = 7, ax: Axes | None = None) -> Axes:
    """Which features enter when: importances over c2, from a `path` of a model that selects.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import NonparallelPlaneClustering, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> X[:, 3] += 6.0 * rng.integers(0, 2, size=300)
    >>> path = NonparallelPlaneClustering(random_state=0).path(X, n_values=4)
    >>> plot.selection_path(path).get_ylabel()
    'importance'
    """
    ax = axes_of(ax, "Selection path")
    # those that stay longest, and among these the most important
    stays = (path.importances > 0).sum(axis=0)
    ranked = np.lexsort((-path.importances.max(axis=0), -stays))
    order = [int(j) for j in ranked if stays[j]]
    for j in order[top:]:
        ax.plot(path.c2, path.importances[:, j], color="#cfcfcf", lw=0.8, zorder=1)
    for rank, j in enumerate(order[:top]):
        tone = COLOURS[rank % len(COLOURS)]
        ax.plot(path.c2, path.importances[:, j], color=tone, lw=1.6, label=path.names[j], zorder=2)
    ax.set(xscale="log", xlabel="c2 (features enter from right to left)", ylabel="importance")
    # Some of the values that were tried: powers of ten run into each other on a short axis.
    some = path.c2[np.unique(np.linspace(0, len(path.c2) - 1, 5).round().astype(int))]
    ax.set_xticks(some, [f"{value:.2g}" for value in some])
    ax.minorticks_off()
    legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside the lines, which fill the axes
    return ax
