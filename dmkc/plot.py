"""Pictures of a fitted clusterer as Matplotlib axes, drawn from at most a few thousand rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask
import numpy as np
import pandas as pd
import scipy.sparse as sp
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from dmkc.contingency import contingency
from dmkc.data import Lazy, as_rows
from dmkc.kernels import as_bank
from dmkc.scan.survey import sample_positions

# Okabe and Ito's colour-blind-safe palette without its yellow, which vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY, PALE = "#8a8a8a", "#ececec"
BLOCK_ROWS = 65_536
RASTER_ABOVE = 1_000  # larger clouds of points become a picture inside SVG and PDF files


def sample(X: Any, max_points: int = 5000, seed: int = 0) -> tuple[np.ndarray, Any]:
    """Numbers and values of uniformly drawn rows; only these leave the block they were read in.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import plot
    >>> positions, rows = plot.sample(np.arange(20.0).reshape(10, 2), max_points=3)
    >>> positions.shape, rows.shape
    ((3,), (3, 2))
    """
    rows = as_rows(X)
    positions = sample_positions(rows.n_rows, max_points, seed)
    parts: list[Any] = []
    for block in rows.blocks(BLOCK_ROWS):
        low, high = np.searchsorted(positions, [block.start, block.stop])
        if low < high:
            values: Any = block.delayed if isinstance(block, Lazy) else block.load()
            parts.append(values[positions[low:high] - block.start])
    parts = list(dask.compute(*parts))
    drawn = sp.vstack(parts, format="csr") if rows.sparse else np.concatenate(parts)
    if rows.column_names is not None:
        frame = pd.DataFrame.sparse.from_spmatrix if rows.sparse else pd.DataFrame
        drawn = frame(drawn, columns=list(rows.column_names))
    return positions, drawn


def take(values: Any, positions: np.ndarray) -> np.ndarray:
    """The values of some rows of a vector in memory or on a cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from dmkc import plot
    >>> plot.take(da.arange(10, chunks=4), np.array([1, 8]))
    array([1, 8])
    """
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=True)
    return np.asarray((values if hasattr(values, "dask") else np.asarray(values))[positions])


def kernel_names(model: Any) -> list[str]:
    """Readable names of the kernels of a fitted model, such as "Gaussian, width 0.5".

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.kernel_names(model)
    ['Linear', 'Polynomial, degree 2', 'Gaussian, width 0.5']
    """
    check_is_fitted(model)
    given = as_bank(model._bank())
    names = [_kernel_name(a, b) for a, b in zip(model.kernels_, given, strict=True)]
    return [
        f"{name}, gamma {kernel.gamma:g}" if names.count(name) > 1 and _has_gamma(kernel) else name
        for name, kernel in zip(names, model.kernels_, strict=True)
    ]


def _has_gamma(kernel: Any) -> bool:
    return getattr(kernel, "gamma", None) is not None


def _kernel_name(kernel: Any, given: Any) -> str:
    name = type(kernel).__name__.rstrip("_")
    if hasattr(kernel, "degree"):
        offset = "" if kernel.coef0 == 1 else f", offset {kernel.coef0:g}"
        return f"{name}, degree {kernel.degree}{offset}"
    if getattr(kernel, "diameters", None) is not None:
        return f"{name}, {kernel.diameters:g} diameters"
    if hasattr(kernel, "width"):
        by_width = getattr(given, "gamma", None) is None
        return f"{name}, " + (f"width {kernel.width:g}" if by_width else f"gamma {kernel.gamma:g}")
    function = getattr(kernel, "function", None)
    return name if function is None else getattr(function, "__name__", "function")


def cluster_sizes(labels: Any, n_clusters: int) -> np.ndarray:
    """Rows of every cluster, counted block by block where the labels are distributed.

    Examples
    --------
    >>> from dmkc import plot
    >>> plot.cluster_sizes([0, 0, 1], 3)
    array([2, 1, 0])
    """
    counted = contingency(labels, labels)
    sizes = np.zeros(max(n_clusters, int(counted.clusters.max()) + 1), dtype=np.int64)
    sizes[counted.clusters.astype(int)] = counted.table.sum(axis=0)
    return sizes


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
    ax = _axes(ax, "Objective")
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
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
        ax.set_ylim(0, max(1.18 * max(value), ax.get_ylim()[1]))
    if max(map(len, runs.values())) == 1:
        ax.set_xlim(0.5, 1.5)  # around a single point Matplotlib leaves no room for a whole number
    # Scans of the sample count as scans of all rows when the sample is all rows.
    if shift and ((model.start_, "all") in runs or shift > model.n_scans_):
        ax.set_xlim(0.5, max(ax.get_xlim()[1], 1.25 * shift + 1))
        ax.axvspan(0.5, shift + 0.5, color="#f3f3f3", lw=0, zorder=-2)
        _note(ax, shift + 0.5, "sample", "right")
        _note(ax, shift + 0.5, "all rows", "left")
    bounded = any("bound" in record for record in model.history_)
    ax.set(xlabel="scans", ylabel="objective and bound" if bounded else "inertia")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    # One entry for each kind of line, however many starts and phases there were.
    once = {line.get_label(): line for line in ax.lines if str(line.get_label())[0] != "_"}
    _legend(ax, handles=sorted(once.values(), key=Artist.get_zorder, reverse=True), loc=4)
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
    names = kernel_names(model)
    weights = np.asarray(model.kernel_weights_, dtype=float)
    ax = _axes(ax, "Kernel weights", len(names))
    return _bars(ax, weights, names, [f"{w:.2f}" for w in weights], [COLOURS[0]], "weight")


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
    names = kernel_names(model)
    ax = _axes(ax, "Layers from kernels to clusters", max(len(names), *map(len, links)))
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


def has_margin(model: Any) -> bool:
    """Whether scores have a margin of 1; distances from planes have none.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.has_margin(model)
    True
    """
    return getattr(model.model_, "decision", "largest") == "largest"


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
    names = [_feature_name(model, j) for j in chosen] or ["none"]
    sizes = model.feature_importances_[chosen] if chosen else np.zeros(1)
    count = int((model.feature_importances_ > 0).sum())
    ax = _axes(ax, f"Selected features: {count} of {len(order)}", len(names))
    return _bars(ax, sizes, names, [f"{v:.2g}" for v in sizes], [COLOURS[0]], "largest weight")


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
    ax = _axes(ax, "Selection path")
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
    _legend(
        ax, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )  # beside the lines, which fill the axes
    return ax


def _feature_name(model: Any, j: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    if not model.selects_columns_:
        return f"component {j}"
    return f"column {j}" if names is None else str(names[j])


def sizes(model: Any, labels: Any = None, ax: Axes | None = None) -> Axes:
    """Rows of every cluster, from `labels_` unless other labels are given.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.sizes(model).get_xlabel()
    'rows'
    """
    check_is_fitted(model)
    counts = cluster_sizes(model.labels_ if labels is None else labels, model.n_clusters_)
    names, tones = _names_and_tones(len(counts))
    text = [f"{n:,} ({100 * n / counts.sum():.1f} %)" for n in counts]
    return _bars(_axes(ax, "Cluster sizes", len(names)), counts, names, text, tones, "rows")


def embedding(
    model: Any,
    X: Any,
    labels: Any = None,
    max_points: int = 5000,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Sampled rows in two directions of the learned feature space, coloured by cluster.

    They are the score and what varies most beside it, or for several clusters the leading two.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.embedding(model, X, max_points=200).get_ylabel()
    'leading direction across it'
    """
    positions, rows = sample(X, max_points, seed)
    found = np.asarray(model.predict(rows)) if labels is None else take(labels, positions)
    features = model.transform(rows)
    features = np.asarray(features.toarray() if sp.issparse(features) else features, np.float64)
    features = features - features.mean(axis=0)
    ax = _axes(ax, "Clusters in the learned feature space")
    if model.n_clusters_ == 2 and hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(rows), dtype=np.float64)
        centred = scores - scores.mean()
        rest = features - np.outer(centred, centred @ features / max(centred @ centred, 1e-300))
        x, y = scores, _components(rest, 1)[:, 0]
        margin = has_margin(model)
        for place in (-1, 0, 1) if margin else (0,):
            ax.axvline(place, color=GREY, lw=0.9, ls="--" if place else "-", zorder=1)
        label = "score (margin dashed)" if margin else "how much nearer the second plane is"
        ax.set(xlabel=label, ylabel="leading direction across it")
    else:
        x, y = _components(features, 2).T
        ax.set(xlabel="first principal component", ylabel="second principal component")
    size = float(np.clip(6000 / len(x), 3, 16))
    for k, value in enumerate(np.unique(found)):
        here = found == value
        tone = COLOURS[(int(value) if labels is None else k) % len(COLOURS)]
        # Shares, because a sample does not tell how many rows there are.
        text = f"{value}: {100 * here.mean():.0f} %"
        cloud = ax.scatter(x[here], y[here], size, tone, lw=0, alpha=0.65, label=text, zorder=2)
        cloud.set_rasterized(len(x) > RASTER_ABOVE)
    _legend(ax, title="cluster" if labels is None else "label", markerscale=5 / size**0.5)
    return ax


