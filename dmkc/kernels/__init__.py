"""Kernels, kernel banks and the features made from them."""

from dmkc.kernels.bank import DEFAULT_BANK, as_bank, data_scale, per_column
from dmkc.kernels.columns import ColumnMaker, Scaling
from dmkc.kernels.features import FeatureMap
from dmkc.kernels.kernels import (
    ColumnGaussian,
    Columns,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
)

__all__ = [
    "DEFAULT_BANK",
    "ColumnGaussian",
    "ColumnMaker",
    "Columns",
    "Cosine",
    "FeatureMap",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Scaling",
    "as_bank",
    "data_scale",
    "per_column",
]
