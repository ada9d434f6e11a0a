"""Parameters of estimators, each declared once: name, kind, default and meaning.

A declaration serves the checks of a fit, the docstring of the class, the options and the params
file of the command line, and the report.  The kind of a parameter says what a value must be, how it
is written in a shell, what docs call it.
"""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from dmkc.errors import UserError
from dmkc.kernels import as_bank

WIDTH = 96
"""Columns of a docstring, which is shown without the indentation of its class."""
MOST_NUMBER = 1e9
"""Weights and penalties beyond this drown everything that they stand beside in rounding."""
MOST_WHOLE = 10**12
SECTIONS = re.compile(r"^(Attributes|References|Examples)\n-+$", re.MULTILINE)


@dataclass(frozen=True)
class Kind(ABC):
    """What a parameter may be; `words` and, where `none` is set, None stand beside other values."""

    words: tuple[str, ...] = ()
    _: KW_ONLY
    none: bool = False
    noun: str = ""
    """What docs call values other than words and None."""
    shown: str = ""
    """What stands for such values in the help of an option."""
    reads: str = ""
    """What text of the command line may stand for: a file of "rows" or "labels", or "kernels"."""

    def check(self, name: str, value: Any) -> Any:
        """The value as plain Python; one sentence where it is wrong."""
        if value is None and self.none:
            return None
        if isinstance(value, str) and value in self.words:
            return str(value)
        return self._check(name, value)

    def parse(self, name: str, text: str) -> Any:
        """The plain value that a text of the command line or a params file stands for."""
        if self.none and text.lower() in ("none", "null"):
            return None
        return text if text in self.words else self._parse(name, text)

    @abstractmethod
    def _check(self, name: str, value: Any) -> Any: ...

    @abstractmethod
    def _parse(self, name: str, text: str) -> Any: ...

    @property
    def phrase(self) -> str:
        """The kind as docs say it, such as `float or None`."""
        names = [*self.noun.split(", "), *map(_quoted, self.words), *(["None"] * self.none)]
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

    @property
    def metavar(self) -> str:
        return "|".join([*self.words, *([self.shown] * bool(self.shown)), *(["none"] * self.none)])


