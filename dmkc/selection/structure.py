"""How many clusters, and whether there are any: cuts of a neighbour graph against clouds without.

A clustering is cut well if few of the edges to nearest neighbours leave a cluster: its *leak* is
the share of the edges of the worst cluster that do, divided by the share of rows outside.  The
number of clusters is the one after which the leak rises most in proportion (a number too many must
cut through a cluster).  Rows have clusters if they can be cut better than clouds of the same
covariance that have none: normal, uniform along principal axes, and with heavy tails; and than
clouds whose columns have the nearest distributions of one mode, so that skewed and very long tails
are not taken for clusters.  The columns' own distributions are never kept, for they keep clusters
that show in one column.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances

from dmkc.clusterers.sampled import NEIGHBOURS, leading_components
from dmkc.display import advance
from dmkc.errors import UserError
from dmkc.selection.scores import MOST_COMPONENTS, in_units
from dmkc.typing import NamedValues

ROWS = 500
"""Rows that are compared with clouds."""
MOST_ROWS = 2000
"""Rows whose cuts tell the number of clusters."""
BLOCK = 1000
"""Rows whose distances to all others are held at a time."""
NUMBERS = (2, 3, 5, 8)
"""Numbers of clusters at which they are."""
DRAWS = 6
"""Clouds of every kind."""
EVIDENCE = 3.0
"""Standard deviations by which rows must be cut better than clouds of every kind."""
LEAST_SPREAD = 0.1
"""Standard deviation of the logarithm of a leak, at least."""
MODES = 9
"""Places along a column, in equal steps of rank, at which its one mode may be."""
FLOOR = 0.005
"""Leaks below this are as good as none."""
ROWS_A_CLUSTER = 4
"""Rows that are needed for every cluster of the most that are tried."""
LEAST_A_CLUSTER = 3
"""A range that was given is refused where there are fewer rows for every cluster of its end."""
FEWEST_ROWS = 50
"""Rows from which on the lack of evidence says something."""
NUMBER_WORDS = "How much more clusters leak after every number of them, as a logarithm."
TINY = 0.05
"""A cluster below this part of an equal share says nothing of how well rows can be cut."""
CLEAR = "clear clusters"
SOME = "some structure"
NONE = "no evidence of clusters"
ADVICE = {
    CLEAR: "There are clear clusters.",
    SOME: "There is some structure, but several clusterings fit it: look at the alternatives.",
    NONE: "There is no evidence of clusters: rows without any can be cut as well as these.",
}
"""Every verdict as a sentence."""


@dataclass(frozen=True)
class Structure:
    """What a sample of the rows says of clusters."""

    evidence: float
    """By how many standard deviations rows are cut better than the clouds they are most like."""
    cloud: str
    """The kind of these clouds."""
    numbers: list[NamedValues]
    """One for every number of clusters that was tried: `n_clusters`, `leak`, `rise`."""

    @property
    def found(self) -> bool:
        """Whether there is evidence of clusters."""
        return self.evidence >= EVIDENCE

    @property
    def best(self) -> int:
        """The number after which the leak rises most."""
        return int(max(self.numbers, key=lambda tried: tried["rise"])["n_clusters"])


def structure(values: np.ndarray, fewest: int, most: int, seed: int) -> Structure:
    """Look for clusters in some rows, which are in memory."""
    seed %= 2**32
    rows = telling(values)
    numbers = range(max(fewest, 2), min(most, len(rows) // ROWS_A_CLUSTER) + 1)
    some = _some_of(rows, MOST_ROWS, np.random.default_rng([seed, 22]))
    return Structure(*evidence_of(rows, seed), _rises(some, numbers, fewest, seed))


def check_enough_for_range(high: int, n_rows: int) -> None:
    """Refuse a range that was given where the rows do not suffice for the most clusters of it."""
    if n_rows < LEAST_A_CLUSTER * high:
        raise UserError(
            f"To choose among up to {high} clusters at least {LEAST_A_CLUSTER * high} rows are "
            f"needed, but there are {n_rows}: give a shorter range."
        )


def choose_number(
    values: np.ndarray, fewest: int, most: int, seed: int
) -> tuple[int, list[NamedValues]]:
    """The number of clusters of some rows, and what is known of all numbers that were tried.

    Where there is no evidence of clusters, a warning says so.
    """
    seen = structure(values, fewest, most, seed)
    warn_of_no_clusters(seen, len(values))
    best = seen.best
    return best, [
        {
            "n_clusters": tried["n_clusters"],
            "leak": tried["leak"],
            "score": tried["rise"],
            "chosen": tried["n_clusters"] == best,
        }
        for tried in seen.numbers
    ]


def warn_of_no_clusters(seen: Structure, n_rows: int) -> None:
    """Warn where enough rows were looked at and there is no evidence of clusters."""
    if not seen.found and n_rows >= FEWEST_ROWS:
        warnings.warn(ADVICE[NONE], stacklevel=3)


def telling(values: np.ndarray) -> np.ndarray:
    """The columns in which valleys mean something, in units that can be compared."""
    return in_units(values[:, telling_columns(values)])


def telling_columns(values: np.ndarray) -> np.ndarray:
    """Numbers of the columns in which valleys mean something.

    A column of two values parts rows as no valley does, and so does every category of a table: such
    columns are left out where others are there.
    """
    many = np.array([np.unique(column).size > 2 for column in values.T])
    return np.flatnonzero(many if np.count_nonzero(many) >= 2 else np.ones_like(many))


def nearest_rows(rows: np.ndarray) -> np.ndarray:
    """The numbers of every row's nearest other rows."""
    count = min(NEIGHBOURS, len(rows) - 1)
    found = []
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        distances = euclidean_distances(some, rows, squared=True)
        own = np.arange(len(some))
        distances[own, start + own] = np.inf
        found.append(np.argpartition(distances, count - 1, axis=1)[:, :count])
    return np.concatenate(found)


