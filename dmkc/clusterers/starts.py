"""Starting labelings of a sample of the rows.

These problems are not convex and the start decides much, so several kinds are offered.  A start
is a side (+1 or -1) for every sampled row; a convex fit on the sample turns it into a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from dmkc.clusterers.prepare import Prepared

KINDS = ("k-means", "kernel-k-means", "pca", "random")
K_MEANS_TRIES = 10
K_MEANS_ROWS = 8192
"""k-means centroids are found on at most this many rows, which moves them very little."""


def check_init(init: Any, n_rows: int | None = None) -> list[Any]:
    """The starts asked for, as a list of kinds and labelings."""
    items = [init] if isinstance(init, (str, np.ndarray)) or np.ndim(init) == 0 else list(init)
    if items and all(np.ndim(i) == 0 and not isinstance(i, str) for i in items):
        items = [np.asarray(items)]
    if not items:
        raise ValueError("init must name at least one start.")
    for item in items:
        if isinstance(item, str):
            if item not in KINDS:
                raise ValueError(f"Unknown init {item!r}; known are {', '.join(KINDS)}.")
            continue
        labels = np.asarray(item)
        if labels.ndim != 1 or (n_rows is not None and len(labels) != n_rows):
            raise ValueError(
                f"A labeling given as init must have one label per row ({n_rows}), "
                f"but has shape {labels.shape}."
            )
        if len(np.unique(labels)) != 2:
            raise ValueError("A labeling given as init must have exactly two different labels.")
    return items


def two_sided_starts(
    prepared: Prepared, init: Any, n_init: int, seed: int
) -> list[tuple[str, np.ndarray]]:
    """Named labelings of the sample, without repetition."""
    found: list[tuple[str, np.ndarray]] = []
    for item in check_init(init, prepared.rows.n_rows):
        if isinstance(item, str):
            found += _of_kind(item, prepared, n_init, seed)
        else:
            labels = np.asarray(item)[prepared.positions]
            found.append(("given", np.where(labels == np.unique(item)[0], -1.0, 1.0)))
    unique: dict[bytes, tuple[str, np.ndarray]] = {}
    for name, side in found:
        if abs(side.sum()) < len(side):  # a start with one side empty separates nothing
            unique.setdefault((side * side[0]).tobytes(), (name, side))
    if not unique:
        rng = np.random.default_rng([seed, 4])
        unique[b""] = ("random", _balanced(rng, len(prepared.positions)))
    return list(unique.values())


def _of_kind(kind: str, prepared: Prepared, n_init: int, seed: int) -> list[tuple[str, np.ndarray]]:
    rows = prepared.standardised
    if kind == "k-means":
        return [(kind, _k_means_side(rows, seed))]
    if kind == "random":
        rng = np.random.default_rng([seed, 3])
        return [(f"random {i + 1}", _balanced(rng, len(rows))) for i in range(n_init)]
    columns = prepared.sample.columns[:, : prepared.features.columns.width]
    phi = prepared.features.features(columns)
    edges = prepared.features.offsets
    found = []
    for k, kernel in enumerate(prepared.features.kernels):
        part = phi[:, edges[k] : edges[k + 1]]
        if kind == "kernel-k-means":
            found.append((f"k-means, {kernel}", _k_means_side(part, seed)))
        else:
            for i, side in enumerate(_principal_sides(part, n_init)):
                found.append((f"component {i + 1}, {kernel}", side))
    return found


def _k_means_side(rows: np.ndarray, seed: int) -> np.ndarray:
    few = rows
    if len(rows) > K_MEANS_ROWS:
        few = rows[np.linspace(0, len(rows) - 1, K_MEANS_ROWS).astype(int)]
    if len(np.unique(few[:64], axis=0)) < 2 and len(np.unique(few, axis=0)) < 2:
        return np.ones(len(rows))
    model = KMeans(2, n_init=K_MEANS_TRIES, random_state=seed).fit(few)
    gap = model.cluster_centers_[1] - model.cluster_centers_[0]
    middle = model.cluster_centers_.mean(axis=0)
    return np.where((rows - middle) @ gap >= 0, 1.0, -1.0)


def _principal_sides(phi: np.ndarray, count: int) -> list[np.ndarray]:
    """Signs of the leading principal components of centred features."""
    values, vectors = np.linalg.eigh(phi.T @ phi)
    lead = [j for j in range(len(values) - 1, -1, -1) if values[j] > 1e-9 * values[-1]]
    return [np.where(phi @ vectors[:, j] >= 0, 1.0, -1.0) for j in lead[:count]]


def _balanced(rng: np.random.Generator, n: int) -> np.ndarray:
    side = np.where(np.arange(n) < (n + 1) // 2, 1.0, -1.0)
    return rng.permutation(side)
