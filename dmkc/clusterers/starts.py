"""Starting labelings of a sample of the rows.

These problems are not convex and the start decides much, so several kinds are offered.  A start
is a cluster number for every sampled row; a convex fit on the sample turns it into a model.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from dmkc.clusterers.prepare import Known, Prepared, SampleView
from dmkc.clusterers.sampled import FEW_COLUMNS, SHAPES, correlated, few_columns, shaped
from dmkc.errors import UserError
from dmkc.kernels import Kernel

KINDS = ("k-means", "kernel-k-means", "joint-k-means", "pca", "random", "few-columns", *SHAPES)
FEATURE_KINDS = ("kernel-k-means", "joint-k-means", "pca")
GIVEN_MODEL = "given model"
DEFAULT_TWO = ("k-means", "kernel-k-means")
DEFAULT_SEVERAL = ("k-means",)
SMALLEST = 0.1
"""Starts with a cluster below this part of an equal share have found outliers, not clusters."""
K_MEANS_TRIES = {2: 5}
"""Tries of k-means by number of clusters; 10 for more than two."""
K_MEANS_ROWS = 4096
"""k-means centroids are found on at most this many rows, which moves them very little."""


@dataclass(frozen=True)
class Start:
    """A named labeling of the sample."""

    name: str
    labels: np.ndarray

    def shares(self, n_clusters: int, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self.labels, weights, minlength=n_clusters) / weights.sum()


def is_model(item: Any) -> bool:
    """Whether a start is a model of any method, which labels rows."""
    return hasattr(item, "label_pipeline")


def check_init(init: Any, n_clusters: int | None, n_rows: int | None = None) -> list[Any]:
    """The starts asked for, as a list of kinds and labelings (not while `n_clusters` is open)."""
    if isinstance(init, str) and init == "auto":
        return list(DEFAULT_TWO if n_clusters == 2 else DEFAULT_SEVERAL)
    items = list(init) if isinstance(init, (list, tuple)) else [init]
    if items and all(np.isscalar(i) and not isinstance(i, str) for i in items):
        items = [np.asarray(items)]
    if not items:
        raise UserError("`init` must name at least one start.")
    if "auto" in [i for i in items if isinstance(i, str)]:
        raise UserError('`init="auto"` stands alone; name the starts that a list should hold.')
    checked: list[Any] = []
    for item in items:
        if isinstance(item, str):
            checked.append(item)
            if item not in KINDS:
                close = difflib.get_close_matches(item, KINDS, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise UserError(
                    f"Unknown `init` {item!r}; known are auto, {', '.join(KINDS)}.{hint}"
                )
            continue
        if n_clusters is None:
            raise UserError(
                "A labeling given as `init` has a number of clusters of its own: give that number "
                "as `n_clusters`."
            )
        if is_model(item):
            if item.n_clusters != n_clusters:
                raise UserError(
                    f"A model given as `init` must have {n_clusters} clusters, not "
                    f"{item.n_clusters}."
                )
            checked.append(item)
            continue
        labels = np.asarray(item)
        if labels.ndim != 1 or (n_rows is not None and len(labels) != n_rows):
            raise UserError(
                f"A labeling given as `init` must have one label per row ({n_rows}), "
                f"but has shape {labels.shape}."
            )
        if len(np.unique(labels)) != n_clusters:
            raise UserError(
                f"A labeling given as `init` must have exactly {n_clusters} different labels."
            )
        checked.append(labels)
    return checked


def starts_on_sample(
    prepared: Prepared, init: Any, n_init: int, n_clusters: int, seed: int
) -> list[Start]:
    """Named labelings of the sample in which every cluster occurs, without repetition."""
    items = check_init(init, n_clusters, prepared.rows.n_rows)
    if isinstance(init, str) and init == "auto" and prepared.rows.views and n_clusters > 2:
        items.append("joint-k-means")  # in which no view drowns the others
    graphs = any(kernel.shows_clusters for kernel in prepared.features.kernels)
    if isinstance(init, str) and init == "auto" and graphs and "kernel-k-means" not in items:
        items.append("kernel-k-means")
    found = _all(items, prepared, n_init, n_clusters, seed)
    return _usable(found, prepared.sample.weights, n_clusters, seed)


def starts_on_view(
    view: SampleView, init: Any, n_init: int, n_clusters: int, seed: int
) -> list[Start]:
    """The same from the rows alone, before there are features."""
    items = check_init(init, n_clusters, view.n_rows)
    found = (s for item in items for s in _plain(item, view, n_init, n_clusters, seed))
    return _usable(found, view.weights, n_clusters, seed)


def _usable(found: Iterable[Start], weights: np.ndarray, n_clusters: int, seed: int) -> list[Start]:
    """Starts in which every cluster occurs, without repetition; a random one if there is none."""
    unique: dict[bytes, Start] = {}
    for start in found:
        if start.shares(n_clusters, weights).min() == 0:
            if start.name.startswith("given"):
                warnings.warn(
                    "A given labeling is left out, because one of its clusters has no row in the "
                    "sample: increase sample_rows (or train_rows).",
                    stacklevel=6,
                )
        else:
            unique.setdefault(in_order(start.labels).tobytes(), start)
    large = {
        key: start
        for key, start in unique.items()
        if start.name.startswith("given")
        or start.shares(n_clusters, weights).min() * n_clusters >= SMALLEST
    }
    unique = large or unique
    if not unique:
        rng = np.random.default_rng([seed, 4])
        unique[b""] = Start("random", _balanced(rng, len(weights), n_clusters))
    return list(unique.values())


def k_means_start(prepared: Prepared, starts: list[Start], m: int, seed: int) -> Start:
    """The k-means labeling of the sample; the first of the starts where k-means finds fewer."""
    for start in starts:
        if start.name == "k-means":
            return start
    labels = _k_means(
        prepared.standardised, prepared.sample.weights, m, seed, prepared.view.context
    )
    return Start("k-means", labels) if len(np.unique(labels)) == m else starts[0]


def _all(items: list[Any], prepared: Prepared, n_init: int, m: int, seed: int) -> Iterator[Start]:
    weights = prepared.sample.weights
    for item in items:
        if not (isinstance(item, str) and item in FEATURE_KINDS):
            yield from _plain(item, prepared.view, n_init, m, seed)
            continue
        if item == "joint-k-means":
            phi, context = _joint_features(prepared)
            yield Start("k-means, all kernels", _k_means(phi, weights, m, seed, context))
            continue
        for kernel, phi, context in _features_by_kernel(prepared):
            if item == "pca":
                yield from _principal(kernel, phi, weights, n_init, m, seed)
            elif not (kernel.linear and kernel.columns is None and "k-means" in items):
                yield Start(f"k-means, {kernel}", _k_means(phi, weights, m, seed, context))


def _plain(item: Any, view: SampleView, n_init: int, m: int, seed: int) -> Iterator[Start]:
    """Starts that need no features."""
    rows = view.standardised
    if is_model(item):
        yield Start(GIVEN_MODEL, item.label_pipeline()(view.rows))
    elif not isinstance(item, str):
        _, labels = np.unique(item, return_inverse=True)
        yield Start("given", labels[view.positions])
    elif item == "k-means":
        yield Start(item, _k_means(rows, view.weights, m, seed, view.context))
    elif item in SHAPES:
        yield Start(item, shaped(item, rows, view.weights, m, seed))
    elif item == "few-columns":
        yield from _few(rows, view.weights, m, seed)
    else:
        rng = np.random.default_rng([seed, 3])
        for i in range(n_init):
            yield Start(f"random {i + 1}", _balanced(rng, len(rows), m))


def _few(rows: np.ndarray, weights: np.ndarray, m: int, seed: int) -> Iterator[Start]:
    """k-means of few columns: mixed ones, and correlated ones where rows are wider than many."""

    def grouping(few: np.ndarray) -> np.ndarray:
        return _k_means(few, weights, m, seed)

    for count in FEW_COLUMNS:
        labels = few_columns(rows, weights, count, grouping)
        yield Start(f"k-means, {min(count, rows.shape[1])} columns", labels)
    if rows.shape[1] > len(rows):
        labels = few_columns(rows, weights, FEW_COLUMNS[0], grouping, correlated)
        yield Start(f"k-means, {FEW_COLUMNS[0]} correlated columns", labels)


def _features_by_kernel(
    prepared: Prepared,
) -> Iterator[tuple[Kernel, np.ndarray, Known | None]]:
    """Every kernel's features of the sample, and of the context rows."""
    features, (phi, context) = prepared.features, _joint_features(prepared)
    for kernel, (a, b) in zip(features.kernels, pairwise(features.offsets), strict=True):
        yield kernel, phi[:, a:b], None if context is None else (context[0][:, a:b], context[1])


