"""Kernel plans as named arrays and a few settings, and back.

Every fitted kernel says which arrays it needs.  Arrays that kernels share in memory (landmarks)
are written once, and are shared again when they are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.kernels import Kernel, KernelPlan, Scaling, View
from dmkc.modelfile.values import (
    Arrays,
    ModelFileError,
    kernel_from_json,
    kernel_to_json,
    read_count,
    read_precision,
)

MOST_KERNELS = 10_000


@dataclass(frozen=True)
class StoredKernel:
    """What a file says of one fitted kernel."""

    kernel: Kernel
    view: int
    state: dict[str, str]
    """The names of its arrays in the file."""


@dataclass(frozen=True)
class StoredPlan:
    """What a file says of a plan beside its arrays."""

    views: tuple[tuple[int, ...] | None, ...]
    kernels: tuple[StoredKernel, ...]
    dtype: np.dtype
    leaf_rows: int

    @property
    def array_names(self) -> list[str]:
        shared = [name for kernel in self.kernels for name in kernel.state.values()]
        own = [_factor_name(v) for v, columns in enumerate(self.views) if columns is not None]
        return ["shift", "factor", *own, *dict.fromkeys(shared)]


def plan_settings(plan: KernelPlan) -> dict[str, Any]:
    """Views, kernels, precision and tiling."""
    names = _state_names(plan)
    return {
        "views": [None if v.columns is None else list(v.columns) for v in plan.views],
        "kernels": [
            {
                "kernel": kernel_to_json(fitted.kernel),
                "view": view,
                "state": {name: names[id(array)] for name, array in fitted.state().items()},
            }
            for fitted, view in zip(plan.fitted, plan.view_of, strict=True)
        ],
        "dtype": np.dtype(plan.dtype).name,
        "leaf_rows": int(plan.leaf_rows),
    }


def plan_arrays(plan: KernelPlan) -> Arrays:
    """Every array by its name in the file."""
    names = _state_names(plan)
    states = [array for fitted in plan.fitted for array in fitted.state().values()]
    scaling = plan.scaling
    views = {
        _factor_name(number): view.scaling.factor
        for number, view in enumerate(plan.views)
        if view.columns is not None
    }
    shared = {names[id(array)]: array for array in states}
    return {"shift": scaling.shift, "factor": scaling.factor} | views | shared


def read_plan(stored: dict[str, Any]) -> StoredPlan:
    """The settings of a plan, checked; those of the first version lack views and states."""
    kernels = stored.get("kernels")
    if not isinstance(kernels, list) or not 0 < len(kernels) <= MOST_KERNELS:
        raise ModelFileError("The file does not list the kernels of the model.")
    views = _read_views(stored.get("views", [None]))
    first_version = "views" not in stored
    read = _read_first_version if first_version else _read_kernel
    return StoredPlan(
        views,
        tuple(read(item, len(views)) for item in kernels),
        read_precision(stored),
        read_count(stored, "leaf_rows", "The rows of a leaf"),
    )


def build_plan(stored: StoredPlan, arrays: Arrays, n_columns: Any, **options: bool) -> KernelPlan:
    """The plan, once its arrays are known to fit."""
    d = len(arrays["shift"])
    if d != n_columns or d == 0:
        raise ModelFileError(f"The model is for {n_columns!r} columns, but its shift has {d}.")
    if arrays["shift"].shape != (d,) or arrays["factor"].shape != (d,):
        raise ModelFileError("The shift and the factors of the columns do not fit together.")
    if any(columns is not None and columns[-1] >= d for columns in stored.views):
        raise ModelFileError("A kernel sees columns that the rows do not have.")
    for name in stored.array_names:
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"The array {name!r} holds values that are not finite.")
    scaling = Scaling(arrays["shift"], arrays["factor"])
    views = tuple(_view(v, columns, scaling, arrays) for v, columns in enumerate(stored.views))
    fitted = []
    for k, item in enumerate(stored.kernels):
        state = {name: arrays[place] for name, place in item.state.items()}
        try:
            fitted.append(item.kernel.restore(state, views[item.view].n_columns))
        except ValueError as problem:
            raise ModelFileError(
                f"Kernel {k} ({item.kernel}) is stored in a form it cannot have: {problem}."
            ) from None
    view_of = tuple(item.view for item in stored.kernels)
    return KernelPlan(
        scaling, views, tuple(fitted), view_of, stored.dtype, stored.leaf_rows, **options
    )


def _factor_name(view: int) -> str:
    return f"factor_of_view_{view}"


def _view(number: int, columns: tuple[int, ...] | None, whole: Scaling, arrays: Arrays) -> View:
    """A view; one of some columns has factors of its own."""
    if columns is None:
        return View.of(None, whole)
    factor = arrays[_factor_name(number)]
    if factor.shape != (len(columns),):
        raise ModelFileError(f"The factors of view {number} do not fit its {len(columns)} columns.")
    return View(columns, Scaling(whole.shift[list(columns)], factor))


def _state_names(plan: KernelPlan) -> dict[int, str]:
    """A name in the file for every array, the same for those that are the same array."""
    names: dict[int, str] = {}
    counts: dict[str, int] = {}
    for fitted in plan.fitted:
        for name, array in fitted.state().items():
            if id(array) not in names:
                names[id(array)] = f"{name}_{counts.setdefault(name, 0)}"
                counts[name] += 1
    return names


def _read_views(stored: Any) -> tuple[tuple[int, ...] | None, ...]:
    if not isinstance(stored, list) or not stored:
        raise ModelFileError("The file does not say which columns its kernels see.")
    found = []
    for columns in stored:
        if columns is not None:
            fine = isinstance(columns, list) and len(columns) > 0
            fine = fine and all(isinstance(c, int) and not isinstance(c, bool) for c in columns)
            if not fine or columns[0] < 0 or any(np.diff(columns) <= 0):
                raise ModelFileError(f"The columns of a view are not ascending: {columns!r}.")
        found.append(None if columns is None else tuple(columns))
    return tuple(found)


def _read_kernel(stored: Any, n_views: int) -> StoredKernel:
    if not isinstance(stored, dict) or not isinstance(stored.get("state"), dict):
        raise ModelFileError(f"{stored!r} does not describe a fitted kernel.")
    view, state = stored.get("view"), stored["state"]
    if not isinstance(view, int) or isinstance(view, bool) or not 0 <= view < n_views:
        raise ModelFileError(f"A kernel sees the view {view!r}, which the file does not have.")
    if not all(isinstance(name, str) for name in state.values()):
        raise ModelFileError(f"The arrays of a kernel have no names: {state!r}.")
    return StoredKernel(_with_width(stored.get("kernel")), view, state)


def _read_first_version(stored: Any, n_views: int) -> StoredKernel:
    return StoredKernel(_with_width(stored), 0, {"landmarks": "landmarks"})


def _with_width(stored: Any) -> Kernel:
    kernel = kernel_from_json(stored)
    if "gamma" in stored and stored["gamma"] is None:
        raise ModelFileError(f"The kernel {kernel} has no width from the data.")
    return kernel
