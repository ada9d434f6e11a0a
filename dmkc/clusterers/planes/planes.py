"""Clustering by nonparallel planes with synchronised feature selection."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dmkc.clusterers.base import Job, KernelClusterer, integer, number, one_of
from dmkc.clusterers.few_columns import WIDE_ROWS
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.planes.fit import ADVICE, Course
from dmkc.clusterers.planes.learn import (
    PlaneFeatures,
    PlaneSettings,
    PlanesLearned,
    from_fits,
    learn_planes,
)
from dmkc.clusterers.planes.path import PlanePath, follow_path
from dmkc.clusterers.planes.selection import SelectsColumns, cosines, synchronisation
from dmkc.clusterers.prepare import FeatureSettings, Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.starts import check_init
from dmkc.data import Rows
from dmkc.kernels import ColumnGaussian, Columns, FeatureMap
from dmkc.master.planes import group_sizes


class NonparallelPlaneClustering(SelectsColumns, KernelClusterer):
    """Clusters that lie near planes of their own, found together with the columns that matter.

    Every cluster has a plane that its rows lie near and the others lie away from; a row belongs to
    the nearest plane.  A norm over the planes' weights of each column sets the weights of most
    columns to zero in all planes at once, so that the fit names the columns that separate the
    clusters [1]_.  Rows are relabeled and the planes fitted in turn, each fit being a convex
    problem that is solved by passes over the rows to a certified gap.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    c1 : float, default=1.0
        Weight of the loss that keeps the planes of other clusters away, against the mean squared
        distance of rows from their own plane.
    c2 : float or None, default=None
        Weight of the norm that selects columns.  None takes a twentieth of the value at which the
        weights of all columns would vanish under every start.
    ridge : float, default=0.01
        Weight of the squared weights.
    loss : {"hinge", "laplacian"}, default="hinge"
        What is paid where the difference of two planes is not 1: what it falls short of 1, or its
        distance from 1 (the paper's, which loses clusters of unequal spread).
    planes : {"joint", "twin"}, default="joint"
        Fit all planes in one convex problem, which synchronises their columns, or each alone as
        twin support vector clustering does (then c2 selects columns plane by plane).
    kernels : kernel, name, function, or list of these, default=None
        None is the columns themselves.  With kernels planes are fitted to Nyström features and
        selection acts on components instead of columns.  ``dmkc.kernels.per_column(d)`` is a bank
        with a Gaussian of each of d columns, which selects whole columns (a rank of about 8 will
        do).
    scale : {"standard", "minmax", "if-mixed", None}, default="minmax"
        What columns are divided by: their standard deviation, their range, or nothing; "if-mixed"
        is the first where columns seem to have different units (the largest standard deviation is
        more than five times the median) and nothing where they share one, such as pixels.  They
        are always shifted to mean zero.
    min_share : float, default=0.02
        Share of the rows below which no cluster may fall: a relabeling that would do so is not
        carried out, and the fit ends.
    rank : int, default=100
        Number of landmarks of the Nyström maps, where there are kernels.
    landmarks : {"uniform", "kmeans"} or array of rows, default="uniform"
        Where the maps are anchored: sampled rows, centroids, or these rows.
    init : str, labeling, or list of these, default="auto"
        Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's features),
        "pca" (signs of the leading components, k-means on them for several clusters), "random",
        "few-columns" (k-means on the few columns that look most like a mixture or are
        correlated), "radius", "mixture", "spectral" (shells, a mixture of normal distributions, a
        normalised cut), or labels for all rows.  "auto" is the first two and "radius" for two
        clusters and the first for several, with "few-columns" from 50 columns on.  All are tried
        on a sample; the one whose clusters lie farthest apart is kept.
    n_init : int, default=4
        How many "random" starts, and how many components per kernel for "pca".
    sample_rows : int, default=8192
        Size of the uniform sample on which starts are tried.  Data with no more rows than this are
        fitted on all rows from the beginning.
    train_rows : int, float or None, default=None
        Train on a uniform subset of this many rows (or this share, below 1), in memory, and label
        all rows in one pass; None trains on all rows.
    polish : int, default=0
        Relabelings of all rows, at most, after training on a subset.
    tol : float, default=1e-3
        Relative gap of the convex problems, and share of relabeled rows, at which to stop.
    max_iter : int, default=50
        Largest number of relabelings, of the sample and again of all rows.
    solver : {"auto", "irls", "bundle"}, default="auto"
        Convex problems: reweighted least squares, whose passes return Gram matrices, or a bundle
        of cutting planes; "auto" takes whichever should be faster.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of features; "auto" takes float64 while they fit in 64 MB.
    feature_mode : {"auto", "persist", "recompute", "store"}, default="auto"
        Keep columns in memory, make them anew on every scan, or write them once to a temporary Zarr
        store; "auto" decides by size, memory and cost.
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
    feature_importances_ : ndarray, the largest absolute weight of every column (or component) in
        any plane; 0 where it is not selected.
    selected_features_ : ndarray, names of the selected columns, or their numbers where X has none.
    planes_ : ndarray of shape (n_clusters, n_features), the weights of the planes on the scaled
        columns (or features).
    synchronisation_ : float, Pearson's correlation of the columns that the planes use, 1 being full
        agreement.
    cosines_ : ndarray, cosines of the angles between the planes' normals; -1 or 1 off the diagonal
        is a pair of parallel planes.
    explained_ : float, share of the objective without any plane that the planes save.
    separation_ : float, share of the spread of the columns (or features) that lies between the
        clusters, on the sample.
    objective_ : float, the value of the last convex problem.
    gap_ : float, relative distance of that value from its certified lower bound.
    c2_ : the c2 that was used.
    start_ : str, the start that was kept.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] J. Fang, Q. Liu. Iterative Tighter Nonparallel Hyperplane Support Vector Clustering with
       Simultaneous Feature Selection. Acta Electronica Sinica 48 (1), 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import NonparallelPlaneClustering
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 20))
    >>> X[:, [3, 7]] += 6.0 * rng.integers(0, 2, size=(500, 1))
    >>> model = NonparallelPlaneClustering(c2=0.02, random_state=0).fit(X)
    >>> model.selected_features_
    array([3, 7])
    >>> model.transform(X).shape
    (500, 2)
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        c1: float = 1.0,
        c2: float | None = None,
        ridge: float = 0.01,
        loss: str = "hinge",
        planes: str = "joint",
        kernels: Any = None,
        scale: str | None = "minmax",
        min_share: float = 0.02,
        rank: int = 100,
        landmarks: Any = "uniform",
        init: Any = "auto",
        n_init: int = 4,
        sample_rows: int = 8192,
        train_rows: Any = None,
        polish: int = 0,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.c1 = c1
        self.c2 = c2
        self.ridge = ridge
        self.loss = loss
        self.planes = planes
        self.kernels = kernels
        self.scale = scale
        self.min_share = min_share
        self.rank = rank
        self.landmarks = landmarks
        self.init = init
        self.n_init = n_init
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

    def _own_settings(self, n_rows: int | None) -> PlaneSettings:
        m = integer("n_clusters", self.n_clusters, 1)
        integer("n_init", self.n_init, 1)
        if m > 1:
            check_init(self.init, m, n_rows)
        smallest = number("min_share", self.min_share, 0, False)
        if smallest * m >= 1:
            raise ValueError(f"min_share must be below 1 / n_clusters, but is {smallest:g}.")
        course = Course(
            tol=number("tol", self.tol, 0, True),
            max_iter=integer("max_iter", self.max_iter, 1),
            smallest=smallest,
            solver=one_of("solver", self.solver, ("auto", "irls", "bundle")),
        )
        return PlaneSettings(
            n_clusters=m,
            c1=number("c1", self.c1, 0, True),
            c2=np.nan if self.c2 is None else number("c2", self.c2, 0, False),
            ridge=number("ridge", self.ridge, 0, True),
            hinge=one_of("loss", self.loss, ("laplacian", "hinge")) == "hinge",
            together=one_of("planes", self.planes, ("joint", "twin")) == "joint",
            course=course,
        )

    def _bank(self) -> Any:
        return Columns() if self.kernels is None else self.kernels

    def path(
        self, X: Any, c2: Any = None, n_values: int = 12, sample_weight: Any = None
    ) -> PlanePath:
        """Fits over a range of c2, each begun from the one before: which columns stay longest.

        `c2` are the values, or None for `n_values` from a fiftieth of the value at which all
        weights vanish under the k-means start up to that value.  Fits go from small values to
        large ones and end where a cluster becomes too small or no column is left.  The estimator
        itself is not changed; `dmkc.plot.selection_path` draws the result.
        """
        fitter = clone(self)
        fitter.__class__ = _PathFitter
        return fitter.run(X, c2, integer("n_values", n_values, 2), sample_weight)

    def _feature_settings(self, seed: int) -> FeatureSettings:
        settings = super()._feature_settings(seed)
        if self.kernels is None:
            if not isinstance(self.landmarks, str):
                raise ValueError("landmarks go with kernels: without these there are none.")
            return replace(settings, rank=1)
        return settings

    def _learn(self, prepared: Prepared, job: Job) -> PlanesLearned | None:
        if self.n_clusters == 1:
            return None
        init = self._starts(prepared, job)
        return learn_planes(prepared, job.own, init, self.n_init, job.progress, job.seed)

    def _starts(self, prepared: Prepared, job: Job) -> Any:
        """The starts on the rows that are trained on."""
        if isinstance(self.init, str) and self.init == "auto":
            wide = ["few-columns"] if prepared.standardised.shape[1] >= WIDE_ROWS else []
            kernels = self._feature_settings(job.seed).kernels
            if all(isinstance(kernel, ColumnGaussian) for kernel in kernels):
                return ["k-means", *wide]  # a start for every column would be many and poor
            shells = ["radius"] if self.n_clusters == 2 else []
            return [*check_init("auto", self.n_clusters), *shells, *wide]
        return self.init if job.subset is None else job.subset.restricted(self.init)

    def _continue_on_all_rows(
        self, learned: PlanesLearned, features: FeatureMap, rows: RowSet, job: Job
    ) -> PlanesLearned:
        settings = learned.settings
        short = replace(settings, course=replace(settings.course, max_iter=self.polish))
        stage = from_fits(PlaneFeatures.of(features), rows, short, job.progress)
        return learned.continued(stage)

    def _advice(self, reason: str) -> str:
        return ADVICE.get(reason, "increase tol.")

    def _store_features(self, prepared: Prepared, rows: Rows) -> None:
        super()._store_features(prepared, rows)
        self.kernel_weights_ = np.ones(len(self.kernels_))
        self.selects_columns_ = PlaneFeatures.of(prepared.features).names_columns

    def _store_fit(self, learned: PlanesLearned, prepared: Prepared, rows: Rows) -> None:
        fit, features = learned.fit, PlaneFeatures.of(prepared.features.unweighted())
        if not fit.model.w.any():
            warnings.warn(
                f"No column has a weight at c2 = {learned.settings.c2:g}, so that nothing is "
                "separated: decrease c2.",
                stacklevel=4,
            )
        self.model_ = features.model(fit.model).reordered(fit.shares, rows)
        self.objective_, self.explained_, self.gap_ = fit.objective, fit.explained, fit.gap
        self.c2_, self.separation_ = learned.settings.c2, fit.separation
        self._describe(features.offsets, rows)

    def _store_one_cluster(self, prepared: Prepared, rows: Rows) -> None:
        features = PlaneFeatures.of(prepared.features.unweighted())
        self.model_ = KernelModel.of_one_cluster(features.features, np.inf)
        self.objective_, self.explained_, self.gap_, self.c2_ = 0.0, 0.0, 0.0, 0.0
        self.separation_ = 0.0
        self._describe(features.offsets, rows)

    def _describe(self, offsets: np.ndarray, rows: Rows) -> None:
        """Which columns matter, and how the planes lie to each other."""
        self.planes_ = self.model_.weights
        largest = np.abs(self.planes_).max(axis=0, initial=0.0)
        self.feature_importances_ = group_sizes(largest, offsets)
        chosen = np.flatnonzero(self.feature_importances_ > 0)
        names = rows.column_names if self.selects_columns_ else None
        self.selected_features_ = chosen
        if names is not None:
            self.selected_features_ = np.array([names[j] for j in chosen], dtype=object)
        sizes = [group_sizes(np.abs(w), offsets) for w in self.planes_]
        self.synchronisation_ = synchronisation(np.array(sizes)) if sizes else 1.0
        self.cosines_ = cosines(self.planes_)

    def _summary(self) -> str:
        return (
            f"{self.n_iter_} relabelings, objective {self.objective_:.6g}, "
            f"{len(self.selected_features_)} of {len(self.feature_importances_)} features selected"
        )


class _PathFitter(NonparallelPlaneClustering):
    """Runs a whole path where a fit would run once."""

    def run(self, X: Any, c2: Any, n_values: int, sample_weight: Any) -> PlanePath:
        if integer("n_clusters", self.n_clusters, 1) == 1:
            raise ValueError("A path needs at least two clusters.")
        self._wanted = c2, n_values
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit may well collapse
            self.fit(X, sample_weight=sample_weight)
        return self._path.named(getattr(self, "feature_names_in_", None), self.selects_columns_)

    def _learn(self, prepared: Prepared, job: Job) -> PlanesLearned:
        init = self._starts(prepared, job)
        self._path, learned = follow_path(
            prepared, job.own, init, self.n_init, job.progress, job.seed, *self._wanted
        )
        return learned
