"""What margin-distribution clustering brings to the race: starting models, and fits from them.

A labeling of the sample becomes a model by least squares.  Constraints give starts of their own:
the leading directions of the signed sums of components, which relax the label problem of two
clusters (the largest |sum_i y_i Phi(x_i)|^2 over labelings that keep the constraints).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dmkc.clusterers.fits import Fit, Learned, Named, Stage, race
from dmkc.clusterers.model import ScoreSpace
from dmkc.clusterers.odm.constrained import (
    RaceRows,
    Rules,
    constrained_weights,
    loss_shape,
    race_rows,
)
from dmkc.clusterers.odm.descent import ConstrainedRows, DistributionFit, distribution_fit
from dmkc.clusterers.odm.distribution import DistributionObjective, DistributionSettings, Point
from dmkc.clusterers.odm.relaxation import Mixture, relaxed_start
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import check_init, starts_on_sample
from dmkc.constraints.assign import TwoSides
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress
from dmkc.scan.distribution import DistributionSums
from dmkc.typing import PerRow

LINKS, RELAXATION = "links", "relaxation"
OWN = (LINKS, RELAXATION)
DIRECTIONS = 2
"""Leading directions that are tried, of all rows and of the constrained ones."""
DistributionLearned = Learned[DistributionFit, DistributionSettings]
FromFit = Stage[DistributionFit, DistributionSums, DistributionFit]


@dataclass(frozen=True)
class Starts:
    """Named models to begin from."""

    points: list[Named[Point]]
    mixture: Mixture | None
    """What the relaxation found, if it was asked for."""


def check_starts(init: Any, n_clusters: int, constrained: bool, n_rows: int | None) -> list[Any]:
    """The starts asked for, as a list of kinds and labelings."""
    if isinstance(init, str) and init == "auto":
        links = [LINKS] if constrained and n_clusters == 2 else []
        return ["k-means", "kernel-k-means", *links]
    items = list(init) if isinstance(init, (list, tuple)) else [init]
    own, others = _parted(items)
    if LINKS in own and (n_clusters != 2 or not constrained):
        raise UserError(
            '`init="links"` is for two clusters and needs `must_link` or `cannot_link`.'
        )
    if RELAXATION in own and n_clusters != 2:
        raise UserError('`init="relaxation"` is for two clusters.')
    return [*own, *(check_init(others, n_clusters, n_rows) if others or not own else [])]


def _parted(items: list[Any]) -> tuple[list[str], list[Any]]:
    """The kinds of starts that are made here, and all others."""
    own = [i for i in items if isinstance(i, str) and i in OWN]
    return own, [i for i in items if not (isinstance(i, str) and i in OWN)]


def starting_points(
    prepared: Prepared,
    race: RaceRows,
    objective: DistributionObjective,
    items: list[Any],
    n_init: int,
    seed: int,
) -> Starts:
    """Named models to begin from."""
    found: list[Named[Point]] = []
    own, others = _parted(items)
    if others:
        phi = prepared.features.features(prepared.sample.stored)
        weights = prepared.sample.weights
        for start in starts_on_sample(prepared, others, n_init, objective.space.n_clusters, seed):
            point = fitted_point(objective, phi, weights, start.labels)
            found.append(Named(start.name, point))
    if LINKS in own:
        found += _links(race, objective)
    if RELAXATION not in own:
        return Starts(found, None)
    relaxed = relaxed_start(race, objective)
    phi = objective.space.features.features(race.rows.stored)
    for k, labels in enumerate(relaxed.labelings):
        point = fitted_point(objective, phi, race.rows.weights, labels)
        found.append(Named(f"relaxation, labeling {k + 1}", point))
    return Starts(found, relaxed.mixture)


def fitted_point(
    objective: DistributionObjective, phi: np.ndarray, weights: np.ndarray, labels: np.ndarray
) -> Point:
    """The regularised least-squares fit of the sides of a labeling, all kernels weighing alike.

    It is also the first Newton step from zero, where every row's margin is too short.
    """
    zero = objective.zero()
    roots = np.sqrt(
        np.repeat(objective.kernel_weights(zero), np.diff(objective.space.features.offsets))
    )
    rows = np.column_stack([phi * roots, np.ones(len(phi))])
    counts = objective.settings.C * weights / weights.sum()
    factor = cho_factor(np.eye(rows.shape[1]) + (rows.T * counts) @ rows)
    sides = np.where(labels == objective.space.scored_clusters[:, None], 1, -1)
    wanted = (1.0 - objective.shape.theta) * sides
    found = cho_solve(factor, (rows.T * counts) @ wanted.T).T
    return objective.feasible(Point(found[:, :-1] * roots, found[:, -1]))


def _links(race: RaceRows, objective: DistributionObjective) -> Iterator[Named[Point]]:
    assert race.rules is not None
    columns = race.rows.stored
    phi, weights = objective.space.features.features(columns), race.rows.weights
    number = race.rows.record.constrained
    assert number is not None
    constrained, free = np.flatnonzero(number), np.flatnonzero(number == 0)
    constrained = constrained[np.argsort(number[constrained])]
    square = _signed_square(race, phi[constrained] * race.constrained.weights[:, None])
    whole = square + (phi[free].T * weights[free] ** 2) @ phi[free]
    for name, matrix in (("all", whole), ("constrained", square)):
        _, vectors = np.linalg.eigh(matrix)
        for k in range(1, min(DIRECTIONS, len(matrix)) + 1):
            v = vectors[:, -k] * np.where(np.sum(vectors[:, -k] ** 3) < 0, -1.0, 1.0)
            size = np.sqrt(np.mean((phi[constrained] @ v) ** 2))
            if size > 0:
                point = Point(v[None, :] / size, np.zeros(1))
                yield Named(f"links, direction {k} of {name} rows", point)


def _signed_square(race: RaceRows, phi: np.ndarray) -> np.ndarray:
    """The sum of outer products of the components' signed sums; of the pairs, if these are soft."""
    assert race.rules is not None
    keep, c = race.constrained.assigner, race.rules.constraints
    if isinstance(keep, TwoSides):
        sums = np.zeros((keep.components.count, phi.shape[1]))
        np.add.at(sums, keep.components.number, keep.components.side[:, None] * phi)
        return sums.T @ sums
    must = (phi[c.must[:, 0]].T * c.must_weights) @ phi[c.must[:, 1]]
    cannot = (phi[c.cannot[:, 0]].T * c.cannot_weights) @ phi[c.cannot[:, 1]]
    return phi.T @ phi + (must + must.T) - (cannot + cannot.T)


