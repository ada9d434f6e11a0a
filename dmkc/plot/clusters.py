"""Pictures of the clusters, drawn from at most a few thousand rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from dmkc.plot.rows import sample, sizes_and_noise, take
from dmkc.plot.style import (
    GREY,
    PALE,
    axes_of,
    bars,
    has_margin,
    legend,
    names_and_tones,
    note,
    tone_of,
)
from dmkc.typing import PerRow, TableLike

RASTER_ABOVE = 1_000  # larger clouds of points become a picture inside SVG and PDF files


def sizes(model: Any, labels: PerRow = None, ax: Axes | None = None) -> Axes:
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
    counts, noise = sizes_and_noise(model.labels_ if labels is None else labels, model.n_clusters_)
    names, tones = names_and_tones(len(counts), noise > 0)
    counts = np.array([*counts, *([noise] if noise else [])])
    text = [f"{n:,} ({100 * n / counts.sum():.1f} %)" for n in counts]
    return bars(axes_of(ax, "Cluster sizes", len(names)), counts, names, text, tones, "rows")


def embedding(
    model: Any,
    X: TableLike,
    labels: PerRow = None,
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
    where = places(model, rows)
    ax = axes_of(ax, "Clusters in the learned feature space")
    for line in where.lines:
        ax.axvline(line, color=GREY, lw=0.9, ls="--" if line else "-", zorder=1)
    ax.set(xlabel=where.across, ylabel=where.up)
    scattered(ax, where.points, found, given=labels is not None)
    return ax


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows stand on a map of the learned features."""

    points: np.ndarray
    across: str
    """What varies from left to right,"""
    up: str
    """and from bottom to top."""
    lines: tuple[int, ...] = ()
    """Where the boundary and the margin are."""


def places(model: Any, rows: Any) -> Places:
    """Two directions: the score and what varies most beside it, or the leading components."""
    features = model.transform(rows)
    features = np.asarray(features.toarray() if sp.issparse(features) else features, np.float64)
    features = features - features.mean(axis=0)
    if model.n_clusters_ == 2 and model._has_scores:
        scores = np.asarray(model.decision_function(rows), dtype=np.float64)
        centred = scores - scores.mean()
        rest = features - np.outer(centred, centred @ features / max(centred @ centred, 1e-300))
        points = np.column_stack([scores, _components(rest, 1)[:, 0]])
        if has_margin(model):
            return Places(
                points, "score (margin dashed)", "leading direction across it", (-1, 0, 1)
            )
        return Places(
            points, "how much nearer the second plane is", "leading direction across it", (0,)
        )
    two = _components(features, 2)
    return Places(two, "first principal component", "second principal component")


def scattered(ax: Axes, places: np.ndarray, found: np.ndarray, given: bool = False) -> None:
    """Points coloured by their cluster, or by a label that was given."""
    size = float(np.clip(6000 / len(places), 3, 16))
    for k, value in enumerate(np.unique(found)):
        here = found == value
        tone = tone_of(k if given else int(value))
        # Shares, because a sample does not tell how many rows there are.
        name = "noise" if value == -1 and not given else value
        text = f"{name}: {100 * here.mean():.0f} %"
        x, y = places[here].T
        cloud = ax.scatter(x, y, size, tone, lw=0, alpha=0.65, label=text, zorder=2)
        cloud.set_rasterized(len(places) > RASTER_ABOVE)
    legend(ax, title="label" if given else "cluster", markerscale=5 / size**0.5)


def margins(
    model: Any, X: TableLike, max_points: int = 5000, seed: int = 0, ax: Axes | None = None
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
    ax = axes_of(ax, "Distance from the boundary")
    if scores.ndim == 2:
        ordered = np.sort(scores, axis=1)
        scores = ordered[:, -1] - ordered[:, -2]
    low, high = min(scores.min(), -1.0 if two else 0.0), max(scores.max(), 1.0)
    width = (high - low) / 44
    # Zero is an edge, so that no bar holds rows of both sides.
    edges = np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width
    ax.axvspan(-1 if two else 0, 1, color=PALE, lw=0, zorder=0)
    parts = [scores[found == k] for k in range(model.n_clusters_)]
    names, tones = names_and_tones(len(parts))
    look: Any = {"histtype": "stepfilled", "stacked": True, "lw": 0, "zorder": 2}
    ax.hist(parts, edges.tolist(), color=tones, label=names, **look)
    ax.axvline(0, ymax=0.9, color="black", lw=0.9, zorder=3)
    ax.set(xlabel="score" if two else "score ahead of the runner-up", ylabel="sampled rows")
    ax.set_ylim(0, 1.16 * ax.get_ylim()[1])
    note(ax, 0 if two else 0.5, f"{100 * (abs(scores) < 1).mean():.0f} % in the margin", "center")
    legend(ax, loc="best" if two else "center left", reverse=True)
    return ax


def membership(
    model: Any, X: TableLike, max_points: int = 5000, seed: int = 0, ax: Axes | None = None
) -> Axes:
    """How sure the labels of sampled rows are: the share of the own cluster in `predict_proba`.

    Examples
    --------
    >>> from dmkc import ConsensusClustering, plot
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.1, seed=0)
    >>> model = ConsensusClustering(2, random_state=0, noise=0.1).fit(X)
    >>> plot.membership(model, X).get_xlabel()
    'membership'
    """
    _, rows = sample(X, max_points, seed)
    shares, found = np.asarray(model.predict_proba(rows)), np.asarray(model.predict(rows))
    # of noise, which is nobody's, that of the cluster which comes first
    own = np.where(found < 0, shares.max(axis=1), shares[np.arange(len(found)), found])
    ax = axes_of(ax, "Membership")
    noise = bool((found < 0).any())
    names, tones = names_and_tones(model.n_clusters_, noise)
    parts = [own[found == k] for k in [*range(model.n_clusters_), *([-1] * noise)]]
    look: Any = {"histtype": "stepfilled", "stacked": True, "lw": 0, "zorder": 2}
    ax.hist(parts, np.linspace(0, 1, 41).tolist(), color=tones, label=names, **look)
    ax.set(xlabel="membership", ylabel="sampled rows", xlim=(0, 1))
    legend(ax, loc="upper left", reverse=True)
    return ax


def _components(centred: np.ndarray, count: int) -> np.ndarray:
    """Leading principal components, with the sign that makes the largest loading positive."""
    if not centred.shape[1]:  # no column is selected
        return np.zeros((len(centred), count))
    _, vectors = np.linalg.eigh(centred.T @ centred)
    lead = vectors[:, ::-1][:, :count]
    lead = lead * np.sign(lead[np.abs(lead).argmax(axis=0), np.arange(lead.shape[1])])
    out = np.zeros((len(centred), count))
    out[:, : lead.shape[1]] = centred @ lead
    return out