def margins(
    model: Any, X: Any, max_points: int = 5000, seed: int = 0, ax: Axes | None = None
) -> Axes:
    """How far rows lie from the boundary: scores, or the lead over the runner-up cluster.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.margins(model, X).get_xlabel()
    'score'
    """
    _, rows = sample(X, max_points, seed)
    scores = np.asarray(model.decision_function(rows), dtype=np.float64)
    found, two = np.asarray(model.predict(rows)), model.n_clusters_ == 2
    ax = _axes(ax, "Distance from the boundary")
    if scores.ndim == 2:
        ordered = np.sort(scores, axis=1)
        scores = ordered[:, -1] - ordered[:, -2]
    low, high = min(scores.min(), -1.0 if two else 0.0), max(scores.max(), 1.0)
    width = (high - low) / 44
    # Zero is an edge, so that no bar holds rows of both sides.
    edges = np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width
    ax.axvspan(-1 if two else 0, 1, color=PALE, lw=0, zorder=0)
    parts = [scores[found == k] for k in range(model.n_clusters_)]
    names, tones = _names_and_tones(len(parts))
    look: Any = {"histtype": "stepfilled", "stacked": True, "lw": 0, "zorder": 2}
    ax.hist(parts, edges.tolist(), color=tones, label=names, **look)
    ax.axvline(0, ymax=0.9, color="black", lw=0.9, zorder=3)
    ax.set(xlabel="score" if two else "score ahead of the runner-up", ylabel="sampled rows")
    ax.set_ylim(0, 1.16 * ax.get_ylim()[1])
    _note(ax, 0 if two else 0.5, f"{100 * (abs(scores) < 1).mean():.0f} % in the margin", "center")
    _legend(ax, loc="best" if two else "center left", reverse=True)
    return ax


