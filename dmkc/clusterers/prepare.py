"""From rows to scannable features: survey, scaling, landmarks, columns, centring.

Every clusterer begins here.  What comes out depends on the rows, the settings and the seed alone,
never on chunks, workers or scheduler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.spread import Layout, choose_mode, row_blocks, sample_of, spread
from dmkc.data import Rows, Weighted
from dmkc.data.rows import scan_width
from dmkc.data.weights import parted, rank_among
from dmkc.errors import UserError
from dmkc.kernels import ColumnMaker, FeatureMap, Kernel, Laplacian, Scaling, data_scale
from dmkc.kernels.columns import column_offsets, padded
from dmkc.kernels.landmarks import choose_landmarks
from dmkc.kernels.unit import DiagonalMaker
from dmkc.scan.assign import Centroids, FarScan, Frame
from dmkc.scan.engine import Block, Engine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import Survey, SurveyScan

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
    around: Known | None
    """More rows, on which starts are found, where there are any."""


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
    landmarks: Any
    """A name, an array of rows, or a `LandmarkChooser`."""
    dtype: str
    mode: str
    store_path: str | None
    sample_rows: int
    seed: int
    diagonals: bool = False
    """Whether the columns are followed by every kernel's k(x, x)."""


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
    everywhere: RowSet
    mode: str
    engine: Engine
    around: Any
    """Rows on which scaling and starts are found, where these are not the sampled rows."""
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
            _standardised(self.around, self.features.columns.scaling),
        )

    @property
    def sample_is_all(self) -> bool:
        return self.everywhere is self.sample

    def of_sample(self, which: np.ndarray) -> Prepared:
        """Some of the sampled rows alone, each of weight 1, under the same features."""
        sample = self.sample.of_weight_one(which)
        return replace(
            self,
            survey=replace(
                self.survey,
                sample=self.survey.sample[which],
                sample_weights=np.ones(len(which)),
            ),
            positions=self.positions[which],
            standardised=self.standardised[which],
            sample=sample,
            everywhere=sample,
            around=None,
        )


def prepare(
    rows: Rows,
    engine: Engine,
    settings: FeatureSettings,
    min_rows: int,
    sample_weight: Any = None,
    around: Any = None,
) -> Prepared:
    """Survey the rows, build the feature map and hold (or plan) the columns.

    `around` are more rows than the given ones, on which scaling and starts are found.
    """
    n, d = rows.n_rows, rows.n_columns
    check_enough(n, min_rows)
    chooser = settings.landmarks if callable(settings.landmarks) else None
    given = _given_landmarks(settings, d)
    layout = layout_of(rows, engine, settings)
    grid, mode, leaf_rows = layout.grid, layout.mode, layout.grid.leaf_rows

    weighted = sample_weight is not None
    blocks = row_blocks(rows, engine, grid, mode, sample_weight)
    positions = sample_of(rows, layout.sample_rows, settings.seed)
    survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
    check_finite(survey, rows)
    check_weighted(survey, min_rows)
    moments = survey if around is None else _survey_around(around, leaf_rows)
    scaling = scaling_of(moments, settings.scale, min_rows)

    standardised = scaling.apply(survey.sample)
    needed = any(isinstance(k, Laplacian) for k in settings.kernels)
    scale = data_scale(standardised, survey.sample_weights, manhattan=needed)
    if any(k.needs_largest for k in settings.kernels):
        largest = largest_squared(engine, blocks, grid, scaling, rows.sparse)
        scale = replace(scale, largest_squared=largest)
    kernels = tuple(k.resolve(scale) for k in settings.kernels)
    choice = None
    if chooser is not None:
        more = _standardised(around, scaling)
        choice = chooser(
            SampleView(standardised, survey.sample_weights, positions, n, kernels, more)
        )
        points = choice.landmarks
    elif given is None:
        heavy = standardised[survey.sample_weights > 0]
        points = choose_landmarks(settings.landmarks, heavy, min(settings.rank, n), settings.seed)
    else:
        points = scaling.apply(given)
    tied = rows.tied is not None
    kind = DiagonalMaker if settings.diagonals else ColumnMaker
    maker = kind(scaling, kernels, points, layout.dtype, leaf_rows, weighted, tied)

    numbers = rank_among(rows.tied, positions) if rows.tied is not None else None
    sample_rows = Weighted(survey.sample, survey.sample_weights, numbers)
    sample = SampleRows(maker(sample_rows), leaf_rows, maker.weight_at)
    sample_is_all = len(positions) == n
    everywhere: RowSet = sample
    if not sample_is_all:
        everywhere = spread(engine, blocks, grid, maker, mode, settings.store_path)
    raw = FeatureMap.build(maker)
    features = raw.normalised(everywhere.column_mean(), sample.columns, sample.weights)
    if min_rows > 1:
        check_kernels(features)
    return Prepared(
        rows,
        survey,
        positions,
        standardised,
        features,
        sample,
        everywhere,
        mode,
        engine,
        around,
        choice,
    )


def layout_of(rows: Rows, engine: Engine, settings: FeatureSettings) -> Layout:
    """How columns of these rows are cut and held on an engine."""
    n, d = rows.n_rows, rows.n_columns
    given = _given_landmarks(settings, d)
    rank = min(settings.rank, n) if given is None else len(given)
    width = padded(column_offsets(settings.kernels, d, rank)[-1])
    dtype = _dtype(settings.dtype, n, width)
    grid = engine.grid(n, max(width, scan_width(rows)))
    mode = choose_mode(settings, n, d, width, dtype.itemsize, engine)
    return Layout(grid, width, dtype, mode, sample_size(settings, d))


