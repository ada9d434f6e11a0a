"""Compiled loops that turn a tile of rows into raw kernel columns.

Each function fills ``out[:, at : at + n_landmarks]`` for one kernel from what the tile shares:
the inner products with the landmarks and the squared norms.  Rows are taken as slices first: an
index like ``at + j`` might be negative for all the compiler knows, and would not vectorise.
"""

from __future__ import annotations

import math

import numpy as np

from dmkc.compiled import compiled, inlined


@compiled
def standardise(rows, shift, factor, out, squares):  # pragma: no cover - compiled
    """(row - shift) * factor in float64, stored in the feature precision, with squared norms."""
    n, d = rows.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = (1.0 * rows[i, j] - shift[j]) * factor[j]
        total = 0.0
        for j in range(d):
            x = (1.0 * rows[i, j] - shift[j]) * factor[j]
            total += x * x
        squares[i] = total


@compiled
def products(rows, vectors):  # pragma: no cover - compiled
    """Inner products of some rows with each of some vectors, a line for every vector.

    The bits depend on the numbers alone.  Those of a BLAS may depend on where in memory the
    arrays happen to lie, and a model that was loaded lies elsewhere than the one that was stored.
    """
    out = np.empty((vectors.shape[0], rows.shape[0]))
    for k in range(vectors.shape[0]):
        for i in range(rows.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                total += rows[i, j] * vectors[k, j]
            out[k, i] = total
    return out


@inlined
def _exp(x):  # pragma: no cover - compiled
    """exp for x <= 0 in single precision, in a form that vectorises (2e-7 relative near 0)."""
    y = max(x * np.float32(1.4426950408889634), np.float32(-126.0))
    whole = np.floor(y + np.float32(0.5))
    f = y - whole
    p = np.float32(1.535336188319500e-4)
    p = p * f + np.float32(1.339887440266574e-3)
    p = p * f + np.float32(9.618437357674640e-3)
    p = p * f + np.float32(5.550332471162809e-2)
    p = p * f + np.float32(2.402264791363012e-1)
    p = p * f + np.float32(6.931472028550421e-1)
    p = p * f + np.float32(1.0)
    bits = (np.int32(whole) + np.int32(127)) << np.int32(23)
    return p * np.int32(bits).view(np.float32)


@compiled
def gaussian32(dots, row_sq, mark_sq, gamma, out, at):  # pragma: no cover - compiled
    n, m = dots.shape
    g = np.float32(gamma)
    for i in range(n):
        row, target, square = dots[i], out[i, at : at + m], row_sq[i]
        for j in range(m):
            t = g * (np.float32(2) * row[j] - square - mark_sq[j])
            target[j] = _exp(min(t, np.float32(0)))


@compiled
def gaussian64(dots, row_sq, mark_sq, gamma, out, at):  # pragma: no cover - compiled
    n, m = dots.shape
    for i in range(n):
        row, target, square = dots[i], out[i, at : at + m], row_sq[i]
        for j in range(m):
            t = gamma * (2.0 * row[j] - square - mark_sq[j])
            target[j] = math.exp(min(t, 0.0))


@compiled
def polynomial(dots, gamma, coef0, degree, out, at):  # pragma: no cover - compiled
    n, m = dots.shape
    kind = dots.dtype.type
    g, c = kind(gamma), kind(coef0)
    for i in range(n):
        row, target = dots[i], out[i, at : at + m]
        for j in range(m):
            target[j] = g * row[j] + c
        for _ in range(degree - 1):  # outside the loop over landmarks, which then vectorises
            for j in range(m):
                target[j] *= g * row[j] + c


@compiled
def cosine(dots, row_sq, mark_sq, out, at):  # pragma: no cover - compiled
    n, m = dots.shape
    for i in range(n):
        row, target, square = dots[i], out[i, at : at + m], row_sq[i]
        for j in range(m):
            size = square * mark_sq[j]
            target[j] = row[j] / math.sqrt(size) if size > 0 else 0.0


@compiled
def laplacian(rows, marks_t, gamma, out, at):  # pragma: no cover - compiled
    """`marks_t` holds a landmark per column, so that the inner loop runs over landmarks."""
    n, d = rows.shape
    m = marks_t.shape[1]
    gap = np.empty(m, rows.dtype)
    for i in range(n):
        gap[:] = 0
        for c in range(d):
            x = rows[i, c]
            for j in range(m):
                gap[j] += abs(x - marks_t[c, j])
        target = out[i, at : at + m]
        for j in range(m):
            target[j] = math.exp(-gamma * gap[j])


@compiled
def differences(rows, points, found, distances):  # pragma: no cover - compiled
    """Squared distances to the points that were found, from the differences themselves."""
    n, count = found.shape
    d = rows.shape[1]
    for i in range(n):
        for c in range(count):
            point = points[found[i, c]]
            total = 0.0
            for j in range(d):
                gap = rows[i, j] - point[j]
                total += gap * gap
            distances[i, c] = total
