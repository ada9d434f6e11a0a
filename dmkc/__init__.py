"""Distributed multiple-kernel, maximum-margin clustering on Dask."""

from dmkc.clusterers import MultipleKernelClustering
from dmkc.kernels import Cosine, Gaussian, Kernel, Laplacian, Linear, Polynomial
from dmkc.modelfile import load

__version__ = "0.1.0"

__all__ = [
    "Cosine",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "MultipleKernelClustering",
    "Polynomial",
    "__version__",
    "load",
]
