"""The clusterers."""

from dmkc.clusterers.hierarchical import HierarchicalKernelKMeans
from dmkc.clusterers.kernel_kmeans import KernelKMeans
from dmkc.clusterers.kmeans import KMeans
from dmkc.clusterers.mkc import MultipleKernelClustering
from dmkc.clusterers.mkkm import MultipleKernelKMeans
from dmkc.clusterers.odm import MarginDistributionClustering
from dmkc.clusterers.planes import NonparallelPlaneClustering
from dmkc.clusterers.skmmc import SparseKernelMMC

__all__ = [
    "HierarchicalKernelKMeans",
    "KMeans",
    "KernelKMeans",
    "MarginDistributionClustering",
    "MultipleKernelClustering",
    "MultipleKernelKMeans",
    "NonparallelPlaneClustering",
    "SparseKernelMMC",
]
