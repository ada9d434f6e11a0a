"""From rows to scannable features: survey, scaling, landmarks, columns, centring.

Every clusterer begins here.  What comes out depends on the rows, the settings and the seed alone,
never on chunks, workers or scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.checks import (
    check_enough,
    check_finite,
    check_kernels,
    check_precision,
    check_range,
    check_stored,
    check_weighted,
    no_overflow,
)
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.spread import (
    Layout,
    block_grid,
    carried,
    choose_mode,
    row_blocks,
    sample_of,
    spread,
)
from dmkc.data import BlockRows, RowRecord, Rows
from dmkc.data.record import rank_among, split_weights
from dmkc.data.rows import scan_width
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap, Kernel, KernelPlan, KernelSample, Scaling, View
from dmkc.kernels.bank import bound, columns_seen
from dmkc.kernels.plan import padded
from dmkc.kernels.tiles import evened, in_unit_range, scaling_of
from dmkc.scan.base import MappedScan, Scan
from dmkc.scan.engine import Block, Engine, Held
from dmkc.scan.grid import Grid, Node, leaf_rows_for
from dmkc.scan.survey import Survey, SurveyScan
from dmkc.typing import PerRow

SAMPLE_BYTES = 256 << 20
EXACT_BYTES = 64 << 20
"""Features up to this size are float64 when the precision is left open: it costs nothing."""


Known = tuple[np.ndarray, np.ndarray]
"""Rows and their weights."""


@dataclass(frozen=True)
class SampleView:
    """What a chooser of landmarks may look at."""

    standardised: np.ndarray
    """The sampled rows after scaling, float64."""
    weights: np.ndarray
    positions: np.ndarray
    """Their global numbers."""
    n_rows: int
    """Number of all rows."""
    kernels: tuple[Kernel, ...]
    """The bank with its widths filled in."""
    context: Known | None
    """More rows, on which starts are found, where there are any."""
    rows: BlockRows
    """The sampled rows as they came."""


@dataclass(frozen=True)
class Choice:
    """Landmarks, and what was found on the way to them."""

    landmarks: np.ndarray
    """Standardised, one a row."""
    start: str
    """Name of the start they come from."""
    labels: np.ndarray
    """Cluster of every sampled row."""


LandmarkChooser = Callable[[SampleView], Choice]


@dataclass(frozen=True)
class FeatureSettings:
    """How rows become features."""

    kernels: tuple[Kernel, ...]
    scale: str | None
    rank: int
    landmarks: str | np.ndarray | LandmarkChooser
    """A name, an array of rows, or what chooses them."""
    dtype: str
    mode: str
    store_path: str | None
    sample_rows: int
    seed: int
    diagonals: bool = False
    """Whether the columns are followed by every kernel's k(x, x)."""
    unit_range: bool = False
    """Whether all columns are then divided by one number, such that the widest has range 1."""


@dataclass
class Prepared:
    """Rows ready for scans."""

    rows: Rows
    survey: Survey
    positions: np.ndarray
    """Global numbers of the sampled rows."""
    standardised: np.ndarray
    """The sampled rows after scaling, float64."""
    features: FeatureMap
    sample: SampleRows
    all_rows: RowSet
    mode: str
    engine: Engine
    context: Any
    """Rows on which scaling and starts are found, where these are not the sampled rows."""
    blocks: Sequence[Block]
    """The rows themselves, where scans can use them again and again."""
    grid: Grid
    """How they are cut."""
    choice: Choice | None = None
    """What a chooser of landmarks found, where there was one."""

    @property
    def view(self) -> SampleView:
        return SampleView(
            self.standardised,
            self.sample.weights,
            self.positions,
            self.rows.n_rows,
            self.features.kernels,
            _standardised(self.context, self.features.plan.scaling),
            self.survey.sample,
        )

    @property
    def sample_is_all(self) -> bool:
        return self.all_rows is self.sample


