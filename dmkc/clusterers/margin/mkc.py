"""Multiple kernel maximum-margin clustering (MKC)."""

from __future__ import annotations

from typing import Any

from dmkc.clusterers.margin.base import MarginClusterer
from dmkc.clusterers.model import KernelModel
from dmkc.errors import UserError


class MultipleKernelClustering(MarginClusterer):
    """Clusters separated by the widest margin in a learned combination of kernels.

    Finds clusters, a weight for every kernel of a bank, and separating planes in the weighted
    feature space, such that few rows lie inside the margin [1]_.  Works on rows in memory, in Dask
    collections and in Zarr stores; training takes a few tens of passes over the rows, each of which
    returns a few kilobytes.

    Parameters
    ----------
    n_clusters : int, pair of ints or "auto", default=2
        Number of clusters.  A pair such as (2, 8) is a range to choose from, "auto" is (2, 10):
        every number is tried on a sample, and the one whose clusters are the most stable, compact
        and connected is taken (see `selection_`).
    kernels : kernel, name, function, or list of these, default=None
        The bank.  None is ``[Linear(), Polynomial(2), Gaussian(0.5)]``.  Names are "linear",
        "polynomial", "gaussian", "laplacian", "cosine", with a parameter as in "gaussian:0.5".
        "auto", here and for `scale`, `C` and `balance`, leaves the choice to `dmkc.select`, which
        tries many candidates on a sample and takes a minute or less.
    scale : {"standard", "minmax", "if-mixed", "auto", None}, default="standard"
        What columns are divided by: their standard deviation, their range, or nothing; "if-mixed"
        is the first where columns seem to have different units (the largest standard deviation is
        more than five times the median) and nothing where they share one, such as pixels.  They
        are always shifted to mean zero.
    C : float or "auto", default=None
        Weight of the margin violations.  None calibrates it from the data: a fixed C collapses
        the clusters or freezes the start, depending on the kernels.  With an adaptive threshold
        C must exceed 1, and None is 2.
    balance : float, None, "default" or "auto", default="default"
        Two clusters: bound on the absolute mean score, which prevents a one-cluster solution
        (by default 0.3; None: no bound), in units of the threshold.  With an adaptive threshold it
        is 0 by default and must be below 1 - 1 / C.  Several clusters are balanced by weighting
        rows by cluster, and a bound is refused.
    norm : float, default=2.0
        q >= 1 of the constraint |kernel weights|_q <= 1; 1 gives sparse weights.
    threshold : {"unit", "adaptive"}, default="unit"
        Where the margin ends: at a score of 1, or at a score that is found with the model [2]_, so
        that about 1 / C of the rows lie inside whatever the kernels are.
    rank : int, default=100
        Number of landmarks of the Nyström maps, shared by all kernels.
    landmarks : {"uniform", "kmeans"} or array of rows, default="uniform"
        Where the maps are anchored: sampled rows, centroids, or these rows.
    init : str, labeling, or list of these, default="auto"
        Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's features),
        "pca" (signs of each kernel's leading components, k-means on them for several clusters),
        "spectral" (neighbour graph), "mixture" (of normal distributions), "radius" (shells around
        the mean), "random", labels for all rows, or the `model_` of another fit.  "auto" is the
        first two for two clusters and the first for several.  All are tried on a sample; the one
        with the lowest objective is kept.
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
        1 shows a live line, or in a notebook a panel; 2 a line per scan.
    client : distributed.Client or None, default=None
        Cluster to run on; None takes the current client, or threads if there is none.

    Attributes
    ----------
    n_clusters_ : int, number of clusters.
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size (in
        the subset, with train_rows).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    objective_ : float, ``1/2 sum_k |v_k|^2 / weight_k + C mean(max(0, 1 - margin))``, where a row's
        margin is the absolute score, or the largest score less the second (then rows are weighted
        so that all clusters weigh the same).  With an adaptive threshold t it is the same with t
        for 1, less t.
    threshold_ : float, t.  Scores are divided by it, so that the margin ends at 1 for all.
    start_ : str, the start that was kept.
    selection_ : list of dict, one per number of clusters that was tried, with its criteria (larger
        is better), the mean "score" of them rescaled to 0..1, and whether it was "chosen"; with
        other parameters "auto", one per candidate, best first; None when nothing was open.
    confidence_ : float, agreement of the criteria and of k-means with the chosen candidate, or
        None; below 0.8 look at the alternatives.
    alternatives_ : list of KernelModel, the clearly different candidates that `dmkc.select` offers,
        the chosen one first (before it was refined on all rows), or None; `dmkc.plot.alternatives`
        draws them.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] B. Zhao, J. T. Kwok, C. Zhang. Multiple Kernel Clustering. SDM 2009.
    .. [2] J. Wu, X.-L. Zhang. Sparse Kernel Maximum Margin Clustering. Neural Network World, 2011.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = MultipleKernelClustering(random_state=0).fit(X)
    >>> model.labels_.shape
    (2000,)
    """

    selectable = ("scale", "kernels", "C", "balance")
    """Parameters that can be "auto"."""
    selection_: list[dict[str, Any]] | None
    confidence_: float | None
    alternatives_: list[KernelModel] | None

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        kernels: Any = None,
        scale: str | None = "standard",
        C: Any = None,
        balance: Any = "default",
        norm: float = 2.0,
        threshold: str = "unit",
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
        self.threshold = threshold
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

    def _bank(self) -> Any:
        open_ = isinstance(self.kernels, str) and self.kernels == "auto"
        return self.selection_[0]["kernels"] if open_ and self.selection_ else self.kernels

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, answers: Any = ()
    ) -> MultipleKernelClustering:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.  `answers`, a list of
        (row, row, whether they belong together), guide the choice of parameters that are "auto".
        """
        values = [getattr(self, name) for name in self.selectable]
        if not any(isinstance(value, str) and value == "auto" for value in values):
            if len(answers):
                raise UserError('answers settle a choice: leave a parameter "auto".')
            super().fit(X, sample_weight=sample_weight)
            self.confidence_, self.alternatives_ = None, None
            return self
        from dmkc.selection.run import select  # which makes estimators of this class

        found = select(X, self, answers=answers, sample_weight=sample_weight)
        settled = found.estimator().fit(X, sample_weight=sample_weight)
        for name, value in vars(settled).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.selection_, self.confidence_ = found.records(), found.confidence
        self.alternatives_ = [candidate.model for candidate in found.alternatives]
        self.start_ = found.best.start
        self.history_ = [record | {"start": self.start_} for record in settled.history_]
        self.n_scans_ = 1 + settled.n_scans_
        return self
