"""Multiple kernel maximum-margin clustering (MKC)."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dmkc.clusterers import labelling
from dmkc.clusterers.base import KernelClusterer, integer, number, one_of, seed_of
from dmkc.clusterers.cccp import MarginSettings
from dmkc.clusterers.margin import Learned, carry_on, learn
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.prepare import FeatureSettings, Prepared, prepare
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import check_init
from dmkc.clusterers.subset import spread_all, take_subset
from dmkc.data import Rows, as_rows
from dmkc.kernels import FeatureMap
from dmkc.progress import Progress
from dmkc.scan.engine import Engine, ThreadEngine, open_engine
from dmkc.scan.limits import one_blas_thread

ADVICE = {"max_iter was reached": "increase max_iter or tol."}


class MultipleKernelClustering(KernelClusterer):
    """Clusters separated by the widest margin in a learned combination of kernels.

    Finds clusters, a weight for every kernel of a bank, and separating planes in the weighted
    feature space, such that few rows lie inside the margin [1]_.  Works on rows in memory, in Dask
    collections and in Zarr stores; training takes a few tens of passes over the rows, each of which
    returns a few kilobytes.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernels : kernel, name, function, or list of these, default=None
        The bank.  None is ``[Linear(), Polynomial(2), Gaussian(0.5)]``.  Names are "linear",
        "polynomial", "gaussian", "laplacian", "cosine", with a parameter as in "gaussian:0.5".
    scale : {"standard", "minmax", None}, default="standard"
        What columns are divided by: their standard deviation, their range, or nothing.  They are
        always shifted to mean zero.
    C : float, default=None
        Weight of the margin violations.  None calibrates it from the data: a fixed C collapses
        the clusters or freezes the start, depending on the kernels.
    balance : float, None or "default", default="default"
        Two clusters: bound on the absolute mean score, which prevents a one-cluster solution
        (by default 0.3; None: no bound).  Several clusters are balanced by weighting rows by
        cluster, and a bound is refused.
    norm : float, default=2.0
        q >= 1 of the constraint |kernel weights|_q <= 1; 1 gives sparse weights.
    rank : int, default=100
        Number of landmarks of the Nyström maps, shared by all kernels.
    landmarks : {"uniform", "kmeans"} or array of rows, default="uniform"
        Where the maps are anchored: sampled rows, centroids, or these rows.
    init : str, labeling, or list of these, default="auto"
        Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's features),
        "pca" (signs of each kernel's leading components, k-means on them for several clusters),
        "random", or labels for all rows.  "auto" is the first two for two clusters and the first
        for several.
        All are tried on a sample; the one with the lowest objective is kept.
    n_init : int, default=4
        How many "random" starts, and how many components per kernel for "pca".
    refine : {"best", "all"}, default="best"
        Which starts are carried on from the sample to all rows.
    sample_rows : int, default=8192
        Size of the uniform sample on which widths, landmarks and starts are found.  Data with no
        more rows than this are fitted on all rows from the beginning.
    train_rows : int, float or None, default=None
        Train on a uniform subset of this many rows (or this share, below 1), in memory, and label
        all rows in one pass; None trains on all rows.
    polish : int, default=0
        Relabelings of all rows, at most, after training on a subset.
    tol : float, default=1e-3
        Relative gap of the convex problems and relative fall of the objective at which to stop;
        for several clusters the gap is 10 tol and tol the share of relabeled rows.
    max_iter : int, default=50
        Largest number of relabelings, of the sample and again of all rows.
    solver : {"clarabel", "cvxpy"}, default="clarabel"
        Master problem: the dual solved directly, or the paper's cone program through cvxpy.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of features; "auto" takes float64 while they fit in 64 MB.
    feature_mode : {"auto", "persist", "recompute", "store"}, default="auto"
        Keep kernel columns in memory, make them anew on every scan, or write them once to a
        temporary Zarr store; "auto" decides by size, memory and cost.
    store_path : str or None, default=None
        Existing folder for that store, which all workers can reach.
    random_state : int, RandomState or None, default=None
        Seed of sample, landmarks and starts.  The same seed gives the same labels whatever the
        chunks, the workers and the scheduler are.
    verbose : int, default=0
        1 shows a live line, 2 a line per scan.
    client : distributed.Client or None, default=None
        Cluster to run on; None takes the current client, or threads if there is none.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size (in
        the subset, with train_rows).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    objective_ : float, ``1/2 sum_k |v_k|^2 / weight_k + C mean(max(0, 1 - margin))``, where a row's
        margin is the absolute score, or the largest score less the second (then rows are weighted
        so that all clusters weigh the same).
    start_ : str, the start that was kept.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] B. Zhao, J. T. Kwok, C. Zhang. Multiple Kernel Clustering. SDM 2009.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = MultipleKernelClustering(random_state=0).fit(X)
    >>> model.labels_.shape
    (2000,)
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernels: Any = None,
        scale: str | None = "standard",
        C: float | None = None,
        balance: Any = "default",
        norm: float = 2.0,
        rank: int = 100,
        landmarks: Any = "uniform",
        init: Any = "auto",
        n_init: int = 4,
        refine: str = "best",
        sample_rows: int = 8192,
        train_rows: Any = None,
        polish: int = 0,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "clarabel",
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.scale = scale
        self.C = C
        self.balance = balance
        self.norm = norm
        self.rank = rank
        self.landmarks = landmarks
        self.init = init
        self.n_init = n_init
        self.refine = refine
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.dtype = dtype
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultipleKernelClustering:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.
        """
        seed = seed_of(self.random_state)
        settings, margin = self._feature_settings(seed), self._margin_settings()
        rows = as_rows(X)
        if self.n_clusters > 1:
            check_init(self.init, self.n_clusters, rows.n_rows)
        engine = open_engine(self.client)
        progress = Progress(self.verbose, self.tol)
        fit = self._fit_all if self.train_rows is None else self._fit_subset
        with one_blas_thread():
            fit(rows, engine, settings, margin, sample_weight, progress)
        self._remember_columns(rows)
        self.history_ = progress.history()
        progress.end(
            f"{self.n_iter_} relabelings, {self.n_scans_} scans of all rows, objective "
            f"{self.objective_:.6g}, {time.perf_counter() - progress.began:.1f} s"
        )
        return self

    def _fit_all(
        self,
        rows: Rows,
        engine: Engine,
        settings: FeatureSettings,
        margin: MarginSettings,
        sample_weight: Any,
        progress: Progress,
    ) -> None:
        """Train on all rows."""
        if self.polish:
            raise ValueError("polish goes with train_rows: without it all rows are trained on.")
        prepared = prepare(rows, engine, settings, self.n_clusters, sample_weight)
        progress.say(_about(rows, prepared.features, prepared.mode, engine))
        learned = self._learn(prepared, margin, self.init, settings.seed, progress)
        self._keep(learned, prepared.features, rows)
        self.labels_ = self._labels(rows, prepared.everywhere)
        self.n_scans_ = 1 + prepared.everywhere.n_scans

    def _fit_subset(
        self,
        rows: Rows,
        engine: Engine,
        settings: FeatureSettings,
        margin: MarginSettings,
        sample_weight: Any,
        progress: Progress,
    ) -> None:
        """Train on a subset in memory, go on with all rows if asked, label all rows."""
        subset = take_subset(rows, engine, self.train_rows, settings.seed, sample_weight)
        local = ThreadEngine()
        prepared = prepare(subset.rows, local, settings, self.n_clusters, subset.weights)
        features, everywhere = prepared.features, None
        progress.say(f"training on {subset.rows.n_rows} of {rows.n_rows} rows")
        init = subset.restricted(self.init)
        learned = self._learn(prepared, margin, init, settings.seed, progress)
        if learned is not None and self.polish:
            everywhere, mode = spread_all(rows, engine, settings, features, sample_weight)
            progress.say(_about(rows, features, mode, engine))
            mean = features.slope(everywhere.column_mean(), 1.0)
            short = replace(learned.settings, max_iter=self.polish)
            fits, names = [learned.fit], [learned.start]
            (fit,) = carry_on(features, mean, everywhere, short, fits, names, progress)
            converged = fit.converged or learned.fit.converged
            learned = replace(learned, fit=replace(fit, converged=converged))
        self._keep(learned, features, rows)
        self.labels_ = self._labels(rows, everywhere)
        self.n_scans_ = 2 if everywhere is None else 1 + everywhere.n_scans

    def _margin_settings(self) -> MarginSettings:
        m = integer("n_clusters", self.n_clusters, 1)
        integer("n_init", self.n_init, 1)
        integer("verbose", int(self.verbose), 0)
        integer("polish", self.polish, 0)
        one_of("refine", self.refine, ("best", "all"))
        if m > 1:
            check_init(self.init, m)
        tol = number("tol", self.tol, 0, True)
        return MarginSettings(
            C=np.nan if self.C is None else number("C", self.C, 0, True),
            balance=self._balance(m),
            norm=number("norm", self.norm, 1, False, finite=False),
            tol=tol,
            gap=tol if m <= 2 else 10 * tol,
            max_iter=integer("max_iter", self.max_iter, 1),
            solver=one_of("solver", self.solver, ("clarabel", "cvxpy")),
        )

    def _balance(self, m: int) -> float | None:
        if isinstance(self.balance, str):
            one_of("balance", self.balance, ("default",))
            return 0.3 if m <= 2 else None
        if self.balance is not None and m > 2:
            raise ValueError(
                "balance bounds the mean score of two clusters; for more clusters rows are "
                "weighted by cluster instead: leave balance out."
            )
        return None if self.balance is None else number("balance", self.balance, 0, False)

    def _learn(
        self, prepared: Prepared, margin: MarginSettings, init: Any, seed: int, progress: Progress
    ) -> Learned | None:
        if self.n_clusters == 1:
            return None
        m, n_init, refine = self.n_clusters, self.n_init, self.refine
        return learn(prepared, margin, m, init, n_init, refine, seed, progress)

    def _keep(self, learned: Learned | None, features: FeatureMap, rows: Rows) -> None:
        self.kernels_ = list(features.kernels)
        features = features.unweighted()
        if learned is None:
            self._one_cluster(features)
            return
        fit, found = learned.fit, learned.fit.model
        if not fit.converged:
            warnings.warn(
                f"MultipleKernelClustering stopped before it converged ({fit.reason}); "
                + ADVICE.get(fit.reason, "try another start, another C or fewer clusters."),
                ConvergenceWarning,
                stacklevel=4,
            )
        empty = int(np.sum(found.shares == 0))
        if empty:
            warnings.warn(f"{empty} of {self.n_clusters} clusters are empty.", stacklevel=4)
        self.model_ = learned.kernel_model(features).reordered(found.shares, rows)
        self.kernel_weights_ = found.kernel_weights
        self.objective_ = found.objective
        self.C_ = learned.settings.C
        self.start_ = learned.start
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged

    def _one_cluster(self, features: FeatureMap) -> None:
        n_kernels = len(features.kernels)
        weights = np.full(n_kernels, n_kernels ** (-1.0 / self.norm))
        nothing = np.zeros((0, features.offsets[-1]))
        self.model_ = KernelModel(features, nothing, np.zeros(0), weights)
        self.kernel_weights_ = weights
        self.objective_, self.C_, self.start_ = 0.0, 0.0, "none"
        self.n_iter_, self.converged_ = 1, True

    def _labels(self, rows: Rows, everywhere: RowSet | None) -> Any:
        pipeline = self.model_.label_pipeline()
        if rows.container.lazy or everywhere is None:
            return labelling.apply(rows, pipeline, np.dtype(np.int32), None)
        labels = everywhere.collect(pipeline.answer, "labels")
        return rows.container.wrap(labels)


def _about(rows: Rows, features: FeatureMap, mode: str, engine: Engine) -> str:
    return (
        f"{rows.n_rows} rows x {rows.n_columns} columns, {features.offsets[-1]} features of "
        f"{len(features.kernels)} kernels, {mode}, on {engine.description}"
    )
