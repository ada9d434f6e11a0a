"""Clustering by nonparallel planes: a convex fit and a relabeling in turn.

Fang and Liu (2020), section 3, steps (a)-(e), for any number of clusters.  A fit is a generator
that yields what it wants of a scan, as `cccp.margin_fit` does, so that several starts share every
scan.  A labeling is the nearest plane of a model and is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dmkc.clusterers.fits import (
    MAX_ITER_REACHED,
    SETTLED,
    Fit,
    FitEnd,
    Learned,
    Named,
    Stage,
    Step,
    race,
    run_together,
)
from dmkc.clusterers.model import KernelModel, ScoreSpace
from dmkc.clusterers.planes.solvers import WHOLE, Asker, Solved, solve_convex, teller
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.sampled import separation
from dmkc.clusterers.starts import Start, starts_on_sample
from dmkc.data import RowRecord
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress
from dmkc.scan.planes import Planes, PlaneSums, Signs
from dmkc.scan.requests import GivenLabels

LOOSE_GAP, LOOSE_SHARE = 1e-2, 0.5
"""Gap that is good enough while labels still move a lot, and as a share of the rows that moved."""
TRIVIAL_GAP = 1e-4
TOO_SMALL = "a cluster would have become too small"
UNMET = "the planes of a labeling were not found to the gap asked for"
ADVICE = {
    UNMET: "scale the columns, ask for fewer clusters, or increase tol or c2.",
    MAX_ITER_REACHED: "increase max_iter or tol.",
    TOO_SMALL: (
        "of the rounds before, the one whose planes explain most is kept. Planes cannot hold a "
        "cluster that lies around another: try kernels='gaussian', loss='hinge' or another start."
    ),
}
"""What to do about a fit that ended for this reason."""
SHARE_OF_PULL = 0.05
"""c2, when it is left open, as a share of the largest pull of a start on weights at zero."""
MOST_OF_PULL = 0.5
"""The same share where there are far more features than rows."""
SECONDS_PER_PRODUCT, SECONDS_PER_SWEEP, SECONDS_PER_MASTER = 2e-10, 3e-9, 1e-6
"""Cost of a pass: per product of a Gram matrix, per number read, per squared weight of a bundle."""
HEAVY, HEAT = 1e9, 2
"""Where a pass for all starts has more products than this, the race is over
after so many rounds."""


@dataclass(frozen=True)
class PlaneFit(FitEnd):
    """Planes and what a scan knows of their own labeling."""

    model: Planes
    objective: float
    """Value of the convex problem of the last labeling."""
    explained: float
    """Share of the value without any plane that the planes save."""
    gap: float
    separation: float = 0.0
    """How far the clusters of the sample lie apart."""


@dataclass(frozen=True)
class Course:
    """When a fit stops, and how its convex problems are solved."""

    tol: float
    max_iter: int
    smallest: float
    """Share of the rows below which a cluster must not fall."""
    solver: str


def plane_fit(
    problem: PlaneProblem,
    label: Planes | GivenLabels,
    view: Callable[[np.ndarray], np.ndarray] | None,
    course: Course,
    tell: Callable[[Step], None],
    start: Planes | None = None,
) -> Fit[PlaneSums, PlaneFit]:
    """Cluster from a labeling; `start` are planes to begin the first convex fit from."""
    seen: dict[int, _Round] = {}
    rounds: list[_Round] = []
    model, moved, working = start, 1.0, None
    label_hash: int | None = None
    sides = start if isinstance(label, Planes) else None
    for round_ in range(1, course.max_iter + 1):
        wanted = max(course.tol, min(LOOSE_GAP, LOOSE_SHARE * moved))
        asker = Asker(problem, label, sides, view, working)
        solved = yield from solve_convex(asker, course.solver, model, wanted, teller(tell, round_))
        model, sums, working = solved.model, solved.sums, solved.working
        here = _Round(problem, round_, solved)
        shares, moved = sums.counts / sums.total, sums.changed / sums.total
        before, label_hash = label_hash, int(sums.label_hash[0])
        if shares.min() < course.smallest:
            kept = max(rounds or [here], key=lambda r: r.explained)
            return kept.fit(round_, False, TOO_SMALL)
        tight = solved.gap <= course.tol
        if tight and (label_hash == before or moved <= (course.tol if problem.together else 0.0)):
            return here.fit(round_, True, SETTLED)
        if tight and label_hash in seen and label_hash != before:
            cycle = [r for r in seen.values() if r.number >= seen[label_hash].number]
            kept = max([*cycle, here], key=lambda r: r.explained)
            return kept.fit(round_, True, "a labeling came back")
        if tight:
            seen[label_hash] = here
        rounds.append(here)
        if solved.gap > wanted:
            return here.fit(round_, False, UNMET)
        label = sides = model
    return rounds[-1].fit(len(rounds), False, MAX_ITER_REACHED)


@dataclass(frozen=True)
class _Round:
    """One labeling's convex problem, solved."""

    problem: PlaneProblem
    number: int
    solved: Solved

    @cached_property
    def explained(self) -> float:
        """Share of the value without any plane that the planes save (found when asked for)."""
        counts = self.solved.sums.members[:, -1]
        without = trivial_value(self.problem, counts)
        # With all rows in one cluster there is nothing to save.
        return 1.0 - self.solved.value / without if without > 0 else 0.0

    def fit(self, n_iter: int, converged: bool, reason: str) -> PlaneFit:
        solved = self.solved
        shares = solved.sums.counts / solved.sums.total
        return PlaneFit(
            solved.model,
            solved.value,
            self.explained,
            solved.gap,
            shares=shares,
            n_iter=n_iter,
            converged=converged,
            reason=reason,
        )


