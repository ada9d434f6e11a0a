"""Pictures of neighbour graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from dmkc.clusterers import SpectralClustering
from dmkc.clusterers.sampled import leading_components
from dmkc.data import RowRecord
from dmkc.errors import UserError
from dmkc.kernels.anchors import AffinityScan
from dmkc.kernels.tiles import Scaling, View
from dmkc.plot.clusters import RASTER_ABOVE, scattered
from dmkc.plot.rows import sample
from dmkc.plot.style import COLOURS, GREY, axes_of, note

NO_GRAPH = "has no neighbour graph; pass a fitted SpectralClustering."
TIES = 4
"""Lines of an anchor, at most, apart from those that others have to it."""


def eigenvalues(model: Any, ax: Axes | None = None) -> Axes:
    """The smallest eigenvalues of the graph, as many in colour as there are clusters.

    Each part of the graph that hangs together loosely adds one near zero, and the wider the gap
    after the coloured ones, the clearer their number.

    Examples
    --------
    >>> from dmkc import SpectralClustering, plot
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.05, seed=0)
    >>> model = SpectralClustering(2, random_state=0).fit(X)
    >>> plot.eigenvalues(model).get_ylabel()
    'eigenvalue'
    """
    check_is_fitted(model)
    values, k = model._fitted("eigenvalues_"), model.n_clusters_
    if values is None:
        raise UserError(f"{type(model).__name__} {NO_GRAPH}")
    ax = axes_of(ax, "Eigenvalues of the neighbour graph")
    number = np.arange(1, len(values) + 1)
    tones = [COLOURS[0] if i <= k else "#c4c4c4" for i in number]
    ax.vlines(number, 0, values, colors=tones, lw=1.5, zorder=1)
    ax.scatter(number, values, 26, tones, zorder=2)
    ax.axvline(k + 0.5, color=GREY, lw=0.8, ls=":", zorder=0)
    note(ax, k + 0.5, f"{k} cluster" + "s" * (k > 1), "left" if k < len(values) / 2 else "right")
    ax.set(xlabel="number", ylabel="eigenvalue", xlim=(0.5, max(len(values), k + 1) + 0.5))
    ax.set_ylim(0, 1.2 * max(float(values.max()), 1e-12))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return ax


def anchor_graph(
    model: Any, X: Any = None, max_points: int = 5000, seed: int = 0, ax: Axes | None = None
) -> Axes:
    """The anchors over the two leading components of the columns, coloured by cluster.

    Lines join each anchor with those that it shares most of the sampled rows of `X` with, or most
    neighbours where there is no `X`; black ones lead from cluster to cluster.

    Examples
    --------
    >>> from dmkc import SpectralClustering, plot
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.05, seed=0)
    >>> model = SpectralClustering(2, random_state=0).fit(X)
    >>> plot.anchor_graph(model, X).get_xlabel()
    'first principal component'
    """
    check_is_fitted(model)
    model = model._shown
    if not isinstance(model, SpectralClustering):
        raise UserError(f"{type(model).__name__} {NO_GRAPH}")
    plan, anchors, partition = model.model_.embedding.plan, model.anchors_, model.model_
    d = anchors.shape[1]
    unit = Scaling(np.zeros(d), np.ones(d))  # anchors are in scaled columns already
    on_anchors = replace(plan, scaling=unit, views=(View(None, unit),))
    labels = partition.label_pipeline().answer(on_anchors(anchors))
    graph: Any = model.kernels_[0]
    rows: Any = anchors
    scaling = unit
    if X is not None:
        _, rows = sample(X, max_points, seed)
        scaling = plan.scaling
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    neighbours = (graph.k,)
    shared = AffinityScan(scaling, anchors, neighbours, plan.dtype).leaf(RowRecord(rows))[0]
    pairs = _strongest(shared)
    _, directions = leading_components(anchors, 2, 0)
    places = np.zeros((len(anchors), 2))
    places[:, : len(directions)] = (anchors - anchors.mean(axis=0)) @ directions.T
    ax = axes_of(ax, f"Graph of {len(anchors):,} anchors")
    inside = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    tones = np.where(inside, "#c4c4c4", "black").tolist()
    lines = LineCollection(places[pairs], colors=tones, linewidths=0.6, zorder=1)
    lines.set_rasterized(len(pairs) > RASTER_ABOVE)
    ax.add_collection(lines)
    scattered(ax, places, labels)
    ax.set(xlabel="first principal component", ylabel="second principal component")
    return ax


def _strongest(shared: sp.csr_array) -> np.ndarray:
    """Pairs of anchors with the most in common, as a part of what each has."""
    roots = np.sqrt(np.maximum(shared.diagonal(), np.finfo(float).tiny))
    ties = shared.toarray() / np.outer(roots, roots)
    np.fill_diagonal(ties, 0.0)
    best = np.argsort(-ties, axis=1, kind="stable")[:, :TIES]
    first = np.repeat(np.arange(len(ties)), best.shape[1])
    there = ties[first, best.ravel()] > 0
    pairs = np.sort(np.column_stack([first, best.ravel()])[there], axis=1)
    return np.unique(pairs, axis=0)
