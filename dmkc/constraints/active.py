"""Which pairs of rows to ask a person about next.

"margin" asks where a fitted model is least sure: its rows of smallest margin, each beside a row
that stands for the cluster the model puts it in.  "farthest" needs no good model yet: rows far from
all rows known so far, each beside the nearest of those (Basu, Banerjee and Mooney 2004, the
exploring phase).  "auto" begins with the second and goes on with the first: answers at the margin
of a model that knows little are nearly all of one kind, and can ruin clusters that were good
without any.  Only a uniform sample of the rows is looked at, so that X may be of any size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dmkc.data import Rows, as_rows
from dmkc.data.rows import scan_width
from dmkc.scan.engine import ThreadEngine
from dmkc.scan.survey import TakeScan, sample_positions
from dmkc.typing import TableLike

STRATEGIES = ("auto", "margin", "farthest")
EXPLORED = 20
"""Rows that constraints name before "auto" goes from the farthest to the margin."""


def next_pairs(
    model: Any,
    X: TableLike,
    n_pairs: int = 10,
    *,
    strategy: str = "auto",
    sample_rows: int = 4096,
    random_state: int = 0,
) -> np.ndarray:
    """Pairs of row numbers worth asking a person about.

    Parameters
    ----------
    model : a fitted clusterer.
    X : the rows it was fitted on, in any form.
    n_pairs : how many pairs, at most.
    strategy : {"auto", "margin", "farthest"}
        Rows that the model is least sure of, or rows far from those that constraints name; "auto"
        takes the second until 20 rows are named, since few answers at the margin do harm.
    sample_rows : how many rows are looked at.
    random_state : seed of that sample.

    Returns
    -------
    pairs : array of shape (pairs, 2) of row numbers, the most useful first; the row asked about
        and a row to compare it with.  No pair has been answered by the model's constraints.

    Examples
    --------
    >>> from dmkc import MarginDistributionClustering
    >>> from dmkc.constraints import next_pairs
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MarginDistributionClustering(random_state=0).fit(X)
    >>> next_pairs(model, X, 5).shape
    (5, 2)
    """
    from dmkc.clusterers.parameters import Integer, OneOf

    check_is_fitted(model)
    OneOf(STRATEGIES).check("strategy", strategy)
    count = Integer(least=1).check("n_pairs", n_pairs)
    most = Integer(least=2).check("sample_rows", sample_rows)
    rows = as_rows(X)
    known = np.asarray(getattr(model, "constrained_rows_", np.empty(0, np.int64)))
    positions = np.union1d(sample_positions(rows.n_rows, most, random_state), known)
    values = _taken(rows, positions)
    named = np.isin(positions, known)
    if strategy == "auto":
        strategy = "farthest" if len(known) < EXPLORED else "margin"
    if strategy == "margin":
        found = _least_sure(model, values, named, count)
    else:
        found = _far_away(np.asarray(model.transform(values)), named, count)
    return positions[found]


def _taken(rows: Rows, positions: np.ndarray) -> Any:
    engine = ThreadEngine()
    grid = engine.grid(rows.n_rows, scan_width(rows))
    return engine.scan(TakeScan(positions), rows.blocks(grid.block_rows), grid)[0]


def _least_sure(model: Any, values: Any, named: np.ndarray, count: int) -> np.ndarray:
    """Free rows of smallest margin, each beside its cluster's most typical row."""
    scores = np.asarray(model.decision_function(values), dtype=np.float64)
    labels = np.asarray(model.predict(values))
    if scores.ndim == 1:
        margin = np.abs(scores)
    else:
        top = np.sort(scores, axis=1)
        margin = top[:, -1] - top[:, -2]
    phi = np.asarray(model.transform(values), dtype=np.float64)
    typical = {}
    for cluster in np.unique(labels):
        inside = np.flatnonzero(labels == cluster)
        away = phi[inside] - phi[inside].mean(axis=0)
        typical[cluster] = inside[np.argmin(np.einsum("ij,ij->i", away, away))]
    asked = [i for i in np.argsort(margin, kind="stable") if not named[i]]
    pairs = [(i, typical[labels[i]]) for i in asked if i != typical[labels[i]]]
    return np.array(pairs[:count], np.int64).reshape(-1, 2)


def _far_away(phi: np.ndarray, named: np.ndarray, count: int) -> np.ndarray:
    """Rows one after the other that are farthest from all before, with the nearest of those."""
    phi = phi.astype(np.float64)
    begin = np.flatnonzero(named)
    if len(begin) == 0:
        away = phi - phi.mean(axis=0)
        begin = np.array([np.argmin(np.einsum("ij,ij->i", away, away))])
    nearest = np.full(len(phi), begin[0])
    distance = np.full(len(phi), np.inf)

    def add(i: int) -> None:
        away = phi - phi[i]
        there = np.einsum("ij,ij->i", away, away)
        closer = there < distance
        nearest[closer], distance[closer] = i, there[closer]

    for i in begin:
        add(int(i))
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count and distance.max() > 0:
        far = int(np.argmax(distance))
        pairs.append((far, int(nearest[far])))
        add(far)
    return np.array(pairs, np.int64).reshape(-1, 2)
