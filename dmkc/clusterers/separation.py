"""How far clusters lie apart, column by column: what starts are compared by."""

from __future__ import annotations

import numpy as np


def between_shares(
    rows: np.ndarray, shares: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The part of every column's spread that lies between the clusters, and that spread."""
    whole = shares @ rows
    spread = np.maximum(np.einsum("i,ij,ij->j", shares, rows, rows) - whole**2, 0.0)
    spread[spread <= 1e-12 * whole**2] = 0.0
    between = np.zeros(rows.shape[1])
    for label in np.unique(labels):
        inside = np.where(labels == label, shares, 0.0)
        share = inside.sum()
        if share > 0:
            between += share * (inside @ rows / share - whole) ** 2
    return np.where(spread > 0, between / np.where(spread > 0, spread, 1.0), 0.0), spread


def separation(rows: np.ndarray, shares: np.ndarray, labels: np.ndarray) -> float:
    """The share of all columns' spread that lies between the clusters, beyond chance.

    Where there are more columns than rows, a column counts with what exceeds the largest share
    that as many columns of pure noise would have (the criterion of sparse k-means; Witten and
    Tibshirani 2010).
    """
    n, d = rows.shape
    found, spread = between_shares(rows, shares, labels)
    chance = 2.0 * np.log(d) / n if d > n else 0.0
    total = spread.sum()
    return float(spread @ np.maximum(found - chance, 0.0) / total) if total > 0 else 0.0
