"""Distributed multiple-kernel, maximum-margin clustering on Dask.

Importing the package imports next to nothing: a public name brings what it needs when it is first
asked for.
"""

from typing import TYPE_CHECKING

from dmkc.importing import names_when_asked
from dmkc.version import __version__

if TYPE_CHECKING:
    from dmkc.clusterers import (
        AutoClustering,
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
        cluster,
    )
    from dmkc.clusterers.registry import register_estimator
    from dmkc.kernels import Cosine, Gaussian, Kernel, Laplacian, Linear, Neighbours, Polynomial
    from dmkc.modelfile import load
    from dmkc.planning.plan import plan
    from dmkc.resume import checkpoint
    from dmkc.selection.run import select
    from dmkc.tables import TableColumns

__all__ = [
    "AutoClustering",
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
    "TableColumns",
    "__version__",
    "checkpoint",
    "cluster",
    "load",
    "plan",
    "register_estimator",
    "select",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__, __dir__ = names_when_asked(
        __name__,
        {
            "AutoClustering": "clusterers",
            "ConsensusClustering": "clusterers",
            "Cosine": "kernels",
            "Gaussian": "kernels",
            "HierarchicalKernelKMeans": "clusterers",
            "KMeans": "clusterers",
            "Kernel": "kernels",
            "KernelKMeans": "clusterers",
            "Laplacian": "kernels",
            "Linear": "kernels",
            "MarginDistributionClustering": "clusterers",
            "MultipleKernelClustering": "clusterers",
            "MultipleKernelKMeans": "clusterers",
            "Neighbours": "kernels",
            "NonparallelPlaneClustering": "clusterers",
            "Polynomial": "kernels",
            "SparseKernelMMC": "clusterers",
            "SpectralClustering": "clusterers",
            "TableColumns": "tables",
            "checkpoint": "resume",
            "cluster": "clusterers",
            "load": "modelfile",
            "plan": "planning.plan",
            "register_estimator": "clusterers.registry",
            "select": "selection.run",
        },
    )
