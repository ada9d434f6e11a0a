"""What rows and kernels must be before they are fitted; what is wrong is named by its place."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap, KernelPlan
from dmkc.kernels.tiles import constant_columns
from dmkc.scan.survey import LARGEST, Survey

LEAST = 1e-152
"""Differences between values whose squares are numbers."""
SCALED = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e100}
"""The largest of scaled values, which kernels multiply with each other, lies within this and its
inverse."""
EXACT = 2.0**53
"""Whole numbers beyond this are rounded when they become floating-point numbers."""


def check_enough(n: int, n_clusters: int) -> None:
    """Refuse fewer rows than clusters."""
    if n < n_clusters:
        raise UserError(
            f"`n_samples={n}` should be >= `n_clusters={n_clusters}`: "
            f"{n} row(s) cannot form {n_clusters} clusters."
        )


def check_weighted(survey: Survey, n_clusters: int) -> None:
    """Refuse a sample with fewer weighted rows than clusters."""
    if np.count_nonzero(survey.sample_weights) < n_clusters:
        raise UserError(
            f"Fewer than {n_clusters} of the sampled rows have a positive `sample_weight`, which "
            "is too few to begin from: drop rows of weight 0, or increase `sample_rows`."
        )


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
        f"Input `X` contains {' and '.join(parts)} value(s), first at {'; '.join(places)}: "
        "fill in or drop these rows before clustering."
    )


def check_range(survey: Survey, rows: Rows, min_rows: int) -> None:
    """Refuse columns whose values cannot be squared, or differ by what rounding takes away.

    With `min_rows` of 1 columns may be as alike as they are.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size, reach = np.maximum(np.abs(survey.low), np.abs(survey.high)), survey.high - survey.low
    large = (size > LARGEST) | ~np.isfinite(survey.deviation)
    if large.any():
        j = int(np.argmax(np.where(large, size, 0.0)))
        raise UserError(
            f"{_column(rows, j)} holds {_farthest(survey, j):.6g}, and squares of such values "
            "cannot be summed up: divide the column by a constant first."
        )
    tiny = (reach > 0) & (reach < LEAST)
    if tiny.any():
        j = int(np.argmax(tiny))
        raise UserError(
            f"{_column(rows, j)} varies by {reach[j]:.3g} only, around {survey.low[j]:.6g}, which "
            "vanishes when it is squared: multiply the column by a constant first, or leave it out."
        )
    alike = constant_columns(survey) if min_rows > 1 else reach == 0
    rounded = (size > EXACT) & (rows.dtype.kind in "iu")
    lost = alike & rounded & ((reach > 0) | alike.all())
    if lost.any():
        j = int(np.argmax(lost))
        raise UserError(
            f"{_column(rows, j)} holds whole numbers such as {_farthest(survey, j):.0f}, beyond "
            "2^53, which are rounded to floating-point numbers too coarsely to tell rows apart: "
            "subtract a constant from the column first, or leave it out."
        )
    if alike.all() and (reach > 0).any():
        j = int(np.argmax(reach > 0))
        raise UserError(
            f"{_column(rows, j)} varies by {reach[j]:.3g} only, around {survey.low[j]:.6g}, which "
            "is lost in rounding, and no other column varies more: subtract a constant from the "
            "column first."
        )


def check_precision(survey: Survey, rows: Rows, shift: Any, factor: Any, dtype: np.dtype) -> None:
    """Refuse rows that, shifted and scaled, are too large or too small for a precision."""
    limit = SCALED[np.dtype(dtype)]
    ends = np.abs([survey.low - shift, survey.high - shift])
    size = ends.max(axis=0) * factor
    j = int(np.argmax(size))
    if size[j] > limit or 0 < size[j] < 1.0 / limit:
        what = "large" if size[j] > 1 else "small"
        raise UserError(
            f"{_column(rows, j)} holds {_farthest(survey, j):.6g}, which is too {what} to compute "
            f'with in {np.dtype(dtype)} as it is: choose `scale="standard"`, or other units.'
        )


@contextlib.contextmanager
def no_overflow(kernel: Any, survey: Survey, rows: Rows) -> Iterator[None]:
    """Say which kernel has values beyond all numbers instead of warning of it."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError:
        raise overflow(kernel, survey, rows) from None


def overflow(kernel: Any, survey: Survey, rows: Rows) -> UserError:
    """The sentence about a kernel that cannot be computed on these rows."""
    j = int(np.argmax(np.maximum(np.abs(survey.low), np.abs(survey.high))))
    return UserError(
        f"{kernel} has values beyond what numbers can hold on these rows, whose "
        f"{_column(rows, j).lower()} holds {_farthest(survey, j):.6g}: choose another kernel or "
        '`scale="standard"`.'
    )


def check_stored(values: np.ndarray, plan: KernelPlan, survey: Survey, rows: Rows) -> None:
    """Refuse a kernel whose stored values are not finite, though all values of the rows are."""
    edges = plan.offsets
    for kernel, start, stop in zip(plan.kernels, edges, edges[1:], strict=False):
        if not np.isfinite(values[:, start:stop]).all():
            raise overflow(f"The kernel {kernel}", survey, rows)


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


def _farthest(survey: Survey, j: int) -> float:
    """The value of a column that is farthest from zero."""
    low, high = float(survey.low[j]), float(survey.high[j])
    return low if abs(low) > abs(high) else high


def _column(rows: Rows, j: int) -> str:
    return f"Column {rows.column_names[j] if rows.column_names else j} of X"
