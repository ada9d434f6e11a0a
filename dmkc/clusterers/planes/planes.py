"""Clustering by nonparallel planes with synchronised feature selection."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dmkc.clusterers.base import Job, KernelClusterer
from dmkc.clusterers.estimator import Facts, Picture
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.parameters import Integer, Number, OneOf, Parameter, shared
from dmkc.clusterers.planes.learn import (
    ADVICE,
    Course,
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
from dmkc.clusterers.sampled import WIDE_ROWS
from dmkc.clusterers.starts import check_init
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import Columns, FeatureMap, Kernel, as_bank
from dmkc.master.planes import group_sizes
from dmkc.typing import MaybeClient, PerRow, RandomState, TableLike


class NonparallelPlaneClustering(SelectsColumns, KernelClusterer):
    """Clusters that lie near planes of their own, found together with the columns that matter.

    Every cluster has a plane that its rows lie near and the others lie away from; a row belongs to
    the nearest plane.  A norm over the planes' weights of each column sets the weights of most
    columns to zero in all planes at once, so that the fit names the columns that separate the
    clusters [1]_.  Rows are relabeled and the planes fitted in turn, each fit being a convex
    problem that is solved by passes over the rows to a certified gap.

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

    summary = "clusters near planes of their own, and the columns that matter"
    _scored = "mean"
    declared = (
        shared.N_CLUSTERS,
        Parameter(
            "c1",
            Number(above=0),
            1.0,
            """Weight of the loss that keeps the planes of other clusters away, against the mean
            squared distance of rows from their own plane.""",
        ),
        Parameter(
            "c2",
            Number(least=0, none=True),
            None,
            """Weight of the norm that selects columns.  None takes a twentieth of the value at
            which the weights of all columns would vanish under every start.""",
        ),
        Parameter("ridge", Number(above=0), 0.01, "Weight of the squared weights."),
        Parameter(
            "loss",
            OneOf(("hinge", "laplacian")),
            "hinge",
            """What is paid where the difference of two planes is not 1: what it falls short of 1,
            or its distance from 1 (the paper's, which loses clusters of unequal spread).""",
        ),
        Parameter(
            "planes",
            OneOf(("joint", "twin")),
            "joint",
            """Fit all planes in one convex problem, which synchronises their columns, or each alone
            as twin support vector clustering does (then c2 selects columns plane by plane).""",
        ),
        shared.KERNELS.but(
            text="""None is the columns themselves.  With kernels planes are fitted to Nyström
            features and selection acts on components instead of columns.
            ``dmkc.kernels.per_column(d)`` is a bank with a Gaussian of each of d columns, which
            selects whole columns (a rank of about 8 will do).""",
        ),
        shared.SCALE,
        Parameter(
            "min_share",
            Number(least=0),
            0.02,
            """Share of the rows below which no cluster may fall: a relabeling that would do so is
            not carried out, and the fit ends.""",
        ),
        shared.RANK.but(text="Number of landmarks of the Nyström maps, where there are kernels."),
        shared.LANDMARKS,
        shared.INIT.but(
            text="""Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's
            features), "pca" (signs of the leading components, k-means on them for several
            clusters), "random", "few-columns" (k-means on the few columns that look most like a
            mixture or are correlated), "radius", "mixture", "spectral" (shells, a mixture of normal
            distributions, a normalised cut), or labels for all rows.  "auto" is the first two and
            "radius" for two clusters and the first for several, with "few-columns" from 50 columns
            on.  All are tried on a sample; the one whose clusters lie farthest apart is kept.""",
        ),
        shared.N_INIT,
        shared.SAMPLE_ROWS.but(
            text="""Size of the uniform sample on which starts are tried.  Data with no more rows
            than this are fitted on all rows from the beginning.""",
        ),
        shared.TRAIN_ROWS,
        shared.POLISH,
        shared.TOL.but(
            text="""Relative gap of the convex problems, and share of relabeled rows, at which to
            stop.""",
        ),
        shared.MAX_ITER,
        shared.SOLVER.but(
            kind=OneOf(("auto", "irls", "bundle")),
            default="auto",
            text="""Convex problems: reweighted least squares, whose passes return Gram matrices, or
            a bundle of cutting planes; "auto" takes whichever should be faster.""",
        ),
        shared.DTYPE,
        shared.FEATURE_MODE.but(
            text="""Keep columns in memory, make them anew on every scan, or write them once to a
            temporary Zarr store; "auto" decides by size, memory and cost.""",
        ),
        shared.STORE_PATH,
        *shared.RUNNING,
    )

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
        scale: str | None = "if-mixed",
        min_share: float = 0.02,
        rank: int = 100,
        landmarks: str | np.ndarray = "uniform",
        init: Any = "auto",
        n_init: int = 4,
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
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
        own = self._checked()
        m, smallest = own["n_clusters"], own["min_share"]
        if m > 1:
            check_init(self.init, m, n_rows)
        if smallest * m >= 1:
            raise UserError(f"`min_share` must be below 1 / `n_clusters`, but is {smallest:g}.")
        course = Course(
            tol=own["tol"], max_iter=own["max_iter"], smallest=smallest, solver=own["solver"]
        )
        return PlaneSettings(
            n_clusters=m,
            c1=own["c1"],
            c2=np.nan if own["c2"] is None else own["c2"],
            ridge=own["ridge"],
            hinge=own["loss"] == "hinge",
            together=own["planes"] == "joint",
            course=course,
        )

    def _bank(self) -> Any:
        return Columns() if self.kernels is None else self.kernels

    def _kernels(self) -> tuple[Kernel, ...]:
        return as_bank(self._bank())  # the columns of all views side by side

    def path(
        self, X: TableLike, c2: Any = None, n_values: int = 12, sample_weight: PerRow = None
    ) -> PlanePath:
        """Fits over a range of c2, each begun from the one before: which columns stay longest.

        `c2` are the values, or None for `n_values` from a fiftieth of the value at which all
        weights vanish under the k-means start up to that value.  Fits go from small values to
        large ones and end where a cluster becomes too small or no column is left.  The estimator
        itself is not changed; `dmkc.plot.selection_path` draws the result.
        """
        fitter = clone(self)
        fitter.__class__ = _PathFitter
        return fitter.run(X, c2, Integer(least=2).check("n_values", n_values), sample_weight)

    def _feature_settings(self, seed: int) -> FeatureSettings:
        settings = super()._feature_settings(seed)
        # what weights cost depends on the unit of the columns
        settings = replace(settings, unit_range=settings.scale == "if-mixed")
        if self.kernels is None:
            if not isinstance(self.landmarks, str):
                raise UserError("`landmarks` go with `kernels`: without these there are none.")
            return replace(settings, rank=1)
        return settings

    def _learn(self, prepared: Prepared, job: Job) -> PlanesLearned | None:
        if self.n_clusters == 1:
            return None
        init = self._starts(prepared, job)
        return learn_planes(prepared, job.own, init, self.n_init, job.progress, job.seed)

    def _starts(self, prepared: Prepared, job: Job) -> Any:
        """The starts on the rows that are trained on."""
        if job.start is not None:
            return job.start
        if isinstance(self.init, str) and self.init == "auto":
            wide = ["few-columns"] if prepared.standardised.shape[1] >= WIDE_ROWS else []
            kernels = self._kernels()
            if all(kernel.only_column is not None for kernel in kernels):
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
        fit, features = learned.fit, PlaneFeatures.of(prepared.features)
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
        features = PlaneFeatures.of(prepared.features)
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

    def _losses(self) -> Pipeline:
        return self.model_.distance_pipeline()

    def _summary(self) -> str:
        selected = f"{len(self.selected_features_)} of {len(self.feature_importances_)}"
        return f"{super()._summary()}, {selected} features selected"

    def _facts(self) -> Facts:
        between = self.cosines_[np.triu_indices(len(self.cosines_), 1)]
        return [
            ("c1", f"{self.c1:g}"),
            ("c2", f"{self.c2_:.4g}" + (" (from the data)" if self.c2 is None else "")),
            ("selected", f"{len(self.selected_features_)} of {len(self.feature_importances_)}"),
            ("synchronisation of the planes", f"{self.synchronisation_:.2f}"),
            ("cosines between planes", ", ".join(f"{c:.3f}" for c in between[:10])),
        ]

    def _metrics(self) -> dict[str, Any]:
        found = {"c2": self.c2_, "synchronisation": self.synchronisation_, **super()._metrics()}
        # A model file holds no long list of columns.
        selected = self._fitted("selected_features_")
        return found if selected is None else {"selected": selected, **found}

    def _weights_picture(self) -> Picture:
        words = "The columns that separate the clusters; all others have weight zero."
        return Picture("feature_importances", words, beside=True)


class _PathFitter(NonparallelPlaneClustering):
    """Runs a whole path where a fit would run once."""

    def run(self, X: TableLike, c2: Any, n_values: int, sample_weight: PerRow) -> PlanePath:
        if self._checked()["n_clusters"] == 1:
            raise UserError("A path needs at least two clusters.")
        self._wanted = c2, n_values
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit may well collapse
            self.fit(X, sample_weight=sample_weight)
        return self._path.named(self._fitted("feature_names_in_"), self.selects_columns_)

    def _learn(self, prepared: Prepared, job: Job) -> PlanesLearned:
        init = self._starts(prepared, job)
        self._path, learned = follow_path(
            prepared, job.own, init, self.n_init, job.progress, job.seed, *self._wanted
        )
        return learned
