"""The only estimators that a model file may name."""

from __future__ import annotations

from typing import Any

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.modelfile.errors import ModelFileError


def estimator_class(name: Any) -> type[RowClusterer]:
    """The registered estimator of that class name."""
    for known in ESTIMATORS.values():
        if known.__name__ == name:
            return known
    names = ", ".join(known.__name__ for known in ESTIMATORS.values())
    raise ModelFileError(
        f"The file holds a model of {name!r}, but known are only {names}: install the package "
        "that has it, or call dmkc.register_estimator."
    )
