"""The inner loops of a margin scan, compiled: each feature row is read once.

While a row is in cache its scores are formed, the mask is decided and the row is added to the
sums of the cut.  Partial sums of a few rows are kept in the feature precision and added up in
float64.
"""

from __future__ import annotations

import numpy as np

from dmkc.scan.compiled import compiled, inlined

MASKED, SIGNED, HINGE, OWN_HINGE, CHANGED, POSITIVE, SCORE, TOTAL = range(8)
SCALARS = 8
ROWS_PER_PARTIAL = 64
TIE = 1e-9
"""Margin violations below this count as none: masters put rows exactly on the margin, and rounding
must not decide which cut is made.  Any mask makes a valid cut."""


@inlined
def row_hash(row):  # pragma: no cover - compiled
    """64 well-mixed bits of a global row number."""
    x = np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(29))


@compiled
def row_hashes(first_row, n):  # pragma: no cover - compiled
    """Hashes of consecutive global row numbers."""
    out = np.empty(n, np.uint64)
    for i in range(n):
        out[i] = row_hash(first_row + i)
    return out


@compiled
def cuts_of_leaves(
    columns,
    weights,
    labels,
    given,
    label_w,
    label_b,
    model_w,
    model_b,
    owner,
    first_row,
    leaf_rows,
    sums,
    scalars,
    label_hashes,
):  # pragma: no cover - compiled
    """Cuts of a few models, one leaf after the other, into sums[leaf, model] and the like.

    All rows weigh 1 where there are no weights.  A labeling is a column of `labels` where `given`
    says which, and else the sign of a score.
    """
    n, d = columns.shape
    n_labels, n_models = label_w.shape[0], model_w.shape[0]
    kind = columns.dtype.type
    zero, one, tie = kind(0), kind(1), kind(TIE)
    partial = np.zeros((n_models, d), columns.dtype)
    side = np.empty(n_labels, columns.dtype)
    weighted = weights.shape[0] > 0
    for leaf in range(sums.shape[0]):
        stop = min(n, (leaf + 1) * leaf_rows)
        for tile in range(leaf * leaf_rows, stop, ROWS_PER_PARTIAL):
            partial[:] = zero
            for i in range(tile, min(stop, tile + ROWS_PER_PARTIAL)):
                row = columns[i]
                w = weights[i] if weighted else one
                for s in range(n_labels):
                    if given[s] >= 0:
                        side[s] = one if labels[i, given[s]] > 0 else -one
                        continue
                    score = label_b[s]
                    for j in range(d):
                        score += row[j] * label_w[s, j]
                    side[s] = one if score >= zero else -one
                for p in range(n_models):
                    score = model_b[p]
                    for j in range(d):
                        score += row[j] * model_w[p, j]
                    z = side[owner[p]]
                    own = one if score >= zero else -one
                    out = scalars[leaf, p]
                    out[OWN_HINGE] += w * max(one - own * score, zero)
                    out[SCORE] += w * score
                    out[TOTAL] += w
                    if score >= zero:
                        out[POSITIVE] += w
                        label_hashes[leaf, p] += row_hash(first_row + i)
                    if own != z:
                        out[CHANGED] += w
                    short = one - z * score
                    if short > tie:
                        out[MASKED] += w
                        out[SIGNED] += w * z
                        out[HINGE] += w * short
                        step = w * z
                        for j in range(d):
                            partial[p, j] += step * row[j]
            for p in range(n_models):
                for j in range(d):
                    sums[leaf, p, j] += partial[p, j]


@compiled
def masks_of_scores(
    scores, weight, n_labels, owner, first_row, signed_mask, scalars, label_hashes
):  # pragma: no cover - compiled
    """For many models: turn a tile's scores (labels first, a row per model) into signed masks.

    Written without branches over contiguous rows, so that it vectorises.
    """
    n = scores.shape[1]
    kind = scores.dtype.type
    zero, one, tie = kind(0), kind(1), kind(TIE)
    hashes = row_hashes(first_row, n)
    for p in range(owner.shape[0]):
        label = scores[owner[p]]
        own = scores[n_labels + p]
        masked = signed = hinge = own_hinge = changed = positive = total = count = zero
        label_hash = np.uint64(0)
        for i in range(n):
            w = weight[i]
            score = own[i]
            z = one if label[i] >= zero else -one
            side = one if score >= zero else -one
            short = one - z * score
            inside = w if short > tie else zero
            signed_mask[p, i] = inside * z
            masked += inside
            signed += inside * z
            hinge += inside * short
            own_hinge += w * max(one - side * score, zero)
            changed += w if side != z else zero
            positive += w if side > zero else zero
            total += w * score
            count += w
        for i in range(n):
            label_hash += hashes[i] if own[i] >= zero else np.uint64(0)
        out = scalars[p]
        out[MASKED] += masked
        out[SIGNED] += signed
        out[HINGE] += hinge
        out[OWN_HINGE] += own_hinge
        out[CHANGED] += changed
        out[POSITIVE] += positive
        out[SCORE] += total
        out[TOTAL] += count
        label_hashes[p] += label_hash
