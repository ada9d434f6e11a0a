"""The inner loops of k-means, compiled: nearest centroids, and what k-means sums of them.

Matrix products give the scores |c|^2 - 2 x.c of a tile of rows for all centroids of all starts,
and while the tile is in cache every row is added to its cluster.  Rows are used as they are
or, where their offset or unit matters, shifted and scaled into a small buffer first.  Scores and
the sums of a tile are formed in the rows' precision, everything else in float64.
"""

from __future__ import annotations

import numpy as np

from dmkc.compiled import compiled, inlined

TILE = 256
"""Rows of one matrix product; tiles never straddle two leaves."""
MANY, GROUP = 16, 256
"""Centroids from which on scores come turned, and of how many at a time where rows are wide."""
NARROW = 64
"""Columns up to which products are made here."""


def operands(centres: np.ndarray, kind: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """-2 c and |c|^2 of all centroids of all starts, as the loops over dense rows take them.

    Few centroids are columns of the first, many are its rows; many of a few columns are filled up
    to multiples of four, with centroids that are nearest to nothing.
    """
    n_starts, k, d = centres.shape
    squares = np.einsum("ski,ski->sk", centres, centres)
    if k < MANY:
        product = -2.0 * centres.reshape(-1, d).T
        return np.ascontiguousarray(product.astype(kind)), squares.ravel().astype(kind)
    if d > NARROW:
        return (-2.0 * centres.reshape(-1, d)).astype(kind), squares.ravel().astype(kind)
    points = np.zeros((n_starts, k + -k % 4, d + -d % 4), kind)
    points[:, :k, :d] = -2.0 * centres
    lengths = np.full(points.shape[:2], np.inf, kind)
    lengths[:, :k] = squares
    return points.reshape(-1, points.shape[2]), lengths.ravel()


@inlined
def filled(n):  # pragma: no cover - compiled
    """The next multiple of four."""
    return (n + 3) // 4 * 4


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


@inlined
def _lowest_of_few(
    scores, squares, first, k, turned, labels, lowest
):  # pragma: no cover - compiled
    """`_lowest` of every row of a tile, with the scores turned so that rows are the inner loop.

    There are always TILE rows, which makes the comparisons a few wide instructions; over a few
    centroids, whose number the compiler does not know, they would be jumps that nothing predicts.
    Rows beyond the end of a tile get labels that mean nothing.
    """
    for p in range(k):
        square = squares[first + p]
        for i in range(TILE):
            turned[p, i] = scores[i, first + p] + square
    for i in range(TILE):
        lowest[i] = turned[0, i]
        labels[i] = np.int32(first)
    for p in range(1, k):
        this = np.int32(first + p)
        for i in range(TILE):
            value = turned[p, i]
            labels[i] = this if value < lowest[i] else labels[i]
            lowest[i] = min(value, lowest[i])


@inlined
def _lowest_of_many(
    tile, points, squares, first, k, columns, scores, labels, lowest
):  # pragma: no cover - compiled
    """The same for many centroids of a few columns, four of each at a time.

    `columns` gets the tile turned, and `scores` those of four centroids: both stay in the nearest
    cache, and the numbers of sixteen products in registers, which no general matrix product does
    for rows as short as these.  Centroids and columns are filled up to multiples of four.
    """
    d = points.shape[1]
    for i in range(len(tile)):
        for j in range(tile.shape[1]):
            columns[j * TILE + i] = tile[i, j]
    for i in range(TILE):
        lowest[i] = np.inf
        labels[i] = np.int32(first)
    at = first // k * filled(k)
    for p in range(at, at + filled(k), 4):
        a, b, c, e = squares[p], squares[p + 1], squares[p + 2], squares[p + 3]
        for i in range(TILE):
            scores[i], scores[TILE + i] = a, b
            scores[2 * TILE + i], scores[3 * TILE + i] = c, e
        for j in range(0, d, 4):
            some = columns[j * TILE : (j + 4) * TILE]
            a0, a1, a2, a3 = points[p, j], points[p, j + 1], points[p, j + 2], points[p, j + 3]
            q = p + 1
            b0, b1, b2, b3 = points[q, j], points[q, j + 1], points[q, j + 2], points[q, j + 3]
            q = p + 2
            c0, c1, c2, c3 = points[q, j], points[q, j + 1], points[q, j + 2], points[q, j + 3]
            q = p + 3
            e0, e1, e2, e3 = points[q, j], points[q, j + 1], points[q, j + 2], points[q, j + 3]
            for i in range(TILE):
                u, v, w, x = some[i], some[TILE + i], some[2 * TILE + i], some[3 * TILE + i]
                scores[i] += a0 * u + a1 * v + a2 * w + a3 * x
                scores[TILE + i] += b0 * u + b1 * v + b2 * w + b3 * x
                scores[2 * TILE + i] += c0 * u + c1 * v + c2 * w + c3 * x
                scores[3 * TILE + i] += e0 * u + e1 * v + e2 * w + e3 * x
        this = np.int32(first + p - at)
        for i in range(TILE):
            s, t = scores[i], scores[TILE + i]
            u, v = scores[2 * TILE + i], scores[3 * TILE + i]
            left = this + np.int32(1) if t < s else this
            right = this + np.int32(3) if v < u else this + np.int32(2)
            low, high = min(s, t), min(u, v)
            best = right if high < low else left
            value = min(low, high)
            labels[i] = best if value < lowest[i] else labels[i]
            lowest[i] = min(value, lowest[i])


@inlined
def _lowest_of_wide(
    tile, points, squares, first, k, turned, labels, lowest
):  # pragma: no cover - compiled
    """The same for many centroids of many columns: products come turned, GROUP at a time."""
    for i in range(TILE):
        lowest[i] = np.inf
        labels[i] = np.int32(first)
    for group in range(first, first + k, GROUP):
        stop = min(group + GROUP, first + k)
        np.dot(points[group:stop], tile.T, turned[: stop - group])
        for p in range(group, stop):
            this, square = np.int32(p), squares[p]
            for i in range(TILE):
                value = turned[p - group, i] + square
                labels[i] = this if value < lowest[i] else labels[i]
                lowest[i] = min(value, lowest[i])


@inlined
def _whole(tile, buffer):  # pragma: no cover - compiled
    """A tile of TILE rows; those that it lacks are any rows."""
    if len(tile) == TILE:
        return tile
    for i in range(len(tile)):
        row, out = tile[i], buffer[i]
        for j in range(len(row)):
            out[j] = row[j]
    return buffer


@compiled
def sums_of_leaves(
    rows, weights, shift, factor, product, squares, n_starts, leaf_rows, sums, totals, scored
):  # pragma: no cover - compiled
    """Sums and weights of the rows nearest to each centroid, by leaf.

    `product` and `squares` are `operands` of the centroids.  `weights` is empty when every row
    weighs 1.  `scored` gets the sums of the lowest scores of every start.

    Sums of a tile stay in buffers of this call: written row by row to the results, which may lie
    side by side in memory, they would make two threads wait for each other's caches.
    """
    n, d = rows.shape
    every = sums.shape[1]
    k = every // n_starts
    kind = rows.dtype.type
    few, narrow = k < MANY, d <= NARROW
    buffer = np.zeros((TILE, d), rows.dtype)
    scores = np.zeros((TILE if few else 0, every), rows.dtype)
    turned = np.empty((min(k, GROUP), TILE), rows.dtype)
    columns, four = np.zeros(filled(d) * TILE, rows.dtype), np.empty(4 * TILE, rows.dtype)
    labels, lowest = np.empty(TILE, np.int32), np.empty(TILE, rows.dtype)
    partial, counts = np.zeros((every, d), rows.dtype), np.zeros(every)
    for leaf in range(sums.shape[0]):
        stop = min(n, (leaf + 1) * leaf_rows)
        for start in range(leaf * leaf_rows, stop, TILE):
            count = min(TILE, stop - start)
            tile = _moved(rows[start : start + count], shift, factor, buffer)
            if few:
                np.dot(tile, product, scores[:count])
            for s in range(n_starts):
                at = s * k
                if few:
                    _lowest_of_few(scores, squares, at, k, turned, labels, lowest)
                elif narrow:
                    _lowest_of_many(tile, product, squares, at, k, columns, four, labels, lowest)
                else:
                    whole = _whole(tile, buffer)
                    _lowest_of_wide(whole, product, squares, at, k, turned, labels, lowest)
                total = 0.0
                for i in range(count):
                    w = kind(weights[start + i]) if weights.size else kind(1)
                    at = labels[i]
                    for j in range(d):
                        partial[at, j] += w * tile[i, j]
                    counts[at] += w
                    total += w * lowest[i]
                scored[leaf, s] += total
            for p in range(every):
                if counts[p] > 0.0:
                    totals[leaf, p] += counts[p]
                    counts[p] = 0.0
                    for j in range(d):
                        sums[leaf, p, j] += partial[p, j]
                        partial[p, j] = 0


@compiled
def nearest(
    rows, shift, factor, product, squares, centres, labels, distances
):  # pragma: no cover - compiled
    """Nearest centroid of every row and the squared distance to it, in float64."""
    n, d = rows.shape
    k = len(centres)
    few, narrow = k < MANY, d <= NARROW
    buffer = np.zeros((TILE, d), rows.dtype)
    scores = np.zeros((TILE if few else 0, k), rows.dtype)
    turned = np.empty((min(k, GROUP), TILE), rows.dtype)
    columns, four = np.zeros(filled(d) * TILE, rows.dtype), np.empty(4 * TILE, rows.dtype)
    own, lowest = np.empty(TILE, np.int32), np.empty(TILE, rows.dtype)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        tile = _moved(rows[start : start + count], shift, factor, buffer)
        if few:
            np.dot(tile, product, scores[:count])
            _lowest_of_few(scores, squares, 0, k, turned, own, lowest)
        elif narrow:
            _lowest_of_many(tile, product, squares, 0, k, columns, four, own, lowest)
        else:
            whole = _whole(tile, buffer)
            _lowest_of_wide(whole, product, squares, 0, k, turned, own, lowest)
        for i in range(count):
            at, distance = own[i], 0.0
            for j in range(d):
                gap = tile[i, j] - centres[at, j]
                distance += gap * gap
            labels[start + i] = at
            distances[start + i] = distance


@inlined
def _row_scores(data, indices, start, stop, factor, product, scores):  # pragma: no cover - compiled
    """-2 x.c for all centroids, a row of `product` holding -2 c of one column; returns |x|^2."""
    scores[:] = 0.0
    square = 0.0
    for e in range(start, stop):
        j = indices[e]
        value = data[e] * factor[j] if factor.size else data[e]
        square += value * value
        pull = product[j]
        for p in range(scores.shape[0]):
            scores[p] += value * pull[p]
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
