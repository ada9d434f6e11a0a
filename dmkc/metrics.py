"""Cluster metrics whose only statistic is a contingency table.

Every metric takes (truth, labels, sample_weight=None), in memory or distributed, or a
`Contingency` counted before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from dmkc.errors import UserError
from dmkc.typing import PerRow

from .contingency import Array, Contingency, contingency

__all__ = [
    "METRICS",
    "Contingency",
    "accuracy",
    "adjusted_rand_index",
    "all_metrics",
    "balanced_error",
    "contingency",
    "fowlkes_mallows",
    "majority_accuracy",
    "normalized_mutual_info",
    "rand_index",
]


def accuracy(truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None) -> float:
    """Share of the rows in the right cluster under the best one-to-one matching.

    Examples
    --------
    >>> from dmkc.metrics import accuracy
    >>> accuracy([0, 0, 1, 1], [1, 1, 0, 1])
    0.75
    """
    table = _table(truth, labels, sample_weight)
    matched = linear_sum_assignment(table, maximize=True)
    return float(table[matched].sum() / table.sum())


def majority_accuracy(truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None) -> float:
    """Share of the rows that are of their cluster's majority class (purity).

    Examples
    --------
    >>> from dmkc.metrics import majority_accuracy
    >>> majority_accuracy([0, 0, 1, 1], [1, 1, 0, 1])
    0.75
    """
    table = _table(truth, labels, sample_weight)
    return float(table.max(axis=0).sum() / table.sum())


def balanced_error(truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None) -> float:
    """Mean over the classes of the share of a class outside its matched cluster.

    The matching is the one of best accuracy, and among equals the one of least balanced error.

    Examples
    --------
    >>> from dmkc.metrics import balanced_error
    >>> balanced_error([0, 0, 1, 1], [1, 1, 0, 1])
    0.25
    """
    table = _table(truth, labels, sample_weight)
    recall = table / table.sum(axis=1, keepdims=True)
    # A whole class matched adds at most half the smallest step between two accuracies, so that
    # the recalls only decide between matchings of the same accuracy.
    step = 1.0 if table.dtype.kind == "i" else 1e-9 * float(table.sum())
    matched = linear_sum_assignment(table + recall * (step / (2 * len(table))), maximize=True)
    return float(1.0 - recall[matched].sum() / len(table))


def rand_index(truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None) -> float:
    """Share of the pairs of rows on which truth and labels agree.

    Examples
    --------
    >>> from dmkc.metrics import rand_index
    >>> rand_index([0, 0, 1, 1], [1, 1, 0, 1])
    0.5
    """
    pairs, same, same_class, same_cluster = _pairs(_table(truth, labels, sample_weight))
    if pairs == 0:
        return 1.0
    return float((pairs - same_class - same_cluster + 2 * same) / pairs)


def adjusted_rand_index(
    truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None
) -> float:
    """The Rand index rescaled so that 1 is agreement and 0 what chance alone gives.

    Examples
    --------
    >>> from dmkc.metrics import adjusted_rand_index
    >>> adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 1])
    0.0
    """
    pairs, same, same_class, same_cluster = _pairs(_table(truth, labels, sample_weight))
    if same == same_class == same_cluster:
        return 1.0
    excess = same * pairs - same_class * same_cluster
    return float(2 * excess / ((same_class + same_cluster) * pairs - 2 * same_class * same_cluster))


def fowlkes_mallows(truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None) -> float:
    """Geometric mean of the precision and the recall of the pairs put together.

    Examples
    --------
    >>> from dmkc.metrics import fowlkes_mallows
    >>> round(fowlkes_mallows([0, 0, 1, 1], [1, 1, 0, 1]), 3)
    0.408
    """
    _, same, same_class, same_cluster = _pairs(_table(truth, labels, sample_weight))
    if same == 0:
        return 0.0
    return math.sqrt(same / same_class) * math.sqrt(same / same_cluster)


def normalized_mutual_info(
    truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None
) -> float:
    """Mutual information over the arithmetic mean of the two entropies.

    Examples
    --------
    >>> from dmkc.metrics import normalized_mutual_info
    >>> round(normalized_mutual_info([0, 0, 1, 1], [1, 1, 0, 1]), 3)
    0.344
    """
    table = _table(truth, labels, sample_weight)
    if table.shape == (1, 1):
        return 1.0
    if 1 in table.shape:
        return 0.0
    joint = table / table.sum()
    by_class, by_cluster = joint.sum(axis=1), joint.sum(axis=0)
    row, column = np.nonzero(joint)
    cell = joint[row, column]
    terms = cell * (np.log(cell) - np.log(by_class[row]) - np.log(by_cluster[column]))
    # Independent labels leave terms of rounding size, which must not become a tiny positive sum.
    terms[np.abs(terms) < np.finfo(float).eps] = 0.0
    information = max(float(terms.sum()), 0.0)
    entropies = -(by_class @ np.log(by_class)) - (by_cluster @ np.log(by_cluster))
    return float(2 * information / entropies)


METRICS = {
    "accuracy": accuracy,
    "majority_accuracy": majority_accuracy,
    "balanced_error": balanced_error,
    "rand_index": rand_index,
    "adjusted_rand_index": adjusted_rand_index,
    "fowlkes_mallows": fowlkes_mallows,
    "normalized_mutual_info": normalized_mutual_info,
}


def all_metrics(
    truth: PerRow, labels: PerRow = None, sample_weight: PerRow = None
) -> dict[str, float]:
    """Every metric of this module, from one contingency table.

    Examples
    --------
    >>> from dmkc.metrics import all_metrics
    >>> all_metrics([0, 0, 1, 1], [1, 1, 0, 0])["accuracy"]
    1.0
    """
    counted = _resolve(truth, labels, sample_weight)
    return {name: metric(counted) for name, metric in METRICS.items()}


def _resolve(truth: PerRow, labels: PerRow, sample_weight: PerRow) -> Contingency:
    if not isinstance(truth, Contingency):
        return contingency(truth, labels, sample_weight)
    if labels is not None or sample_weight is not None:
        raise UserError(
            "A Contingency already holds the labels and weights; pass it alone to the metric."
        )
    return truth


def _table(truth: PerRow, labels: PerRow, sample_weight: PerRow) -> Array:
    """The table without empty rows and columns, in integers when it holds whole numbers."""
    table = _resolve(truth, labels, sample_weight).table
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if table.size == 0:
        raise UserError("The table is empty; count at least one row of positive weight.")
    if (table == np.rint(table)).all() and table.sum() < 2**53:
        return table.astype(np.int64)
    return table.astype(np.float64)


def _pairs(table: Array) -> tuple[Any, Any, Any, Any]:
    """Twice the pairs of rows: all, same class and cluster, same class, same cluster.

    A weight w stands for w equal rows. Whole counts stay Python integers, which never overflow.
    """
    total = table.sum().item()
    parts = (table[table > 0], table.sum(axis=1), table.sum(axis=0))
    same, same_class, same_cluster = (
        sum(value * value for value in part.tolist()) - total for part in parts
    )
    if same < 0:
        raise UserError(
            "The sample weights are too small for a metric of pairs, which reads a weight as a "
            "number of equal rows; scale the weights, for example to a mean of one."
        )
    return total * (total - 1), same, same_class, same_cluster
