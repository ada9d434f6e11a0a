"""Learning a margin-distribution model: starts race on a sample, the winner goes on to all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.odm.descent import DistributionFit, TiedRows, distribution_fit
from dmkc.clusterers.odm.distribution import DistributionSettings, Landscape
from dmkc.clusterers.odm.relaxation import Mixture
from dmkc.clusterers.odm.starts import starting_points
from dmkc.clusterers.odm.tying import Rules, loss_shape, race_rows, tied_weights
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.together import run_together
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress


@dataclass(frozen=True)
class LearnedDistribution:
    """The best fit found."""

    fit: DistributionFit
    start: str
    settings: DistributionSettings
    n_violated: int
    """Pairs that its labels violate."""
    mixture: Mixture | None
    """What the relaxation found, if it was asked for."""

    def kernel_model(self, features: FeatureMap) -> KernelModel:
        """The model in the form that labels rows."""
        found = self.fit.model
        return KernelModel(features, found.point.v, found.point.b, found.kernel_weights)


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

    def learn(self, prepared: Prepared, sample_weight: Any) -> LearnedDistribution:
        """The best fit over all starts, on all prepared rows."""
        weights = tied_weights(self.rules, sample_weight)
        race = race_rows(prepared, self.rules, weights, self.settings, self.seed)
        land = Landscape(prepared.features, self.settings, race.shape, self.n_clusters)
        starts = starting_points(prepared, race, land, self.init, self.n_init, self.seed)
        fits = run_together(
            [
                distribution_fit(
                    land,
                    race.tied,
                    start,
                    land.zero(),
                    self.progress.reporter(name, "sample", race.rows),
                )
                for name, start in starts.points
            ],
            race.rows,
        )
        if race.rows is not prepared.sample:
            prepared.sample.n_scans += race.rows.n_scans
        best = int(np.argmin([fit.model.objective for fit in fits]))
        learned = LearnedDistribution(
            fits[best], starts.points[best][0], self.settings, 0, starts.mixture
        )
        if prepared.sample_is_all:
            return self._counted(learned)
        total = float(prepared.survey.count)
        return self.go_on(learned, prepared.features, prepared.everywhere, weights, total)

    def go_on(
        self,
        learned: LearnedDistribution,
        features: FeatureMap,
        rows: RowSet,
        weights: np.ndarray,
        total: float,
    ) -> LearnedDistribution:
        """Go on with a fit of other rows on these, of total weight `total`."""
        heavy = float(weights.sum())
        shape = loss_shape(self.settings, total - heavy, heavy, heavy / total)
        land = Landscape(features, self.settings, shape, self.n_clusters)
        tied = TiedRows.none()
        if self.rules is not None:
            tied = self.rules.tied_rows(weights, shape, self.settings)
        point = land.feasible(learned.fit.model.point)
        tell = self.progress.reporter(learned.start, "all", rows)
        (fit,) = run_together([distribution_fit(land, tied, point, point, tell)], rows)
        return self._counted(replace(learned, fit=fit))

    def _counted(self, learned: LearnedDistribution) -> LearnedDistribution:
        if self.rules is None:
            return learned
        violated = self.rules.constraints.violated(learned.fit.model.tied)
        return replace(learned, n_violated=violated)
