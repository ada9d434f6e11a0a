"""What margin clusterers share: settings, what they bring to the race of starts, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dmkc.clusterers.base import MORE_ITER, Job, KernelClusterer
from dmkc.clusterers.estimator import Choice, Facts, landmarks_fact
from dmkc.clusterers.fits import MAX_ITER_REACHED, Fit, Learned, Named, Stage, race
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.margin.bundle import MarginSettings
from dmkc.clusterers.margin.cccp import MarginFit, margin_fit
from dmkc.clusterers.margin.geometry import BinaryMargin, MarginGeometry, MulticlassMargin
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.parameters import Number, Parameter, shared
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.sampled import spread_out
from dmkc.clusterers.starts import Start, check_init, k_means_start, starts_on_sample
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap
from dmkc.master.problem import conjugate
from dmkc.progress import Progress
from dmkc.scan.requests import GivenLabels
from dmkc.selection.structure import NUMBER_WORDS, check_enough_for_range, choose_number

MarginLearned = Learned[MarginFit, MarginSettings]
FromLabeling = Stage[tuple[Start, GivenLabels], Any, MarginFit]
"""Fits from labelings that the sample carries; of two clusters or of several."""
ADVICE = {MAX_ITER_REACHED: MORE_ITER}
THRESHOLDS = ("unit", "adaptive")
DEFAULT_BALANCE = {"unit": 0.3, "adaptive": 0.0}
DEFAULT_ADAPTIVE_C = 2.0
BALANCE = Parameter("balance", Number(("default",), least=0, none=True), "default", "")


class MarginClusterer(KernelClusterer):
    """Base of clusterers that look for the widest margin."""

    _has_margin = True
    _scored = "mean"
    C: float | None
    balance: Any
    norm: float
    threshold: str
    init: Any
    n_init: int
    refine: str
    max_iter: int
    solver: str
    balance_: float | None

    def _own_settings(self, n_rows: int | None) -> MarginSettings:
        low, high = shared.cluster_range(self.n_clusters)
        if high > 1:
            check_init(self.init, high if low == high else None, n_rows)
        return self._settings(high)

    def _least_clusters(self) -> int:
        return shared.cluster_range(self.n_clusters)[0]

    def _settings(self, m: int) -> MarginSettings:
        own = self._checked()
        tol, adaptive = own["tol"], own["threshold"] == "adaptive"
        C = self._price(own["C"], adaptive)
        return MarginSettings(
            C=C,
            balance=self._balance(own["balance"], m, C if adaptive else None),
            norm=own["norm"],
            tol=tol,
            gap=tol if m <= 2 else 10 * tol,
            max_iter=own["max_iter"],
            solver=own["solver"],
            adaptive=adaptive,
        )

    def _price(self, given: float | None, adaptive: bool) -> float:
        """C, NaN where it is to be calibrated."""
        if not adaptive:
            return np.nan if given is None else given
        C = DEFAULT_ADAPTIVE_C if given is None else given
        if C <= 1:
            raise UserError(
                f"`C` must exceed 1 with an adaptive threshold (1 / C is the share of rows inside "
                f"the margin), but is {self.C!r}."
            )
        return C

    def _balance(self, limit: float | str | None, m: int, adaptive_C: float | None) -> float | None:
        if isinstance(limit, str):
            return DEFAULT_BALANCE[self.threshold] if m <= 2 else None
        if limit is not None and m > 2:
            raise UserError(
                "`balance` bounds the mean score of two clusters; for more clusters rows are "
                "weighted by cluster instead: leave `balance` out."
            )
        if adaptive_C is not None and m <= 2 and (limit is None or limit >= 1 - 1 / adaptive_C):
            raise UserError(
                f"With an adaptive threshold `balance` must be a number below 1 - 1 / C = "
                f"{1 - 1 / adaptive_C:.3g}, not {self.balance!r}: one large cluster would have no "
                "largest margin."
            )
        return limit

    def _learn(self, prepared: Prepared, job: Job) -> MarginLearned | None:
        n = prepared.rows.n_rows
        low, high = shared.cluster_range(self.n_clusters, n)
        init, settings = self.init, job.own
        if job.start is not None:
            init, low = job.start, job.start.n_clusters
            high, settings = low, self._settings(low)
        if low < high and not isinstance(self.n_clusters, str):
            check_enough_for_range(high, n)
        if high == 1:
            return None
        m, scores, seed = high, None, job.seed
        if low < high:
            job.progress.begin(f"choosing a number of clusters between {low} and {high}")
            some = prepared.standardised[spread_out(prepared.sample.weights)]
            m, scores = choose_number(some, low, high, seed)
            settings = self._settings(m)
        init = init if job.subset is None else job.subset.restricted(init)
        learned = learn(prepared, settings, m, init, self.n_init, self.refine, seed, job.progress)
        return replace(learned, selection=scores)

    def _continue_on_all_rows(
        self, learned: MarginLearned, features: FeatureMap, rows: RowSet, job: Job
    ) -> MarginLearned:
        mean = features.slope(rows.stored_mean(), 1.0)
        short = replace(learned.settings, max_iter=self.polish)
        stage = from_fits(features, mean, rows, short, job.progress)
        return learned.continued(stage)

    def _advice(self, reason: str) -> str:
        return ADVICE.get(reason, "try another start, another C or fewer clusters.")

    def _store_fit(self, learned: MarginLearned, prepared: Prepared, rows: Rows) -> None:
        found = learned.fit.model
        model = found.kernel_model(prepared.features)
        self.model_ = model.reordered(found.shares, rows)
        self.kernel_weights_ = found.kernel_weights
        self.objective_ = found.objective
        self.threshold_ = found.threshold
        self.C_, self.balance_ = learned.settings.C, learned.settings.balance
        self.selection_ = learned.selection

    def _store_one_cluster(self, prepared: Prepared, rows: Rows) -> None:
        self.model_ = KernelModel.of_one_cluster(prepared.features, self.norm)
        self.kernel_weights_ = self.model_.kernel_weights
        self.objective_, self.threshold_, self.C_, self.selection_ = 0.0, 1.0, 0.0, None
        self.balance_ = None

    def _losses(self) -> Pipeline:
        return self.model_.shortfall_pipeline()

    def _facts(self) -> Facts:
        open_C = self.threshold == "unit" and self.C in (None, "auto")
        found = [("C", f"{self.C_:.4g}" + (" (from the data)" if open_C else ""))]
        if "balance_" in vars(self):  # files of the first release do not hold it
            limit = "none" if self.balance_ is None else f"{self.balance_:g}"
            found.append(("balance", "rows weighted by cluster" if self.n_clusters_ > 2 else limit))
        choice = self._choice()
        chosen: Facts = []
        if choice is not None and choice.confidence is not None:
            chosen.append(("candidates tried", len(choice.records)))
            chosen.append(("confidence of the choice", f"{choice.confidence:.2f}"))
        return [*found, landmarks_fact(self), *chosen]

    def _metrics(self) -> dict[str, Any]:
        return {"C": self.C_, **super()._metrics()}

    def _choice(self) -> Choice | None:
        return Choice(self.selection_, None, [], NUMBER_WORDS) if self.selection_ else None


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
    mean = weights @ phi / weights.sum()
    geometry = geometry_of(prepared.features, n_clusters, mean, len(phi))

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
        m = fit.model.geometry.space.n_clusters
        geometry = geometry_of(features, m, mean, rows.n_rows)
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


def geometry_of(
    features: FeatureMap, n_clusters: int, mean: np.ndarray, n_rows: int
) -> MarginGeometry:
    """Two clusters are told apart by one score, more by one each."""
    if n_clusters == 2:
        return BinaryMargin(features, mean, n_rows)
    return MulticlassMargin(features, n_clusters)


def calibrated_c(prepared: Prepared, start: Start, n_clusters: int, norm: float) -> float:
    """C at which the separation of a (k-means) start weighs as much as a few margins.

    A fixed C collapses the clusters or freezes the start, depending on kernels and data.
    """
    phi, weights = sample_features(prepared)
    geometry = geometry_of(prepared.features, n_clusters, np.zeros(phi.shape[1]), len(phi))
    slope = geometry.separation(phi, weights, start.labels)
    squares = [float(slope[a:b] @ slope[a:b]) for a, b in pairwise(geometry.offsets)]
    return geometry.calibration / max(float(np.linalg.norm(squares, conjugate(norm))), 1e-12)
