"""The help of commands that fit a method: one screen for all, or all options of one method."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Sequence
from typing import Any

from dmkc.cli.errors import UserError
from dmkc.cli.options import PREFIX, help_of, parameters
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS

SHORT = {
    "input": ("INPUT", ".zarr, .npy, .npz, .parquet or .csv (FILE::NAME in groups)"),
    "view": ("NAME=FILE", "instead of INPUT, one of several files with the same rows"),
    "out": ("FOLDER", "folder of the results: labels, model, metrics, report"),
    "resume": ("FOLDER", "go on with a run that was ended early"),
    "truth": ("FILE", "true classes to compare with"),
    "ask": ("N", "ask about pairs of rows, at most N times"),
    "answers": ("FILE", "where the answers are kept, for dmkc fit --auto --answers"),
    "json": ("FILE", "write the plan to a file too"),
    "params": ("FILE", "parameters in YAML or TOML"),
    "method": ("NAME", "one of the methods below [the first]"),
    "auto": (None, "choose scale, kernels, C and balance without labels"),
    "cluster": ("CONFIG", "cluster to run on, as in cluster_configs"),
    f"{PREFIX}n_clusters": ("N", "number of clusters"),
    f"{PREFIX}kernels": ("A,B", "kernels by name, such as linear,gaussian:0.5"),
    f"{PREFIX}scale": ("NAME", "standard, minmax, if-mixed or none"),
    f"{PREFIX}random_state": ("N", "seed; the same one gives the same labels"),
    "help": (None, "show this help"),
}
"""The options that most people need, with the value and the words of the short help."""
CHOOSING = ("auto", "answers")
"""Options for methods that have something to choose."""


def focus(commands: Any, words: Sequence[str]) -> None:
    """Fit the help of the command that was chosen to the method that was chosen, if any."""
    parser = commands.choices.get(words[0]) if words else None
    if parser is None or not any(action.dest == "method" for action in parser._actions):
        return
    finder = type(parser)(prog=parser.prog, add_help=False)
    finder.add_argument("--method")
    method = finder.parse_known_args(list(words))[0].method
    if method is None:
        _shorten(parser, words[0])
    else:
        _only(parser, method, method_class(method))


def method_class(name: str) -> type[RowClusterer]:
    """The estimator of a short name, or a sentence with the names there are."""
    if name not in ESTIMATORS:
        raise UserError(f"There is no method {name!r}; known are {', '.join(ESTIMATORS)}.")
    return ESTIMATORS[name]


def _only(parser: argparse.ArgumentParser, method: str, cls: type[RowClusterer]) -> None:
    """Show the parameters of one method, in its order, with its choices and defaults."""
    known = parameters(cls)
    paragraph = (inspect.getdoc(cls) or "").split("\n\n")[0]
    parser.description = textwrap.fill(f"{parser.description} {method}: {paragraph}", 78)
    for action in parser._actions:
        if action.dest in CHOOSING and not cls.selectable:
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
        if action.dest not in SHORT or (action.dest == "answers" and command != "select"):
            action.help = argparse.SUPPRESS
            continue
        action.metavar, action.help = SHORT[action.dest]
        if action.dest.startswith(PREFIX):
            action.option_strings = action.option_strings[:1]
    listed = "\n".join(f"  {name:<15} {cls.summary}" for name, cls in ESTIMATORS.items())
    first = next(iter(ESTIMATORS))
    parser.epilog = (
        f"methods:\n{listed}\n\n"
        f"all options of a method: dmkc {command} --method {first} --help\n\n{parser.epilog}"
    )


def _name(action: argparse.Action) -> str:
    return action.dest.removeprefix(PREFIX)
