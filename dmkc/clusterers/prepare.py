"""From rows to scannable features: survey, scaling, landmarks, columns, centring.

Every clusterer begins here.  What comes out depends on the rows, the settings and the seed alone,
never on chunks, workers or scheduler.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.spread import choose_mode, row_blocks, spread
from dmkc.data import Rows, Weighted
from dmkc.data.rows import scan_width
from dmkc.kernels import ColumnMaker, FeatureMap, Kernel, Laplacian, Scaling, data_scale
from dmkc.kernels.columns import column_offsets, padded
from dmkc.kernels.landmarks import choose_landmarks
from dmkc.scan.engine import Engine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import Survey, SurveyScan, sample_positions

SAMPLE_BYTES = 256 << 20
EXACT_BYTES = 64 << 20
"""Features up to this size are float64 when the precision is left open: it costs nothing."""


@dataclass(frozen=True)
class FeatureSettings:
    """How rows become features."""

    kernels: tuple[Kernel, ...]
    scale: str | None
    rank: int
    landmarks: Any
    dtype: str
    mode: str
    store_path: str | None
    sample_rows: int
    seed: int


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

    @property
    def sample_is_all(self) -> bool:
        return len(self.positions) == self.rows.n_rows


def prepare(
    rows: Rows,
    engine: Engine,
    settings: FeatureSettings,
    min_rows: int,
    sample_weight: Any = None,
) -> Prepared:
    """Survey the rows, build the feature map and hold (or plan) the columns."""
    n, d = rows.n_rows, rows.n_columns
    if n < min_rows:
        raise ValueError(
            f"n_samples={n} should be >= n_clusters={min_rows}: "
            f"{n} row(s) cannot form {min_rows} clusters."
        )
    given = None
    if not isinstance(settings.landmarks, str):
        given = _check_landmarks(settings.landmarks, d)
    rank = min(settings.rank, n) if given is None else len(given)
    width = padded(column_offsets(settings.kernels, d, rank)[-1])
    dtype = _dtype(settings.dtype, n, width)
    grid = Grid.plan(n, max(width, scan_width(rows)), engine.block_bytes, engine.threads)
    leaf_rows = grid.leaf_rows
    mode = choose_mode(settings, n, d, width, dtype.itemsize, engine)

    weighted = sample_weight is not None
    blocks = row_blocks(rows, engine, grid, mode, sample_weight)
    size = min(settings.sample_rows, max(SAMPLE_BYTES // (8 * d), 64))
    positions = sample_positions(n, size, settings.seed)
    survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
    check_finite(survey, rows)
    if np.count_nonzero(survey.sample_weights) < min_rows:
        raise ValueError(
            f"Fewer than {min_rows} of the sampled rows have a positive sample_weight, which is "
            "too few to begin from: drop rows of weight 0, or increase sample_rows."
        )
    scaling = scaling_of(survey, settings.scale, min_rows)

    standardised = scaling.apply(survey.sample)
    needed = any(isinstance(k, Laplacian) for k in settings.kernels)
    scale = data_scale(standardised, survey.sample_weights, manhattan=needed)
    kernels = tuple(k.resolve(scale) for k in settings.kernels)
    if given is None:
        heavy = standardised[survey.sample_weights > 0]
        points = choose_landmarks(settings.landmarks, heavy, rank, settings.seed)
    else:
        points = scaling.apply(given)
    maker = ColumnMaker(scaling, kernels, points, dtype, leaf_rows, weighted)

    sample_rows = Weighted(survey.sample, survey.sample_weights)
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
        rows, survey, positions, standardised, features, sample, everywhere, mode, engine
    )


def _dtype(name: str, n: int, width: int) -> np.dtype:
    if name == "auto":
        return np.dtype(np.float64 if n * width * 8 <= EXACT_BYTES else np.float32)
    return np.dtype(name)


def scaling_of(survey: Survey, scale: str | None, min_rows: int = 2) -> Scaling:
    """Columns are always shifted to mean zero; `scale` says what they are divided by."""
    constant = survey.spread <= 1e-14 * np.abs(survey.mean)
    constant |= survey.high == survey.low
    if constant.all() and min_rows > 1:
        raise ValueError(
            "All rows are equal (every column is constant), so there is nothing to cluster."
        )
    if scale == "standard":
        size = survey.spread
    elif scale == "minmax":
        size = survey.high - survey.low
    else:
        size = np.ones_like(survey.mean)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, size))
    return Scaling(survey.mean, factor)


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
    raise ValueError(
        f"Input X contains {' and '.join(parts)} value(s), first at {'; '.join(places)}: "
        "fill in or drop these rows before clustering."
    )


def check_kernels(features: FeatureMap) -> None:
    """Warn of kernels that are constant on these rows; refuse a bank of nothing else."""
    dead = [k for k, s in zip(features.kernels, features.scale, strict=True) if s == 0]
    if len(dead) == len(features.kernels):
        raise ValueError(
            "Every kernel of the bank is constant on these rows (degenerate), so nothing can be "
            "separated: choose other kernels or widths."
        )
    if dead:
        warnings.warn(
            f"Kernels that are constant on these rows get no weight: {dead}", stacklevel=2
        )


def _check_landmarks(landmarks: Any, d: int) -> np.ndarray:
    points = np.asarray(landmarks, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != d or len(points) == 0:
        raise ValueError(f"landmarks must be one or more rows with {d} columns, like X.")
    if not np.isfinite(points).all():
        raise ValueError("landmarks must be finite, but hold NaN or infinite values.")
    return points


__all__ = ["FeatureSettings", "Prepared", "prepare"]
