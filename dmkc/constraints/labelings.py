"""Labelings and constraints: making pairs for experiments, checking, counting what is implied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dmkc.constraints.linked import joined, read_constraints, two_sided
from dmkc.constraints.pairs import pair_rows
from dmkc.data import Container
from dmkc.data.rows import PandasContainer
from dmkc.errors import UserError
from dmkc.typing import PerRow, RandomState


def random_pairs(
    labels: PerRow, n_pairs: int, random_state: RandomState = None
) -> tuple[np.ndarray, np.ndarray]:
    """Must-links and cannot-links between rows drawn at random, as a person with labels would give.

    Parameters
    ----------
    labels : one class per row.
    n_pairs : how many different pairs to draw.
    random_state : int, Generator or None.

    Returns
    -------
    must_link, cannot_link : arrays of shape (pairs, 2) of row numbers.

    Examples
    --------
    >>> from dmkc.constraints import random_pairs
    >>> must, cannot = random_pairs([0, 0, 1, 1], 6, random_state=0)
    >>> len(must), len(cannot)
    (2, 4)
    """
    classes = np.asarray(labels)
    n = len(classes)
    if not 0 <= n_pairs <= n * (n - 1) // 2:
        raise UserError(f"n_pairs must be between 0 and {n * (n - 1) // 2} for {n} rows.")
    rng = np.random.default_rng(random_state)
    drawn = np.empty(0, np.int64)
    if n_pairs * 4 > n * (n - 1) // 2:
        first, second = np.triu_indices(n, 1)
        some = rng.choice(len(first), n_pairs, replace=False)
        pairs = np.stack([first[some], second[some]], axis=1)
    else:
        while len(drawn) < n_pairs:
            ends = np.sort(rng.integers(0, n, size=(2 * n_pairs + 16, 2)), axis=1)
            ends = ends[ends[:, 0] < ends[:, 1]]
            key = np.concatenate([drawn, ends[:, 0] * np.int64(n) + ends[:, 1]])
            _, first_seen = np.unique(key, return_index=True)
            drawn = key[np.sort(first_seen)][:n_pairs]
        pairs = np.stack([drawn // n, drawn % n], axis=1)
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    return pairs[same], pairs[~same]


@dataclass(frozen=True)
class Violations:
    """The pairs that a labeling violates, by their places in the given lists.

    Examples
    --------
    >>> from dmkc.constraints import check_labeling
    >>> found = check_labeling([0, 1], must_link=[(0, 1)])
    >>> len(found), found.must_link.tolist(), found.cannot_link.tolist()
    (1, [0], [])
    """

    must_link: np.ndarray
    cannot_link: np.ndarray

    def __len__(self) -> int:
        return len(self.must_link) + len(self.cannot_link)


def check_labeling(labels: PerRow, must_link: Any = None, cannot_link: Any = None) -> Violations:
    """Which pairs a labeling violates; none are left over when its length is 0.

    Examples
    --------
    >>> from dmkc.constraints import check_labeling
    >>> found = check_labeling([0, 0, 1], must_link=[(0, 2)], cannot_link=[(1, 2)])
    >>> len(found), found.must_link.tolist()
    (1, [0])
    """
    values, container = _labelled(labels)
    broken = []
    for source, name in ((must_link, "must_link"), (cannot_link, "cannot_link")):
        rows = pair_rows(source, name, container)
        same = values[rows[:, 0]] == values[rows[:, 1]]
        broken.append(np.flatnonzero(same != (name == "must_link")))
    return Violations(*broken)


@dataclass(frozen=True)
class Closure:
    """What a set of constraints implies.

    Examples
    --------
    >>> from dmkc.constraints import closure
    >>> closure(5, must_link=[(0, 1), (1, 2)]).must_link
    3
    """

    rows: int
    """Rows that some pair names."""
    components: int
    """Groups of rows that are tied together, by must-links alone for several clusters."""
    must_link: int
    """Pairs of rows that are in one cluster, given or implied."""
    cannot_link: int
    """Pairs of rows that are in different clusters, given or implied."""


def closure(
    n_rows: int, must_link: Any = None, cannot_link: Any = None, n_clusters: int = 2
) -> Closure:
    """How many pairs the given ones imply.

    With two clusters two cannot-links in a row make a must-link; with more, cannot-links carry
    over along must-links only.

    Examples
    --------
    >>> from dmkc.constraints import closure
    >>> closure(10, must_link=[(0, 1)], cannot_link=[(1, 2), (2, 3)])
    Closure(rows=4, components=1, must_link=3, cannot_link=3)
    """
    container = Container("numpy", n_rows)
    found = read_constraints(must_link, cannot_link, container)
    if found is None:
        return Closure(0, 0, 0, 0)
    if n_clusters == 2:
        parts = two_sided(found, container)
        size = np.bincount(parts.number)
        plus = np.bincount(parts.number, parts.side > 0).astype(np.int64)
        minus = size - plus
        return Closure(
            len(found.rows),
            parts.count,
            int((plus * (plus - 1) // 2 + minus * (minus - 1) // 2).sum()),
            int((plus * minus).sum()),
        )
    groups = joined(found, container)
    size = np.bincount(groups.number)
    apart = size[groups.apart[:, 0]] * size[groups.apart[:, 1]]
    return Closure(
        len(found.rows), groups.count, int((size * (size - 1) // 2).sum()), int(apart.sum())
    )


def _labelled(labels: PerRow) -> tuple[np.ndarray, Container]:
    if isinstance(labels, pd.Series):
        values = labels.to_numpy()
        return values, PandasContainer("pandas", len(values), index=labels.index)
    values = np.asarray(labels)
    if values.ndim != 1:
        raise UserError(f"labels must be one label per row, but have shape {values.shape}.")
    return values, Container("numpy", len(values))