def _joint_features(prepared: Prepared) -> tuple[np.ndarray, Known | None]:
    """The features of all kernels, of the sample and of the context rows."""
    features, more = prepared.features, prepared.view.context
    phi = features.features(prepared.sample.stored)
    if more is None:
        return phi, None
    return phi, (features.features(features.plan(prepared.context).rows), more[1])


def _k_means(
    rows: np.ndarray, weights: np.ndarray, m: int, seed: int, context: Known | None = None
) -> np.ndarray:
    """The cluster of every row; centroids are found on the context rows, if there are any."""
    few, heavy = (rows, weights) if context is None else context
    if len(few) > K_MEANS_ROWS:
        some = np.linspace(0, len(few) - 1, K_MEANS_ROWS).astype(int)
        few, heavy = few[some], heavy[some]
    few, heavy, *_ = distinct_rows(few, heavy)
    few, heavy = few[heavy > 0], heavy[heavy > 0]
    if len(few) < m:
        return np.zeros(len(rows), np.int64)
    equal = np.all(heavy == heavy[0])  # k-means takes another path when weights are given
    model = KMeans(m, n_init=K_MEANS_TRIES.get(m, 10), random_state=seed % 2**32)
    model.fit(few, sample_weight=None if equal else heavy)
    centres = model.cluster_centers_
    nearest = np.einsum("ij,ij->i", centres, centres) - 2.0 * rows @ centres.T
    return nearest.argmin(axis=1)


