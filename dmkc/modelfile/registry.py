"""The only classes a model file may name: estimators and kernels."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.kernels import (
    ColumnGaussian,
    Columns,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
)
from dmkc.kernels.kernels import Callable_
from dmkc.modelfile.errors import ModelFileError

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "columns": Columns,
    "column-gaussian": ColumnGaussian,
}


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


def kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel as its kind and its numbers."""
    for kind, known in KERNELS.items():
        if type(kernel) is known:
            values = asdict(kernel)  # type: ignore[call-overload]
            numbers = {k: v if v is None else _number(v) for k, v in values.items()}
            return {"kind": kind, **numbers}
    what = getattr(kernel, "function", kernel) if isinstance(kernel, Callable_) else kernel
    name = getattr(what, "__qualname__", type(what).__name__)
    raise ModelFileError(
        f"The model cannot be saved because its kernel {name!r} is code of yours, which a model "
        f"file does not hold; use kernels among {', '.join(KERNELS)}, or keep the model in memory."
    )


def kernel_from_json(stored: Any) -> Kernel:
    """The kernel that was stored."""
    if not isinstance(stored, dict) or stored.get("kind") not in KERNELS:
        raise ModelFileError(f"{stored!r} is not a kernel; known are {', '.join(KERNELS)}.")
    known = KERNELS[stored["kind"]]
    values = {k: v for k, v in stored.items() if k != "kind"}
    names = [field.name for field in fields(known)]  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in names:
            raise ModelFileError(f"The kernel {stored['kind']!r} has no parameter {name!r}.")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ModelFileError(
                f"The parameter {name!r} of the kernel {stored['kind']!r} must be a number, "
                f"not {value!r}."
            )
    try:
        return known(**values)
    except (TypeError, ValueError) as problem:
        raise ModelFileError(f"A kernel has an impossible parameter: {problem}") from None


def _number(value: Any) -> int | float:
    return int(value) if isinstance(value, int) or hasattr(value, "__index__") else float(value)
