"""Multiple kernel maximum-margin clustering (MKC)."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dmkc.clusterers import labelling
from dmkc.clusterers.base import KernelClusterer, integer, number, one_of, seed_of
from dmkc.clusterers.cccp import MarginFit, MarginSettings, margin_fit, run_together
from dmkc.clusterers.geometry import Geometry, Point, Several, TwoSided
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.prepare import Prepared, prepare
from dmkc.clusterers.starts import Start, check_init, starts_on_sample
from dmkc.master.norms import conjugate
from dmkc.progress import Progress
from dmkc.scan.engine import open_engine
from dmkc.scan.limits import one_blas_thread

CALIBRATION_TWO, CALIBRATION_SEVERAL = 6.0, 3.0
"""C times the size of the first start's separation in feature space, when C is left open."""


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
    sample_rows : int, default=16384
        Size of the uniform sample on which widths, landmarks and starts are found.  Data with no
        more rows than this are fitted on all rows from the beginning.
    tol : float, default=1e-3
        Relative gap of the convex problems and relative fall of the objective at which to stop;
        for several clusters the gap is 10 tol and tol the share of relabeled rows.
    max_iter : int, default=50
        Largest number of relabelings.
    solver : {"clarabel", "cvxpy"}, default="clarabel"
        Master problem: the dual solved directly, or the paper's cone program through cvxpy.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of features; "auto" takes float64 while they fit in 64 MB.
    feature_mode : {"auto", "persist", "recompute"}, default="auto"
        Keep kernel columns in memory or make them anew on every scan; "auto" decides by size.
    random_state : int, RandomState or None, default=None
        Seed of sample, landmarks and starts.  The same seed gives the same labels whatever the
        chunks, the workers and the scheduler are.
    verbose : int, default=0
        1 shows a live line, 2 a line per scan.
    client : distributed.Client or None, default=None
        Cluster to run on; None takes the current client, or threads if there is none.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    objective_ : float, ``1/2 sum_k |v_k|^2 / weight_k + C mean(max(0, 1 - margin))``, where a row's
        margin is the absolute score, or the largest score less the second (then rows are weighted
        so that all clusters weigh the same).
    start_ : str, the start that was kept.
    n_iter_ : int, relabelings.
    n_scans_ : int, passes over all rows.
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
        sample_rows: int = 16384,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "clarabel",
        dtype: str = "auto",
        feature_mode: str = "auto",
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
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.dtype = dtype
        self.feature_mode = feature_mode
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any = None) -> MultipleKernelClustering:
        """Cluster the rows of `X`; `y` is ignored."""
        seed = seed_of(self.random_state)
        settings = self._feature_settings(seed)
        margin = self._margin_settings()
        rows = self._fit_rows(X)
        if self.n_clusters > 1:
            check_init(self.init, self.n_clusters, rows.n_rows)
        engine = open_engine(self.client)
        progress = Progress(self.verbose, self.tol)
        with one_blas_thread():
            prepared = prepare(rows, engine, settings, self.n_clusters)
            progress.say(
                f"{rows.n_rows} rows x {rows.n_columns} columns, "
                f"{prepared.features.offsets[-1]} features of {len(settings.kernels)} kernels, "
                f"{prepared.mode}, on {engine.description}"
            )
            scans = self._learn(prepared, margin, seed, progress)
            self.labels_ = self._labels(prepared)
        self.n_scans_ = 1 + prepared.everywhere.n_scans + (scans if prepared.sample_is_all else 0)
        self.history_ = progress.history()
        progress.end(
            f"{self.n_iter_} relabelings, {self.n_scans_} scans of all rows, objective "
            f"{self.objective_:.6g}, {time.perf_counter() - progress.began:.1f} s"
        )
        return self

    def _margin_settings(self) -> MarginSettings:
        m = integer("n_clusters", self.n_clusters, 1)
        integer("n_init", self.n_init, 1)
        integer("verbose", self.verbose, 0)
        one_of("refine", self.refine, ("best", "all"))
        if m > 1:
            check_init(self.init, m)
        tol = number("tol", self.tol, 0, True)
        return MarginSettings(
            C=np.nan if self.C is None else number("C", self.C, 0, True),
            balance=self._balance(m),
            norm=number("norm", self.norm, 1, False),
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
        self, prepared: Prepared, settings: MarginSettings, seed: int, progress: Progress
    ) -> int:
        """Learn the model; returns the number of scans of the sample."""
        features, m = prepared.features, self.n_clusters
        self.kernels_ = list(features.kernels)
        if m == 1:
            self._one_cluster(prepared)
            return 0
        starts = starts_on_sample(prepared, self.init, self.n_init, m, seed)
        sample, at = prepared.sample.with_labelings([s.labels for s in starts])
        phi = features.features(prepared.sample.columns)
        geometry: Geometry = Several(features, m) if m > 2 else TwoSided(features, phi.mean(axis=0))
        if np.isnan(settings.C):
            settings = replace(settings, C=calibrated_c(geometry, phi, starts[0], settings.norm))
        fits = run_together(
            [
                margin_fit(
                    geometry,
                    geometry.start(column, sample.width, start.shares(m)),
                    settings,
                    progress.reporter(start.name, "sample", sample),
                    first_points(geometry, phi, start),
                )
                for start, column in zip(starts, at, strict=True)
            ],
            sample.cuts,
        )
        names = [s.name for s in starts]
        if not prepared.sample_is_all:
            if self.refine == "best":
                best = _lowest(fits)
                fits, names = [fits[best]], [names[best]]
            fits = self._refine(prepared, settings, fits, names, progress)
        best = _lowest(fits)
        self._keep(fits[best], names[best], prepared, settings, geometry)
        return sample.n_scans

    def _refine(
        self,
        prepared: Prepared,
        settings: MarginSettings,
        fits: list[MarginFit],
        names: list[str],
        progress: Progress,
    ) -> list[MarginFit]:
        """Carry fits of the sample on to all rows."""
        features, rows = prepared.features, prepared.everywhere
        nothing = np.zeros(features.offsets[-1])  # features are centred on all rows
        m = self.n_clusters
        geometry: Geometry = Several(features, m) if m > 2 else TwoSided(features, nothing)
        points = [geometry.feasible(fit.model.point, settings.balance) for fit in fits]
        return run_together(
            [
                margin_fit(
                    geometry,
                    geometry.label(point, fit.model.shares),
                    settings,
                    progress.reporter(name, "all", rows),
                    (point, *(p for p in fit.kept if p is not fit.model.point)),
                    fit.model.kernel_weights,
                )
                for name, fit, point in zip(names, fits, points, strict=True)
            ],
            rows.cuts,
        )

    def _keep(
        self,
        fit: MarginFit,
        name: str,
        prepared: Prepared,
        settings: MarginSettings,
        geometry: Geometry,
    ) -> None:
        if not fit.converged:
            warnings.warn(
                f"MultipleKernelClustering stopped before it converged ({fit.reason}); "
                "increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        found = fit.model
        v, b = found.point
        if isinstance(geometry, Several):
            weights, biases = geometry.unstacked(v), np.zeros(self.n_clusters)
        else:
            weights, biases = v[None, :], np.array([b])
        model = KernelModel(prepared.features, weights, biases, found.kernel_weights)
        self.model_ = model.reordered(found.shares, prepared.rows)
        if np.any(found.shares == 0):
            empty = int(np.sum(found.shares == 0))
            warnings.warn(f"{empty} of {self.n_clusters} clusters are empty.", stacklevel=4)
        self.kernel_weights_ = found.kernel_weights
        self.objective_ = found.objective
        self.C_ = settings.C
        self.start_ = name
        self.n_iter_ = fit.n_iter

    def _one_cluster(self, prepared: Prepared) -> None:
        features = prepared.features
        size = features.offsets[-1]
        n_kernels = len(features.kernels)
        weights = np.full(n_kernels, n_kernels ** (-1.0 / self.norm))
        self.model_ = KernelModel(features, np.zeros((0, size)), np.zeros(0), weights)
        self.kernel_weights_ = weights
        self.objective_, self.C_, self.start_ = 0.0, 0.0, "none"
        self.n_iter_ = 1

    def _labels(self, prepared: Prepared) -> Any:
        pipeline = self.model_.label_pipeline()
        if prepared.rows.container.lazy:
            return labelling.apply(prepared.rows, pipeline, np.dtype(np.int32), None)
        labels = prepared.everywhere.collect(pipeline.answer, "labels")
        return prepared.rows.container.wrap(labels)


def calibrated_c(geometry: Geometry, phi: np.ndarray, start: Start, norm: float) -> float:
    """C at which the first start's separation weighs as much as a few margins.

    A fixed C collapses the clusters or freezes the start, depending on kernels and data.
    """
    if isinstance(geometry, Several):
        slope = geometry.stacked(_centred_means(phi, start, geometry.n_clusters))
        slope /= geometry.n_clusters
    else:
        slope = (2.0 * start.labels - 1.0) @ phi / len(phi)
    squares = [float(slope[a:b] @ slope[a:b]) for a, b in pairwise(geometry.offsets)]
    wanted = CALIBRATION_SEVERAL if isinstance(geometry, Several) else CALIBRATION_TWO
    return wanted / max(float(np.linalg.norm(squares, conjugate(norm))), 1e-12)


def first_points(geometry: Geometry, phi: np.ndarray, start: Start) -> list[Point]:
    """Where the first cuts are made: at zero, or for several clusters at their centroids."""
    if not isinstance(geometry, Several):
        return [geometry.zero()]
    centres = _centred_means(phi, start, geometry.n_clusters)
    size = float(np.mean(np.einsum("ij,ij->i", centres, centres)))
    return [(geometry.stacked(centres) / max(size, 1e-12), 0.0)]


def _centred_means(phi: np.ndarray, start: Start, m: int) -> np.ndarray:
    """Mean features of the start's clusters, less their average."""
    means = np.stack([phi[start.labels == r].mean(axis=0) for r in range(m)])
    return means - means.mean(axis=0)


def _lowest(fits: list[MarginFit]) -> int:
    return int(np.argmin([fit.model.objective for fit in fits]))
