"""Learning planes: starts race on a sample, the winner is carried on to all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.planes.fit import Course, PlaneFit, best_of, first_pull, plane_fit
from dmkc.clusterers.planes.solvers import WHOLE
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.separation import separation
from dmkc.clusterers.starts import Start, starts_on_sample
from dmkc.clusterers.together import run_together
from dmkc.kernels import ColumnGaussian, Columns, FeatureMap
from dmkc.progress import Progress

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


@dataclass(frozen=True)
class Space:
    """The features that planes live in."""

    features: FeatureMap
    offsets: np.ndarray
    """Groups of features that are selected together."""
    view: Callable[[np.ndarray], np.ndarray] | None
    """Makes features from raw columns; None: the columns are the features."""

    @classmethod
    def of(cls, features: FeatureMap) -> Space:
        kernels, n = features.kernels, features.offsets[-1]
        if len(kernels) == 1 and isinstance(kernels[0], Columns):
            plain = replace(features, mean=(np.zeros(n),), scale=(1.0,))
            return cls(plain, np.arange(n + 1), None)
        grouped = all(isinstance(k, ColumnGaussian) for k in kernels)
        offsets = features.offsets if grouped else range(n + 1)
        return cls(features, np.array(offsets), features.features)

    @property
    def names_columns(self) -> bool:
        """Whether the groups of features are the columns of the rows, in order."""
        if self.view is None:
            return True
        columns = [getattr(kernel, "column", -1) for kernel in self.features.kernels]
        return columns == list(range(len(self.features.columns.scaling.shift)))

    def kernel_model(self, fit: PlaneFit) -> KernelModel:
        """The planes in the form that labels rows."""
        w, ones = fit.model.spread(int(self.offsets[-1])), np.ones(len(self.features.kernels))
        return KernelModel(self.features, w, fit.model.b, ones, decision="nearest")


@dataclass(frozen=True)
class PlanesLearned:
    """The best fit found."""

    fit: PlaneFit
    start: str
    problem: PlaneProblem
    course: Course
    separation: float
    """How far the clusters of the sample lie apart."""


def problem_of(space: Space, settings: PlaneSettings) -> PlaneProblem:
    s = settings
    return PlaneProblem(s.n_clusters, s.c1, s.c2, s.ridge, s.hinge, s.together, space.offsets)


def learn_planes(
    prepared: Prepared,
    settings: PlaneSettings,
    init: Any,
    n_init: int,
    progress: Progress,
    seed: int,
) -> PlanesLearned:
    """The best fit over all starts; c2 is calibrated where it is left open (NaN)."""
    space, m = Space.of(prepared.features), settings.n_clusters
    problem = problem_of(space, settings)
    starts = starts_on_sample(prepared, init, n_init, m, seed)
    if np.isnan(settings.c2):
        share = share_of_pull(space.offsets[-1], prepared.rows.n_rows)
        problem = replace(problem, c2=share * pull_of(prepared, space, problem, starts))
    fits = race(prepared, space, problem, settings.course, starts, progress)
    apart = separations(prepared, space, fits)
    best = best_of(fits, apart)
    learned = PlanesLearned(fits[best], starts[best].name, problem, settings.course, apart[best])
    if prepared.sample_is_all:
        return learned
    return carry_on_planes(learned, space, prepared.everywhere, progress)


def race(
    prepared: Prepared,
    space: Space,
    problem: PlaneProblem,
    course: Course,
    starts: Sequence[Start],
    progress: Progress,
) -> list[PlaneFit]:
    """Fits of the sample from all starts, as one batch."""
    sample, at = prepared.sample.with_labelings([s.labels for s in starts])
    course = chosen(course, problem, sample, progress)
    fits = run_together(
        [
            plane_fit(
                problem,
                column,
                space.view,
                course,
                progress.reporter(start.name, "sample", sample),
            )
            for start, column in zip(starts, at, strict=True)
        ],
        sample,
    )
    prepared.sample.n_scans += sample.n_scans
    return fits


def separations(prepared: Prepared, space: Space, fits: Sequence[PlaneFit]) -> list[float]:
    """How far the clusters of every fit lie apart on the sample, in the planes' own features."""
    sample, n = prepared.sample, int(space.offsets[-1])
    rows = sample.columns[:, :n] if space.view is None else space.view(sample.columns)
    shares = sample.weights / sample.weights.sum()
    return [separation(rows, shares, fit.model.nearest(fit.model.scores(rows))) for fit in fits]


def carry_on_planes(
    learned: PlanesLearned, space: Space, rows: RowSet, progress: Progress
) -> PlanesLearned:
    """Go on with planes found on other rows (a sample) on these rows."""
    course = chosen(learned.course, learned.problem, rows, progress)
    model = learned.fit.model
    tell = progress.reporter(learned.start, "all", rows)
    going_on = plane_fit(learned.problem, model, space.view, course, tell, model)
    (fit,) = run_together([going_on], rows)
    return replace(learned, fit=fit)


def share_of_pull(n_features: int, n_rows: int) -> float:
    """c2 as a share of the largest pull.

    Where there are more features than rows it is at least what the largest of as many features
    of pure noise would pull (the universal threshold of Donoho and Johnstone 1994).
    """
    if n_features <= n_rows:
        return SHARE_OF_PULL
    return max(SHARE_OF_PULL, min(np.sqrt(2.0 * np.log(n_features) / n_rows), MOST_OF_PULL))


def pull_of(
    prepared: Prepared, space: Space, problem: PlaneProblem, starts: Sequence[Start]
) -> float:
    """The c2 at which about all weights vanish under every start."""
    sample, at = prepared.sample.with_labelings([s.labels for s in starts])
    found = [first_pull(problem, sample, column, space.view) for column in at]
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
