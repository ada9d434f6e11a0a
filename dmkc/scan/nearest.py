"""The inner loops of k-means, compiled: nearest centroids, and what k-means sums of them.

One matrix product gives the scores |c|^2 - 2 x.c of a tile of rows for all centroids of all
starts, and while the tile is in cache every row is added to its cluster.  Rows are used as they are
or, where their offset or unit matters, shifted and scaled into a small buffer first.  Scores and
the sums of a tile are formed in the rows' precision, everything else in float64.
"""

from __future__ import annotations

import numpy as np

from dmkc.scan.compiled import compiled, inlined

TILE = 256
"""Rows of one matrix product; tiles never straddle two leaves."""


@inlined
def _moved(rows, shift, factor, buffer):  # pragma: no cover - compiled
    """The rows shifted and scaled, in the buffer; themselves where there is no shift."""
    if not shift.size:
        return rows
    n, d = rows.shape
    for i in range(n):
        row, out = rows[i], buffer[i]
        for j in range(d):
            out[j] = (row[j] - shift[j]) * factor[j]
    return buffer[:n]


@inlined
def _lowest(scores, squares, first, k):  # pragma: no cover - compiled
    """The first of the lowest scores among k centroids, and that score."""
    best, at = scores[first] + squares[first], first
    for p in range(first + 1, first + k):
        value = scores[p] + squares[p]
        if value < best:
            best, at = value, p
    return at, best


@compiled
def sums_of_leaves(
    rows, weights, shift, factor, product, squares, n_starts, leaf_rows, sums, totals, scored
):  # pragma: no cover - compiled
    """Sums and weights of the rows nearest to each centroid, by leaf.

    `product` holds -2 c of every centroid as a column, `squares` its |c|^2.  `weights` is empty
    when every row weighs 1.  `scored` gets the sums of the lowest scores of every start.
    """
    n, d = rows.shape
    every = len(squares)
    k = every // n_starts
    kind = rows.dtype.type
    buffer = np.empty((TILE if shift.size else 0, d), rows.dtype)
    scores = np.empty((TILE, every), rows.dtype)
    partial = np.zeros((every, d), rows.dtype)
    for leaf in range(sums.shape[0]):
        stop = min(n, (leaf + 1) * leaf_rows)
        for start in range(leaf * leaf_rows, stop, TILE):
            count = min(TILE, stop - start)
            tile = _moved(rows[start : start + count], shift, factor, buffer)
            np.dot(tile, product, scores[:count])
            for i in range(count):
                x, row_scores = tile[i], scores[i]
                w = kind(weights[start + i]) if weights.size else kind(1)
                for s in range(n_starts):
                    at, lowest = _lowest(row_scores, squares, s * k, k)
                    total = partial[at]
                    for j in range(d):
                        total[j] += w * x[j]
                    totals[leaf, at] += w
                    scored[leaf, s] += w * lowest
            for p in range(every):
                for j in range(d):
                    sums[leaf, p, j] += partial[p, j]
                    partial[p, j] = 0


@compiled
def nearest(
    rows, shift, factor, product, squares, centres, labels, distances
):  # pragma: no cover - compiled
    """Nearest centroid of every row and the squared distance to it, in float64."""
    n, d = rows.shape
    k = len(squares)
    buffer = np.empty((TILE if shift.size else 0, d), rows.dtype)
    scores = np.empty((TILE, k), rows.dtype)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        tile = _moved(rows[start : start + count], shift, factor, buffer)
        np.dot(tile, product, scores[:count])
        for i in range(count):
            at, _ = _lowest(scores[i], squares, 0, k)
            x, centre, distance = tile[i], centres[at], 0.0
            for j in range(d):
                gap = x[j] - centre[j]
                distance += gap * gap
            labels[start + i] = at
            distances[start + i] = distance


@inlined
def _row_scores(data, indices, start, stop, factor, marks, scores):  # pragma: no cover - compiled
    """-2 x.c for all centroids, a row of `marks` holding -2 c of one column; returns |x|^2."""
    scores[:] = 0.0
    square = 0.0
    for e in range(start, stop):
        j = indices[e]
        value = data[e] * factor[j] if factor.size else data[e]
        square += value * value
        mark = marks[j]
        for p in range(scores.shape[0]):
            scores[p] += value * mark[p]
    return square


@compiled
def sparse_sums_of_leaves(
    data,
    indices,
    indptr,
    weights,
    factor,
    product,
    squares,
    n_starts,
    leaf_rows,
    sums,
    totals,
    scored,
):  # pragma: no cover - compiled
    """The same as `sums_of_leaves` for sparse rows, which are not shifted, in float64."""
    n, every = len(indptr) - 1, len(squares)
    k = every // n_starts
    scores = np.empty(every)
    for i in range(n):
        leaf = i // leaf_rows
        start, stop = indptr[i], indptr[i + 1]
        _row_scores(data, indices, start, stop, factor, product, scores)
        w = weights[i] if weights.size else 1.0
        for s in range(n_starts):
            at, lowest = _lowest(scores, squares, s * k, k)
            for e in range(start, stop):
                j = indices[e]
                value = data[e] * factor[j] if factor.size else data[e]
                sums[leaf, at, j] += w * value
            totals[leaf, at] += w
            scored[leaf, s] += w * lowest


@compiled
def sparse_nearest(
    data, indices, indptr, factor, product, squares, labels, distances
):  # pragma: no cover - compiled
    """The same as `nearest` for sparse rows."""
    scores = np.empty(len(squares))
    for i in range(len(indptr) - 1):
        square = _row_scores(data, indices, indptr[i], indptr[i + 1], factor, product, scores)
        at, lowest = _lowest(scores, squares, 0, len(squares))
        labels[i] = at
        distances[i] = max(square + lowest, 0.0)
