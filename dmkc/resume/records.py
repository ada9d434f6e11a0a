"""Statistics and questions as bytes: what a scan found, and a digest of what it was asked.

Numbers come back bit for bit, arrays with their order in memory (it decides the order of later
sums).  Nothing is pickled: a record is JSON beside plain arrays, and the only classes it can name
are dataclasses of this package that are loaded already.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

PACKAGE = __name__.partition(".")[0]
_LENGTH = struct.Struct("<Q")


class NotRecordable(Exception):
    """A statistic of a kind that has no form in a record."""


class DamagedRecord(Exception):
    """Bytes that are no record."""


def to_bytes(value: Any) -> bytes:
    """A value as bytes; raises NotRecordable."""
    arrays: list[np.ndarray] = []
    head = json.dumps(_encode(value, arrays)).encode()
    out = io.BytesIO()
    out.write(_LENGTH.pack(len(head)))
    out.write(head)
    for array in arrays:
        np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def from_bytes(data: bytes) -> Any:
    """The value that was written; raises DamagedRecord."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        head = json.loads(data[_LENGTH.size : _LENGTH.size + length])
        stream = io.BytesIO(data[_LENGTH.size + length :])
        return _decode(head, lambda: np.lib.format.read_array(stream, allow_pickle=False))
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, EOFError) as problem:
        raise DamagedRecord(str(problem)) from problem


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or (isinstance(value, bool | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, np.generic):
        arrays.append(np.asarray(value))
        return {"is": "scalar"}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"is": "int", "of": str(value)}
    if isinstance(value, float):
        return {"is": "float", "of": value.hex()}
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays.append(value)
        return {"is": "array"}
    if isinstance(value, sp.csr_array | sp.csr_matrix):
        arrays += [value.data, value.indices, value.indptr]
        return {"is": "csr", "of": list(value.shape)}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        if type(value) not in (tuple, list):
            raise NotRecordable(f"a {type(value).__name__}")
        return {"is": kind, "of": [_encode(item, arrays) for item in value]}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"is": "dict", "of": {key: _encode(item, arrays) for key, item in value.items()}}
    cls = type(value)
    if dataclasses.is_dataclass(value) and _known(cls.__module__, cls.__qualname__) is cls:
        names = [field.name for field in dataclasses.fields(cls)]
        inside = {name: _encode(getattr(value, name), arrays) for name in names}
        return {"is": "object", "as": [cls.__module__, cls.__qualname__], "of": inside}
    raise NotRecordable(f"a {cls.__name__}")


def _decode(stored: Any, array: Callable[[], np.ndarray]) -> Any:
    if not isinstance(stored, dict):
        return stored
    kind: str = stored["is"]
    of: Any = stored.get("of")
    if kind == "scalar":
        return array()[()]
    if kind == "array":
        return array()
    if kind == "int":
        return int(of)
    if kind == "float":
        return float.fromhex(of)
    if kind == "csr":
        return sp.csr_array((array(), array(), array()), shape=tuple(of))
    if kind in ("tuple", "list"):
        items = [_decode(item, array) for item in of]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {key: _decode(item, array) for key, item in of.items()}
    cls = _known(*stored["as"]) if kind == "object" else None
    if cls is None:
        raise DamagedRecord(f"the unknown kind {kind!r}")
    return cls(**{name: _decode(item, array) for name, item in of.items()})


def _known(module: str, name: str) -> type | None:
    """A dataclass of this package that has been imported, or None."""
    if module.partition(".")[0] != PACKAGE:
        return None
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None


def digest(*values: Any) -> str:
    """A digest of anything a scan or an estimator is made of."""
    state = hashlib.blake2b(digest_size=16)
    for value in values:
        _feed(state, value)
    return state.hexdigest()


def _feed(state: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        state.update(f"array {value.dtype.str} {value.shape} ".encode())
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.generic):
        _feed(state, np.asarray(value))
    elif isinstance(value, float):
        state.update(f"float {value.hex()} ".encode())
    elif value is None or isinstance(value, bool | int | str | bytes):
        state.update(f"{type(value).__name__} {value!r} ".encode())
    elif sp.issparse(value):
        rows = value.tocsr()
        _feed_items(state, "sparse", (rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: str(pair[0]))
        _feed_items(state, "dict", [part for pair in pairs for part in pair])
    elif isinstance(value, tuple | list | np.ndarray):
        _feed_items(state, "list", list(value))
    elif hasattr(value, "__code__"):  # a kernel that is a function
        _feed_items(state, value.__qualname__, (value.__code__.co_code, value.__defaults__))
    else:
        _feed_items(state, type(value).__qualname__, [getattr(value, "__dict__", {})])


def _feed_items(state: Any, kind: str, items: Any) -> None:
    state.update(f"{kind} {len(items)} ".encode())
    for item in items:
        _feed(state, item)
