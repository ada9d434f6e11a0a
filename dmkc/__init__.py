"""Distributed multiple-kernel, maximum-margin clustering on Dask."""

from dmkc.clusterers import (
    ConsensusClustering,
    HierarchicalKernelKMeans,
    KernelKMeans,
    KMeans,
    MarginDistributionClustering,
    MultipleKernelClustering,
    MultipleKernelKMeans,
    NonparallelPlaneClustering,
    SparseKernelMMC,
    SpectralClustering,
)
from dmkc.clusterers.registry import register_estimator
from dmkc.kernels import Cosine, Gaussian, Kernel, Laplacian, Linear, Neighbours, Polynomial
from dmkc.modelfile import load
from dmkc.planning import plan
from dmkc.resume import checkpoint
from dmkc.selection.run import select
from dmkc.version import __version__

__all__ = [
    "ConsensusClustering",
    "Cosine",
    "Gaussian",
    "HierarchicalKernelKMeans",
    "KMeans",
    "Kernel",
    "KernelKMeans",
    "Laplacian",
    "Linear",
    "MarginDistributionClustering",
    "MultipleKernelClustering",
    "MultipleKernelKMeans",
    "Neighbours",
    "NonparallelPlaneClustering",
    "Polynomial",
    "SparseKernelMMC",
    "SpectralClustering",
    "__version__",
    "checkpoint",
    "load",
    "plan",
    "register_estimator",
    "select",
]
