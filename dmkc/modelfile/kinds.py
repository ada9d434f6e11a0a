"""What a kind of model says, so that models become named arrays and a few settings, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dmkc.kernels import KernelPlan
from dmkc.modelfile.plans import StoredPlan, build_plan, plan_arrays, plan_settings, read_plan
from dmkc.modelfile.values import Arrays, ModelFileError


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


class PlanKind(ModelKind):
    """A kind of models on kernel plans, of which several models may share one.

    What is read of a model is the settings of its plan, and its own.
    """

    @abstractmethod
    def plan_of(self, model: Any) -> KernelPlan:
        """The plan that the model stands on."""

    @abstractmethod
    def own_settings(self, model: Any) -> dict[str, Any]:
        """What is neither an array nor of the plan."""

    @abstractmethod
    def own_arrays(self, model: Any) -> dict[str, Any]:
        """The arrays that are not the plan's."""

    @abstractmethod
    def read_own(self, stored: dict[str, Any], n_kernels: int) -> Any:
        """The model's own settings from a file, checked."""

    @abstractmethod
    def own_names(self, settings: Any) -> list[str]:
        """The arrays that are not the plan's, by its own settings."""

    @abstractmethod
    def build_on(self, plan: KernelPlan, settings: Any, arrays: Arrays) -> Any:
        """The model, from its plan, its own settings and its own arrays."""

    def needs_diagonals(self, settings: Any) -> bool:
        """Whether the plan must give every kernel's k(x, x)."""
        return False

    def settings(self, model: Any) -> dict[str, Any]:
        return plan_settings(self.plan_of(model)) | self.own_settings(model)

    def arrays(self, model: Any) -> dict[str, Any]:
        return plan_arrays(self.plan_of(model)) | self.own_arrays(model)

    def read(self, stored: dict[str, Any]) -> tuple[StoredPlan, Any]:
        plan = read_plan(stored)
        return plan, self.read_own(stored, len(plan.kernels))

    def array_names(self, settings: tuple[StoredPlan, Any]) -> list[str]:
        plan, own = settings
        return [*plan.array_names, *self.own_names(own)]

    def build(self, settings: tuple[StoredPlan, Any], arrays: Arrays, n_columns: Any) -> Any:
        stored, own = settings
        diagonals = self.needs_diagonals(own)
        plan = build_plan(stored, arrays, n_columns, diagonals=diagonals)
        return self.build_on(plan, own, arrays)


def named_kind(name: Any, kinds: Iterable[ModelKind]) -> ModelKind:
    """The kind of that name."""
    for kind in kinds:
        if kind.name == name:
            return kind
    raise ModelFileError(f"The file holds a model of the unknown kind {name!r}.")
