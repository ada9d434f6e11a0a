"""How columns are shifted and scaled before any kernel or centroid sees them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dmkc.errors import UserError
from dmkc.kernels import Scaling
from dmkc.scan.survey import Survey

MIXED = 5.0
"""Columns have different units where the largest spread is more than this many times the median."""


def scaling_of(
    survey: Survey,
    scale: str | None,
    min_rows: int = 2,
    views: Iterable[tuple[int, int]] = (),
) -> Scaling:
    """Columns are always shifted to mean zero; `scale` says what they are divided by.

    "if-mixed" is "standard" where the columns of a view seem to have different units, and None
    where not.
    """
    constant = survey.spread <= 1e-14 * np.abs(survey.mean)
    constant |= survey.high == survey.low
    if constant.all() and min_rows > 1:
        raise UserError(
            "All rows are equal (every column is constant), so there is nothing to cluster."
        )
    size = np.ones_like(survey.mean)
    if scale == "standard":
        size = survey.spread
    elif scale == "minmax":
        size = survey.high - survey.low
    elif scale == "if-mixed":
        for start, stop in views or [(0, len(size))]:
            part, fixed = survey.spread[start:stop], constant[start:stop]
            if mixed_units(part[~fixed]):
                size[start:stop] = part
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, size))
    return Scaling(survey.mean, factor)


def evened(scaling: Scaling, survey: Survey, views: Iterable[tuple[int, int]]) -> Scaling:
    """The same with every view divided by the root of its summed variance, so that all weigh alike.

    What looks at all columns at once, such as a k-means start, would else see wide views only.
    """
    factor = scaling.factor.copy()
    for start, stop in views:
        size = np.sqrt(np.sum((survey.spread[start:stop] * factor[start:stop]) ** 2))
        factor[start:stop] /= size if size > 0 else 1.0
    return Scaling(scaling.shift, factor) if views else scaling


def mixed_units(spread: np.ndarray) -> bool:
    """Whether columns of these standard deviations (none of them 0) seem to have no common unit."""
    return len(spread) > 0 and bool(spread.max() > MIXED * np.median(spread))
