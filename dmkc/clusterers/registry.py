"""Estimators by short name: the built-in ones, those of other packages, and registered ones.

Another package offers an estimator by an entry point of the group `dmkc.estimators`; code that is
not installed calls `register_estimator`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.kmeans.hierarchical import HierarchicalKernelKMeans
from dmkc.clusterers.kmeans.kernel_kmeans import KernelKMeans
from dmkc.clusterers.kmeans.kmeans import KMeans
from dmkc.clusterers.kmeans.mkkm import MultipleKernelKMeans
from dmkc.clusterers.margin.mkc import MultipleKernelClustering
from dmkc.clusterers.margin.skmmc import SparseKernelMMC
from dmkc.clusterers.odm.odm import MarginDistributionClustering
from dmkc.clusterers.parameters import check_signature
from dmkc.clusterers.planes.planes import NonparallelPlaneClustering
from dmkc.errors import UserError

GROUP = "dmkc.estimators"
NAME = re.compile(r"[a-z][a-z0-9-]*")


class Registry(Mapping[str, type[RowClusterer]]):
    """Classes by short name; entry points are looked for when somebody first asks."""

    def __init__(self, built_in: Mapping[str, type[RowClusterer]]) -> None:
        self._classes = dict(built_in)
        self._has_entry_points = False

    def __getitem__(self, name: str) -> type[RowClusterer]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def add(self, name: str, cls: Any) -> None:
        """Take in a class, unless it is none that can be fitted, saved and found by its name."""
        if not isinstance(cls, type) or not issubclass(cls, RowClusterer):
            raise UserError(f"The estimator {name!r} must be a subclass of RowClusterer.")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UserError(
                f"The name {name!r} of {cls.__name__} must be made of small letters, digits and -."
            )
        if self._classes.get(name) is cls:
            return
        known = {*self, *(other.__name__ for other in self.values())}
        for taken in (name, cls.__name__):
            if taken in known:
                raise UserError(
                    f"There is an estimator {taken!r} already; choose another name for {cls!r}."
                )
        check_signature(cls, cls.declared)
        self._classes[name] = cls

    def _all(self) -> dict[str, type[RowClusterer]]:
        if not self._has_entry_points:
            self._has_entry_points = True
            for entry in entry_points(group=GROUP):
                self._load(entry)
        return self._classes

    def _load(self, entry: EntryPoint) -> None:
        """A package that is broken must not break everything else."""
        try:
            self.add(entry.name, entry.load())
        except Exception as problem:
            package = entry.dist.name if entry.dist is not None else entry.value
            warnings.warn(
                f"The estimator {entry.name!r} of the package {package!r} is left out: "
                f"{type(problem).__name__}: {problem}",
                stacklevel=2,
            )


ESTIMATORS = Registry(
    {
        "mkc": MultipleKernelClustering,
        "planes": NonparallelPlaneClustering,
        "skmmc": SparseKernelMMC,
        "odm": MarginDistributionClustering,
        "kmeans": KMeans,
        "kernel-kmeans": KernelKMeans,
        "mkkm": MultipleKernelKMeans,
        "hmkkm": HierarchicalKernelKMeans,
    }
)
"""All estimators; the first is the default of the command line."""


def register_estimator(name: str, cls: type[RowClusterer]) -> None:
    """Make an estimator known by a short name, for model files and the command line.

    Examples
    --------
    >>> from dmkc import KMeans, register_estimator
    >>> register_estimator("kmeans", KMeans)  # as a package of yours would register its class
    """
    ESTIMATORS.add(name, cls)
