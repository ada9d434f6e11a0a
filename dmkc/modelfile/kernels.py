"""Kernels as JSON and back, by the names of the registry."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn

from dmkc.kernels import KERNELS, Kernel
from dmkc.modelfile.errors import ModelFileError


def kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel as its name and its parameters."""
    name = KERNELS.name_of(type(kernel))
    if name is None:
        refuse_code(kernel)
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
    columns = values.pop("columns")
    numbers = {k: v if v is None else _number(k, v, kernel) for k, v in values.items()}
    bound = {} if columns is None else {"columns": _columns_to_json(columns)}
    return {"kind": name, **numbers, **bound}


def kernel_from_json(stored: Any) -> Kernel:
    """The kernel that was stored."""
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(kind, str) or kind not in KERNELS:
        raise ModelFileError(f"{stored!r} is not a kernel; known are {', '.join(KERNELS)}.")
    known: Any = KERNELS[kind]
    values = {name: value for name, value in stored.items() if name != "kind"}
    names = [field.name for field in fields(known)]
    columns = _columns_from_json(values.pop("columns", None))
    for name, value in values.items():
        if name not in names:
            raise ModelFileError(f"The kernel {kind!r} has no parameter {name!r}.")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ModelFileError(
                f"The parameter {name!r} of the kernel {kind!r} must be a number, not {value!r}."
            )
    try:
        return known(**values, columns=columns)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ModelFileError(f"A kernel has an impossible parameter: {problem}") from None


def refuse_code(kernel: Any) -> NoReturn:
    """Say that a kernel cannot be stored, because it is code that a file does not hold."""
    code = kernel.code if isinstance(kernel, Kernel) else kernel
    name = getattr(code, "__qualname__", type(code).__name__)
    raise ModelFileError(
        f"The model cannot be saved because its kernel {name!r} is code of yours, which a model "
        f"file does not hold; use kernels among {', '.join(KERNELS)}, or register it with "
        "dmkc.kernels.register_kernel, or keep the model in memory."
    )


def _number(name: str, value: Any, kernel: Kernel) -> int | float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise ModelFileError(
            f"The model cannot be saved because the parameter {name!r} of its kernel {kernel} is "
            "not a number."
        )
    return int(value) if hasattr(value, "__index__") else float(value)


def _columns_to_json(columns: Any) -> Any:
    if isinstance(columns, slice):
        return {"slice": [columns.start, columns.stop, columns.step]}
    if isinstance(columns, str):
        return columns
    items = [columns] if hasattr(columns, "__index__") else list(columns)
    return [item if isinstance(item, str) else int(item) for item in items]


def _columns_from_json(stored: Any) -> Any:
    if stored is None or isinstance(stored, str):
        return stored
    if isinstance(stored, list) and all(
        _is_whole(item) or isinstance(item, str) for item in stored
    ):
        return tuple(stored)
    if isinstance(stored, dict) and set(stored) == {"slice"}:
        ends = stored["slice"]
        fine = isinstance(ends, list) and len(ends) == 3
        if fine and all(end is None or _is_whole(end) for end in ends):
            return slice(*ends)
    raise ModelFileError(f"A kernel is bound to columns in an unknown way: {stored!r}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
