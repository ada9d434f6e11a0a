"""All estimators by short name; the first is the default of the command line."""

from __future__ import annotations

from dmkc.clusterers.auto import AutoClustering
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.kmeans.consensus import ConsensusClustering
from dmkc.clusterers.kmeans.hierarchical import HierarchicalKernelKMeans
from dmkc.clusterers.kmeans.kernel_kmeans import KernelKMeans
from dmkc.clusterers.kmeans.kmeans import KMeans
from dmkc.clusterers.kmeans.mkkm import MultipleKernelKMeans
from dmkc.clusterers.kmeans.spectral import SpectralClustering
from dmkc.clusterers.margin.mkc import MultipleKernelClustering
from dmkc.clusterers.margin.skmmc import SparseKernelMMC
from dmkc.clusterers.odm.odm import MarginDistributionClustering
from dmkc.clusterers.parameters import check_signature
from dmkc.clusterers.planes.planes import NonparallelPlaneClustering
from dmkc.errors import UserError
from dmkc.registry import Registry


class Estimators(Registry[RowClusterer]):
    """Estimators, each of which declares the parameters that it takes."""

    def _check(self, cls: type[RowClusterer]) -> None:
        missing = ", ".join(sorted(cls.__abstractmethods__))
        if missing:
            raise UserError(f"The estimator {cls.__name__} must define {missing}.")
        check_signature(cls, cls.declared)


ESTIMATORS = Estimators("dmkc.estimators", "estimator", RowClusterer)  # type: ignore[type-abstract]
_BUILT_IN: dict[str, type[RowClusterer]] = {
    "auto": AutoClustering,
    "mkc": MultipleKernelClustering,
    "planes": NonparallelPlaneClustering,
    "skmmc": SparseKernelMMC,
    "odm": MarginDistributionClustering,
    "kmeans": KMeans,
    "kernel-kmeans": KernelKMeans,
    "mkkm": MultipleKernelKMeans,
    "hmkkm": HierarchicalKernelKMeans,
    "spectral": SpectralClustering,
    "consensus": ConsensusClustering,
}
for _name, _cls in _BUILT_IN.items():
    ESTIMATORS.register(_name, _cls)


def register_estimator(name: str, cls: type[RowClusterer]) -> None:
    """Make an estimator known by a short name, for model files and the command line.

    Examples
    --------
    >>> from dmkc import KMeans, register_estimator
    >>> register_estimator("kmeans", KMeans)  # as a package of yours would register its class
    """
    ESTIMATORS.register(name, cls)
