"""Command-line options from the declared parameters of the estimators.

A parser knows the options of all methods and takes their values as text: what a value must be is
known with the method, which may stand in a file of parameters.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmkc.cli.errors import UserError
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.parameters import Parameter
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.kernels import KERNELS
from dmkc.modelfile.kernels import kernel_from_json

ALIASES = {"n_clusters": "clusters", "random_state": "seed"}
"""Shorter names that stand beside the parameter's own."""
NOT_OPTIONS = ("client", "verbose")
"""Parameters that --scheduler, --quiet and --verbose stand for."""
PREFIX = "parameter_"


class Words(tuple[str, ...]):
    """Choices to offer for the value of an option, which do not exclude other values."""

    def __contains__(self, value: object) -> bool:
        return True


def parameters(cls: type[RowClusterer]) -> dict[str, Parameter]:
    """The parameters of an estimator that have options, in the order of its signature."""
    return {name: p for name, p in cls.parameters().items() if name not in NOT_OPTIONS}


def flags(name: str) -> tuple[str, ...]:
    """The options of a parameter."""
    names = [ALIASES[name], name] if name in ALIASES else [name]
    return tuple(f"--{each.replace('_', '-')}" for each in names)


def methods_with(name: str) -> list[str]:
    """The methods that have a parameter."""
    return [method for method, cls in ESTIMATORS.items() if name in parameters(cls)]


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """An option for every parameter of every estimator."""
    group = parser.add_argument_group("parameters of the clusterer")
    declared: dict[str, list[Parameter]] = {}
    for cls in ESTIMATORS.values():
        for name, parameter in parameters(cls).items():
            declared.setdefault(name, []).append(parameter)
    for name, several in declared.items():
        offered = Words(dict.fromkeys(word for p in several for word in p.kind.words))
        group.add_argument(
            *flags(name),
            dest=f"{PREFIX}{name}",
            default=argparse.SUPPRESS,
            metavar=several[0].kind.metavar,
            choices=offered or None,
            help=help_of(several[0]),
        )


def given_parameters(args: argparse.Namespace) -> dict[str, str]:
    """The parameters that stand on the command line, as text."""
    return {k.removeprefix(PREFIX): v for k, v in vars(args).items() if k.startswith(PREFIX)}


def estimator_values(cls: type[RowClusterer], plain: Mapping[str, Any]) -> dict[str, Any]:
    """What the estimator is given for plain values, checked: files are read, kernels made."""
    known = parameters(cls)
    return {name: known[name].check(_filled(known[name], value)) for name, value in plain.items()}


def as_argument(parse: Any) -> Any:
    """A type for argparse that keeps the sentence of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return convert


def help_of(parameter: Parameter) -> str:
    """Meaning and default of a parameter, for argparse."""
    text = re.sub(r"\s+\[\d+\]_|``", "", parameter.text)  # references and code of a docstring
    text = " ".join(text.split()).replace("%", "%%")
    value = parameter.default
    shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    return f"{text} [{'none' if shown is None else str(shown).lower()}]"


def _filled(parameter: Parameter, value: Any) -> Any:
    from dmkc.cli.labels import read_labels
    from dmkc.cli.tables import read_small

    reads = parameter.kind.reads
    if reads and isinstance(value, list):
        items = [_filled(parameter, item) for item in value]
        return items[0] if len(items) == 1 else items
    if isinstance(value, dict) and value.get("kind") in KERNELS:
        return kernel_from_json(value)
    if not isinstance(value, str) or value in parameter.kind.words:
        return value
    if reads == "labels" and _is_path(value):
        return read_labels(value)
    if reads == "rows" and _is_path(value):
        return read_small(value)
    return value


def _is_path(text: str) -> bool:
    path = text.partition("::")[0]
    if Path(path).exists():
        return True
    if Path(path).suffix in (".npy", ".npz", ".zarr", ".csv", ".txt", ".parquet"):
        raise UserError(f"There is no file {path}.")
    return False
