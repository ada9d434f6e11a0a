"""What all kernel clusterers share: the course of a fit, parameter checks, predict and its kin.

A clusterer says what is its own: `_own_settings` (its parameters, checked), `_learn` (from prepared
rows to what it learns), `_go_on` (from there on other rows), `_keep` (its fitted attributes).
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from dmkc.clusterers import labelling
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.parameters.shared import RANDOM_STATE
from dmkc.clusterers.prepare import FeatureSettings, Prepared, layout_of, prepare
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.spread import Layout
from dmkc.clusterers.subset import Subset, spread_all, subset_size, take_subset
from dmkc.data import Rows, as_rows
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap, as_bank
from dmkc.progress import Progress
from dmkc.scan.engine import Engine, open_engine
from dmkc.scan.limits import one_blas_thread


@dataclass(frozen=True)
class Job:
    """What one call of `fit` works on."""

    rows: Rows
    engine: Engine
    sample_weight: Any
    features: FeatureSettings
    own: Any
    """The clusterer's own settings."""
    progress: Progress
    subset: Subset | None = None
    """The rows that are trained on, when these are not all rows."""


MAX_ITER_REACHED = "max_iter was reached"
MORE_ITER = "increase max_iter or tol."


class KernelClusterer(RowClusterer):
    """Base of clusterers whose model is a `KernelModel`."""

    model_: KernelModel
    n_clusters: Any
    random_state: Any
    train_rows: Any
    polish: int
    tol: float
    verbose: int
    client: Any
    n_scans_: int
    _has_scores = True
    _has_kernels = True
    _rounds = "relabelings"

    @abstractmethod
    def _own_settings(self, n_rows: int | None) -> Any:
        """The clusterer's own parameters, checked (again with `n_rows` once it is known)."""

    @abstractmethod
    def _learn(self, prepared: Prepared, job: Job) -> Any:
        """What is learned from prepared rows; None for a single cluster."""

    @abstractmethod
    def _go_on(self, learned: Any, features: FeatureMap, rows: RowSet, job: Job) -> Any:
        """What is learned by at most `polish` more rounds on all rows."""

    @abstractmethod
    def _keep(self, learned: Any, features: FeatureMap, rows: Rows) -> None:
        """Set the fitted attributes, `model_` among them."""

    def _fewest(self) -> int:
        """The smallest number of clusters that may be asked for."""
        return self.n_clusters

    @abstractmethod
    def _summary(self) -> str:
        """The fit in half a sentence."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.
        """
        features = self._feature_settings(seed_of(self.random_state))
        if self.polish and self.train_rows is None:
            raise UserError("polish goes with train_rows: without it all rows are trained on.")
        self._own_settings(None)
        rows = as_rows(X)
        own = self._own_settings(rows.n_rows)
        progress = Progress(self.verbose, self.tol)
        job = self._begin(
            Job(rows, open_engine(self.client, self), sample_weight, features, own, progress)
        )
        with one_blas_thread():
            if self.train_rows is None:
                self._fit_all(job)
            else:
                self._fit_subset(job)
        self._remember_columns(rows)
        self.history_ = progress.history()
        progress.end(
            f"{self._summary()}, {self.n_scans_} scans of all rows, "
            f"{time.perf_counter() - progress.began:.1f} s"
        )
        return self

    def _begin(self, job: Job) -> Job:
        """A chance to look at the rows' form before anything is scanned."""
        return job

    def _fit_all(self, job: Job) -> None:
        """Train on all rows."""
        own, m = self._features(job), self._fewest()
        prepared = prepare(job.rows, job.engine, own, m, job.sample_weight)
        job.progress.say(_about(job, prepared.features, prepared.mode))
        learned = self._learn(prepared, job)
        self._keep(learned, prepared.features, job.rows)
        self.labels_ = self._labels(job.rows, prepared.everywhere)
        self.n_scans_ = 1 + prepared.everywhere.n_scans

    def _fit_subset(self, job: Job) -> None:
        """Train on a subset in memory, go on with all rows if asked, label all rows."""
        rows, settings = job.rows, job.features
        subset = take_subset(rows, job.engine, self.train_rows, settings, job.sample_weight)
        inside, local, m = replace(job, subset=subset), job.engine.local(), self._fewest()
        own = self._features(inside)
        prepared = prepare(subset.rows, local, own, m, subset.weights, subset.around)
        features, everywhere = prepared.features, None
        job.progress.say(f"training on {subset.rows.n_rows} of {rows.n_rows} rows")
        learned = self._learn(prepared, inside)
        if learned is not None and self.polish:
            everywhere, mode = spread_all(rows, job.engine, settings, features, job.sample_weight)
            job.progress.say(_about(job, features, mode))
            learned = self._go_on(learned, features, everywhere, job)
        self._keep(learned, features, rows)
        self.labels_ = self._labels(rows, everywhere)
        self.n_scans_ = 2 if everywhere is None else 1 + everywhere.n_scans

    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        if self.train_rows is not None:
            rows = replace(rows, n_rows=subset_size(self.train_rows, rows.n_rows))
            engine = engine.local()
        return layout_of(rows, engine, self._feature_settings(seed_of(self.random_state)))

    def _labels(self, rows: Rows, everywhere: RowSet | None) -> Any:
        pipeline = self.model_.label_pipeline()
        if rows.container.lazy or everywhere is None:
            return labelling.apply(rows, pipeline, np.dtype(np.int32), None)
        labels = everywhere.collect(pipeline.answer, "labels")
        return rows.container.wrap(labels)

    @available_if(lambda self: self._has_scores)
    def decision_function(self, X: Any) -> Any:
        """Scores of every row: one whose sign decides between two clusters, else one a cluster."""
        rows = self._new_rows(X)
        n_out = None if self.model_.n_scores == 1 else self.model_.n_scores
        pipeline = self.model_.score_pipeline()
        if not len(self.model_.biases):
            pipeline = labelling.Pipeline(pipeline.columns, labelling.Single(self.model_._scorer()))
        return labelling.apply(rows, pipeline, self._dtype, n_out, name="score")

    def transform(self, X: Any) -> Any:
        """Features whose inner products are the learned kernel, weighted by `kernel_weights_`."""
        return super().transform(X)

    def _feature_settings(self, seed: int) -> FeatureSettings:
        own = self._checked()
        return FeatureSettings(
            kernels=as_bank(self._bank()),
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

    def _features(self, job: Job) -> FeatureSettings:
        """How the rows of a job become features."""
        return job.features


def warn_of_end(
    clusterer: Any, converged: bool, reason: str, advice: str, shares: np.ndarray
) -> None:
    """Say where a fit ended early or lost clusters; for `_keep`, on behalf of the caller of fit."""
    if not converged:
        warnings.warn(
            f"{type(clusterer).__name__} stopped before it converged ({reason}); {advice}",
            ConvergenceWarning,
            stacklevel=5,
        )
    empty = int(np.sum(shares == 0))
    if empty:
        warnings.warn(f"{empty} of {len(shares)} clusters are empty.", stacklevel=5)


def _about(job: Job, features: FeatureMap, mode: str) -> str:
    return (
        f"{job.rows.n_rows} rows x {job.rows.n_columns} columns, {features.offsets[-1]} features "
        f"of {len(features.kernels)} kernels, {mode}, on {job.engine.description}"
    )


def seed_of(random_state: Any) -> int:
    """A seed from None, an integer or a NumPy RandomState, as scikit-learn takes them."""
    RANDOM_STATE.check(random_state)
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    source = np.random.default_rng() if random_state is None else random_state
    return int(source.integers(2**31))
