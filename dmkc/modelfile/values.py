"""Parameters and fitted values as strict JSON and back, bit for bit.

What JSON lacks is an object with a "kind": tuples, numbers that are not finite, small arrays,
kernels.  Nothing else is stored, and nothing is looked up by a name from the file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmkc.kernels import KERNELS, Kernel
from dmkc.modelfile.errors import ModelFileError
from dmkc.modelfile.kernels import kernel_from_json, kernel_to_json

MOST_VALUES = 100_000
"""Arrays beyond this size are data and not settings."""
DTYPES = ("bool", "int32", "int64", "float32", "float64", "object")


class NotStorable(Exception):
    """A value that has no form in the file; its text says what it is."""


def encode(value: Any) -> Any:
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
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ModelFileError(f"A stored {kind} is malformed ({problem!r}).") from None
    if isinstance(kind, str) and kind in KERNELS:
        return kernel_from_json(stored)
    raise ModelFileError(f"The file holds a value of the unknown kind {kind!r}.")


def encode_parameter(value: Any) -> Any:
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


def _encode_mapping(value: dict) -> Any:
    if not all(isinstance(name, str) for name in value):
        raise NotStorable("a dictionary whose keys are not text")
    items = {name: encode(item) for name, item in value.items()}
    return {"kind": "mapping", "items": items} if "kind" in items else items


def _encode_array(value: np.ndarray) -> Any:
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
