"""Putting criteria of different units together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import rankdata


def rescaled(values: np.ndarray) -> np.ndarray:
    """Values moved to 0 (lowest) .. 1 (highest); a NaN is as good as the lowest."""
    values = np.asarray(values, dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known) or known.max() == known.min():
        return np.where(np.isnan(values), 0.0, 1.0)
    scaled = (values - known.min()) / (known.max() - known.min())
    return np.where(np.isnan(scaled), 0.0, scaled)


def mean_rescaled(criteria: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mean of the rescaled criteria (larger is better) of every candidate."""
    return np.mean([rescaled(values) for values in criteria.values()], axis=0)


def percentile_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks between 0 (lowest) and 1 (highest); equal values share theirs, a NaN is lowest."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return np.ones(len(values))
    return (rankdata(np.where(np.isnan(values), -np.inf, values)) - 1.0) / (len(values) - 1.0)


def mean_ranks(criteria: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mean percentile rank of every candidate over all criteria (larger is better)."""
    return np.mean([percentile_ranks(values) for values in criteria.values()], axis=0)
