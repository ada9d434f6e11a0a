"""Kernel k-means of one kernel or the average of several, at any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.kmeans.partitions import PartitionClusterer, Reduction, Settings
from dmkc.clusterers.parameters import Flag, Parameter, shared
from dmkc.kernels import Gaussian, Kernel
from dmkc.master.partition import Partition, average, combined
from dmkc.typing import MaybeClient, RandomState


class KernelKMeans(PartitionClusterer):
    """Kernel k-means of one kernel, or of the average of several.

    Kernels are centred and normalised, reduced without loss to small matrices by one pass over the
    rows, and clustered by their leading eigenvectors, or by k-means in the kernel's own space.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    kernel_weights_ : ndarray, the same for every kernel that is not constant.
    kernels_ : the kernels with the widths that were used.
    objective_ : float, the part of the kernel that the leading eigenvectors leave over.
    inertia_ : float, of the rows in the space in which k-means found the clusters.
    captured_ : float, share of the kernels that the reduction holds.
    n_iter_ : int, 1.
    converged_ : bool, True.
    n_scans_ : int, passes over all rows.
    history_ : list of dict, one per step of k-means on all rows.
    model_ : PartitionModel, all that `predict` needs.

    Examples
    --------
    >>> from dmkc import KernelKMeans
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = KernelKMeans(2, random_state=0).fit(X)
    >>> model.transform(X).shape
    (2000, 2)
    """

    summary = "k-means in the space of one kernel or the average of several"
    declared = (
        shared.N_CLUSTERS,
        shared.KERNELS.but(
            text="""One kernel, or a bank whose average is used.  None is ``Gaussian()``.  Names are
            "linear", "polynomial", "gaussian", "laplacian", "cosine", with a parameter as in
            "gaussian:0.5", and "twelve" for a bank of seven Gaussian, four polynomial and the
            linear kernel.""",
        ),
        Parameter(
            "relaxed",
            Flag(),
            True,
            """Cluster the rows of the leading eigenvectors, each scaled to length 1 (the spectral
            relaxation); False runs k-means on the kernel itself.""",
        ),
        shared.NORMALISE,
        shared.SCALE,
        shared.OPEN_RANK,
        shared.LANDMARKS,
        shared.MAX_FEATURES,
        shared.K_MEANS_STARTS,
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
        relaxed: bool = True,
        normalise: str = "cosine",
        scale: str | None = "if-mixed",
        rank: int | None = None,
        landmarks: str | np.ndarray = "uniform",
        max_features: int = 2048,
        n_init: int = 10,
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
        self.relaxed = relaxed
        self.normalise = normalise
        self.scale = scale
        self.rank = rank
        self.landmarks = landmarks
        self.max_features = max_features
        self.n_init = n_init
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    # The relaxation is one eigenproblem, so that there is nothing to iterate.
    tol = 0.0
    max_iter = 1

    def _default_kernels(self) -> tuple[Kernel, ...]:
        return (Gaussian(),)

    def _partition(self, reduction: Reduction, own: Settings, job: Job) -> Partition:
        return average(reduction.kernels, reduction.traces, own.n_clusters)

    def _coordinates(
        self, reduction: Reduction, partition: Partition
    ) -> tuple[np.ndarray, bool, float]:
        if self.relaxed:
            return super()._coordinates(reduction, partition)
        matrix = combined(reduction.kernels, partition.kernel_weights)
        values, vectors = np.linalg.eigh(matrix)
        keep = values > 1e-12 * values[-1]
        scores = (vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]
        return scores, False, float(values[keep].sum()) / reduction.total
