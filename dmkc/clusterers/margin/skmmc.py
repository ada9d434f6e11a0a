"""Sparse kernel maximum-margin clustering (SKMMC) and its family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.base import Job, integer, one_of
from dmkc.clusterers.margin.base import MarginClusterer
from dmkc.clusterers.margin.cccp import MarginSettings
from dmkc.clusterers.margin.learn import Learned
from dmkc.clusterers.margin.pursuit import PursuitSettings, pursue
from dmkc.clusterers.prepare import Choice, FeatureSettings, SampleView
from dmkc.clusterers.starts import FEATURE_KINDS, check_init, starts_on_view
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap, Gaussian, as_bank

BASES = ("nystrom", "sparse")


@dataclass(frozen=True)
class PreImages:
    """Chooses landmarks: the pre-images of the start that ends lowest."""

    settings: PursuitSettings
    init: Any
    n_init: int
    seed: int

    def __call__(self, view: SampleView) -> Choice:
        (kernel,) = view.kernels
        assert isinstance(kernel, Gaussian) and kernel.gamma is not None
        rows, weights = view.standardised, view.weights
        starts = starts_on_view(view, self.init, self.n_init, 2, self.seed)
        found = [
            pursue(rows, weights, start.labels, kernel.gamma, self.settings, self.seed)
            for start in starts
        ]
        best = int(np.argmin([pursuit.objective for pursuit in found]))
        return Choice(found[best].vectors, starts[best].name, found[best].labels)


class SparseKernelMMC(MarginClusterer):
    """Two (or several) clusters separated by a wide margin whose threshold adapts to the data.

    Maximum-margin clustering in which the margin ends at a score that is found together with the
    model, so that about 1 / C of the rows lie inside it whatever the kernel and its scale are [1]_.
    The model is a plane in the features of a kernel (``basis="nystrom"``), or in the span of a few
    vectors that are made for it (``basis="sparse"``).  A linear kernel with a unit threshold is the
    cutting-plane algorithm of Wang, Zhao and Zhang; with an adaptive one it is algorithm 1 of the
    paper.

    Parameters
    ----------
    n_clusters : int, pair of ints or "auto", default=2
        Number of clusters.  A pair such as (2, 8) is a range to choose from, "auto" is (2, 10), as
        in `MultipleKernelClustering`.  basis="sparse" takes two.
    kernels : kernel, name, function, or list of these, default=None
        None is ``Gaussian(0.5)``, whose width sigma is half the root of the median squared
        distance.  Names are "linear", "polynomial", "gaussian", "laplacian", "cosine", with a
        parameter as in "gaussian:0.5".  Of several the weights are learned, as in
        `MultipleKernelClustering`.  basis="sparse" takes one Gaussian kernel.
    scale : {"standard", "minmax", "if-mixed", None}, default="if-mixed"
        What columns are divided by: their standard deviation, their range, or nothing; "if-mixed"
        is the first where columns seem to have different units (the largest standard deviation is
        more than five times the median) and nothing where they share one, such as pixels.  They
        are always shifted to mean zero.
    C : float or None, default=None
        Weight of the margin violations.  It must exceed 1 with an adaptive threshold, where 1 / C
        is about the share of the rows inside the margin, and None is 2.  With a unit threshold
        None calibrates it from the data.
    balance : float, None or "default", default="default"
        Two clusters: bound on the absolute mean score in units of the threshold; by default 0, or
        0.3 with a unit threshold.  With an adaptive one it must be below 1 - 1 / C.  Several
        clusters are balanced by weighting rows by cluster, and a bound is refused.
    norm : float, default=2.0
        q >= 1 of the constraint |kernel weights|_q <= 1, where there are several kernels.
    threshold : {"adaptive", "unit"}, default="adaptive"
        Where the margin ends: at a score that is found with the model, or at a score of 1 (the
        paper's SKMMCv2).
    basis : {"nystrom", "sparse"}, default="nystrom"
        The space of the model: Nyström features on `rank` landmarks, or the span of pre-images
        that are made cut by cut on the sample (algorithms 3 and 4 of the paper), which are fewer
        and make `predict` faster.
    vectors_per_cut : int, default=1
        Pre-images per cut, with basis="sparse" only.
    rank : int, default=200
        Number of landmarks, shared by all kernels; with basis="sparse" the largest number of
        pre-images.
    landmarks : {"uniform", "kmeans"} or array of rows, default="uniform"
        Where Nyström maps are anchored: sampled rows, centroids, or these rows.
    init : str, labeling, or list of these, default="k-means"
        Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's features),
        "pca" (signs of each kernel's leading components, k-means on them for several clusters),
        "random", or labels for all rows.  All are tried on a sample; the one with the lowest
        objective is kept.  basis="sparse" has no features to begin with and takes "k-means",
        "random" or labels.
    n_init : int, default=4
        How many "random" starts, and how many components per kernel for "pca".
    refine : {"best", "all"}, default="best"
        Which starts are carried on from the sample to all rows.
    sample_rows : int, default=8192
        Size of the uniform sample on which widths, landmarks and starts are found.  Data with no
        more rows than this are fitted on all rows from the beginning.
    train_rows : int, float or None, default=None
        Train on a uniform subset of this many rows (or this share, below 1), in memory, and label
        all rows in one pass; None trains on all rows.  Scaling and k-means starts are still found
        on a sample of `sample_rows` rows, where that is larger.
    polish : int, default=0
        Relabelings of all rows, at most, after training on a subset.
    tol : float, default=1e-2
        Relative gap of the convex problems and relative fall of the objective at which to stop;
        for several clusters tol / 10 is the share of relabeled rows at which to stop.
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
        1 shows a live line, or in a notebook a panel; 2 a line per scan.
    client : distributed.Client or None, default=None
        Cluster to run on; None takes the current client, or threads if there is none.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size (in
        the subset, with train_rows).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    objective_ : float, ``1/2 |v|^2 - t + C mean(max(0, t - margin))`` with the threshold t, or
        with a unit threshold ``1/2 |v|^2 + C mean(max(0, 1 - margin))``, where a row's margin is
        its absolute score (or its largest less its second score).
    threshold_ : float, t.  Scores are divided by it, so that the margin ends at 1 for all.
    n_vectors_ : int, vectors that `predict` compares a row with.
    start_ : str, the start that was kept.
    selection_ : list of dict, one per number of clusters that was tried; None when n_clusters was
        given.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] J. Wu, X.-L. Zhang. Sparse Kernel Maximum Margin Clustering. Neural Network World, 2011.

    Examples
    --------
    >>> from dmkc import SparseKernelMMC
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = SparseKernelMMC(random_state=0).fit(X)
    >>> model.labels_.shape
    (2000,)
    """

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        kernels: Any = None,
        scale: str | None = "if-mixed",
        C: float | None = None,
        balance: Any = "default",
        norm: float = 2.0,
        threshold: str = "adaptive",
        basis: str = "nystrom",
        vectors_per_cut: int = 1,
        rank: int = 200,
        landmarks: Any = "uniform",
        init: Any = "k-means",
        n_init: int = 4,
        refine: str = "best",
        sample_rows: int = 8192,
        train_rows: Any = None,
        polish: int = 0,
        tol: float = 1e-2,
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
        self.threshold = threshold
        self.basis = basis
        self.vectors_per_cut = vectors_per_cut
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

    def _own_settings(self, n_rows: int | None) -> MarginSettings:
        settings = super()._own_settings(n_rows)
        integer("vectors_per_cut", self.vectors_per_cut, 1)
        if one_of("basis", self.basis, BASES) == "sparse":
            self._check_sparse()
        elif self.vectors_per_cut != 1:
            raise UserError('vectors_per_cut goes with basis="sparse".')
        return settings

    def _settings(self, m: int) -> MarginSettings:
        settings = super()._settings(m)
        return settings if m <= 2 else replace(settings, tol=self.tol / 10, gap=self.tol)

    def _check_sparse(self) -> None:
        kernels = as_bank(self._bank())
        if len(kernels) != 1 or not isinstance(kernels[0], Gaussian):
            raise UserError(
                'basis="sparse" needs one Gaussian kernel, because the iteration for pre-images '
                f'holds for that one only, not {list(kernels)}; use basis="nystrom".'
            )
        if self.n_clusters not in (1, 2):
            raise UserError(
                'basis="sparse" makes pre-images for two clusters; use basis="nystrom" for '
                f"n_clusters={self.n_clusters!r}."
            )
        if not isinstance(self.landmarks, str) or self.landmarks != "uniform":
            raise UserError('basis="sparse" makes its own landmarks; leave landmarks out.')
        items = [] if self.n_clusters == 1 else check_init(self.init, 2)
        unfit = [item for item in items if isinstance(item, str) and item in FEATURE_KINDS]
        if unfit:
            raise UserError(
                f'init={unfit[0]!r} needs features, which basis="sparse" does not have to begin '
                'with; use "k-means", "random" or labels.'
            )

    def _bank(self) -> Any:
        return Gaussian(0.5) if self.kernels is None else self.kernels

    def _features(self, job: Job) -> FeatureSettings:
        if self.basis != "sparse" or self.n_clusters == 1:
            return job.features
        init = self.init if job.subset is None else job.subset.restricted(self.init)
        pursuit = PursuitSettings(job.own, self.vectors_per_cut, job.features.rank)
        chooser = PreImages(pursuit, init, self.n_init, job.features.seed)
        return replace(job.features, landmarks=chooser)

    def _keep(self, learned: Learned | None, features: FeatureMap, rows: Rows) -> None:
        super()._keep(learned, features, rows)
        self.n_vectors_ = len(features.columns.landmarks)
