"""k-means on rows that may be spread over a cluster."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dmkc.clusterers.base import Clusterer, Job
from dmkc.clusterers.checks import (
    check_enough,
    check_finite,
    check_precision,
    check_range,
    check_weighted,
)
from dmkc.clusterers.fits import Learned, Named, Stage, race
from dmkc.clusterers.kmeans.centroids import CentroidModel
from dmkc.clusterers.kmeans.lloyd import (
    Lloyd,
    Run,
    centroids_of,
    inertia_of,
    on_sample,
    oversampled,
    reporter,
    seeded,
)
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.members import Refits
from dmkc.clusterers.parameters import Integer, OneOfOrRows, shared
from dmkc.clusterers.rowset import SpreadRows
from dmkc.clusterers.spread import Layout, row_blocks, sample_of
from dmkc.clusterers.starts import GIVEN_MODEL
from dmkc.data import Rows
from dmkc.data.rows import scan_width
from dmkc.errors import UserError
from dmkc.kernels.tiles import evened, scaling_of
from dmkc.scan.assign import Frame
from dmkc.scan.engine import Engine
from dmkc.scan.survey import Survey, SurveyScan
from dmkc.typing import MaybeClient, PerRow, RandomState, TableLike

STARTS = ("k-means++", "k-means||", "random")
TEN, FEW_CLUSTERS = 10, 64
"""Starts by k-means++ where their number is left open, and up to how many clusters: with more of
them starts differ little, and take long."""
SMALL_OFFSET = {np.dtype(np.float32): 4.0, np.dtype(np.float64): 1e4}
"""Rows whose squared offset is below this many times their variance need no shift."""


@dataclass(frozen=True)
class FramedRows:
    """Rows that can be scanned, and how k-means sees them."""

    all_rows: SpreadRows
    survey: Survey
    positions: np.ndarray
    """Row numbers of the sample."""
    frame: Frame

    @cached_property
    def sample(self) -> np.ndarray:
        """The sampled rows in the frame."""
        return self.frame.moved(self.survey.sample)

    @property
    def sample_is_all(self) -> bool:
        return len(self.survey.sample_weights) == self.all_rows.n_rows


class KMeans(Clusterer[FramedRows]):
    """Lloyd's k-means on rows in memory, in Dask collections and in Zarr stores.

    From the same start it takes the same steps as ``sklearn.cluster.KMeans`` and ends with the same
    clusters.  A step is one pass over the rows as they are (nothing is copied), for all starts
    together.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    cluster_centers_ : ndarray of shape (n_clusters, n_features), in the units of X.
    inertia_ : float, weighted sum of the squared distances to the nearest centroid, in scaled
        columns.
    objective_ : float, the inertia.
    cluster_sizes_ : ndarray, rows (or their weights) in each cluster.
    start_ : str, the start that was kept.
    n_iter_ : int, steps on all rows.
    converged_ : bool, whether the centroids settled before max_iter.
    n_scans_ : int, passes over all rows.
    history_ : list of dict, one per step and start.
    model_ : CentroidModel, all that `predict` needs.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import KMeans
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> model.labels_.tolist()
    [1, 1, 0, 0, 0]
    >>> model.cluster_centers_.tolist()
    [[10.0, 2.0], [1.0, 3.0]]
    """

    _model_class = CentroidModel
    _scored = "sum"
    _minimised = "inertia"
    summary = "Lloyd's k-means on all rows"
    declared = (
        shared.N_CLUSTERS,
        shared.INIT.but(
            kind=OneOfOrRows(STARTS, what="centroids"),
            default="k-means++",
            text="""How to begin.  "k-means++" chooses rows of a sample and lets k-means settle on
            that sample; "k-means||" chooses among all rows, which takes six passes; "random" takes
            rows of the sample; an array holds a centroid a row.""",
        ),
        shared.N_INIT.but(
            kind=Integer(least=1, most=shared.MOST_TRIES, none=True),
            default=None,
            text="""Number of starts, which are carried on together; the one with the lowest inertia
            is kept.  None is ten for "k-means++" of up to 64 clusters, the best of which on the
            sample is carried on to all rows, and one otherwise.""",
        ),
        shared.MAX_ITER.but(default=300, text="Largest number of steps on all rows."),
        shared.TOL_OR_ZERO.but(
            default=1e-4,
            text="""Stop when the squared moves of all centroids sum to no more than this part of
            the average variance of a column.""",
        ),
        shared.SCALE.but(text=f"{shared.SCALE.text}  None is what scikit-learn does."),
        shared.SAMPLE_ROWS.but(
            default=16384, text="Size of the uniform sample on which starts are found."
        ),
        shared.RANDOM_STATE.but(text=f"Seed of sample and starts.  {shared.SAME_LABELS}"),
        shared.VERBOSE,
        shared.CLIENT,
    )

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        init: Any = "k-means++",
        n_init: int | None = None,
        max_iter: int = 300,
        tol: float = 1e-4,
        scale: str | None = "if-mixed",
        sample_rows: int = 16384,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.sample_rows = sample_rows
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def _begin(self, job: Job) -> Job:
        check_enough(job.rows.n_rows, self.n_clusters)
        self._check_centroids(job.rows.n_columns)
        return job

    def _prepare(self, job: Job) -> FramedRows:
        rows, engine, layout = job.rows, job.engine, self._layout(job.rows, job.engine)
        grid = layout.grid
        blocks = row_blocks(rows, engine, grid, layout.mode, job.sample_weight)
        positions = sample_of(rows, layout.sample_rows, job.seed)
        survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
        check_finite(survey, rows)
        check_weighted(survey, self.n_clusters)
        check_range(survey, rows, min_rows=1)
        frame = frame_of(survey, self.scale, rows)
        shift = frame.shift if frame.shift.size else 0.0
        factor = frame.factor if frame.factor.size else 1.0
        check_precision(survey, rows, shift, factor, frame.dtype)
        kept = "held in memory" if layout.mode == "persist" else "read anew on every scan"
        job.progress.say(f"{rows.n_rows} rows x {rows.n_columns}, {kept}, on {engine.description}")
        all_rows = SpreadRows(engine, grid, blocks, layout.width, rows.dtype, None)
        return FramedRows(all_rows, survey, positions, frame)

    def _rows_for_refits(self, prepared: FramedRows) -> Refits:
        survey = prepared.survey
        return Refits.of(survey.sample, survey.sample_weights, prepared.positions)

    def _learn(self, prepared: FramedRows, job: Job) -> Learned[Run, None]:
        frame, survey, points = prepared.frame, prepared.survey, prepared.all_rows
        mean_square, tol = _spread(survey, frame, self.tol)
        report = reporter(job.progress, "all")
        on_all = Stage(points, Lloyd(frame, mean_square, tol, self.max_iter, report).measured)
        starts = self._starts(prepared, job)
        if isinstance(self.init, str) and self.init == "k-means++" and not prepared.sample_is_all:
            report = reporter(job.progress, "sample")
            weights = survey.sample_weights
            first = on_sample(prepared.sample, weights, tol, self.max_iter, report)
            refine = "best" if self.n_init is None else "all"
            found = race(starts, first, on_all, inertia_of, refine)
        else:
            found = race(starts, on_all, None, inertia_of)
        return Learned(found.value, found.name, None)

    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        self._check_parameters()
        width = scan_width(rows)
        grid = engine.grid(rows.n_rows, width)
        fits = rows.n_rows * width * rows.dtype.itemsize <= engine.memory
        sample = max(self.sample_rows, 2 * self.n_clusters)
        return Layout(grid, width, rows.dtype, "persist" if fits else "recompute", sample)

    def _check_parameters(self) -> None:
        self._checked()
        if self.n_init not in (None, 1) and not isinstance(self.init, str):
            raise UserError(
                "`n_init` goes with random starts; one array of centroids is one start."
            )

    def _check_centroids(self, n_columns: int) -> None:
        if isinstance(self.init, str):
            return
        shape, wanted = np.shape(self.init), (self.n_clusters, n_columns)
        if shape != wanted:
            raise UserError(f"`init` must have shape {wanted}, a centroid a row, not {shape}.")
        if not np.isfinite(np.asarray(self.init, dtype=np.float64)).all():
            raise UserError("`init` must be finite, but holds NaN or infinite values.")

    def _starts(self, prepared: FramedRows, job: Job) -> list[Named[Run]]:
        """The centroids to begin from."""
        frame, survey, seed = prepared.frame, prepared.survey, job.seed
        if job.start is not None:
            labels, heavy = job.start.label_pipeline()(survey.sample), survey.sample_weights
            centres = centroids_of(prepared.sample, heavy, labels, self.n_clusters, seed)
            return [Named(GIVEN_MODEL, Run(centres=centres))]
        if not isinstance(self.init, str):
            given = frame.moved(np.asarray(self.init, dtype=np.float64))
            return [Named("given", Run(centres=given))]
        k, init = self.n_clusters, self.init
        several = init == STARTS[0] and k <= FEW_CLUSTERS
        count = self.n_init or (TEN if several else 1)
        names = [init if count == 1 else f"{init} {i + 1}" for i in range(count)]
        sample, weights = prepared.sample, survey.sample_weights
        rng = np.random.default_rng([seed, 5])
        starts = []
        for i, name in enumerate(names):
            if init == "k-means++":
                centres = seeded(sample, weights, k, seed + i)
            else:
                heavy = np.flatnonzero(weights > 0)
                some = sample[rng.choice(heavy, k, replace=False)]
                centres = some
                if init == "k-means||":
                    centres = oversampled(prepared.all_rows, frame, some[0], k, seed + i)
            starts.append(Named(name, Run(centres=centres)))
        return starts

    def _store_fit(self, learned: Learned[Run, None], prepared: FramedRows, rows: Rows) -> None:
        run, sizes = learned.fit, learned.fit.shares
        model = CentroidModel(prepared.frame, run.centres, prepared.all_rows.grid.leaf_rows)
        order = np.lexsort((run.first_rows, -sizes))
        self.model_ = model.in_order(order)
        self.cluster_centers_ = self.model_.frame.original(self.model_.centres)
        self.cluster_sizes_ = sizes[order]
        self.inertia_ = self.objective_ = run.inertia

    def _warn_of_empty(self, empty: int, n_clusters: int) -> None:
        warnings.warn(
            f"{empty} of {n_clusters} clusters are empty: there are fewer distinct rows than "
            "clusters.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _summary(self) -> str:
        return f"{self.n_iter_} steps, inertia {self.inertia_:.6g}"

    def _losses(self) -> Pipeline:
        return self.model_.distance_pipeline()

    def transform(self, X: TableLike) -> PerRow:
        """Distances of every row to all centroids, in scaled columns."""
        return super().transform(X)

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(np.float64)


def frame_of(survey: Survey, scale: str | None, rows: Rows) -> Frame:
    """Rows as they are where that costs no precision, else shifted to mean zero and scaled."""
    dtype = np.dtype(np.float32 if rows.dtype == np.float32 and not rows.sparse else np.float64)
    nothing = np.empty(0)
    views = rows.views.values()
    own = scaling_of(survey, scale, 1, views, rows.together)
    plain = scale is None or (not rows.views and bool(np.isin(own.factor, (0.0, 1.0)).all()))
    scaling = evened(own, survey, views)
    if rows.sparse:  # a shift would make them dense, and distances do not depend on it
        return Frame(nothing, nothing if plain else scaling.factor, dtype)
    variance = survey.deviation / survey.count
    if plain and np.sum(survey.mean**2) <= SMALL_OFFSET[dtype] * np.sum(variance):
        return Frame(nothing, nothing, dtype)
    factor = np.ones_like(scaling.factor) if plain else scaling.factor
    shift = scaling.shift.astype(dtype).astype(np.float64)
    return Frame(shift, factor.astype(dtype).astype(np.float64), dtype)


def _spread(survey: Survey, frame: Frame, tol: float) -> tuple[float, float]:
    """The mean of the squared rows in the frame, and scikit-learn's tolerance in absolute terms."""
    unit = frame.factor**2 if frame.factor.size else 1.0
    offset = survey.mean - (frame.shift if frame.shift.size else 0.0)
    variance = survey.deviation / survey.count
    return float(np.sum(unit * (variance + offset**2))), tol * float(np.mean(unit * variance))
