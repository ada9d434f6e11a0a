"""Kernels, kernel banks and the features made from them."""

import warnings
from typing import Any

from dmkc.kernels.bank import DEFAULT_BANK, KERNELS, as_bank, per_column, per_view, register_kernel
from dmkc.kernels.base import FittedKernel, Kernel, OnColumns, OnLandmarks, PairwiseKernel
from dmkc.kernels.features import FeatureMap
from dmkc.kernels.kernels import (
    ColumnGaussian,
    Columns,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
)
from dmkc.kernels.neighbours import Neighbours
from dmkc.kernels.plan import KernelPlan
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import Scaling, Tile, View

__all__ = [
    "DEFAULT_BANK",
    "KERNELS",
    "ColumnGaussian",
    "Columns",
    "Cosine",
    "FeatureMap",
    "FittedKernel",
    "Gaussian",
    "Kernel",
    "KernelPlan",
    "KernelSample",
    "Laplacian",
    "Linear",
    "Neighbours",
    "OnColumns",
    "OnLandmarks",
    "PairwiseKernel",
    "Polynomial",
    "Scaling",
    "Tile",
    "View",
    "as_bank",
    "per_column",
    "per_view",
    "register_kernel",
]

RENAMED: dict[str, Any] = {"ColumnMaker": KernelPlan.on, "data_scale": KernelSample}


def __getattr__(name: str) -> Any:
    """Names of the version before, for one version."""
    if name in RENAMED:
        new = RENAMED[name].__qualname__
        warnings.warn(
            f"dmkc.kernels.{name} is now {new}; the old name goes with the next version.",
            DeprecationWarning,
            stacklevel=2,
        )
        return RENAMED[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
