"""What all clusterers share: the course of a fit; and of kernel clusterers, features and scores.

A clusterer says what is its own: `_own_settings` (its parameters, checked), `_prepare` (from rows
to rows that can be scanned), `_learn` (from these to what it learns), `_store_fit` (its fitted
attributes).  Kernel clusterers train on all rows or on a subset, from which they may go on
(`_continue_on_all_rows`).
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dmkc.clusterers import labelling
from dmkc.clusterers.certainty import CertainClusterer
from dmkc.clusterers.earlier import start_model
from dmkc.clusterers.fits import AnyLearned
from dmkc.clusterers.members import Refits
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.parameters.shared import RANDOM_STATE
from dmkc.clusterers.pieces import warn_of_cuts
from dmkc.clusterers.prepare import FeatureSettings, Prepared, layout_of, prepare
from dmkc.clusterers.reach import Reach
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.spread import Layout
from dmkc.clusterers.subset import Subset, spread_all, subset_size, take_subset
from dmkc.clusterers.typical import from_their_means, most_typical, standardised
from dmkc.data import BlockRows, Rows, as_rows
from dmkc.errors import Marked, UserError
from dmkc.kernels import FeatureMap, Kernel, KernelPlan, as_bank, per_view
from dmkc.progress import Progress
from dmkc.registry import foreign_modules
from dmkc.scan.engine import Engine, one_blas_thread, open_engine, shared
from dmkc.scan.survey import Survey
from dmkc.typing import PerRow, RandomState, TableLike

MORE_ITER = "increase `max_iter` or `tol`."


@dataclass(frozen=True)
class Job:
    """What one call of `fit` works on."""

    rows: Rows
    engine: Engine
    sample_weight: PerRow
    seed: int
    own: Any
    """The clusterer's own settings."""
    progress: Progress
    subset: Subset | None = None
    """The rows that are trained on, when these are not all rows."""
    start: Any = None
    """A model of any method to begin from, which leaves no row out."""


class Ready(Protocol):
    """Rows that can be scanned."""

    @property
    def all_rows(self) -> RowSet:
        """All rows that are trained on."""

    @property
    def survey(self) -> Survey:
        """What the first look at them found."""


ReadyRows = TypeVar("ReadyRows", bound=Ready)


class Trained(NamedTuple, Generic[ReadyRows]):
    """What training comes to."""

    prepared: ReadyRows
    learned: AnyLearned | None
    all_rows: RowSet | None
    """All rows, where they have been scanned."""
    numbers: np.ndarray | None = None
    """Row numbers of what was trained on, where that is not all rows."""


