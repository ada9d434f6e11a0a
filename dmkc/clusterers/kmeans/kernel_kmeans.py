"""Kernel k-means of one kernel or the average of several, at any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.kmeans.partitions import PartitionClusterer, Settings
from dmkc.clusterers.kmeans.reduction import Reduction
from dmkc.errors import UserError
from dmkc.kernels import Gaussian, Kernel
from dmkc.master.partition import Partition, average, combined


class KernelKMeans(PartitionClusterer):
    """Kernel k-means of one kernel, or of the average of several.

    Kernels are centred and normalised, reduced without loss to small matrices by one pass over the
    rows, and clustered by their leading eigenvectors, or by k-means in the kernel's own space.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernels : kernel, name, function, or list of these, default=None
        One kernel, or a bank whose average is used.  None is ``Gaussian()``.  Names are "linear",
        "polynomial", "gaussian", "laplacian", "cosine", with a parameter as in "gaussian:0.5", and
        "twelve" for a bank of seven Gaussian, four polynomial and the linear kernel.
    relaxed : bool, default=True
        Cluster the rows of the leading eigenvectors, each scaled to length 1 (the spectral
        relaxation); False runs k-means on the kernel itself.
    normalise : {"cosine", "trace"}, default="cosine"
        What centred kernels are divided by: the root of their diagonal, so that k(x, x) = 1 for
        every row, or the mean of the diagonal.
    scale : {"standard", "minmax", "if-mixed", None}, default="if-mixed"
        What columns are divided by: their standard deviation, their range, or nothing; "if-mixed"
        is the first where columns seem to have different units (the largest standard deviation is
        more than five times the median) and nothing where they share one, such as pixels.  They
        are always shifted to mean zero.
    rank : int, default=None
        Number of landmarks of the Nyström maps; None is eight per cluster, at least 100 and at
        most 300.
    landmarks : {"uniform", "kmeans"} or array of rows, default="uniform"
        Where the maps are anchored: sampled rows, centroids, or these rows.
    max_features : int, default=2048
        Features of all kernels together, at most; each kernel keeps those that vary most.
    n_init : int, default=10
        Starts of k-means on a sample, the best of which is carried on to all rows.
    sample_rows : int, default=8192
        Size of the uniform sample on which widths, landmarks and starts are found.
    train_rows : int, float or None, default=None
        Train on a uniform subset of this many rows (or this share, below 1), in memory, and label
        all rows in one pass; None trains on all rows.
    polish : int, default=0
        Steps of k-means on all rows, at most, after training on a subset.
    feature_mode : {"auto", "persist", "recompute", "store"}, default="auto"
        Keep kernel columns in memory, make them anew on every scan ("auto"), or write them once to
        a temporary Zarr store.
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

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernels: Any = None,
        relaxed: bool = True,
        normalise: str = "cosine",
        scale: str | None = "if-mixed",
        rank: int | None = None,
        landmarks: Any = "uniform",
        max_features: int = 2048,
        n_init: int = 10,
        sample_rows: int = 8192,
        train_rows: Any = None,
        polish: int = 0,
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Any = None,
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

    def _own_settings(self, n_rows: int | None) -> Settings:
        if not isinstance(self.relaxed, bool | np.bool_):
            raise UserError(f"relaxed must be True or False, not {self.relaxed!r}.")
        return super()._own_settings(n_rows)

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
