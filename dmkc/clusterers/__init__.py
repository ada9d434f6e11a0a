"""The clusterers; each brings its family when it is first asked for."""

from typing import TYPE_CHECKING

from dmkc.importing import names_when_asked

if TYPE_CHECKING:
    from dmkc.clusterers.auto import AutoClustering, cluster
    from dmkc.clusterers.kmeans.consensus import ConsensusClustering
    from dmkc.clusterers.kmeans.hierarchical import HierarchicalKernelKMeans
    from dmkc.clusterers.kmeans.kernel_kmeans import KernelKMeans
    from dmkc.clusterers.kmeans.kmeans import KMeans
    from dmkc.clusterers.kmeans.mkkm import MultipleKernelKMeans
    from dmkc.clusterers.kmeans.spectral import SpectralClustering
    from dmkc.clusterers.margin.mkc import MultipleKernelClustering
    from dmkc.clusterers.margin.skmmc import SparseKernelMMC
    from dmkc.clusterers.odm.odm import MarginDistributionClustering
    from dmkc.clusterers.planes.planes import NonparallelPlaneClustering

__all__ = [
    "AutoClustering",
    "ConsensusClustering",
    "HierarchicalKernelKMeans",
    "KMeans",
    "KernelKMeans",
    "MarginDistributionClustering",
    "MultipleKernelClustering",
    "MultipleKernelKMeans",
    "NonparallelPlaneClustering",
    "SparseKernelMMC",
    "SpectralClustering",
    "cluster",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_when_asked(
        __name__,
        {
            "AutoClustering": "auto",
            "cluster": "auto",
            "ConsensusClustering": "kmeans.consensus",
            "HierarchicalKernelKMeans": "kmeans.hierarchical",
            "KMeans": "kmeans.kmeans",
            "KernelKMeans": "kmeans.kernel_kmeans",
            "MarginDistributionClustering": "odm.odm",
            "MultipleKernelClustering": "margin.mkc",
            "MultipleKernelKMeans": "kmeans.mkkm",
            "NonparallelPlaneClustering": "planes.planes",
            "SparseKernelMMC": "margin.skmmc",
            "SpectralClustering": "kmeans.spectral",
        },
    )
