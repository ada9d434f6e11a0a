"""Multiple-kernel k-means, whose kernel weights are learned, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dmkc.clusterers.base import Job, number, one_of
from dmkc.clusterers.kmeans.partitions import PartitionClusterer, Settings
from dmkc.clusterers.kmeans.reduction import Reduction
from dmkc.errors import UserError
from dmkc.master.partition import Partition, mkkm, simple_mkkm

METHODS = ("mkkm", "mkkm-mr", "simple")


@dataclass(frozen=True)
class MkkmSettings(Settings):
    """Parameters of multiple-kernel k-means, checked."""

    weights: str
    penalty: float


class MultipleKernelKMeans(PartitionClusterer):
    """Kernel k-means with kernel weights learned in one of three ways.

    Clusters are found on K = sum_p w_p^2 K_p with w >= 0 and sum w = 1.  After one pass over the
    rows all iterations are on small matrices, whatever the number of rows.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernels : kernel, name, function, or list of these, default=None
        The bank.  None is "twelve": seven Gaussian kernels whose widths are 1/8 to 8 times the
        largest distance between rows, four polynomial ones and the linear one.  Names are "linear",
        "polynomial", "gaussian", "laplacian", "cosine", with a parameter as in "gaussian:0.5".
    weights : {"mkkm", "mkkm-mr", "simple"}, default="mkkm"
        How weights are learned.  "mkkm" [1]_ lowers the loss of k-means over weights and clusters
        together; "mkkm-mr" [2]_ adds a penalty on giving weight to similar kernels; "simple" [3]_
        takes the weights that are worst for the best clusters, a convex problem.
    penalty : float, default=None
        Weight of the penalty of "mkkm-mr", in units in which 1 makes it as large as the loss at
        equal weights.  None is 1.
    normalise : {"cosine", "trace"}, default="cosine"
        What centred kernels are divided by: the root of their diagonal, so that k(x, x) = 1 for
        every row, or the mean of the diagonal.
    scale : {"standard", "minmax", "if-mixed", None}, default="standard"
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
    tol : float, default=1e-5
        Relative change of the objective at which to stop.
    max_iter : int, default=100
        Largest number of iterations.
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

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernels: Any = None,
        weights: str = "mkkm",
        penalty: float | None = None,
        normalise: str = "cosine",
        scale: str | None = "standard",
        rank: int | None = None,
        landmarks: Any = "uniform",
        max_features: int = 2048,
        n_init: int = 10,
        tol: float = 1e-5,
        max_iter: int = 100,
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
        shared = super()._own_settings(n_rows)
        weights = one_of("weights", self.weights, METHODS)
        if self.penalty is not None and weights != "mkkm-mr":
            raise UserError(f'penalty goes with weights="mkkm-mr", not with {weights!r}.')
        penalty = 1.0 if self.penalty is None else number("penalty", self.penalty, 0, False)
        return MkkmSettings(**vars(shared), weights=weights, penalty=penalty)

    def _partition(self, reduction: Reduction, own: MkkmSettings, job: Job) -> Partition:
        kernels, traces, k = reduction.kernels, reduction.traces, own.n_clusters
        if own.weights == "simple":
            return simple_mkkm(kernels, traces, k, own.tol, own.max_iter)
        penalty = own.penalty if own.weights == "mkkm-mr" else 0.0
        return mkkm(kernels, traces, k, own.tol, own.max_iter, penalty)