def _names_and_tones(count: int) -> tuple[list[str], list[str]]:
    return [f"cluster {k}" for k in range(count)], [COLOURS[k % len(COLOURS)] for k in range(count)]


def _components(centred: np.ndarray, count: int) -> np.ndarray:
    """Leading principal components, with the sign that makes the largest loading positive."""
    _, vectors = np.linalg.eigh(centred.T @ centred)
    lead = vectors[:, ::-1][:, :count]
    lead = lead * np.sign(lead[np.abs(lead).argmax(axis=0), np.arange(lead.shape[1])])
    out = np.zeros((len(centred), count))
    out[:, : lead.shape[1]] = centred @ lead
    return out


def _axes(ax: Axes | None, title: str, bars: int = 0) -> Axes:
    """The given axes, or the axes of a figure of their own that no window shows."""
    if ax is None:
        size = (4.8, 1.1 + 0.36 * bars if bars else 3.2)
        ax = Figure(figsize=size, layout="constrained").add_subplot()
    ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    return ax


def _bars(ax: Axes, values: Any, names: Any, text: Any, tones: Any, xlabel: str) -> Axes:
    places = np.arange(len(names))
    bars = ax.barh(places, values, color=tones, height=0.6)
    ax.bar_label(bars, labels=text, padding=3, fontsize=9)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    longest = 1 + 0.035 * max(map(len, text))  # room for the text behind the longest bar
    ax.set(xlabel=xlabel, xlim=(0, longest * max(float(np.max(values)), 1e-12)))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _note(ax: Axes, x: float, text: str, align: Any) -> None:
    where: Any = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    style: Any = {"ha": align, "va": "top", "fontsize": 8.5, "color": "#555555"}
    ax.annotate(text, (x, 0.985), ({"left": 4, "right": -4}.get(align, 0), 0), **where, **style)


def _legend(ax: Axes, **options: Any) -> None:
    ax.legend(fontsize=8.5, title_fontsize=8.5, frameon=False, **options)
