"""A regularisation path of planes over c2: which columns are selected at which strength."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.fits import Named
from dmkc.clusterers.planes.learn import (
    PlaneFeatures,
    PlaneFit,
    PlaneSettings,
    PlanesLearned,
    from_fits,
    learn_planes,
    pull_of,
)
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.starts import starts_on_sample
from dmkc.errors import UserError
from dmkc.master.planes import group_sizes
from dmkc.progress import Progress

WEAKEST = 0.02
"""Smallest c2 of a path as a share of the value at which all weights vanish."""


@dataclass(frozen=True)
class PlanePath:
    """What was selected at every c2."""

    c2: np.ndarray
    """The values, ascending."""
    importances: np.ndarray
    """(values, features): the largest weight of every feature in any plane."""
    explained: np.ndarray
    """(values,): share of the objective that the planes save."""
    shares: np.ndarray
    """(values, clusters): sizes of the clusters."""
    names: list[str]
    """Names of the features."""

    @property
    def n_selected(self) -> np.ndarray:
        return (self.importances > 0).sum(axis=1)

    def named(self, names: Any, columns: bool) -> PlanePath:
        """The same path with the names of columns, where features are columns."""
        if names is not None and columns:
            return replace(self, names=[str(name) for name in names])
        kind = "column" if columns else "component"
        return replace(self, names=[f"{kind} {j}" for j in range(self.importances.shape[1])])


def follow_path(
    prepared: Prepared,
    settings: PlaneSettings,
    init: Any,
    n_init: int,
    progress: Progress,
    seed: int,
    c2: Any,
    n_values: int,
) -> tuple[PlanePath, PlanesLearned]:
    """Fit at ascending c2, each fit begun from the planes of the one before."""
    features = PlaneFeatures.of(prepared.features)
    values = _values(prepared, features, settings, n_init, seed, c2, n_values)
    start = replace(settings, c2=float(values[0]))
    learned = learn_planes(prepared, start, init, n_init, progress, seed)
    found: list[PlaneFit] = [learned.fit]
    for value in values[1:]:
        stronger = replace(learned.settings, c2=float(value))
        stage = from_fits(features, prepared.all_rows, stronger, progress)
        (following,) = stage.run([Named(learned.start, learned.fit)])
        fit = following.value
        if not fit.model.w.any() or fit.shares.min() < settings.course.smallest:
            break
        found.append(fit)
        learned = replace(learned, fit=fit, settings=stronger)
    n, groups = int(features.offsets[-1]), features.offsets
    sizes = [group_sizes(np.abs(fit.model.spread(n)).max(axis=0), groups) for fit in found]
    path = PlanePath(
        np.asarray(values[: len(found)], dtype=np.float64),
        np.array(sizes),
        np.array([fit.explained for fit in found]),
        np.array([fit.shares for fit in found]),
        [],
    )
    return path, learned


def _values(
    prepared: Prepared,
    features: PlaneFeatures,
    settings: PlaneSettings,
    n_init: int,
    seed: int,
    c2: Any,
    n_values: int,
) -> np.ndarray:
    """The values asked for, ascending."""
    if c2 is None:
        m = settings.n_clusters
        starts = starts_on_sample(prepared, "k-means", n_init, m, seed)
        top = pull_of(prepared, features, settings, starts)
        return np.geomspace(WEAKEST * top, top, n_values)
    values = np.sort(np.atleast_1d(np.asarray(c2, dtype=np.float64)))
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)) or values[0] < 0:
        raise UserError("`c2` must be one or more numbers of at least 0.")
    return values
