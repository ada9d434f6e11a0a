"""Iterative support vector regression (Zhang, Tsang and Kwok, MMC Made Practical, 2009).

Labels are regressed on by a support vector regression with the Laplacian loss, whose penalty of
rows far on the right side makes labels move where a support vector machine's would freeze; the
bias is then set within the balance, and signs are the next labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVR

from dmkc.errors import UserError


@dataclass(frozen=True)
class IterSVR:
    """The end of the iteration."""

    labels: np.ndarray
    """Cluster (0 or 1) of every row."""
    scores: np.ndarray
    """Scores of the rows, whose signs are the labels."""
    n_iter: int
    converged: bool


def iterative_svr(
    K: np.ndarray, start: np.ndarray, C: float = 1.0, balance: float = 0.1, max_iter: int = 50
) -> IterSVR:
    """Cluster by the kernel matrix `K` from the labels `start` (two values).

    `C` is the price of an absolute error of 1 in one row, `balance` bounds the absolute mean label.
    """
    K, start = np.asarray(K, dtype=float), np.asarray(start)
    n = len(K)
    if K.shape != (n, n) or start.shape != (n,):
        raise UserError(f"K must be n x n and start have n labels, not {K.shape}, {start.shape}.")
    values = np.unique(start)
    if len(values) != 2:
        raise UserError(f"start must have two different labels, not {len(values)}.")
    if not n % 2 <= n * balance:
        raise UserError(f"No labeling of {n} rows has a mean within {balance!r}.")
    y = np.where(start == values[1], 1.0, -1.0)
    machine = SVR(kernel="precomputed", C=C, epsilon=0.0, tol=1e-6)
    for step in range(1, max_iter + 1):
        machine.fit(K, y)
        plain = machine.predict(K) - machine.intercept_[0]
        scores = plain + best_bias(plain, balance)
        new = np.where(scores >= 0, 1.0, -1.0)
        if np.array_equal(new, y):
            return IterSVR((y > 0).astype(int), scores, step, True)
        y = new
    return IterSVR((y > 0).astype(int), scores, max_iter, False)


def best_bias(scores: np.ndarray, balance: float) -> float:
    """The bias within the balance that brings scores closest to their own signs.

    Any bias between two neighbouring scores gives the same labels; among all such gaps that keep
    the mean label within the balance, the one with the least sum of |score + bias - sign| is taken,
    and in it the best bias, which is a median clipped to the gap.
    """
    ordered = np.sort(scores)
    n = len(ordered)
    best, least = 0.0, np.inf
    for below in range(1, n):
        if abs(n - 2 * below) > n * balance or ordered[below] == ordered[below - 1]:
            continue
        sides = np.where(np.arange(n) < below, -1.0, 1.0)
        low, high = -ordered[below], -ordered[below - 1]
        bias = float(np.clip(np.median(sides - ordered), low, np.nextafter(high, low)))
        error = float(np.abs(ordered + bias - sides).sum())
        if error < least:
            best, least = bias, error
    if np.isinf(least):  # no gap within the balance: equal scores straddle it
        return float(-np.median(scores))
    return best
