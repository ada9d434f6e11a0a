"""Distributed multiple-kernel, maximum-margin clustering on Dask.

Importing the package imports next to nothing: a public name brings what it needs when it is first
asked for.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from dmkc.version import __version__

if TYPE_CHECKING:
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
    from dmkc.planning.plan import plan
    from dmkc.resume import checkpoint
    from dmkc.selection.run import select

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

_ELSEWHERE = {
    "Cosine": "kernels",
    "Gaussian": "kernels",
    "Kernel": "kernels",
    "Laplacian": "kernels",
    "Linear": "kernels",
    "Neighbours": "kernels",
    "Polynomial": "kernels",
    "checkpoint": "resume",
    "load": "modelfile",
    "plan": "planning.plan",
    "register_estimator": "clusterers.registry",
    "select": "selection.run",
}
"""Where public names come from; all others are clusterers."""


def _modules() -> set[str]:
    """What `dmkc.NAME` finds without an import of its own."""
    return {found.name for found in iter_modules(__path__)}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_modules()})


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name in __all__:
            home = import_module(f"dmkc.{_ELSEWHERE.get(name, 'clusterers')}")
            globals()[name] = getattr(home, name)  # asked for once
            return globals()[name]
        if name in _modules():
            return import_module(f"dmkc.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
