"""Sparse kernel maximum-margin clustering (SKMMC) and its family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.margin.base import BALANCE, THRESHOLDS, MarginClusterer
from dmkc.clusterers.margin.bundle import MarginSettings
from dmkc.clusterers.margin.pursuit import PursuitSettings, pursue
from dmkc.clusterers.parameters import Integer, IntegerOrRange, Number, OneOf, Parameter, shared
from dmkc.clusterers.prepare import Choice, FeatureSettings, Prepared, SampleView
from dmkc.clusterers.starts import FEATURE_KINDS, check_init, starts_on_view
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import Gaussian, Kernel, as_bank
from dmkc.typing import MaybeClient, RandomState


@dataclass(frozen=True)
class PreImages:
    """Chooses landmarks: the pre-images of the start that ends lowest."""

    settings: PursuitSettings
    init: Any
    n_init: int
    seed: int

    def __call__(self, view: SampleView) -> Choice:
        (kernel,) = view.kernels
        gamma = kernel.pre_image_gamma
        rows, weights = view.standardised, view.weights
        starts = starts_on_view(view, self.init, self.n_init, 2, self.seed)
        found = [
            pursue(rows, weights, start.labels, gamma, self.settings, self.seed) for start in starts
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

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size (in
        the subset, with train_rows).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    balance_ : the bound on the mean score that was used, or None.
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

    summary = "wide margin whose threshold adapts to the data"
    declared = (
        shared.N_CLUSTERS.but(
            kind=IntegerOrRange(("auto",)),
            text="""Number of clusters.  A pair such as (2, 8) is a range to choose from, "auto" is
            (2, 10), as in `MultipleKernelClustering`.  basis="sparse" takes two.""",
        ),
        shared.KERNELS.but(
            text=f"""None is ``Gaussian(0.5)``, whose width sigma is half the root of the median
            squared distance.  {shared.NAMES}  Of several the weights are learned, as in
            `MultipleKernelClustering`.  basis="sparse" takes one Gaussian kernel.""",
        ),
        shared.SCALE,
        Parameter(
            "C",
            Number(above=0, none=True),
            None,
            """Weight of the margin violations.  It must exceed 1 with an adaptive threshold, where
            1 / C is about the share of the rows inside the margin, and None is 2.  With a unit
            threshold None calibrates it from the data.""",
        ),
        BALANCE.but(
            text="""Two clusters: bound on the absolute mean score in units of the threshold; by
            default 0, or 0.3 with a unit threshold.  With an adaptive one it must be below
            1 - 1 / C.  Several clusters are balanced by weighting rows by cluster, and a bound is
            refused.""",
        ),
        shared.NORM.but(
            text="""q >= 1 of the constraint |kernel weights|_q <= 1, where there are several
            kernels.""",
        ),
        Parameter(
            "threshold",
            OneOf(THRESHOLDS),
            "adaptive",
            """Where the margin ends: at a score of 1 (the paper's SKMMCv2), or at a score that is
            found with the model.""",
        ),
        Parameter(
            "basis",
            OneOf(("nystrom", "sparse")),
            "nystrom",
            """The space of the model: Nyström features on `rank` landmarks, or the span of
            pre-images that are made cut by cut on the sample (algorithms 3 and 4 of the paper),
            which are fewer and make `predict` faster.""",
        ),
        Parameter(
            "vectors_per_cut", Integer(least=1), 1, 'Pre-images per cut, with basis="sparse" only.'
        ),
        shared.RANK.but(
            default=200,
            text="""Number of landmarks, shared by all kernels; with basis="sparse" the largest
            number of pre-images.""",
        ),
        shared.LANDMARKS.but(
            text="Where Nyström maps are anchored: sampled rows, centroids, or these rows."
        ),
        shared.INIT.but(
            default="k-means",
            text="""Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's
            features), "pca" (signs of each kernel's leading components, k-means on them for several
            clusters), "random", or labels for all rows.  All are tried on a sample; the one with
            the lowest objective is kept.  basis="sparse" has no features to begin with and takes
            "k-means", "random" or labels.""",
        ),
        shared.N_INIT,
        shared.REFINE,
        shared.WHOLE_SAMPLE,
        shared.SCALED_TRAIN_ROWS,
        shared.POLISH,
        shared.TOL.but(
            default=1e-2,
            text="""Relative gap of the convex problems and relative fall of the objective at which
            to stop; for several clusters tol / 10 is the share of relabeled rows at which to
            stop.""",
        ),
        shared.MAX_ITER,
        shared.SOLVER,
        shared.DTYPE,
        shared.FEATURE_MODE,
        shared.STORE_PATH,
        *shared.RUNNING,
    )

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
        landmarks: str | np.ndarray = "uniform",
        init: Any = "k-means",
        n_init: int = 4,
        refine: str = "best",
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        tol: float = 1e-2,
        max_iter: int = 50,
        solver: str = "clarabel",
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
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
        if self.basis == "sparse":
            self._check_sparse()
        elif self.vectors_per_cut != 1:
            raise UserError('`vectors_per_cut` goes with `basis="sparse"`.')
        return settings

    def _settings(self, m: int) -> MarginSettings:
        settings = super()._settings(m)
        return settings if m <= 2 else replace(settings, tol=self.tol / 10, gap=self.tol)

    def _check_sparse(self) -> None:
        kernels = as_bank(self._bank())
        if len(kernels) != 1 or not kernels[0].has_pre_images:
            raise UserError(
                '`basis="sparse"` needs one Gaussian kernel, because the iteration for pre-images '
                f'holds for that one only, not {list(kernels)}; use `basis="nystrom"`.'
            )
        if self.n_clusters not in (1, 2):
            raise UserError(
                '`basis="sparse"` makes pre-images for two clusters; use `basis="nystrom"` for '
                f"`n_clusters={self.n_clusters!r}`."
            )
        if not isinstance(self.landmarks, str) or self.landmarks != "uniform":
            raise UserError('`basis="sparse"` makes its own landmarks; leave `landmarks` out.')
        items = [] if self.n_clusters == 1 else check_init(self.init, 2)
        unfit = [item for item in items if isinstance(item, str) and item in FEATURE_KINDS]
        if unfit:
            raise UserError(
                f'`init={unfit[0]!r}` needs features, which `basis="sparse"` does not have to '
                'begin with; use "k-means", "random" or labels.'
            )

    def _bank(self) -> Any:
        return Gaussian(0.5) if self.kernels is None else self.kernels

    def _kernels(self) -> tuple[Kernel, ...]:
        return as_bank(self._bank()) if self.basis == "sparse" else super()._kernels()

    def _features(self, job: Job) -> FeatureSettings:
        settings = super()._features(job)
        if self.basis != "sparse" or self.n_clusters == 1:
            return settings
        init = self.init if job.start is None else job.start
        init = init if job.subset is None else job.subset.restricted(init)
        pursuit = PursuitSettings(job.own, self.vectors_per_cut, settings.rank)
        chooser = PreImages(pursuit, init, self.n_init, job.seed)
        return replace(settings, landmarks=chooser)

    def _store_features(self, prepared: Prepared, rows: Rows) -> None:
        super()._store_features(prepared, rows)
        self.n_vectors_ = prepared.features.plan.n_landmarks
