"""Kernels, parameters and fitted values as strict JSON and back, bit for bit.

What JSON lacks is an object with a "kind": tuples, numbers that are not finite, small arrays,
kernels.  Nothing else is stored, and nothing is looked up by a name from the file but kernels that
are registered.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, NoReturn

import numpy as np

from dmkc.errors import UserError
from dmkc.kernels import KERNELS, Kernel
from dmkc.typing import Json

Arrays = dict[str, np.ndarray]
"""Arrays of a model by their names in the file."""
PRECISIONS = ("float32", "float64")
MOST_VALUES = 100_000
"""Arrays beyond this size are data and not settings."""
MOST_COUNT = 1 << 20
DTYPES = ("bool", "int32", "int64", "float32", "float64", "object")


class ModelFileError(UserError):
    """A model cannot be stored, or a file is not a whole model that this version can read."""


def kernel_to_json(kernel: Kernel) -> dict[str, Json]:
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


def _columns_to_json(columns: Any) -> Json:
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


class NotStorable(Exception):
    """A value that has no form in the file; its text says what it is."""


def encode(value: Any) -> Json:
    """A value as JSON; raises NotStorable."""
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, np.str_) else str(value)
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"kind": "float", "value": repr(value)}
    if isinstance(value, Kernel):
        return kernel_to_json(value)
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return _encode_mapping(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    raise NotStorable(f"an object of type {type(value).__name__}")


def decode(stored: Any) -> Any:
    """The value that was encoded."""
    if isinstance(stored, list):
        return [decode(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    kind = stored.get("kind")
    try:
        if kind is None:
            return {name: decode(item) for name, item in stored.items()}
        if kind == "mapping":
            return {name: decode(item) for name, item in stored["items"].items()}
        if kind == "tuple":
            return tuple(decode(item) for item in stored["items"])
        if kind == "float":
            return float(stored["value"])
        if kind == "array":
            return _decode_array(stored)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise ModelFileError(f"A stored {kind} is malformed ({problem!r}).") from None
    if isinstance(kind, str) and kind in KERNELS:
        return kernel_from_json(stored)
    raise ModelFileError(f"The file holds a value of the unknown kind {kind!r}.")


def encode_parameter(value: Any) -> Json:
    """A parameter as JSON; arrays of data are not parameters, whatever their type."""
    if isinstance(value, np.ndarray):
        raise NotStorable(f"an array of shape {value.shape}")
    is_range = isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))
    if isinstance(value, list | tuple) and any(map(_is_data, value)) and not is_range:
        raise NotStorable(f"an array or a list of {len(value)} items")
    return encode(value)


def _is_data(item: Any) -> bool:
    if isinstance(item, list | tuple | np.ndarray):
        return True
    return _is_number(item)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float | np.number) and not isinstance(item, bool)


def _encode_mapping(value: dict) -> Json:
    if not all(isinstance(name, str) for name in value):
        raise NotStorable("a dictionary whose keys are not text")
    items = {name: encode(item) for name, item in value.items()}
    return {"kind": "mapping", "items": items} if "kind" in items else items


def _encode_array(value: np.ndarray) -> Json:
    fine = value.dtype.name in DTYPES and value.size <= MOST_VALUES
    if value.dtype == object:
        fine = fine and all(isinstance(item, str) for item in value.ravel())
    if not fine:
        raise NotStorable(f"an array of {value.dtype} of shape {value.shape}")
    values = [encode(item) for item in value.ravel().tolist()]
    return {
        "kind": "array",
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "values": values,
    }


def _decode_array(stored: dict) -> np.ndarray:
    if stored["dtype"] not in DTYPES:
        raise ModelFileError(f"A stored array has the unknown type {stored['dtype']!r}.")
    values = decode(stored["values"])
    if stored["dtype"] == "object" and not all(isinstance(item, str) for item in values):
        raise ModelFileError("A stored array of texts holds something else.")
    return np.array(values, dtype=stored["dtype"]).reshape(stored["shape"])


def read_precision(stored: dict[str, Any]) -> np.dtype:
    if stored.get("dtype") not in PRECISIONS:
        found = stored.get("dtype")
        raise ModelFileError(f"The precision must be float32 or float64, not {found!r}.")
    return np.dtype(stored["dtype"])


def read_count(stored: dict[str, Any], name: str, what: str) -> int:
    value: Any = stored.get(name)
    if not _is_whole(value) or not 1 <= value <= MOST_COUNT:
        raise ModelFileError(
            f"{what} must be a whole number from 1 to {MOST_COUNT}, not {value!r}."
        )
    return value


def read_flag(stored: dict[str, Any], name: str) -> bool:
    if not isinstance(stored.get(name), bool):
        raise ModelFileError(f"{name!r} must be true or false, not {stored.get(name)!r}.")
    return stored[name]
