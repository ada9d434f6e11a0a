"""The clusterers."""

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
]
