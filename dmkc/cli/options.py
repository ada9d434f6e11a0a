"""Parameters of methods on the command line: options, their help, and files of parameters.

Options come from the declared parameters of the estimators.  A parser knows those of all methods
and takes their values as text: what a value must be is known with the method, which may stand in a
file of parameters.  The help is one screen for all methods, or all options of one.
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dmkc.cli.speaking import meant
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.parameters import Parameter
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.documents import read_document
from dmkc.errors import UserError
from dmkc.kernels import KERNELS
from dmkc.modelfile.values import kernel_from_json
from dmkc.showing import printable

ALIASES = {"n_clusters": "clusters", "random_state": "seed"}
"""Shorter names that stand beside the parameter's own."""
NOT_OPTIONS = ("client", "verbose")
"""Parameters that --scheduler, --quiet and --verbose stand for."""
PREFIX = "parameter_"
SHORT = {
    "input": ("INPUT", ".csv, .parquet, .feather, .zarr, .npy or .npz"),
    "out": ("FOLDER", "folder of the results: labels, model, metrics, report"),
    "select out": ("FILE.yaml", "write the choice there, for dmkc fit --params"),
    "resume": ("FOLDER", "go on with a run that was ended early"),
    "truth": ("FILE", "true classes to compare with, or a column of INPUT"),
    "ask": ("N", "ask about pairs of rows, at most N times"),
    "start": ("MODEL", "begin from the clusters of an earlier model"),
    "answers": ("FILE", "answers about pairs of rows (select --ask asks)"),
    "json": ("FILE", "write the plan to a file too"),
    "params": ("FILE", "parameters in YAML or TOML"),
    "method": ("NAME", "one of the methods below [auto]"),
    "cluster": ("CONFIG", "cluster to run on, as in cluster_configs"),
    "quiet": (None, "say nothing while running, but for errors"),
    "exclude": ("A,B", "columns of a table to leave out"),
    "index_column": ("A", "column of a table that names the rows"),
    f"{PREFIX}n_clusters": ("N", "number of clusters"),
    f"{PREFIX}kernels": ("A,B", "kernels by name, such as linear,gaussian:0.5"),
    f"{PREFIX}scale": ("NAME", "standard, minmax, if-mixed or none"),
    f"{PREFIX}random_state": ("N", "seed; the same one gives the same labels"),
    "help": (None, "show this help"),
}
"""The options that most people need, with the value and the words of the short help."""
CHOOSING = ("auto", "answers")
"""Options for methods that have something to choose."""


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
    from dmkc.clusterers.odm.learn import OWN
    from dmkc.clusterers.starts import KINDS

    reads = parameter.kind.reads
    if reads and isinstance(value, list):
        items = [_filled(parameter, item) for item in value]
        return items[0] if len(items) == 1 else items
    if isinstance(value, dict) and str(value.get("kind")) in KERNELS:
        return kernel_from_json(value)
    # a name is no file, even where a file or a run has the same name
    if not isinstance(value, str) or value in (*parameter.kind.words, "auto", *KINDS, *OWN):
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


def focus(parser: argparse.ArgumentParser, command: str, words: Sequence[str]) -> None:
    """Fit the help of a command that has methods to the one that was chosen, if any."""
    finder = type(parser)(prog=parser.prog, add_help=False)
    finder.add_argument("--method")
    method = finder.parse_known_args(list(words))[0].method
    if method is None:
        _shorten(parser, command)
    else:
        _only(parser, method, method_class(method))


