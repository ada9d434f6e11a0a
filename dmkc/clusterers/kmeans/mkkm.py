"""Multiple-kernel k-means, whose kernel weights are learned, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.kmeans.partitions import PartitionClusterer, Reduction, Settings
from dmkc.clusterers.parameters import Number, OneOf, Parameter, shared
from dmkc.errors import UserError
from dmkc.master.partition import Partition, mkkm, simple_mkkm
from dmkc.typing import MaybeClient, RandomState


@dataclass(frozen=True)
class MkkmSettings(Settings):
    """Parameters of multiple-kernel k-means, checked."""

    weights: str
    penalty: float


class MultipleKernelKMeans(PartitionClusterer):
    """Kernel k-means with kernel weights learned in one of three ways.

    Clusters are found on K = sum_p w_p^2 K_p with w >= 0 and sum w = 1.  After one pass over the
    rows all iterations are on small matrices, whatever the number of rows.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    kernel_weights_ : ndarray, w; 0 for kernels that are constant.
    kernels_ : the kernels with the widths that were used.
    objective_ : float, what was minimised.
    objectives_ : ndarray, the objective after every iteration; it never rises.
    inertia_ : float, of the embedded rows, in which k-means found the clusters.
    captured_ : float, share of the kernels that the reduction holds.
    n_iter_ : int, iterations.
    converged_ : bool, whether the objective settled before max_iter.
    n_scans_ : int, passes over all rows.
    history_ : list of dict, one per step of k-means on all rows.
    model_ : PartitionModel, all that `predict` needs.

    References
    ----------
    .. [1] H.-C. Huang, Y.-Y. Chuang, C.-S. Chen. Multiple Kernel Fuzzy Clustering. IEEE
       Transactions on Fuzzy Systems, 2012.
    .. [2] X. Liu, Y. Dou, J. Yin, L. Wang, E. Zhu. Multiple Kernel k-Means Clustering with
       Matrix-Induced Regularization. AAAI 2016.
    .. [3] X. Liu. SimpleMKKM: Simple Multiple Kernel K-Means. IEEE Transactions on Pattern Analysis
       and Machine Intelligence, 2023.

    Examples
    --------
    >>> from dmkc import MultipleKernelKMeans
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = MultipleKernelKMeans(2, kernels=["linear", "gaussian"], random_state=0).fit(X)
    >>> float(round(model.kernel_weights_.sum(), 6))
    1.0
    """

    summary = "kernel k-means with learned kernel weights"
    declared = (
        shared.N_CLUSTERS,
        shared.TWELVE,
        Parameter(
            "weights",
            OneOf(("mkkm", "mkkm-mr", "simple")),
            "mkkm",
            """How weights are learned.  "mkkm" [1]_ lowers the loss of k-means over weights and
            clusters together; "mkkm-mr" [2]_ adds a penalty on giving weight to similar kernels;
            "simple" [3]_ takes the weights that are worst for the best clusters, a convex
            problem.""",
        ),
        Parameter(
            "penalty",
            Number(least=0, none=True),
            None,
            """Weight of the penalty of "mkkm-mr", in units in which 1 makes it as large as the loss
            at equal weights.  None is 1.""",
        ),
        shared.NORMALISE,
        shared.SCALE,
        shared.OPEN_RANK,
        shared.LANDMARKS,
        shared.MAX_FEATURES,
        shared.K_MEANS_STARTS,
        shared.TOL_OR_ZERO,
        shared.MAX_ITER.but(default=100, text="Largest number of iterations."),
        shared.SAMPLE_ROWS,
        shared.TRAIN_ROWS,
        shared.POLISH_STEPS,
        shared.RECOMPUTED,
        shared.STORE_PATH,
        *shared.RUNNING,
    )

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernels: Any = None,
        weights: str = "mkkm",
        penalty: float | None = None,
        normalise: str = "cosine",
        scale: str | None = "if-mixed",
        rank: int | None = None,
        landmarks: str | np.ndarray = "uniform",
        max_features: int = 2048,
        n_init: int = 10,
        tol: float = 1e-5,
        max_iter: int = 100,
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.weights = weights
        self.penalty = penalty
        self.normalise = normalise
        self.scale = scale
        self.rank = rank
        self.landmarks = landmarks
        self.max_features = max_features
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def _own_settings(self, n_rows: int | None) -> MkkmSettings:
        common, own = super()._own_settings(n_rows), self._checked()
        weights, penalty = own["weights"], own["penalty"]
        if penalty is not None and weights != "mkkm-mr":
            raise UserError(f'`penalty` goes with `weights="mkkm-mr"`, not with {weights!r}.')
        penalty = 1.0 if penalty is None else penalty
        return MkkmSettings(**vars(common), weights=weights, penalty=penalty)

    def _partition(self, reduction: Reduction, own: MkkmSettings, job: Job) -> Partition:
        kernels, traces, k = reduction.kernels, reduction.traces, own.n_clusters
        if own.weights == "simple":
            return simple_mkkm(kernels, traces, k, own.tol, own.max_iter)
        penalty = own.penalty if own.weights == "mkkm-mr" else 0.0
        return mkkm(kernels, traces, k, own.tol, own.max_iter, penalty)