def prepare(
    rows: Rows,
    engine: Engine,
    settings: FeatureSettings,
    min_rows: int,
    sample_weight: PerRow = None,
    context: Any = None,
) -> Prepared:
    """Survey the rows, build the feature map and hold (or plan) the columns.

    `context` are more rows than the given ones, on which scaling and starts are found.
    """
    n = rows.n_rows
    check_enough(n, min_rows)
    layout = layout_of(rows, engine, settings)
    grid, mode, leaf_rows = layout.grid, layout.mode, layout.grid.leaf_rows

    blocks = row_blocks(rows, engine, grid, mode, sample_weight, settings.mode == "auto")
    positions = sample_of(rows, layout.sample_rows, settings.seed)
    survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
    check_finite(survey, rows)
    check_weighted(survey, min_rows)
    moments = survey if context is None else _survey_context(context, leaf_rows)
    check_range(survey, rows, min_rows)
    check_range(moments, rows, min_rows)
    own = scaling_of(moments, settings.scale, min_rows, rows.views.values(), rows.together)
    if settings.unit_range:
        own = in_unit_range(own, moments)
    scaling = evened(own, moments, rows.views.values())
    check_precision(survey, rows, scaling.shift, scaling.factor, layout.dtype)
    standardised = scaling.apply(survey.sample)

    bank = _Bank.of(
        rows, settings, own, scaling, survey, engine, blocks, grid, min_rows, layout.dtype
    )
    choice = None
    if callable(settings.landmarks):
        more = _standardised(context, scaling)
        heavy, kernels = survey.sample_weights, bank.resolved()
        view = SampleView(standardised, heavy, positions, n, kernels, more, survey.sample)
        choice = settings.landmarks(view)
        bank.use_landmarks(choice.landmarks)
    fitted = bank.fit(scaling, layout.dtype, leaf_rows, settings.diagonals, survey, rows)
    maker = engine.first_equal(fitted)

    numbers = rank_among(rows.constrained, positions) if rows.constrained is not None else None
    weights = None if sample_weight is None else survey.sample_weights
    sample_rows = RowRecord(survey.sample, weights, numbers)
    with no_overflow("A kernel of the bank", survey, rows):
        stored = maker(sample_rows)
    check_stored(stored.rows, maker, survey, rows)
    sample = SampleRows(stored, leaf_rows)
    sample_is_all = len(positions) == n
    all_rows: RowSet = sample
    if not sample_is_all:
        extra = carried(sample_weight, rows)
        all_rows = spread(engine, blocks, grid, maker, mode, settings.store_path, extra)
    raw = FeatureMap.build(maker)
    known = maker.stored_mean()
    mean = all_rows.stored_mean() if known is None else known
    check_stored(np.asarray(mean)[None, :], maker, survey, rows)
    features = raw.normalised(mean, sample.stored, sample.weights)
    if min_rows > 1:
        check_kernels(features)
    return Prepared(
        rows,
        survey,
        positions,
        standardised,
        features,
        sample,
        all_rows,
        mode,
        engine,
        context,
        blocks,
        grid,
        choice,
    )


