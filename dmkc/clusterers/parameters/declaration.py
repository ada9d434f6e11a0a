"""The declaration of one parameter, and what a class gets from its declarations."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.parameters.kinds import Kind
from dmkc.errors import UserError

WIDTH = 96
"""Columns of a docstring, which is shown without the indentation of its class."""
SECTIONS = re.compile(r"^(Attributes|References|Examples)\n-+$", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator."""

    name: str
    kind: Kind
    default: Any
    text: str
    """What it means, in the words of the documentation."""

    def but(self, **changes: Any) -> Parameter:
        """The same with another kind, default or text."""
        return replace(self, **changes)

    def check(self, value: Any) -> Any:
        """The value as plain Python; one sentence where it is wrong."""
        return self.kind.check(self.name, value)

    def parse(self, text: str) -> Any:
        """The plain value that a text stands for."""
        return self.kind.parse(self.name, text)

    def is_default(self, value: Any) -> bool:
        """Whether a value is the default, of the same type too."""
        if value is self.default:
            return True
        return type(value) is type(self.default) and bool(np.all(value == self.default))

    @property
    def entry(self) -> str:
        """The parameter in a NumPy docstring."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        body = textwrap.fill(" ".join(self.text.split()), WIDTH - 4, break_on_hyphens=False)
        head = f"{self.name} : {self.kind.phrase}, default={default}"
        return f"{head}\n{textwrap.indent(body, '    ')}"


def with_parameters(doc: str, parameters: Iterable[Parameter]) -> str:
    """A docstring with a section about parameters, before those that usually follow it."""
    plain = inspect.cleandoc(doc)
    section = "\n".join(["Parameters", "----------", *(p.entry for p in parameters)])
    following = SECTIONS.search(plain)
    if following is None:
        return f"{plain}\n\n{section}\n"
    place = following.start()
    return f"{plain[:place]}{section}\n\n{plain[place:]}\n"


def init_from(parameters: Iterable[Parameter]) -> Callable[..., None]:
    """An `__init__` that takes the declared parameters, all but the first by name, and keeps them.

    A class may write its own instead, for the sake of editors and type checkers.
    """
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [
        inspect.Parameter(
            parameter.name,
            inspect.Parameter.KEYWORD_ONLY if k else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=parameter.default,
        )
        for k, parameter in enumerate(parameters)
    ]
    signature = inspect.Signature([own, *taken])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def check_signature(cls: type, parameters: Iterable[Parameter]) -> None:
    """Refuse a class whose `__init__` takes other names or defaults than it declares."""
    declared = {parameter.name: parameter for parameter in parameters}
    taken = inspect.signature(cls).parameters
    for name in [*taken, *declared]:
        if name not in declared or name not in taken:
            where = "declared" if name in taken else "taken by __init__"
            raise UserError(f"The parameter {name!r} of {cls.__name__} is not {where}.")
        if not declared[name].is_default(taken[name].default):
            raise UserError(
                f"The default of {name!r} of {cls.__name__} is {taken[name].default!r} in __init__ "
                f"and {declared[name].default!r} where it is declared."
            )