class Clusterer(CertainClusterer, Generic[ReadyRows]):
    """Base of all clusterers: the course of a fit."""

    n_clusters: Any
    random_state: RandomState
    tol: float
    verbose: int
    n_scans_: int
    start_: str
    n_iter_: int
    converged_: bool

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse what is wrong whatever the rows are."""

    def _own_settings(self, n_rows: int | None) -> Any:
        """The clusterer's own parameters, checked (again with `n_rows` once it is known)."""
        return None

    @abstractmethod
    def _prepare(self, job: Job) -> ReadyRows:
        """Rows that can be scanned."""

    @abstractmethod
    def _learn(self, prepared: ReadyRows, job: Job) -> AnyLearned | None:
        """What is learned from prepared rows; None for a single cluster."""

    def _store_features(self, prepared: ReadyRows, rows: Rows) -> None:
        """Set the fitted attributes that do not depend on what was learned, if there are any."""

    @abstractmethod
    def _store_fit(self, learned: AnyLearned, prepared: ReadyRows, rows: Rows) -> None:
        """Set the fitted attributes that are the method's own, `model_` among them."""

    def _store_one_cluster(self, prepared: ReadyRows, rows: Rows) -> None:
        """The same where there is a single cluster and nothing was learned."""

    def _summary(self) -> str:
        """The fit in half a sentence."""
        return f"{self.n_iter_} {self._rounds}, objective {self.objective_:.6g}"

    def fit(
        self, X: TableLike, y: PerRow = None, sample_weight: PerRow = None, start: Any = None
    ) -> Self:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.  With `start`, a fitted
        estimator or the path of a model file, the fit begins from the clusters that it sees in X.
        """
        seed = seed_of(self.random_state)
        self._check_parameters()
        rows = as_rows(X)
        begun = None if start is None else start_model(start, rows, self.n_clusters)
        own, progress = self._own_settings(rows.n_rows), Progress(self.verbose, self.tol)
        engine = open_engine(self.client, self)
        with progress.shown(), one_blas_thread():
            progress.begin(f"preparing {rows.n_rows} rows")
            job = self._begin(Job(rows, engine, sample_weight, seed, own, progress, None, begun))
            prepared, learned, all_rows, numbers = self._train(job)
            self._store_results(learned, prepared, job.rows)
            self._keep_rows(self._rows_for_refits(prepared), numbers)
            seen = prepared.survey
            reach = Reach.of(seen.sample, seen.sample_weights)
            self.reach_ = None if reach is None else reach.stored()
            if shared.get() is None:  # else nobody listens
                warn_of_cuts(seen, self.model_, type(self).__name__)
            progress.begin(f"labelling {rows.n_rows} rows")
            self.labels_ = self._labels(job.rows, all_rows)
            self.n_scans_ = 2 if all_rows is None else 1 + all_rows.n_scans
            self._remember_columns(rows)
            self.history_ = progress.history()
            progress.say(
                f"{self._summary()}, {self.n_scans_} scans of all rows, "
                f"{time.perf_counter() - progress.began:.1f} s"
            )
        return self

    def _features_of(self, rows: BlockRows) -> np.ndarray:
        """Some rows in the space where clusters are found."""
        return self.model_.feature_pipeline()(rows).astype(np.float64)

    @abstractmethod
    def _rows_for_refits(self, prepared: ReadyRows) -> Refits:
        """Rows of the fit, of which typical ones and chances of labels are found."""

    def _keep_rows(self, kept: Refits, numbers: np.ndarray | None) -> None:
        """Keep some rows of the fit, and the most typical ones of the clusters."""
        if numbers is not None:
            kept.numbers = numbers[kept.numbers]
        labels, k = self.model_.label_pipeline()(kept.rows), self.n_clusters_
        found = most_typical(kept.rows, kept.numbers, labels, self._remoteness(kept, labels), k)
        self._refits, (self.medoid_indices_, self.medoids_) = kept, found

    def _remoteness(self, kept: Refits, labels: np.ndarray) -> np.ndarray:
        """How far rows are from the centre of their cluster, squared, where it was found."""
        if self._scored == "sum" and self.n_clusters_ > 1:
            return self._losses()(kept.rows)
        one = self.n_clusters_ == 1
        points = standardised(kept.rows) if one else self._features_of(kept.rows)
        weights = np.ones(len(labels)) if kept.weights is None else kept.weights
        return from_their_means(points, labels, weights, self.n_clusters_)

    def _begin(self, job: Job) -> Job:
        """A chance to look at the rows' form before anything is scanned."""
        return job

    def _train(self, job: Job) -> Trained[ReadyRows]:
        """Train on all rows."""
        prepared = self._prepare(job)
        job.progress.begin("looking for starts")
        return Trained(prepared, self._learn(prepared, job), prepared.all_rows)

    def _store_results(self, learned: AnyLearned | None, prepared: ReadyRows, rows: Rows) -> None:
        """Set the fitted attributes, and warn of a fit that ended early."""
        self._store_features(prepared, rows)
        if learned is None:
            self.start_, self.n_iter_, self.converged_ = "none", 1, True
            self.cluster_shares_ = np.ones(1)
            self._store_one_cluster(prepared, rows)
            return
        fit = learned.fit
        if not fit.converged:
            warnings.warn(
                Marked(
                    f"{type(self).__name__} stopped before it converged ("
                    f"{fit.reason.replace('max_iter', '`max_iter`')}); {self._advice(fit.reason)}"
                ),
                ConvergenceWarning,
                stacklevel=3,
            )
        empty = int(np.sum(fit.shares == 0))
        if empty:
            self._warn_of_empty(empty, len(fit.shares))
        self.start_, self.n_iter_, self.converged_ = learned.start, fit.n_iter, fit.converged
        # clusters are numbered by decreasing size
        self.cluster_shares_ = np.sort(fit.shares)[::-1] / max(float(np.sum(fit.shares)), 1e-300)
        self._store_fit(learned, prepared, rows)
        for name, value in learned.details.items():
            setattr(self, name, value)

    def _advice(self, reason: str) -> str:
        """What to do about a fit that ended for this reason before it had converged."""
        return MORE_ITER

    def _warn_of_empty(self, empty: int, n_clusters: int) -> None:
        warnings.warn(f"{empty} of {n_clusters} clusters are empty.", stacklevel=4)

    def _labels(self, rows: Rows, all_rows: RowSet | None) -> PerRow:
        pipeline = self.model_.label_pipeline()
        if rows.container.lazy or all_rows is None:
            return labelling.apply(rows, pipeline, np.dtype(np.int32), None)
        labels = all_rows.collect(pipeline.answer, "labels")
        return rows.container.wrap(labels)


