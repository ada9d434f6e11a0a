"""What is imported when it is first asked for, and classes known without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def names_when_asked(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; `homes` says which module has a public name.

    Modules of the package are found by attribute as well, whether they were imported or not.
    """
    module = sys.modules[package]

    def modules() -> set[str]:
        return {found.name for found in iter_modules(module.__path__)}

    def get(name: str) -> object:
        if name in homes:
            found = getattr(import_module(f"{package}.{homes[name]}"), name)
            setattr(module, name, found)  # asked for once
            return found
        if name in modules():
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(module), *homes, *modules()})


def is_of(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a class of a module, without importing the module for it."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


class Later:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
