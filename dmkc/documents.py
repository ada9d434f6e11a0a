"""Small files that people write, as plain values: YAML, TOML and JSON, within bounds.

Whatever they hold becomes texts, numbers, true and false, lists, and names with values.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import yaml

from dmkc.errors import UserError

MOST_BYTES = 1 << 18
MOST_DEPTH = 20
MOST_VALUES = 20_000
"""Values of a document, each counted as often as aliases repeat it."""
MOST_BITS = 64
"""Whole numbers beyond this are no settings."""
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MALFORMED = (ValueError, ArithmeticError, RecursionError, yaml.YAMLError)


class _OutOfBounds(ValueError):
    """Why a document is refused, in half a sentence."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most so many bytes; others are refused unopened."""
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise UserError(f"{path} is not a regular file.")
    if state.st_size > most:
        raise UserError(f"{path} is too large: it has {state.st_size} bytes, and {most} may be.")
    with open(path, "rb") as file:
        return file.read(most)


def read_document(path: Path, ending: str | None = None) -> Any:
    """The plain values of a file, which is taken for what its ending, or the given one, says."""
    ending = path.suffix if ending is None else ending
    if ending not in READERS:
        raise UserError(f"{path} must end in .yaml, .yml, .toml or .json.")
    content = read_bytes(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file.") from None
    name, read = READERS[ending]
    try:
        found = read(text)
        _check_plain(found)
    except MALFORMED as problem:
        deep = isinstance(problem, RecursionError)
        reason = "it is nested too deep" if deep else " ".join(str(problem).split())
        raise UserError(f"{path} cannot be read as {name} ({reason}).") from None
    return found


def _yaml(text: str) -> Any:
    _check_nesting(text)
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _weigh(node, {}, set())
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_nesting(text: str) -> None:
    """Refuse what is nested too deep before anything recursive looks at it."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        _check_depth(depth)


def _weigh(node: Any, known: dict[int, tuple[int, int]], inside: set[int]) -> tuple[int, int]:
    """How many values a node has, and how deep it is, once every alias is written out."""
    if id(node) in inside:
        raise _OutOfBounds("it holds a list or mapping that refers to itself")
    if id(node) in known:
        return known[id(node)]
    inside.add(id(node))
    size, depth = 1, 0
    for part in node.value if isinstance(node, yaml.CollectionNode) else ():
        for child in part if isinstance(part, tuple) else (part,):
            more, below = _weigh(child, known, inside)
            size, depth = size + more, max(depth, below + 1)
    inside.remove(id(node))
    _check_depth(depth)
    _check_count(size)
    known[id(node)] = size, depth
    return size, depth


def _check_plain(value: Any, depth: int = 0) -> int:
    """Refuse values of other kinds, and too many of them; how many there are."""
    _check_depth(depth)
    if isinstance(value, dict):
        wrong = [name for name in value if not isinstance(name, str)]
        if wrong:
            raise _OutOfBounds(f"it holds the name {wrong[0]!r}, which is no text")
        return _check_count(1 + sum(_check_plain(item, depth + 1) for item in value.values()))
    if isinstance(value, list):
        return _check_count(1 + sum(_check_plain(item, depth + 1) for item in value))
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise _OutOfBounds(f"it holds a whole number beyond 2^{MOST_BITS}")
    if value is not None and not isinstance(value, str | int | float):
        raise _OutOfBounds(
            f"it holds a {type(value).__name__} ({value!s:.40}), but only texts, numbers, true, "
            "false, lists and names with values may stand there; put it in quotes to make it a text"
        )
    return 1


def _check_depth(depth: int) -> None:
    if depth > MOST_DEPTH:
        raise _OutOfBounds(f"it is nested deeper than {MOST_DEPTH}")


def _check_count(count: int) -> int:
    if count > MOST_VALUES:
        raise _OutOfBounds(f"it holds more than {MOST_VALUES} values, aliases written out")
    return count


READERS: dict[str, tuple[str, Any]] = {
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
    ".toml": ("TOML", tomllib.loads),
    ".json": ("JSON", json.loads),
}
