"""Learning a margin model: starts race on a sample, the winner is carried on to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dmkc.clusterers.margin.cccp import MarginFit, MarginSettings, margin_fit
from dmkc.clusterers.margin.geometry import (
    BinaryMargin,
    MarginGeometry,
    MulticlassMargin,
    Point,
)
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import Start, k_means_start, starts_on_sample
from dmkc.clusterers.together import run_together
from dmkc.kernels import FeatureMap
from dmkc.master.norms import conjugate
from dmkc.progress import Progress

CALIBRATION_TWO, CALIBRATION_SEVERAL = 6.0, 3.0
"""C times the size of the k-means start's separation in feature space, when C is left open."""


@dataclass(frozen=True)
class Learned:
    """The best fit found."""

    fit: MarginFit
    start: str
    settings: MarginSettings
    selection: list[dict[str, Any]] | None = None
    """Scores of all that was chosen from, where something was left open."""

    def kernel_model(self, features: FeatureMap) -> KernelModel:
        """The model in the form that labels rows."""
        v, b = self.fit.model.point
        m = len(self.fit.model.shares)
        weights, biases = v[None, :], np.array([b])
        if len(v) > features.offsets[-1]:  # one block of weights per cluster
            weights, biases = MulticlassMargin(features, m).unstacked(v), np.zeros(m)
        return KernelModel(features, weights, biases, self.fit.model.kernel_weights)


def learn(
    prepared: Prepared,
    settings: MarginSettings,
    n_clusters: int,
    init: Any,
    n_init: int,
    refine: str,
    seed: int,
    progress: Progress,
) -> Learned:
    """The best fit over all starts; C is calibrated where it is left open (NaN)."""
    features, m = prepared.features, n_clusters
    if prepared.choice is None:
        starts = starts_on_sample(prepared, init, n_init, m, seed)
    else:  # the landmarks were made for one labeling
        starts = [Start(prepared.choice.start, prepared.choice.labels)]
    if np.isnan(settings.C):
        reference = k_means_start(prepared, starts, m, seed)
        settings = replace(settings, C=calibrated_c(prepared, reference, m, settings.norm))
    fits, names = race(prepared, settings, m, starts, progress), [s.name for s in starts]
    if not prepared.sample_is_all:
        if refine == "best":
            best = _lowest(fits)
            fits, names = [fits[best]], [names[best]]
        mean = np.zeros(features.offsets[-1])  # features are centred on all rows
        fits = carry_on(features, mean, prepared.everywhere, settings, fits, names, progress)
    best = _lowest(fits)
    return Learned(fits[best], names[best], settings)


def race(
    prepared: Prepared,
    settings: MarginSettings,
    n_clusters: int,
    starts: Sequence[Start],
    progress: Progress,
) -> list[MarginFit]:
    """Fits of the sample from all starts, as one batch."""
    sample, at = prepared.sample.with_labelings([s.labels for s in starts])
    phi, weights = sample_features(prepared)
    geometry = geometry_of(prepared.features, n_clusters, weights @ phi / weights.sum())
    fits = run_together(
        [
            margin_fit(
                geometry,
                geometry.start(column, sample.width, start.shares(n_clusters, weights)),
                settings,
                progress.reporter(start.name, "sample", sample),
                first_points(geometry, phi, weights, start),
            )
            for start, column in zip(starts, at, strict=True)
        ],
        sample,
    )
    prepared.sample.n_scans += sample.n_scans
    return fits


def sample_features(prepared: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """Features and weights of the sampled rows."""
    return prepared.features.features(prepared.sample.columns), prepared.sample.weights


def carry_on(
    features: FeatureMap,
    mean: np.ndarray,
    rows: RowSet,
    settings: MarginSettings,
    fits: Sequence[MarginFit],
    names: Sequence[str],
    progress: Progress,
) -> list[MarginFit]:
    """Go on with fits of other rows (a sample) on these rows, whose mean feature row is `mean`."""
    geometry = geometry_of(features, len(fits[0].model.shares), mean)
    points = [geometry.feasible(fit.model.point, settings.balance) for fit in fits]
    return run_together(
        [
            margin_fit(
                geometry,
                geometry.label(point, fit.model.shares),
                settings,
                progress.reporter(name, "all", rows),
                (point, *(p for p in fit.kept if p is not fit.model.point)),
                fit.model.kernel_weights,
            )
            for name, fit, point in zip(names, fits, points, strict=True)
        ],
        rows,
    )


def geometry_of(features: FeatureMap, n_clusters: int, mean: np.ndarray) -> MarginGeometry:
    return (
        MulticlassMargin(features, n_clusters) if n_clusters > 2 else BinaryMargin(features, mean)
    )


def calibrated_c(prepared: Prepared, start: Start, n_clusters: int, norm: float) -> float:
    """C at which the separation of a (k-means) start weighs as much as a few margins.

    A fixed C collapses the clusters or freezes the start, depending on kernels and data.
    """
    phi, weights = sample_features(prepared)
    geometry = geometry_of(prepared.features, n_clusters, np.zeros(phi.shape[1]))
    if isinstance(geometry, MulticlassMargin):
        means = _centred_means(phi, weights, start, n_clusters)
        slope = geometry.stacked(means) / n_clusters
    else:
        slope = (weights * (2.0 * start.labels - 1.0)) @ phi / weights.sum()
    squares = [float(slope[a:b] @ slope[a:b]) for a, b in pairwise(geometry.offsets)]
    wanted = CALIBRATION_SEVERAL if isinstance(geometry, MulticlassMargin) else CALIBRATION_TWO
    return wanted / max(float(np.linalg.norm(squares, conjugate(norm))), 1e-12)


def first_points(
    geometry: MarginGeometry, phi: np.ndarray, weights: np.ndarray, start: Start
) -> list[Point]:
    """Where the first cuts of several clusters are made: at their centroids."""
    if not isinstance(geometry, MulticlassMargin):
        return []
    centres = _centred_means(phi, weights, start, geometry.n_clusters)
    size = float(np.mean(np.einsum("ij,ij->i", centres, centres)))
    return [(geometry.stacked(centres) / max(size, 1e-12), 0.0)]


def _centred_means(phi: np.ndarray, weights: np.ndarray, start: Start, m: int) -> np.ndarray:
    """Mean features of the start's clusters, less their average."""
    members = [start.labels == r for r in range(m)]
    means = np.stack([np.average(phi[i], axis=0, weights=weights[i]) for i in members])
    return means - means.mean(axis=0)


def _lowest(fits: Sequence[MarginFit]) -> int:
    return int(np.argmin([fit.model.objective for fit in fits]))
