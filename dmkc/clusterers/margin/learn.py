"""Learning a margin model: what margin clusterers bring to the race of starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dmkc.clusterers.learned import Learned
from dmkc.clusterers.margin.cccp import MarginFit, MarginSettings, margin_fit
from dmkc.clusterers.margin.geometry import BinaryMargin, MarginGeometry, MulticlassMargin
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.race import Named, Stage, race
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import Start, k_means_start, starts_on_sample
from dmkc.clusterers.together import Fit
from dmkc.kernels import FeatureMap
from dmkc.master.problem import conjugate
from dmkc.progress import Progress
from dmkc.scan.requests import GivenLabels

MarginLearned = Learned[MarginFit, MarginSettings]
FromLabeling = Stage[tuple[Start, GivenLabels], Any, MarginFit]
"""Fits from labelings that the sample carries; of two clusters or of several."""


def learn(
    prepared: Prepared,
    settings: MarginSettings,
    n_clusters: int,
    init: Any,
    n_init: int,
    refine: str,
    seed: int,
    progress: Progress,
) -> MarginLearned:
    """The best fit over all starts; C is calibrated where it is left open (NaN)."""
    features, m = prepared.features, n_clusters
    if prepared.choice is None:
        starts = starts_on_sample(prepared, init, n_init, m, seed)
    else:  # the landmarks were made for one labeling
        starts = [Start(prepared.choice.start, prepared.choice.labels)]
    if np.isnan(settings.C):
        reference = k_means_start(prepared, starts, m, seed)
        settings = replace(settings, C=calibrated_c(prepared, reference, m, settings.norm))
    first, labelings = on_sample(prepared, settings, m, starts, progress)
    then = None
    if not prepared.sample_is_all:
        mean = np.zeros(features.offsets[-1])  # features are centred on all rows
        then = from_fits(features, mean, prepared.all_rows, settings, progress)
    found = race(labelings, first, then, lambda fit: fit.model.objective, refine)
    prepared.sample.n_scans += first.rows.n_scans
    return Learned(found.value, found.name, settings)


def on_sample(
    prepared: Prepared,
    settings: MarginSettings,
    n_clusters: int,
    starts: Sequence[Start],
    progress: Progress,
) -> tuple[FromLabeling, list[Named[tuple[Start, GivenLabels]]]]:
    """Fits of the sample from labelings, and these labelings."""
    sample, asked = prepared.sample.with_labelings([s.labels for s in starts])
    phi, weights = sample_features(prepared)
    geometry = geometry_of(prepared.features, n_clusters, weights @ phi / weights.sum())

    def begin(name: str, place: tuple[Start, GivenLabels]) -> Fit[Any, MarginFit]:
        start, given = place
        return margin_fit(
            geometry,
            geometry.start(given, start.shares(n_clusters, weights)),
            settings,
            progress.reporter(name, "sample", sample),
            geometry.first_points(phi, weights, start.labels),
        )

    labelings = [Named(s.name, (s, given)) for s, given in zip(starts, asked, strict=True)]
    return Stage(sample, begin), labelings


def from_fits(
    features: FeatureMap,
    mean: np.ndarray,
    rows: RowSet,
    settings: MarginSettings,
    progress: Progress,
) -> Stage[MarginFit, Any, MarginFit]:
    """Fits of rows whose mean feature row is `mean`, from where fits of other rows ended."""

    def begin(name: str, fit: MarginFit) -> Fit[Any, MarginFit]:
        geometry = geometry_of(features, fit.model.geometry.space.n_clusters, mean)
        point = geometry.feasible(fit.model.point, settings.balance)
        return margin_fit(
            geometry,
            geometry.label(point, fit.shares),
            settings,
            progress.reporter(name, "all", rows),
            (point, *(p for p in fit.kept if p is not fit.model.point)),
            fit.model.kernel_weights,
        )

    return Stage(rows, begin)


def sample_features(prepared: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """Features and weights of the sampled rows."""
    return prepared.features.features(prepared.sample.stored), prepared.sample.weights


def geometry_of(features: FeatureMap, n_clusters: int, mean: np.ndarray) -> MarginGeometry:
    """Two clusters are told apart by one score, more by one each."""
    if n_clusters == 2:
        return BinaryMargin(features, mean)
    return MulticlassMargin(features, n_clusters)


def calibrated_c(prepared: Prepared, start: Start, n_clusters: int, norm: float) -> float:
    """C at which the separation of a (k-means) start weighs as much as a few margins.

    A fixed C collapses the clusters or freezes the start, depending on kernels and data.
    """
    phi, weights = sample_features(prepared)
    geometry = geometry_of(prepared.features, n_clusters, np.zeros(phi.shape[1]))
    slope = geometry.separation(phi, weights, start.labels)
    squares = [float(slope[a:b] @ slope[a:b]) for a, b in pairwise(geometry.offsets)]
    return geometry.calibration / max(float(np.linalg.norm(squares, conjugate(norm))), 1e-12)