def trivial_value(problem: PlaneProblem, counts: np.ndarray) -> float:
    """The value of the convex problem without any plane, which depends on cluster sizes alone.

    It falls to 0 as one cluster takes all rows, so that values of different labelings can be
    compared only relative to it.
    """
    k = len(counts)
    shares, labels = counts / counts.sum(), np.arange(k)[:, None]
    rows = SampleRows(RowRecord(np.zeros((k, 1)), shares, labels=labels), max(k, 64))
    bare = replace(problem, offsets=np.array([0, 1]))
    solving = solve_convex(
        Asker(bare, GivenLabels(0), None, None), "irls", None, TRIVIAL_GAP, _silent
    )
    (solved,) = run_together([solving], rows)
    return float(solved.value)


def first_pull(
    problem: PlaneProblem,
    rows: RowSet,
    label: Planes | GivenLabels,
    view: Callable[[np.ndarray], np.ndarray] | None,
) -> float:
    """The c2 at which about all weights vanish, for a labeling: the pull on them at zero."""
    asker = Asker(problem, label, None, view)
    sums = rows.ask(asker.request(problem.zero(), Signs()))
    return float(problem.pressure(sums).max())


def cost_of(fit: PlaneFit) -> float:
    """What a fit is judged by: the farther its clusters lie apart, the better.

    Of two clusters one collapsed if the other took all, and such a fit wins only where all have.
    Where one of several becomes too small, the others are still there.
    """
    collapsed = fit.reason == TOO_SMALL and fit.model.n_clusters == 2
    return -(fit.separation - (10.0 if collapsed else 0.0))


def _silent(*_: Any) -> None:
    """Nobody is told of the value without planes."""


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

    def of_rounds(self, most: int) -> PlaneSettings:
        """The same with at most so many rounds."""
        return replace(self, course=replace(self.course, max_iter=most))


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
    most = settings.course.max_iter
    heavy = len(starts) > 1 and len(starts) * products_of(settings, features, prepared) > HEAVY
    heat = min(HEAT, most) if heavy else most
    first, labelings = on_sample(prepared, features, settings.of_rounds(heat), starts, progress)
    found = race(labelings, first, None, cost_of)
    if found.value.reason == MAX_ITER_REACHED and heat < most:
        rest = settings.of_rounds(most - heat)
        (found,) = from_fits(features, prepared.sample, rest, progress).run([found])
    if not prepared.sample_is_all:
        (found,) = from_fits(features, prepared.all_rows, settings, progress).run([found])
    prepared.sample.n_scans += first.rows.n_scans
    return Learned(found.value, found.name, settings)


def products_of(settings: PlaneSettings, features: PlaneFeatures, prepared: Prepared) -> float:
    """Products of one pass over the sample that forms all Gram matrices of a step."""
    columns = min(int(features.offsets[-1]), WHOLE)
    return float(len(prepared.positions) * (settings.n_clusters - 1) * columns**2)


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
        where = "sample" if isinstance(rows, SampleRows) else "all"
        tell, model = progress.reporter(name, where, rows), found.model
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
