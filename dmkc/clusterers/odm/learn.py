"""Learning a margin-distribution model: what this method brings to the race of starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.fits import Fit, Learned, Stage, race
from dmkc.clusterers.model import ScoreSpace
from dmkc.clusterers.odm.constrained import Rules, constrained_weights, loss_shape, race_rows
from dmkc.clusterers.odm.descent import ConstrainedRows, DistributionFit, distribution_fit
from dmkc.clusterers.odm.distribution import DistributionObjective, DistributionSettings, Point
from dmkc.clusterers.odm.starts import starting_points
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress
from dmkc.scan.distribution import DistributionSums
from dmkc.typing import PerRow

DistributionLearned = Learned[DistributionFit, DistributionSettings]
FromFit = Stage[DistributionFit, DistributionSums, DistributionFit]


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
