"""The clusterers."""

from dmkc.clusterers.mkc import MultipleKernelClustering

__all__ = ["MultipleKernelClustering"]
