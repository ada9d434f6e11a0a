"""Names by which kernels and estimators are found: those of this package and those of others.

Another package announces its own by entry points (groups ``dmkc.kernels`` and
``dmkc.estimators``).  Code that is not installed calls `register`, and the environment variable
``DMKC_PLUGINS`` names modules or .py files, separated by commas, that are imported before anything
is looked up.  A model file never makes anything be imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Generic, TypeVar

from dmkc.errors import UserError, UserTypeError

PLUGINS = "DMKC_PLUGINS"
NAME = re.compile(r"[a-z][a-z0-9-]*")

Known = TypeVar("Known")


class Registry(Mapping[str, type[Known]], Generic[Known]):
    """Classes by name, in the order in which they came."""

    def __init__(self, group: str, what: str, base: type[Known]) -> None:
        self.group, self.what, self._base = group, what, base
        self._known: dict[str, type[Known]] = {}
        self._complete = False

    def register(self, name: str, cls: type[Known]) -> None:
        """Add a class under a name that nothing else has."""
        if not isinstance(cls, type) or not issubclass(cls, self._base):
            raise UserTypeError(
                f"The {self.what} {name!r} must be a subclass of {self._base.__name__}."
            )
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UserError(
                f"The name {name!r} of {cls.__name__} must be made of small letters, digits and -."
            )
        for known, other in self._known.items():
            same = _place(other) == _place(cls)  # perhaps from a file that was imported again
            if (known == name) != same or (other.__name__ == cls.__name__ and not same):
                raise UserError(
                    f"There is the {self.what} {_place(other)} by the name {known!r} already; "
                    f"choose another name for {_place(cls)}."
                )
        self._check(cls)
        self._known[name] = cls

    def _check(self, cls: type[Known]) -> None:
        """Refuse a class that could not be used."""
        return

    def name_of(self, cls: type) -> str | None:
        """The name of a class, if it is known."""
        return next((name for name, known in self.items() if known is cls), None)

    def __getitem__(self, name: str) -> type[Known]:
        self._find_plugins()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._find_plugins()
        return iter(self._known)

    def __len__(self) -> int:
        self._find_plugins()
        return len(self._known)

    def _find_plugins(self) -> None:
        """Import what others announce, once; what cannot be imported is said and left out."""
        if self._complete:
            return
        self._complete = True
        import_plugins()
        for entry in entry_points(group=self.group):
            try:
                self.register(entry.name, entry.load())
            except Exception as problem:
                warnings.warn(
                    f"The {self.what} {entry.name!r} of {entry.value!r} is left out: {problem}",
                    stacklevel=4,
                )


def import_plugins() -> None:
    """Import the modules and files that the environment names."""
    for item in filter(None, map(str.strip, os.environ.get(PLUGINS, "").split(","))):
        try:
            _import(item)
        except Exception as problem:
            raise ImportError(
                f"{PLUGINS} names {item!r}, which cannot be used: {problem}"
            ) from None


def foreign_modules(things: Iterable[object]) -> set[str]:
    """Modules of classes and functions of others, which workers must be able to import."""
    names = {getattr(thing, "__module__", None) or type(thing).__module__ for thing in things}
    inside = ("dmkc", "builtins", "__main__")
    return {name for name in names if name.partition(".")[0] not in inside}


def _import(item: str) -> None:
    if not item.endswith(".py"):
        importlib.import_module(item)
        return
    name = Path(item).stem
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, item)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # by its own name, as pickled objects will ask for it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