class KernelClusterer(Clusterer[Prepared]):
    """Base of clusterers of kernel features, which may train on a subset of the rows."""

    train_rows: float | None
    polish: int
    kernels_: list[Kernel]
    kernel_weights_: np.ndarray
    _model_class: ClassVar[type | None] = KernelModel
    _has_scores = True
    _has_kernels = True
    _rounds = "relabelings"

    @abstractmethod
    def _continue_on_all_rows(
        self, learned: Any, features: FeatureMap, rows: RowSet, job: Job
    ) -> AnyLearned:
        """What is learned by at most `polish` more rounds on all rows."""

    def _least_clusters(self) -> int:
        """The smallest number of clusters that may be asked for."""
        return self.n_clusters

    def _check_parameters(self) -> None:
        self._feature_settings(0)
        if self.polish and self.train_rows is None:
            raise UserError("`polish` goes with `train_rows`: without it all rows are trained on.")
        self._own_settings(None)

    def _prepare(self, job: Job) -> Prepared:
        settings, m = self._features(job), self._least_clusters()
        prepared = prepare(job.rows, job.engine, settings, m, job.sample_weight)
        job.progress.say(_about(job, prepared.features, prepared.mode))
        return prepared

    def _train(self, job: Job) -> Trained[Prepared]:
        """Train on all rows, or on a subset in memory and, if asked, go on with all rows."""
        if self.train_rows is None:
            return super()._train(job)
        rows, settings = job.rows, self._feature_settings(job.seed)
        subset = take_subset(rows, job.engine, self.train_rows, settings, job.sample_weight)
        inside, local, m = replace(job, subset=subset), job.engine.local(), self._least_clusters()
        own = self._features(inside)
        prepared = prepare(subset.rows, local, own, m, subset.weights, subset.context)
        features, all_rows = prepared.features, None
        job.progress.say(f"training on {subset.rows.n_rows} of {rows.n_rows} rows")
        learned = self._learn(prepared, inside)
        if learned is not None and self.polish:
            all_rows, mode = spread_all(rows, job.engine, settings, features, job.sample_weight)
            job.progress.say(_about(job, features, mode))
            learned = self._continue_on_all_rows(learned, features, all_rows, job)
        return Trained(prepared, learned, all_rows, subset.positions)

    def _rows_for_refits(self, prepared: Prepared) -> Refits:
        survey = prepared.survey
        return Refits.of(survey.sample, survey.sample_weights, prepared.positions)

    def _kernel_plan(self) -> KernelPlan | None:
        plan: KernelPlan = self.model_.label_pipeline().plan
        return plan

    def _store_features(self, prepared: Prepared, rows: Rows) -> None:
        self.kernels_ = list(prepared.features.kernels)

    def _store_one_cluster(self, prepared: Prepared, rows: Rows) -> None:
        self.model_ = KernelModel.of_one_cluster(prepared.features, 1.0)
        self.kernel_weights_, self.objective_ = self.model_.kernel_weights, 0.0

    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        if self.train_rows is not None:
            rows = replace(rows, n_rows=subset_size(self.train_rows, rows.n_rows))
            engine = engine.local()
        return layout_of(rows, engine, self._feature_settings(seed_of(self.random_state)))

    @available_if(lambda self: self._has_scores)
    def decision_function(self, X: TableLike) -> PerRow:
        """Scores of every row: one whose sign decides between two clusters, else one a cluster."""
        rows = self._new_rows(X)
        n_out = None if self.model_.n_scores == 1 else self.model_.n_scores
        pipeline = self.model_.score_pipeline()
        return labelling.apply(rows, pipeline, self._dtype, n_out, name="score")

    def transform(self, X: TableLike) -> PerRow:
        """Features whose inner products are the learned kernel, weighted by `kernel_weights_`."""
        return super().transform(X)

    def _feature_settings(self, seed: int) -> FeatureSettings:
        own = self._checked()
        return FeatureSettings(
            kernels=self._kernels(),
            scale=own["scale"],
            rank=own["rank"],
            landmarks=own["landmarks"],
            dtype=own["dtype"],
            mode=own["feature_mode"],
            store_path=own["store_path"],
            sample_rows=own["sample_rows"],
            seed=seed,
        )

    def _bank(self) -> Any:
        """The kernels as given, or the clusterer's own default."""
        return self.get_params(deep=False)["kernels"]

    def modules_of_others(self) -> set[str]:
        return foreign_modules([type(self), *(kernel.code for kernel in self._kernels())])

    def _kernels(self) -> tuple[Kernel, ...]:
        """The bank; the default one is there once for each view."""
        bank = as_bank(self._bank())
        is_default = self.get_params(deep=False)["kernels"] is None
        return tuple(per_view(bank)) if is_default else bank

    @property
    def view_weights_(self) -> dict[str, float]:
        """The share of every view in the kernel weights; empty where X was one table.

        Kernels that see other columns than those of one view are "other columns".
        """
        check_is_fitted(self)
        total, shares = (
            float(np.sum(self.kernel_weights_)) or 1.0,
            dict.fromkeys(self._views(), 0.0),
        )
        for kernel, weight in zip(self.kernels_, self.kernel_weights_, strict=True):
            named = isinstance(kernel.columns, str) and kernel.columns in shares
            place = kernel.columns if named else "other columns"
            shares[place] = shares.get(place, 0.0) + float(weight) / total
        return shares if self._views() else {}

    def _features(self, job: Job) -> FeatureSettings:
        """How the rows of a job become features."""
        return self._feature_settings(job.seed)


def _about(job: Job, features: FeatureMap, mode: str) -> str:
    return (
        f"{job.rows.n_rows} rows x {job.rows.n_columns} columns, {features.offsets[-1]} features "
        f"of {len(features.kernels)} kernels, {mode}, on {job.engine.description}"
    )


def seed_of(random_state: RandomState) -> int:
    """A seed from None, an integer or a NumPy RandomState, as scikit-learn takes them."""
    RANDOM_STATE.check(random_state)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    source = np.random.default_rng() if random_state is None else random_state
    return int(source.integers(2**31))
