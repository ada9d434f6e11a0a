"""How many clusters: the number whose clusters hold up best on a sample of the rows.

A clusterer hands in how it labels rows for a given number of clusters.  Every number in the range
is tried on a sample, and on three disjoint parts of it, and judged by criteria that can be compared
across numbers.  Their size matters as well as their order (between the right number and the next
one they fall by a lot), so they are rescaled to 0..1 and averaged; ties go to fewer clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.sampled import spread_out
from dmkc.data import RowRecord
from dmkc.display import advance
from dmkc.errors import UserError
from dmkc.selection.scores import (
    Evidence,
    gaussian_cloud,
    mean_rescaled,
    modularity,
    silhouette,
    stability,
)
from dmkc.typing import NamedValues

PARTS = 3

Labeler = Callable[[RowRecord], np.ndarray]
FitOnSample = Callable[[Prepared, int], Labeler]
"""From the rows of a sample and a number of clusters to labels of kernel columns."""


@dataclass(frozen=True)
class NumberChoice:
    """The chosen number of clusters and what was known of all of them."""

    n_clusters: int
    scores: list[NamedValues]
    """One per number: `n_clusters`, the criteria, their mean after rescaling `score`, `chosen`."""


def check_range(high: int, n_rows: int) -> None:
    """Refuse a range that was given where the rows do not suffice for the most clusters of it."""
    if n_rows < PARTS * high:
        raise UserError(
            f"To choose among up to {high} clusters at least {PARTS * high} rows are needed, but "
            f"there are {n_rows}: give a shorter range."
        )


def choose_number(
    prepared: Prepared, fit: FitOnSample, low: int, high: int, seed: int
) -> NumberChoice:
    """Try all numbers of clusters from `low` to `high` on the sample of the prepared rows."""
    sample = prepared.of_sample(spread_out(prepared.sample.weights))
    n, stored = len(sample.positions), sample.sample.record
    evidence = Evidence.of(sample.standardised)
    cloud = Evidence.of(gaussian_cloud(sample.standardised, seed % 2**32))
    mixed = np.random.default_rng([seed, 5]).permutation(n)
    parts = [np.sort(part) for part in np.array_split(mixed, PARTS)]
    smaller = [sample.of_sample(part) for part in parts]
    numbers = range(low, high + 1)
    criteria: dict[str, list[float]] = {}
    for m in numbers:
        advance(m - low, len(numbers), f"{m} clusters")
        labels = fit(sample, m)(stored)
        opinions = [fit(part, m)(stored) for part in smaller]
        found = {
            "stability": stability(opinions, parts),
            "silhouette": silhouette(evidence.distances, labels),
            "modularity": modularity(evidence.graph, labels) - _modularity_of(cloud, m, seed),
        }
        whole = len(np.unique(labels)) == m  # else these are the clusters of a smaller number
        for name, value in found.items():
            criteria.setdefault(name, []).append(value if whole else np.nan)
    score = mean_rescaled({name: np.array(values) for name, values in criteria.items()})
    best = int(np.argmax(score))
    scores = [
        {"n_clusters": m}
        | {name: float(values[i]) for name, values in criteria.items()}
        | {"score": float(score[i]), "chosen": i == best}
        for i, m in enumerate(numbers)
    ]
    return NumberChoice(numbers[best], scores)


def _modularity_of(cloud: Evidence, m: int, seed: int) -> float:
    """What cutting a cloud without clusters into as many pieces gives."""
    pieces = KMeans(m, n_init=3, random_state=seed % 2**32).fit(cloud.rows)
    return modularity(cloud.graph, pieces.labels_)
