"""Margin-distribution clustering, with must-links and cannot-links or without (ODMSSC, ODMC)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers import labelling
from dmkc.clusterers.base import (
    Job,
    KernelClusterer,
)
from dmkc.clusterers.estimator import Facts, landmarks_fact
from dmkc.clusterers.labelling import Known
from dmkc.clusterers.losses import Then
from dmkc.clusterers.model import KernelModel, ScoreSpace
from dmkc.clusterers.odm.constrained import Rules, constrained_weights
from dmkc.clusterers.odm.distribution import DistributionSettings
from dmkc.clusterers.odm.learn import DistributionLearned, Learner, check_starts
from dmkc.clusterers.parameters import Flag, Number, Parameter, shared
from dmkc.clusterers.prepare import Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.constraints.linked import read_constraints, warn_of_few
from dmkc.data import Rows, check_weights
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap
from dmkc.scan.distribution import LossShape
from dmkc.typing import MaybeClient, PerRow, RandomState

SHARE = Number(least=0, most=1)


@dataclass(frozen=True)
class OwnSettings:
    """Checked parameters, and the constraints once they have been read."""

    settings: DistributionSettings
    init: list[Any]
    rules: Rules | None = None


@dataclass(frozen=True)
class OwnLoss:
    """The loss of every row under the cluster that its scores put it in."""

    theta: float
    nu: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        shape, found = LossShape(self.theta, self.nu, 1.0, 1.0), scores.astype(np.float64)
        if found.ndim == 1:
            return shape.of(np.abs(found))
        own = found.argmax(axis=1)[:, None] == np.arange(found.shape[1])
        return shape.of(np.where(own, found, -found)).sum(axis=1)


class MarginDistributionClustering(KernelClusterer):
    """Clusters with evenly wide margins that keep must-links and cannot-links.

    Finds clusters and a separating plane in kernel feature space such that the margins of all rows
    are near 1, neither too short nor too long [1]_.  Pairs of rows that are known to belong
    together, or not to, are kept in `labels_`, always; with two clusters the labels of the
    constrained rows are exactly the best ones for the plane.  Works on rows in memory, in Dask
    collections and in Zarr stores.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X, which keep the constraints; `predict` gives the
        model's own opinion, which may differ on constrained rows.  Clusters are numbered by
        decreasing size (in the subset, with train_rows).
    constrained_rows_ : ndarray, numbers of the rows that constraints name.
    constrained_labels_ : ndarray, their labels.
    n_violated_ : int, pairs that `labels_` violates (0 unless hard=False).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    balance_ : the bound on the mean scores that was used, or None.
    objective_ : float, ``1/2 sum_k |v_k|^2 / weight_k + 1/2 |b|^2 + C/2 mean loss``, where the mean
        is weighted by `constraint_share` and includes the penalties.
    mixture_weights_ : ndarray, weights of the labelings that the relaxation mixes; empty unless
        init has "relaxation".
    start_ : str, the start that was kept.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] T. Zhang, M. Li, H. Jin. Optimal margin distribution machine for semi-supervised
       clustering (in Chinese). Scientia Sinica Informationis 52, 2022.

    Examples
    --------
    >>> from dmkc import MarginDistributionClustering
    >>> from dmkc.constraints import random_pairs
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(1000, seed=0)
    >>> must, cannot = random_pairs(y, 60, random_state=0)
    >>> model = MarginDistributionClustering(must_link=must, cannot_link=cannot, random_state=0)
    >>> model.fit(X).n_violated_
    0
    """

    _has_margin = True
    _scored = "mean"
    summary = "evenly wide margins that keep must-links and cannot-links"
    declared = (
        shared.N_CLUSTERS,
        shared.MUST_LINK,
        shared.CANNOT_LINK,
        Parameter(
            "hard",
            Flag(),
            True,
            """Whether every constraint is kept.  If not, a violated pair costs something, and pairs
            may have a third column of weights.""",
        ),
        Parameter(
            "penalty",
            Number(least=0),
            1.0,
            """What a violated pair of weight 1 costs when constraints are not hard: as much as this
            many constrained rows with a loss of 1 each.""",
        ),
        Parameter(
            "constraint_share",
            SHARE,
            0.95,
            "The constrained rows together count for at least this share of all losses.",
        ),
        shared.KERNELS.but(default="gaussian"),
        shared.SCALE,
        Parameter("C", Number(above=0), 100.0, "Weight of the losses."),
        Parameter("theta", SHARE, 0.3, "Margins within theta of 1 cost nothing."),
        Parameter(
            "nu",
            SHARE,
            0.5,
            """What a margin beyond 1 + theta costs compared with one short of 1 - theta, at most
            1.""",
        ),
        Parameter(
            "balance",
            Number(("default",), least=0, none=True),
            "default",
            """Bound on how far the mean scores of clusters may be from those of clusters of equal
            size, which prevents a one-cluster solution.  By default 0.3 without constraints and
            none with constraints.""",
        ),
        shared.NORM,
        shared.RANK,
        shared.LANDMARKS,
        shared.INIT.but(
            text="""Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's
            features), "pca", "random", labels for all rows, and for two clusters "links"
            (directions along which the constrained components are far apart) and "relaxation"
            (labelings of the convex relaxation, which is slow beyond some thousands of sampled
            rows).  "auto" is the first two and, where there are constraints, "links".  All are
            tried on a sample, to which the constrained rows are added; the one with the lowest
            objective is kept.""",
        ),
        shared.N_INIT,
        shared.SAMPLE_ROWS,
        shared.TRAIN_ROWS.but(
            text="""Train on a uniform subset of this many rows (or this share, below 1) and the
            constrained rows, in memory, and label all rows in one pass; None trains on all
            rows.""",
        ),
        shared.POLISH,
        shared.TOL,
        shared.MAX_ITER,
        shared.DTYPE,
        shared.FEATURE_MODE,
        shared.STORE_PATH,
        shared.RANDOM_STATE.but(text="Seed of sample, landmarks and starts."),
        shared.VERBOSE,
        shared.CLIENT,
    )

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        hard: bool = True,
        penalty: float = 1.0,
        constraint_share: float = 0.95,
        kernels: Any = "gaussian",
        scale: str | None = "if-mixed",
        C: float = 100.0,
        theta: float = 0.3,
        nu: float = 0.5,
        balance: Any = "default",
        norm: float = 2.0,
        rank: int = 100,
        landmarks: str | np.ndarray = "uniform",
        init: Any = "auto",
        n_init: int = 4,
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        tol: float = 1e-3,
        max_iter: int = 50,
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.must_link = must_link
        self.cannot_link = cannot_link
        self.hard = hard
        self.penalty = penalty
        self.constraint_share = constraint_share
        self.kernels = kernels
        self.scale = scale
        self.C = C
        self.theta = theta
        self.nu = nu
        self.balance = balance
        self.norm = norm
        self.rank = rank
        self.landmarks = landmarks
        self.init = init
        self.n_init = n_init
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def _own_settings(self, n_rows: int | None) -> OwnSettings:
        if self.hard and self.penalty != 1.0:
            raise UserError("`penalty` is what violated pairs cost, and goes with `hard=False`.")
        constrained = self.must_link is not None or self.cannot_link is not None
        if not constrained and (not self.hard or self.constraint_share != 0.95):
            raise UserError("`hard` and `constraint_share` go with `must_link` or `cannot_link`.")
        return self._settings(constrained, n_rows)

    def _settings(self, constrained: bool, n_rows: int | None) -> OwnSettings:
        own = self._checked()
        m, balance = own["n_clusters"], own["balance"]
        if balance == "default":
            balance = None if constrained else 0.3
        settings = DistributionSettings(
            C=own["C"],
            theta=own["theta"],
            nu=own["nu"],
            norm=own["norm"],
            balance=balance,
            share=own["constraint_share"],
            penalty=None if own["hard"] else own["penalty"],
            tol=own["tol"],
            max_iter=own["max_iter"],
        )
        init = check_starts(self.init, m, constrained, n_rows) if m > 1 else []
        return OwnSettings(settings, init)

    def _begin(self, job: Job) -> Job:
        """Constraints are read and checked before anything is scanned."""
        container, m = job.rows.container, self.n_clusters
        found = read_constraints(self.must_link, self.cannot_link, container, self.hard)
        if found is None:
            return replace(job, own=self._settings(False, job.rows.n_rows))
        if m == 1 and len(found.cannot) and self.hard:
            raise UserError("`cannot_link` needs at least two clusters, but `n_clusters` is 1.")
        if m == 1:
            return job
        rules = Rules.of(found, container, m, self.hard)
        warn_of_few(found)
        return replace(
            job, rows=replace(job.rows, constrained=found.rows), own=replace(job.own, rules=rules)
        )

    def _learner(self, job: Job, own: OwnSettings) -> Learner:
        m, seed = self.n_clusters, job.seed
        return Learner(own.settings, m, own.rules, own.init, self.n_init, seed, job.progress)

    def _learn(self, prepared: Prepared, job: Job) -> DistributionLearned | None:
        own: OwnSettings = job.own
        if self.n_clusters == 1:
            return None
        if job.start is not None:
            own = replace(own, init=[job.start])
        if job.subset is not None:
            own = replace(own, init=job.subset.restricted(own.init))
        return self._learner(job, own).learn(prepared, job.sample_weight)

    def _continue_on_all_rows(
        self, learned: DistributionLearned, features: FeatureMap, rows: RowSet, job: Job
    ) -> DistributionLearned:
        settings = replace(job.own.settings, max_iter=self.polish)
        learner = self._learner(job, replace(job.own, settings=settings))
        weights = constrained_weights(job.own.rules, job.sample_weight)
        total = float(rows.n_rows)
        if job.sample_weight is not None:
            total = float(check_weights(job.sample_weight, rows.n_rows).sum())
        stage = learner.from_fits(features, rows, weights, total)
        return learner.counted(learned.continued(stage))

    def _store_features(self, prepared: Prepared, rows: Rows) -> None:
        super()._store_features(prepared, rows)
        self.constrained_rows_ = (
            np.empty(0, np.int64) if rows.constrained is None else rows.constrained
        )
        self.constrained_labels_ = np.zeros(len(self.constrained_rows_), np.int32)
        self.n_violated_, self.mixture_weights_ = 0, np.empty(0)

    def _store_fit(self, learned: DistributionLearned, prepared: Prepared, rows: Rows) -> None:
        found = learned.fit.model
        space = ScoreSpace.of(prepared.features, self.n_clusters)
        model = space.model(found.point.v, found.point.b, found.kernel_weights)
        known = None if rows.constrained is None else Known(rows.constrained, found.constrained)
        order = model.order(found.shares, rows, known)
        self.model_ = model.in_order(order)
        self.constrained_labels_ = np.argsort(order)[found.constrained].astype(np.int32)
        self.kernel_weights_ = found.kernel_weights
        self.objective_ = found.objective
        self.C_, self.balance_ = learned.settings.C, learned.settings.balance

    def _store_one_cluster(self, prepared: Prepared, rows: Rows) -> None:
        self.model_ = KernelModel.of_one_cluster(prepared.features, self.norm)
        self.kernel_weights_ = self.model_.kernel_weights
        self.objective_, self.C_, self.balance_ = 0.0, 0.0, None

    def _labels(self, rows: Rows, all_rows: RowSet | None) -> PerRow:
        """The model's labels, with those of the constrained rows put in."""
        if rows.constrained is None:
            return super()._labels(rows, all_rows)
        pipeline, fixed = self.model_.label_pipeline(), self.constrained_labels_
        if rows.container.lazy or all_rows is None:
            known = Known(rows.constrained, fixed)
            return labelling.apply(rows, pipeline, np.dtype(np.int32), None, known=known)
        labels = all_rows.collect(pipeline.answer, "labels")
        labels[rows.constrained] = fixed
        return rows.container.wrap(labels)

    def _losses(self) -> labelling.Pipeline:
        scores = self.model_.score_pipeline()
        if self.n_clusters_ == 1:
            return self.model_.shortfall_pipeline()
        return labelling.Pipeline(scores.plan, Then(scores.answer, OwnLoss(self.theta, self.nu)))

    def _facts(self) -> Facts:
        rows = len(self.constrained_rows_)
        return [
            ("C", f"{self.C_:.4g}"),
            ("balance", "none" if self.balance_ is None else f"{self.balance_:g}"),
            landmarks_fact(self),
            ("constrained rows", f"{rows:,}, {self.n_violated_} pairs violated"),
        ]

    def _metrics(self) -> dict[str, Any]:
        return {"C": self.C_, **super()._metrics(), "violated_pairs": self.n_violated_}