@dataclass(frozen=True)
class Learner:
    """What a fit is about, apart from the rows."""

    settings: DistributionSettings
    n_clusters: int
    rules: Rules | None
    init: list[Any]
    n_init: int
    seed: int
    progress: Progress

    def learn(self, prepared: Prepared, sample_weight: PerRow) -> DistributionLearned:
        """The best fit over all starts, on all prepared rows."""
        weights = constrained_weights(self.rules, sample_weight)
        sample = race_rows(prepared, self.rules, weights, self.settings, self.seed)
        space = ScoreSpace.of(prepared.features, self.n_clusters)
        objective = DistributionObjective(space, self.settings, sample.shape)
        starts = starting_points(prepared, sample, objective, self.init, self.n_init, self.seed)

        def begin(name: str, point: Point) -> Fit[DistributionSums, DistributionFit]:
            tell = self.progress.reporter(name, "sample", sample.rows)
            return distribution_fit(objective, sample.constrained, point, objective.zero(), tell)

        then = None
        if not prepared.sample_is_all:
            total = float(prepared.survey.count)
            then = self.from_fits(prepared.features, prepared.all_rows, weights, total)
        first = Stage(sample.rows, begin)
        found = race(starts.points, first, then, lambda fit: fit.model.objective)
        if sample.rows is not prepared.sample:
            prepared.sample.n_scans += sample.rows.n_scans
        details: dict[str, Any] = {}
        if starts.mixture is not None:
            details["mixture_weights_"] = starts.mixture.weights
        return self.counted(Learned(found.value, found.name, self.settings, details=details))

    def from_fits(
        self, features: FeatureMap, rows: RowSet, weights: np.ndarray, total: float
    ) -> FromFit:
        """Fits of rows of total weight `total`, from where fits of other rows ended."""
        heavy = float(weights.sum())
        shape = loss_shape(self.settings, total - heavy, heavy, heavy / total)
        space = ScoreSpace.of(features, self.n_clusters)
        objective = DistributionObjective(space, self.settings, shape)
        constrained = ConstrainedRows.none()
        if self.rules is not None:
            constrained = self.rules.constrained_rows(weights, shape, self.settings)

        def begin(name: str, fit: DistributionFit) -> Fit[DistributionSums, DistributionFit]:
            point = objective.feasible(fit.model.point)
            tell = self.progress.reporter(name, "all", rows)
            return distribution_fit(objective, constrained, point, point, tell)

        return Stage(rows, begin)

    def counted(self, learned: DistributionLearned) -> DistributionLearned:
        """The same with the number of pairs that its labels violate."""
        if self.rules is None:
            return learned
        violated = self.rules.constraints.violated(learned.fit.model.constrained)
        return replace(learned, details=learned.details | {"n_violated_": violated})