def method_class(name: Any) -> type[RowClusterer]:
    """The estimator of a short name, or a sentence with the names there are."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        hint = meant(name, ESTIMATORS)
        raise UserError(f"There is no method {name!r}; known are {', '.join(ESTIMATORS)}.{hint}")
    return ESTIMATORS[name]


def _only(parser: argparse.ArgumentParser, method: str, cls: type[RowClusterer]) -> None:
    """Show the parameters of one method, in its order, with its choices and defaults."""
    known = parameters(cls)
    paragraph = (inspect.getdoc(cls) or "").split("\n\n")[0]
    parser.description = textwrap.fill(f"{parser.description} {method}: {paragraph}", 78)
    for action in parser._actions:
        takes_pairs = action.dest == "answers" and "must_link" in known
        if action.dest in CHOOSING and not cls.selectable and not takes_pairs:
            action.help = argparse.SUPPRESS
    for group in parser._action_groups:
        theirs = [a for a in group._group_actions if a.dest.startswith(PREFIX)]
        if not theirs:
            continue
        group.title = f"parameters of {method} ({cls.__name__})"
        order = list(known)
        theirs = [a for a in theirs if _name(a) in known]
        theirs.sort(key=lambda action: order.index(_name(action)))
        group._group_actions[:] = theirs
        for action in theirs:
            action.metavar = known[_name(action)].kind.metavar
            action.help = help_of(known[_name(action)])


def _shorten(parser: argparse.ArgumentParser, command: str) -> None:
    """Show what everybody needs, and the methods."""
    for action in parser._actions:
        elsewhere = {"answers": "select", "start": "fit"}.get(action.dest, command) != command
        if action.dest not in SHORT or elsewhere:
            action.help = argparse.SUPPRESS
            continue
        action.metavar, action.help = SHORT.get(f"{command} {action.dest}", SHORT[action.dest])
        if action.dest.startswith(PREFIX):
            action.option_strings = action.option_strings[:1]
    listed = "\n".join(f"  {name:<15} {cls.summary}" for name, cls in ESTIMATORS.items())
    first = next(iter(ESTIMATORS))
    parser.epilog = (
        f"methods (all options of one: dmkc {command} --method {first} --help):\n{listed}\n\n"
        f"{parser.epilog}"
    )


def _name(action: argparse.Action) -> str:
    return action.dest.removeprefix(PREFIX)


def read_params(path: Path) -> dict[str, Any]:
    """The keys of a YAML, TOML or JSON file."""
    found = read_document(path)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold names and values, such as n_clusters: 2.")
    return found


def resolve(
    method: str | None,
    stored: Mapping[str, Any],
    given: Mapping[str, str],
    where: Any,
    default: str | None = None,
) -> tuple[str, type[RowClusterer], dict[str, Any]]:
    """The method, its estimator and a plain value for every parameter; the command line wins.

    Where no method is given it is `default`, or else the first of all.
    """
    stored = dict(stored)
    method = method or stored.pop("method", None)
    stored.pop("method", None)
    name = method or default or next(iter(ESTIMATORS))
    cls = method_class(name)
    known = parameters(cls)
    values = {k: p.default for k, p in known.items()}
    for key, value in stored.items():
        own = _own_name(key, name, known, where)
        values[own] = known[own].parse(value) if isinstance(value, str) else value
    for key, text in given.items():
        if key not in known and method is None:
            raise UserError(
                f"{flags(key)[0]} is an option of single methods: name one with --method, such as "
                f"--method {methods_with(key)[0]} ({_having(key)})."
            )
        if key not in known:
            raise UserError(f"The method {name!r} has no {flags(key)[0]}; {_having(key)}.")
        values[key] = known[key].parse(text)
    if "random_state" in values and values["random_state"] is None:
        # A seed that is written down, so that the run can be repeated.
        values["random_state"] = int(np.random.default_rng().integers(2**31))
    return name, cls, {key: _plain(value) for key, value in values.items()}


def params_text(values: Mapping[str, Any], title: str) -> str:
    """The method and its resolved parameters as a file that `--params` reads."""
    body = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)
    return f"# {printable(title)}\n{body}"


def _own_name(key: str, method: str, known: Mapping[str, Any], where: Any) -> str:
    plain = key.replace("-", "_")
    own = {short: long for long, short in ALIASES.items()}.get(plain, plain)
    if own not in known and methods_with(own):
        raise UserError(
            f"{where} has the key {key!r}, but the method {method!r} has no such parameter; "
            f"{_having(own)}."
        )
    if own not in known:
        names = [*known, *ALIASES.values(), "method"]
        hint = meant(plain, names) or f" Known are {', '.join(known)}."
        raise UserError(f"{where} has an unknown key {key!r}.{hint}")
    return own


def _having(name: str) -> str:
    """Which methods have a parameter."""
    methods = methods_with(name)
    if len(methods) == 1:
        return f"{methods[0]} alone has it"
    return f"{', '.join(methods[:-1])} and {methods[-1]} have it"


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