def distinct_rows(
    rows: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows without repetition, sorted, if any are repeated or weigh differently.

    A row of weight 3 and three equal rows then lead to the same clusters.  Returned are the rows,
    their weights, where each first occurs, and which of them every given row is.
    """
    mix = np.random.default_rng(0).normal(size=rows.shape[1])
    if len(np.unique(rows @ mix)) == len(rows) and np.all(weights == weights[0]):
        every = np.arange(len(rows))
        return rows, weights, every, every
    distinct, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    place = place.ravel()
    return distinct, np.bincount(place, weights, minlength=len(distinct)), first, place


def _principal(
    kernel: Kernel, phi: np.ndarray, weights: np.ndarray, count: int, m: int, seed: int
) -> Iterator[Start]:
    """Signs of the leading components for two clusters, k-means on them for several."""
    values, vectors = _components(phi * np.sqrt(weights)[:, None])
    lead = [j for j in range(len(values) - 1, -1, -1) if values[j] > 1e-9 * values[-1]]
    if m == 2:
        for i, j in enumerate(lead[:count]):
            labels = (phi @ vectors[:, j] >= 0).astype(np.int64)
            yield Start(f"component {i + 1}, {kernel}", labels)
    elif lead:
        yield Start(
            f"components, {kernel}", _k_means(phi @ vectors[:, lead[: m - 1]], weights, m, seed)
        )


def _components(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of rows^T rows; of wide rows without that matrix."""
    if rows.shape[1] <= len(rows):
        return np.linalg.eigh(rows.T @ rows)
    values, sides = np.linalg.eigh(rows @ rows.T)
    vectors = rows.T @ sides
    return values, vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)


def _balanced(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    return rng.permutation(np.arange(n) % m)


def in_order(labels: np.ndarray) -> np.ndarray:
    """The same labeling with clusters numbered by first appearance."""
    values, first = np.unique(labels, return_index=True)
    rank = np.empty(len(values), np.int32)
    rank[np.argsort(first)] = np.arange(len(values))
    return rank[np.searchsorted(values, labels)]
