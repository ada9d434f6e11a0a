"""Command-line options made from an estimator's signature and docstring."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmkc.cli.errors import UserError
from dmkc.clusterers.base import one_of
from dmkc.clusterers.estimator import RowClusterer
from dmkc.modelfile import ESTIMATORS
from dmkc.modelfile.registry import KERNELS, kernel_from_json

ALIASES = {"n_clusters": "clusters", "random_state": "seed"}
"""Shorter names that stand beside the parameter's own."""
SHOWN = {"int": "N", "float": "X", "bool": "true|false", "links": "FILE"}
"""What stands for the value of an option, by the first word of its documented type."""
NOT_OPTIONS = ("client", "verbose")
"""Parameters that --scheduler, --quiet and --verbose stand for."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator as its documentation describes it."""

    name: str
    default: Any
    kind: str
    """The type as documented, such as "float or None"."""
    text: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are documented in braces."""
        found = re.match(r"\{(.*?)\}", self.kind)
        return tuple(re.findall(r'"(.*?)"', found[1])) if found else ()

    @property
    def words(self) -> tuple[str, ...]:
        """All words that are documented, which stand beside numbers or files in some types."""
        return tuple(re.findall(r'"(.*?)"', self.kind))

    @property
    def flags(self) -> tuple[str, ...]:
        names = [ALIASES[self.name]] if self.name in ALIASES else []
        return tuple(f"--{name.replace('_', '-')}" for name in [*names, self.name])

    @property
    def metavar(self) -> str:
        if self.choices:
            none = ("none",) if "None" in self.kind else ()
            file = ("FILE",) if "array" in self.kind else ()
            return "|".join([*self.choices, *none, *file])
        if "list" in self.kind:
            return "A,B"
        first = SHOWN.get(re.split(r"\W", self.kind)[0], "VALUE")
        pair = (f"{first}-{first}",) if "pair" in self.kind else ()
        return "|".join([first, *pair, *self.words])

    def parse(self, text: str) -> Any:
        """The value that a text stands for."""
        if text.lower() in ("none", "null") and (self.default is None or "None" in self.kind):
            return None
        if text in self.words and "list" not in self.kind:
            return text
        if isinstance(self.default, bool):
            return {"true": True, "false": False}[one_of(self.name, text, ("true", "false"))]
        if "list" in self.kind:
            items = [item.strip() for item in text.split(",") if item.strip()]
            return list(map(whole_number, items)) if self.kind.startswith("int,") else items
        if self.choices:
            return text if "array" in self.kind else one_of(self.name, text, self.choices)
        if "pair" in self.kind and re.fullmatch(r"\d+-\d+", text):
            return [int(number) for number in text.split("-")]
        if self.kind.startswith("int"):
            return whole_number(text)
        if self.kind.startswith("float"):
            try:
                return float(text)
            except ValueError:
                raise UserError(f"{self.name} must be a number, not {text!r}.") from None
        return text


def parameters(cls: type[RowClusterer]) -> dict[str, Parameter]:
    """The parameters of an estimator, in the order of its signature."""
    documented = _documented(inspect.getdoc(cls) or "")
    found = {}
    for name, given in inspect.signature(cls).parameters.items():
        kind, text = documented.get(name, (type(given.default).__name__, ""))
        found[name] = Parameter(name, given.default, kind, text)
    return found


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """An option for every parameter of every estimator."""
    group = parser.add_argument_group("parameters of the clusterer")
    seen: set[str] = set()
    for cls in ESTIMATORS.values():
        for name, parameter in parameters(cls).items():
            if name in seen or name in NOT_OPTIONS:
                continue
            seen.add(name)
            action = group.add_argument(
                *parameter.flags,
                dest=f"parameter_{name}",
                default=argparse.SUPPRESS,
                metavar=parameter.metavar,
                type=_typed(parameter),
                help=_help(parameter),
            )
            action.words = parameter.words  # type: ignore[attr-defined]


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters that stand on the command line."""
    start = "parameter_"
    return {k.removeprefix(start): v for k, v in vars(args).items() if k.startswith(start)}


def estimator_values(cls: type[RowClusterer], plain: Mapping[str, Any]) -> dict[str, Any]:
    """What the estimator is given for plain values: files are read, kernels made."""
    known = parameters(cls)
    return {name: _filled(known[name], value) for name, value in plain.items()}


def whole_number(text: str) -> int:
    """An integer, which may be written as 1e6."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        if float(text).is_integer():
            return int(float(text))
    except (ValueError, OverflowError):
        pass
    raise UserError(f"{text!r} is not a whole number.")


def as_argument(parse: Any) -> Any:
    """A type for argparse that keeps the sentence of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return convert


def _typed(parameter: Parameter) -> Any:
    return as_argument(parameter.parse)


def _filled(parameter: Parameter, value: Any) -> Any:
    from dmkc.cli.labels import read_labels
    from dmkc.cli.tables import read_small

    if isinstance(value, list):
        items = [_filled(parameter, item) for item in value]
        return items[0] if len(items) == 1 else items
    if isinstance(value, dict) and value.get("kind") in KERNELS:
        return kernel_from_json(value)
    if not isinstance(value, str) or value in parameter.choices:
        return value
    if "labeling" in parameter.kind and _is_path(value):
        return read_labels(value)
    if "array" in parameter.kind:
        if not _is_path(value):
            one_of(parameter.name, value, parameter.choices)
        return read_small(value)
    return value


def _is_path(text: str) -> bool:
    path = text.partition("::")[0]
    if Path(path).exists():
        return True
    if Path(path).suffix in (".npy", ".npz", ".zarr", ".csv", ".txt", ".parquet"):
        raise UserError(f"There is no file {path}.")
    return False


def _documented(doc: str) -> dict[str, tuple[str, str]]:
    """Type and text of every parameter of a NumPy docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    entries = re.findall(
        r"^(\w+) : ([^\n]*)\n((?:[ ]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M
    )
    return {
        name: (re.sub(r",\s*default=.*", "", kind), " ".join(text.split()))
        for name, kind, text in entries
    }


def _help(parameter: Parameter) -> str:
    text = re.sub(r"``(.*?)``", r"\1", parameter.text).replace("%", "%%")
    value = parameter.default
    shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    return f"{text} [{'none' if shown is None else shown}]"