def sample_size(settings: FeatureSettings, n_columns: int) -> int:
    """Rows of the sample: fewer where rows are very wide."""
    return min(settings.sample_rows, max(SAMPLE_BYTES // (8 * n_columns), 64))


def _standardised(around: Any, scaling: Scaling) -> Known | None:
    """Rows around the given ones after scaling, with their weights."""
    if around is None:
        return None
    rows, weights = parted(around)
    standardised = scaling.apply(rows)
    return standardised, np.ones(len(standardised)) if weights is None else weights


def _survey_around(around: Any, leaf_rows: int) -> Survey:
    """Column moments of more rows than the given ones, which are less a matter of luck."""
    survey = SurveyScan(np.zeros(0, np.int64)).block(around, 0, leaf_rows)
    if survey.bad.any():
        raise UserError(
            f"Input X contains {int(survey.bad.sum())} NaN or infinite (inf) value(s) in a sample "
            f"of {around.shape[0]} rows: fill in or drop these rows before clustering."
        )
    return survey


def largest_squared(
    engine: Engine, blocks: Sequence[Block], grid: Grid, scaling: Scaling, sparse: bool
) -> float:
    """The largest squared distance between scaled rows, nearly.

    It is that of the row farthest from the mean to the row farthest from it.
    """
    nothing, double = np.empty(0), np.dtype(np.float64)
    frame = Frame(nothing if sparse else scaling.shift, scaling.factor, double)
    point = scaling.shift * scaling.factor if sparse else np.zeros_like(scaling.shift)
    for _ in range(2):
        scan = FarScan(Centroids(frame, point[None, None]), 1)
        _, _, rows, _, _, distances = engine.scan(scan, blocks, grid)
        point = rows[0]
    return float(distances[0]) or 1.0


def check_enough(n: int, n_clusters: int) -> None:
    """Refuse fewer rows than clusters."""
    if n < n_clusters:
        raise UserError(
            f"n_samples={n} should be >= n_clusters={n_clusters}: "
            f"{n} row(s) cannot form {n_clusters} clusters."
        )


def check_weighted(survey: Survey, n_clusters: int) -> None:
    """Refuse a sample with fewer weighted rows than clusters."""
    if np.count_nonzero(survey.sample_weights) < n_clusters:
        raise UserError(
            f"Fewer than {n_clusters} of the sampled rows have a positive sample_weight, which is "
            "too few to begin from: drop rows of weight 0, or increase sample_rows."
        )


def _dtype(name: str, n: int, width: int) -> np.dtype:
    if name == "auto":
        return np.dtype(np.float64 if n * width * 8 <= EXACT_BYTES else np.float32)
    return np.dtype(name)


MIXED = 5.0
"""Columns have different units where the largest spread is more than this many times the median."""


def scaling_of(survey: Survey, scale: str | None, min_rows: int = 2) -> Scaling:
    """Columns are always shifted to mean zero; `scale` says what they are divided by.

    "if-mixed" is "standard" where the columns seem to have different units, and None where not.
    """
    constant = survey.spread <= 1e-14 * np.abs(survey.mean)
    constant |= survey.high == survey.low
    if constant.all() and min_rows > 1:
        raise UserError(
            "All rows are equal (every column is constant), so there is nothing to cluster."
        )
    if scale == "if-mixed":
        scale = "standard" if mixed_units(survey.spread[~constant]) else None
    if scale == "standard":
        size = survey.spread
    elif scale == "minmax":
        size = survey.high - survey.low
    else:
        size = np.ones_like(survey.mean)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, size))
    return Scaling(survey.mean, factor)


def mixed_units(spread: np.ndarray) -> bool:
    """Whether columns of these standard deviations (none of them 0) seem to have no common unit."""
    return len(spread) > 0 and bool(spread.max() > MIXED * np.median(spread))


def check_finite(survey: Survey, rows: Rows) -> None:
    """Refuse NaN and infinity, saying how many and where the first ones are."""
    if not survey.bad.any():
        return
    parts = [
        f"{count} {what}"
        for count, what in zip(survey.bad, ("NaN", "infinite (inf)"), strict=True)
        if count
    ]
    labels = rows.container.row_labels(np.array([i for i, _ in survey.first_bad]))
    names = rows.column_names
    places = [
        f"row {row}, column {names[j] if names else j}"
        for row, (_, j) in zip(labels, survey.first_bad, strict=True)
    ]
    raise UserError(
        f"Input X contains {' and '.join(parts)} value(s), first at {'; '.join(places)}: "
        "fill in or drop these rows before clustering."
    )


def check_kernels(features: FeatureMap) -> None:
    """Warn of kernels that are constant on these rows; refuse a bank of nothing else."""
    dead = [k for k, s in zip(features.kernels, features.scale, strict=True) if s == 0]
    if len(dead) == len(features.kernels):
        raise UserError(
            "Every kernel of the bank is constant on these rows (degenerate), so nothing can be "
            "separated: choose other kernels or widths."
        )
    if dead:
        warnings.warn(
            f"Kernels that are constant on these rows get no weight: {dead}", stacklevel=2
        )


def _given_landmarks(settings: FeatureSettings, d: int) -> np.ndarray | None:
    """The landmarks that the caller has given, checked, or None."""
    if callable(settings.landmarks) or isinstance(settings.landmarks, str):
        return None
    points = np.asarray(settings.landmarks, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != d or len(points) == 0:
        raise UserError(f"landmarks must be one or more rows with {d} columns, like X.")
    if not np.isfinite(points).all():
        raise UserError("landmarks must be finite, but hold NaN or infinite values.")
    return points


__all__ = ["FeatureSettings", "Prepared", "prepare"]