@dataclass(frozen=True, kw_only=True)
class OneOf(Kind):
    """One of some words."""

    @property
    def phrase(self) -> str:
        return f"{{{', '.join([*(_quoted(w) for w in self.words), *(['None'] * self.none)])}}}"

    def _check(self, name: str, value: Any) -> Any:
        close = difflib.get_close_matches(str(value), self.words, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join([*map(repr, self.words), *(["None"] * self.none)])
        raise UserError(f"`{name}` must be one of {known}, not {value!r}.{hint}")

    def _parse(self, name: str, text: str) -> Any:
        return self._check(name, text)


@dataclass(frozen=True, kw_only=True)
class OneOfOrRows(OneOf):
    """One of some words, or an array of rows of the input's columns."""

    what: str = "rows"
    shown: str = "FILE"
    reads: str = "rows"

    @property
    def phrase(self) -> str:
        return f"{super().phrase} or array of {self.what}"

    def _check(self, name: str, value: Any) -> Any:
        return super()._check(name, value) if isinstance(value, str) else value

    def _parse(self, name: str, text: str) -> Any:
        return text


@dataclass(frozen=True, kw_only=True)
class Integer(Kind):
    """A whole number of at least `least` and at most `most`."""

    least: int = 1
    most: int = MOST_WHOLE
    flags: bool = False
    """Whether True and False stand for 1 and 0."""
    noun: str = "int"
    shown: str = "N"

    def _check(self, name: str, value: Any) -> int:
        if not is_whole(value, self.flags) or value < self.least:
            raise UserError(f"`{name}` must be an integer of at least {self.least}, not {value!r}.")
        if value > self.most:
            raise UserError(f"`{name}` must be an integer of at most {self.most}.")
        return int(value)

    def _parse(self, name: str, text: str) -> int:
        return whole_number(text, name)


@dataclass(frozen=True, kw_only=True)
class IntegerOrRows(Integer):
    """A whole number of points, or the points: an array of rows of the input's columns."""

    noun: str = "int, array of rows"
    shown: str = "N|FILE"
    reads: str = "rows"

    def _check(self, name: str, value: Any) -> Any:
        given = not isinstance(value, str | Real) and value is not None
        return value if given else super()._check(name, value)

    def _parse(self, name: str, text: str) -> Any:
        return super()._parse(name, text) if _is_number(text) else text


@dataclass(frozen=True, kw_only=True)
class IntegerOrRange(Kind):
    """A number of clusters, a range of numbers to choose from, or a word for such a range."""

    noun: str = "int, pair of ints"
    shown: str = "N|N-N"

    def _check(self, name: str, value: Any) -> int | tuple[int, int]:
        if is_whole(value) and value >= 1:
            return int(value)
        if isinstance(value, tuple | list) and len(value) == 2 and all(map(is_whole, value)):
            if 2 <= value[0] < value[1]:
                return int(value[0]), int(value[1])
        words = ", ".join(f'"{word}"' for word in self.words)
        raise UserError(
            f"`{name}` must be an integer of at least 1, a range such as (2, 8) that begins at 2 "
            f"or more, or {words}, not {value!r}."
        )

    def _parse(self, name: str, text: str) -> int | list[int]:
        low, dash, high = text.partition("-")
        if dash and low.isdigit() and high.isdigit():
            return [int(low), int(high)]
        return whole_number(text, name)


@dataclass(frozen=True, kw_only=True)
class Integers(Kind):
    """A whole number, or one for every layer."""

    least: int = 1
    noun: str = "int, list of ints"
    shown: str = "N,N"

    def _check(self, name: str, value: Any) -> tuple[int, ...]:
        items = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        if not items:
            raise UserError(f"`{name}` must name at least one layer.")
        return tuple(Integer(least=self.least).check(name, item) for item in items)

    def _parse(self, name: str, text: str) -> list[int]:
        return [whole_number(item, name) for item in _items(text)]


@dataclass(frozen=True, kw_only=True)
class Number(Kind):
    """A number of at least `least`, or `above` it, and at most `most`."""

    least: float = 0.0
    above: float | None = None
    most: float | None = None
    finite: bool = True
    noun: str = "float"
    shown: str = "X"

    def _check(self, name: str, value: Any) -> float:
        if isinstance(value, str) and self.words and not _is_number(value):
            return OneOf(self.words).check(name, value)
        fine = isinstance(value, Real) and not isinstance(value, bool)
        fine = (
            fine and not np.isnan(float(value)) and (np.isfinite(float(value)) or not self.finite)
        )
        low = self.least if self.above is None else self.above
        if not fine or value < low or value == self.above:
            bound = "at least" if self.above is None else "greater than"
            raise UserError(f"`{name}` must be a number {bound} {low:g}, not {value!r}.")
        most = MOST_NUMBER if self.most is None else self.most
        if value > most and np.isfinite(float(value)):
            raise UserError(
                f"`{name}` must be a number between {low:g} and {most:g}, not {value!r}."
            )
        return float(value)

    def _parse(self, name: str, text: str) -> float:
        if not _is_number(text):
            raise UserError(f"`{name}` must be a number, not {text!r}.")
        return float(text)


@dataclass(frozen=True, kw_only=True)
class RowsOrShare(Kind):
    """A number of rows, or a share of all rows."""

    noun: str = "int, float"
    shown: str = "N|SHARE"

    def _check(self, name: str, value: Any) -> int | float:
        if is_whole(value) and value >= 1:
            return int(value)
        if isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1:
            return float(value)
        raise UserError(
            f"`{name}` must be a number of rows or a share between 0 and 1, not {value!r}."
        )

    def _parse(self, name: str, text: str) -> int | float:
        share = float(text) if _is_number(text) else 1.0
        return share if 0 < share < 1 else whole_number(text, name)


@dataclass(frozen=True, kw_only=True)
class Flag(Kind):
    """Yes or no."""

    noun: str = "bool"
    shown: str = "true|false"

    def _check(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise UserError(f"`{name}` must be True or False, not {value!r}.")
        return bool(value)

    def _parse(self, name: str, text: str) -> bool:
        return OneOf(("true", "false")).check(name, text) == "true"


@dataclass(frozen=True, kw_only=True)
class Seed(Kind):
    """What random numbers are drawn from, as scikit-learn takes it."""

    noun: str = "int, RandomState"
    shown: str = "N"

    def _check(self, name: str, value: Any) -> Any:
        if isinstance(value, Integral):
            if value < 0:
                raise UserError(f"`{name}` must not be negative, but is {value}.")
        elif not isinstance(value, np.random.RandomState | np.random.Generator):
            raise UserError(f"`{name}` must be None, an integer or a generator, not {value!r}.")
        return value

    def _parse(self, name: str, text: str) -> int:
        return whole_number(text, name)


@dataclass(frozen=True, kw_only=True)
class Kernels(Kind):
    """A kernel, or a list of kernels, in any of the forms that a bank is made from."""

    noun: str = "kernel, name, function, list of these"
    shown: str = "A,B"
    reads: str = "kernels"

    def _check(self, name: str, value: Any) -> Any:
        as_bank(value)
        return value

    def _parse(self, name: str, text: str) -> list[str]:
        return _items(text)


@dataclass(frozen=True, kw_only=True)
class Starts(Kind):
    """Starts by name or as labels; whether they fit is known with the rows and clusters only."""

    noun: str = "str, labeling, list of these"
    shown: str = "A,B"
    reads: str = "labels"

    def _check(self, name: str, value: Any) -> Any:
        return value

    def _parse(self, name: str, text: str) -> list[str]:
        return _items(text)


@dataclass(frozen=True, kw_only=True)
class Other(Kind):
    """Something that is judged where it is used, such as a file."""

    noun: str = "str"
    shown: str = "VALUE"

    def _check(self, name: str, value: Any) -> Any:
        return value

    def _parse(self, name: str, text: str) -> str:
        return text


def is_whole(value: Any, flags: bool = False) -> bool:
    """Whether a value is an integer; True and False are only where `flags` says so."""
    return isinstance(value, Integral) and (flags or not isinstance(value, bool))


def whole_number(text: str, name: str = "") -> int:
    """An integer, which may be written as 1e6; a sentence names the parameter that is to be one."""
    try:
        return int(text)
    except ValueError:
        pass
    if not _is_number(text) or not float(text).is_integer():
        given = f"`{name}` is given as {text!r}, which" if name else repr(text)
        raise UserError(f"{given} is not a whole number.")
    return int(float(text))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _quoted(word: str) -> str:
    return f'"{word}"'


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
