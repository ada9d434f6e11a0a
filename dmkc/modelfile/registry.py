"""The only estimators that a model file may name."""

from __future__ import annotations

from typing import Any

from dmkc.clusterers import (
    HierarchicalKernelKMeans,
    KernelKMeans,
    KMeans,
    MarginDistributionClustering,
    MultipleKernelClustering,
    MultipleKernelKMeans,
    NonparallelPlaneClustering,
    SparseKernelMMC,
)
from dmkc.clusterers.estimator import RowClusterer
from dmkc.modelfile.errors import ModelFileError

ESTIMATORS: dict[str, type[RowClusterer]] = {
    "mkc": MultipleKernelClustering,
    "planes": NonparallelPlaneClustering,
    "skmmc": SparseKernelMMC,
    "odm": MarginDistributionClustering,
    "kmeans": KMeans,
    "kernel-kmeans": KernelKMeans,
    "mkkm": MultipleKernelKMeans,
    "hmkkm": HierarchicalKernelKMeans,
}
"""Estimators by short name; a file holds the name of the class."""


def estimator_class(name: Any) -> type[RowClusterer]:
    """The estimator of that class name."""
    for known in ESTIMATORS.values():
        if known.__name__ == name:
            return known
    names = ", ".join(known.__name__ for known in ESTIMATORS.values())
    raise ModelFileError(f"The file holds a model of {name!r}, but known are only {names}.")
