"""Whether clusters cut through rows that hang together, where others lie apart by themselves.

Methods that want clusters of like size, by a bound on balance or by what they divide a cut by,
halve a large cluster rather than part a small one from it, and converge.  Pieces of the neighbour
graph that no edge joins show it: where there are as many of them as clusters were asked for, none
needs to be cut.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csgraph
from sklearn.metrics import euclidean_distances

from dmkc.clusterers.sampled import neighbour_graph
from dmkc.kernels.tiles import mixed_units
from dmkc.scan.survey import Survey

ROWS = 600
"""Rows that are looked at."""
FEWEST = 12
"""Rows of the smallest piece: more than have each other for neighbours by chance."""
APART = 2.0
"""Pieces are this many times as far apart as neighbours at the rim of a piece are from each other,
at least."""
CUT = 0.1
"""Share of a piece in other clusters than most of it from which on it is cut."""


def warn_of_cuts(survey: Survey, model: Any, name: str) -> None:
    """Say so where a fit cuts through a piece, although there are as many pieces as clusters."""
    heavy = np.flatnonzero(survey.sample_weights > 0)
    if model.n_clusters < 2 or len(heavy) < FEWEST * model.n_clusters:
        return
    some = survey.sample[heavy[np.unique(np.linspace(0, len(heavy) - 1, ROWS).astype(int))]]
    pieces = pieces_of(np.asarray(some.todense() if hasattr(some, "todense") else some))
    sizes = np.bincount(pieces)
    if len(sizes) != model.n_clusters or sizes.min() < FEWEST:
        return
    labels = model.label_pipeline()(some)
    shared = np.zeros((len(sizes), model.n_clusters))
    np.add.at(shared, (pieces[labels >= 0], labels[labels >= 0]), 1.0)
    inside = shared.max(axis=1) / np.maximum(shared.sum(axis=1), 1.0)
    if inside.min() < 1.0 - CUT:
        parts = ", ".join(f"{share:.0%}" for share in np.sort(sizes / len(pieces))[::-1])
        warnings.warn(
            f"The rows fall apart into {len(sizes)} groups ({parts}) with nothing between them, "
            f"but {name} cuts through one: it prefers clusters of other sizes or shapes than "
            "these. AutoClustering finds a method for them.",
            stacklevel=3,
        )


def pieces_of(rows: np.ndarray) -> np.ndarray:
    """The piece of the neighbour graph that every row is in; one piece where they are near."""
    rows = rows.astype(np.float64)
    rows = rows - rows.mean(axis=0)
    many = np.array([np.unique(column).size > 2 for column in rows.T])
    if np.count_nonzero(many) >= 2:  # a column of two values parts rows as no valley does
        rows = rows[:, many]
    spread = rows.std(axis=0)
    rows, spread = rows[:, spread > 0], spread[spread > 0]
    if mixed_units(spread):
        rows = rows / spread
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    distances = euclidean_distances(rows)
    graph = neighbour_graph(distances)
    count, pieces = csgraph.connected_components(graph, directed=False)
    if count > 1:
        apart = distances[pieces[:, None] != pieces].min()
        if apart < APART * np.quantile(graph.multiply(distances).max(axis=1).toarray(), 0.95):
            return np.zeros(len(rows), np.int64)
    return pieces