@dataclass
class _Bank:
    """The kernels of a fit, each with the sample that it sees."""

    kernels: tuple[Kernel, ...]
    views: tuple[View, ...]
    view_of: tuple[int, ...]
    samples: tuple[KernelSample, ...]
    """One for each view."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        settings: FeatureSettings,
        own: Scaling,
        whole: Scaling,
        survey: Survey,
        engine: Engine,
        blocks: Sequence[Block],
        grid: Grid,
        n_clusters: int,
        dtype: np.dtype,
    ) -> _Bank:
        """Kernels of some columns see them in their own scale, those of all columns evened."""
        kernels = bound(settings.kernels, rows.views)
        seen = _columns_of_kernels(kernels, rows)
        distinct = list(dict.fromkeys(seen))
        views = tuple(View.of(columns, whole if columns is None else own) for columns in distinct)
        given = _given_landmarks(settings, rows.n_columns)
        local = engine.local()

        def here(scan: Scan, some: RowRecord) -> Node:
            few = local.grid(len(some), some.shape[1])
            edges = range(0, len(some), few.block_rows)
            held = [Held(some[a : a + few.block_rows], a, a + few.block_rows) for a in edges]
            return local.scan(scan, held, few)

        def sample(view: View) -> KernelSample:
            def run(scan: Scan) -> Node:
                every = view.columns is None
                return engine.scan(
                    scan if every else MappedScan(_SeenRows(view), scan), blocks, grid
                )

            return KernelSample(
                view.scaling.apply(view(survey.sample)),
                survey.sample_weights,
                min(settings.rank, rows.n_rows),
                settings.landmarks if given is None else view.scaling.apply(view(given)),
                settings.seed,
                view.scaling,
                rows.sparse,
                run,
                here,
                tuple(
                    k for k, columns in zip(kernels, seen, strict=True) if columns == view.columns
                ),
                n_clusters,
                dtype,
            )

        return cls(kernels, views, tuple(map(distinct.index, seen)), tuple(map(sample, views)))

    def resolved(self) -> tuple[Kernel, ...]:
        """The kernels with their widths."""
        pairs = zip(self.kernels, self.view_of, strict=True)
        return tuple(kernel.resolve(self.samples[view]) for kernel, view in pairs)

    def use_landmarks(self, points: np.ndarray) -> None:
        """Landmarks that were made from the resolved kernels."""
        for sample in self.samples:
            sample.landmark_choice = points

    def fit(
        self,
        scaling: Scaling,
        dtype: np.dtype,
        leaf_rows: int,
        diagonals: bool,
        survey: Survey,
        rows: Rows,
    ) -> KernelPlan:
        """The plan of all kernels, each fitted to what it sees."""
        fitted = []
        for kernel, view in zip(self.kernels, self.view_of, strict=True):
            with no_overflow(f"The kernel {kernel}", survey, rows):
                fitted.append(kernel.fit(self.samples[view]))
        return KernelPlan(
            scaling,
            self.views,
            tuple(fitted),
            self.view_of,
            dtype,
            leaf_rows,
            diagonals=diagonals,
        )


@dataclass(frozen=True)
class _SeenRows:
    """The rows of a block as a view sees them, with their weights."""

    view: View

    def room(self, n_rows: int) -> None:
        return None

    def __call__(self, rows: Any, out: np.ndarray | None = None) -> Any:
        values, weights = split_weights(rows)
        return self.view(values) if weights is None else RowRecord(self.view(values), weights)


def _columns_of_kernels(kernels: Iterable[Kernel], rows: Rows) -> list[tuple[int, ...] | None]:
    """The columns that every kernel sees."""
    d, names = rows.n_columns, rows.column_names
    return [columns_seen(kernel, d, names, rows.views) for kernel in kernels]


def layout_of(rows: Rows, engine: Engine, settings: FeatureSettings) -> Layout:
    """How columns of these rows are cut and held on an engine."""
    n, d = rows.n_rows, rows.n_columns
    given = _given_landmarks(settings, d)
    rank = min(settings.rank, n) if given is None else len(given)
    kernels = bound(settings.kernels, rows.views)
    sizes = [d if seen is None else len(seen) for seen in _columns_of_kernels(kernels, rows)]
    pairs = zip(kernels, sizes, strict=True)
    width = padded(sum(kernel.stored_width(size, rank) for kernel, size in pairs))
    compared = max(kernel.compared_with(rank) for kernel in kernels)
    dtype = _dtype(settings.dtype, n, max(width, compared))
    mode = choose_mode(settings, rows, kernels, width, compared, dtype, engine)
    grid = block_grid(rows, engine, width, mode, leaf_rows_for(max(width, scan_width(rows))))
    return Layout(grid, width, dtype, mode, sample_size(settings, d))


def sample_size(settings: FeatureSettings, n_columns: int) -> int:
    """Rows of the sample: fewer where rows are very wide."""
    return min(settings.sample_rows, max(SAMPLE_BYTES // (8 * n_columns), 64))


def _standardised(context: Any, scaling: Scaling) -> Known | None:
    """Context rows after scaling, with their weights."""
    if context is None:
        return None
    rows, weights = split_weights(context)
    standardised = scaling.apply(rows)
    return standardised, np.ones(len(standardised)) if weights is None else weights


def _survey_context(context: Any, leaf_rows: int) -> Survey:
    """Column moments of more rows than the given ones, which are less a matter of luck."""
    survey = SurveyScan(np.zeros(0, np.int64)).block(context, 0, leaf_rows)
    if survey.bad.any():
        raise UserError(
            f"Input `X` contains {int(survey.bad.sum())} NaN or infinite (inf) value(s) in a "
            f"sample of {context.shape[0]} rows: fill in or drop these rows before clustering."
        )
    return survey


def _dtype(name: str, n: int, width: int) -> np.dtype:
    if name == "auto":
        return np.dtype(np.float64 if n * width * 8 <= EXACT_BYTES else np.float32)
    return np.dtype(name)


def _given_landmarks(settings: FeatureSettings, d: int) -> np.ndarray | None:
    """The landmarks that the caller has given, checked, or None."""
    if callable(settings.landmarks) or isinstance(settings.landmarks, str):
        return None
    try:
        points = np.asarray(settings.landmarks, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise UserError(f"`landmarks` must be rows of numbers ({problem}).") from None
    if points.ndim != 2 or points.shape[1] != d or len(points) == 0:
        raise UserError(f"`landmarks` must be one or more rows with {d} columns, like `X`.")
    if not np.isfinite(points).all():
        raise UserError("`landmarks` must be finite, but hold NaN or infinite values.")
    return points


__all__ = ["FeatureSettings", "Prepared", "prepare"]