def leaks(nearest: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For every cluster, the share of its edges that leave it as a part of the rows outside."""
    numbers = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(numbers)
    away = (numbers[nearest] != numbers[:, None]).mean(axis=1)
    outside = np.maximum(1.0 - sizes / len(numbers), 1.0 / len(numbers))
    return np.bincount(numbers, weights=away) / sizes / outside


def _some_of(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else rows[np.sort(rng.permutation(len(rows))[:most])]


def evidence_of(rows: np.ndarray, seed: int) -> tuple[float, str]:
    """How much better rows can be cut than the clouds they are most like, and the kind of these."""
    rng = np.random.default_rng([seed, 21])
    rows = _some_of(rows, ROWS, rng)
    numbers = [k for k in NUMBERS if len(rows) >= 8 * k]
    if not numbers or not np.ptp(rows, axis=0).any():
        return 0.0, "one point"
    own = _logs(rows, numbers, seed)
    best = np.inf, ""
    kinds = _clouds(rows, seed)
    for number, (kind, draw) in enumerate(kinds.items()):
        advance(number, len(kinds), f"{kind} clouds")
        clouds = np.sort([_logs(draw(rng), numbers, seed) for _ in range(DRAWS)], axis=0)
        clouds[0] = clouds[1]  # a tail may break off by chance, which says nothing of the others
        sizes = np.maximum(clouds.std(axis=0, ddof=1), LEAST_SPREAD)
        found = float(np.max((clouds.mean(axis=0) - own) / sizes))
        best = min(best, (found, kind))
    return best


Draw = Callable[[np.random.Generator], np.ndarray]


def _clouds(rows: np.ndarray, seed: int) -> dict[str, Draw]:
    """How clouds of every kind are drawn that have the size and the covariance of some rows."""
    spread, axes = leading_components(rows, MOST_COMPONENTS, seed)
    shape = len(rows), len(axes)

    def normal(rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=shape) * spread @ axes

    def uniform(rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=shape) * spread @ axes

    def heavy(rng: np.random.Generator) -> np.ndarray:
        scale = np.sqrt(3.0 / rng.chisquare(5, size=(shape[0], 1)))  # of variance 1
        return normal(rng) * scale

    return {
        "normal": normal,
        "uniform": uniform,
        "heavy-tailed": heavy,
        "of one mode": _of_one_mode(rows, seed),
    }


def _of_one_mode(rows: np.ndarray, seed: int) -> Draw:
    """Clouds whose columns have one mode each, correlated as the ranks of these rows are."""
    n = len(rows)
    scores = ndtri(rankdata(rows, axis=0) / (n + 1.0))
    spread, axes = leading_components(scores, MOST_COMPONENTS, seed)
    size = np.sqrt(np.square(spread) @ np.square(axes))
    quantiles = np.stack([unimodal(column) for column in rows.T], axis=1)
    at = np.linspace(0.0, 1.0, n)

    def draw(rng: np.random.Generator) -> np.ndarray:
        drawn = ndtr(rng.normal(size=(n, len(axes))) * spread @ axes / np.where(size > 0, size, 1))
        return np.stack(
            [np.interp(u, at, q) for u, q in zip(drawn.T, quantiles.T, strict=True)], axis=1
        )

    return draw


def unimodal(column: np.ndarray) -> np.ndarray:
    """The quantiles of a column, moved as little as gives them a single mode.

    Gaps between quantiles must fall up to the mode and rise after it: the least concave majorant
    and the greatest convex minorant of the quantiles on its two sides (Grenander 1956).  Of several
    modes the one that moves quantiles least, in ranks, is taken.
    """
    values = np.sort(column)
    gaps, ranks = np.diff(values), np.linspace(0.0, 1.0, len(values))
    best = np.inf, values
    for mode in np.linspace(0, len(gaps), MODES).astype(int):
        sides = [
            isotonic_regression(side, increasing=rising).x
            for side, rising in ((gaps[:mode], False), (gaps[mode:], True))
            if len(side)
        ]
        moved = values[0] + np.concatenate([[0.0], np.cumsum(np.concatenate(sides))])
        by = float(np.abs(np.interp(values, moved, ranks) - ranks).max())
        best = min(best, (by, moved), key=lambda found: found[0])
    return best[1]


def _logs(rows: np.ndarray, numbers: Sequence[int], seed: int) -> np.ndarray:
    return np.log(_cuts(rows, numbers, seed) + FLOOR)


def _cuts(rows: np.ndarray, numbers: Sequence[int], seed: int) -> np.ndarray:
    """For every number of clusters the lowest leak that simple methods find."""
    nearest = nearest_rows(rows)
    n = len(rows)
    graph = np.zeros((n, n))
    graph[np.arange(n)[:, None], nearest] = 0.5
    graph += graph.T
    root = 1.0 / np.sqrt(graph.sum(axis=1))
    graph *= root[:, None] * root
    _, vectors = eigh(graph, subset_by_index=[n - max(numbers), n - 1])
    slow_first = vectors[:, ::-1]
    found = []
    for k in numbers:
        sizes = np.linalg.norm(slow_first[:, :k], axis=1, keepdims=True)
        along = slow_first[:, :k] / np.maximum(sizes, 1e-12)
        labelings = (_k_means(space, k, seed) for space in (along, rows))
        found.append(min(_leak(nearest, labels, k) for labels in labelings))
    return np.array(found)


def _k_means(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        # Rows of few distinct values leave clusters empty, of which the leak takes care.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        return KMeans(k, n_init=2, max_iter=50, random_state=seed).fit(rows).labels_


def _leak(nearest: np.ndarray, labels: np.ndarray, k: int) -> float:
    """The leak of the worst cluster; that of a cloud where a cluster is missing or tiny."""
    sizes = np.bincount(labels, minlength=k)
    return 1.0 if sizes.min() * k < TINY * len(labels) else float(leaks(nearest, labels).max())


def _rises(rows: np.ndarray, numbers: range, fewest: int, seed: int) -> list[NamedValues]:
    if not len(numbers):  # there are too few rows to tell
        return [{"n_clusters": fewest, "leak": 0.0, "rise": 0.0}]
    tried = [*numbers, numbers[-1] + 1]
    found = _cuts(rows, tried, seed)
    rise = np.diff(np.log(found + FLOOR))
    return [
        {"n_clusters": k, "leak": float(leak), "rise": float(by)}
        for k, leak, by in zip(numbers, found, rise, strict=False)
    ]
