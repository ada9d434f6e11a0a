"""Learning planes: what nonparallel planes bring to the race of starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.learned import Learned
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.planes.fit import Course, PlaneFit, cost_of, first_pull, plane_fit
from dmkc.clusterers.planes.solvers import WHOLE
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.race import Named, Stage, race
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.separation import separation
from dmkc.clusterers.space import ScoreSpace
from dmkc.clusterers.starts import Start, starts_on_sample
from dmkc.clusterers.together import Fit
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress
from dmkc.scan.planes import Planes, PlaneSums
from dmkc.scan.requests import GivenLabels

SHARE_OF_PULL = 0.05
"""c2, when it is left open, as a share of the largest pull of a start on weights at zero."""
MOST_OF_PULL = 0.5
"""The same share where there are far more features than rows."""
SECONDS_PER_PRODUCT, SECONDS_PER_SWEEP, SECONDS_PER_MASTER = 2e-10, 3e-9, 1e-6
"""Cost of a pass: per product of a Gram matrix, per number read, per squared weight of a bundle."""


@dataclass(frozen=True)
class PlaneSettings:
    """The parameters of the estimator, checked."""

    n_clusters: int
    c1: float
    c2: float
    """NaN: calibrated from the data."""
    ridge: float
    hinge: bool
    together: bool
    course: Course


PlanesLearned = Learned[PlaneFit, PlaneSettings]


@dataclass(frozen=True)
class PlaneFeatures:
    """The features that planes are made of, and which of them are selected together.

    Planes see features, not scores on raw columns: which features have weights is the question.
    """

    features: FeatureMap
    offsets: np.ndarray
    """Groups of features that are selected together."""
    view: Callable[[np.ndarray], np.ndarray] | None
    """Makes features from raw columns; None: the columns are the features."""

    @classmethod
    def of(cls, features: FeatureMap) -> PlaneFeatures:
        kernels, n = features.kernels, features.offsets[-1]
        if len(kernels) == 1 and kernels[0].raw:
            plain = replace(features, mean=(np.zeros(n),), scale=(1.0,))
            return cls(plain, np.arange(n + 1), None)
        grouped = all(kernel.only_column is not None for kernel in kernels)
        offsets = features.offsets if grouped else range(n + 1)
        return cls(features, np.array(offsets), features.features)

    @property
    def names_columns(self) -> bool:
        """Whether the groups of features are the columns of the rows, in order."""
        if self.view is None:
            return True
        columns = [kernel.only_column for kernel in self.features.kernels]
        return columns == list(range(self.features.plan.n_columns))

    def rows(self, columns: np.ndarray) -> np.ndarray:
        """Feature rows of some raw columns."""
        return columns[:, : int(self.offsets[-1])] if self.view is None else self.view(columns)

    def model(self, planes: Planes) -> KernelModel:
        """Planes in the form that labels rows."""
        space = ScoreSpace(self.features, planes.n_clusters, "nearest")
        ones = np.ones(len(self.features.kernels))
        return space.model(planes.spread(int(self.offsets[-1])), planes.b, ones)

    def problem(self, settings: PlaneSettings) -> PlaneProblem:
        s = settings
        return PlaneProblem(s.n_clusters, s.c1, s.c2, s.ridge, s.hinge, s.together, self.offsets)


def learn_planes(
    prepared: Prepared,
    settings: PlaneSettings,
    init: Any,
    n_init: int,
    progress: Progress,
    seed: int,
) -> PlanesLearned:
    """The best fit over all starts; c2 is calibrated where it is left open (NaN)."""
    features, m = PlaneFeatures.of(prepared.features), settings.n_clusters
    starts = starts_on_sample(prepared, init, n_init, m, seed)
    if np.isnan(settings.c2):
        share = share_of_pull(features.offsets[-1], prepared.rows.n_rows)
        settings = replace(settings, c2=share * pull_of(prepared, features, settings, starts))
    first, labelings = on_sample(prepared, features, settings, starts, progress)
    then = None
    if not prepared.sample_is_all:
        then = from_fits(features, prepared.all_rows, settings, progress)
    found = race(labelings, first, then, cost_of)
    prepared.sample.n_scans += first.rows.n_scans
    return Learned(found.value, found.name, settings)


def on_sample(
    prepared: Prepared,
    features: PlaneFeatures,
    settings: PlaneSettings,
    starts: Sequence[Start],
    progress: Progress,
) -> tuple[Stage[GivenLabels, PlaneSums, PlaneFit], list[Named[GivenLabels]]]:
    """Fits of the sample from labelings, and these labelings."""
    sample, asked = prepared.sample.with_labelings([s.labels for s in starts])
    problem = features.problem(settings)
    course = chosen(settings.course, problem, sample, progress)
    rows, shares = features.rows(prepared.sample.stored), sample.weights / sample.weights.sum()

    def begin(name: str, given: GivenLabels) -> Fit[PlaneSums, PlaneFit]:
        tell = progress.reporter(name, "sample", sample)
        fit = yield from plane_fit(problem, given, features.view, course, tell)
        planes = fit.model
        apart = separation(rows, shares, planes.nearest(planes.scores(rows)))
        return replace(fit, separation=apart)

    return Stage(sample, begin), [
        Named(s.name, given) for s, given in zip(starts, asked, strict=True)
    ]


def from_fits(
    features: PlaneFeatures, rows: RowSet, settings: PlaneSettings, progress: Progress
) -> Stage[PlaneFit, PlaneSums, PlaneFit]:
    """Fits of these rows, from planes that were found on others."""
    problem = features.problem(settings)
    course = chosen(settings.course, problem, rows, progress)

    def begin(name: str, found: PlaneFit) -> Fit[PlaneSums, PlaneFit]:
        tell, model = progress.reporter(name, "all", rows), found.model
        fit = yield from plane_fit(problem, model, features.view, course, tell, model)
        return replace(fit, separation=found.separation)

    return Stage(rows, begin)


def share_of_pull(n_features: int, n_rows: int) -> float:
    """c2 as a share of the largest pull.

    Where there are more features than rows it is at least what the largest of as many features
    of pure noise would pull (the universal threshold of Donoho and Johnstone 1994).
    """
    if n_features <= n_rows:
        return SHARE_OF_PULL
    return max(SHARE_OF_PULL, min(np.sqrt(2.0 * np.log(n_features) / n_rows), MOST_OF_PULL))


def pull_of(
    prepared: Prepared,
    features: PlaneFeatures,
    settings: PlaneSettings,
    starts: Sequence[Start],
) -> float:
    """The c2 at which about all weights vanish under every start."""
    sample, asked = prepared.sample.with_labelings([s.labels for s in starts])
    problem = features.problem(settings)
    found = [first_pull(problem, sample, given, features.view) for given in asked]
    prepared.sample.n_scans += sample.n_scans
    return max(*found, 1e-300)


def chosen(course: Course, problem: PlaneProblem, rows: RowSet, progress: Progress) -> Course:
    """The course with its solver decided: whichever should be faster on these rows."""
    if course.solver != "auto":
        return course
    k, p = problem.n_clusters, min(problem.n_features, WHOLE)
    pairs = k * (k - 1) / 2 if problem.together else k
    products = SECONDS_PER_PRODUCT * rows.n_rows * pairs * p**2
    sweep = SECONDS_PER_SWEEP * rows.n_rows * p * k + SECONDS_PER_MASTER * (k * p) ** 2
    solver = "irls" if products <= sweep else "bundle"
    where = "the sample" if isinstance(rows, SampleRows) else "all rows"
    progress.say(f"solver on {where}: {solver}")
    return replace(course, solver=solver)
