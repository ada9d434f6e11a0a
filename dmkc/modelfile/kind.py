"""What a file needs to know of one kind of model: its settings, its arrays, how to build it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from dmkc.modelfile.errors import ModelFileError

PRECISIONS = ("float32", "float64")
Arrays = dict[str, np.ndarray]


class ModelKind(ABC):
    """One kind of model; `read` gives checked settings, which `array_names` and `build` take."""

    name: str
    model: type

    @abstractmethod
    def settings(self, model: Any) -> dict[str, Any]:
        """What is not an array."""

    @abstractmethod
    def arrays(self, model: Any) -> Mapping[str, Any]:
        """Every array by its name in the file."""

    @abstractmethod
    def read(self, stored: dict[str, Any]) -> Any:
        """Settings from a file, checked."""

    @abstractmethod
    def array_names(self, settings: Any) -> list[str]:
        """The arrays that such a model has."""

    @abstractmethod
    def build(self, settings: Any, arrays: Arrays, n_columns: Any) -> Any:
        """The model, once all shapes are known to fit together."""


def check_arrays(arrays: Arrays, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays that do not fit together or hold values that are not finite."""
    for name, shape in wanted.items():
        if arrays[name].shape != shape:
            raise ModelFileError(
                f"The array {name!r} has shape {arrays[name].shape} where the other arrays of the "
                f"model ask for {shape}."
            )
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"The array {name!r} holds values that are not finite.")


def read_precision(stored: dict[str, Any]) -> np.dtype:
    if stored.get("dtype") not in PRECISIONS:
        found = stored.get("dtype")
        raise ModelFileError(f"The precision must be float32 or float64, not {found!r}.")
    return np.dtype(stored["dtype"])


def read_count(stored: dict[str, Any], name: str, what: str) -> int:
    value = stored.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelFileError(f"{what} must be a positive number, not {value!r}.")
    return value


def read_flag(stored: dict[str, Any], name: str) -> bool:
    if not isinstance(stored.get(name), bool):
        raise ModelFileError(f"{name!r} must be true or false, not {stored.get(name)!r}.")
    return stored[name]
