"""`dmkc completion`: scripts for shells, made from the parser by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from dmkc.cli.common import define

SHELLS = ("bash", "zsh", "fish")
EXAMPLE = "dmkc completion bash > ~/.local/share/bash-completion/completions/dmkc"
PATHS = {"FILE", "FOLDER", "INPUT", "CONFIG", "MODEL", "LABELS", "TRUTH", "RUN", "PATH"}
"""Placeholders in help texts that stand for something on the disk."""


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    shell = parser.add_argument("shell", choices=SHELLS)
    shell.metavar = "|".join(SHELLS)


def run(args: argparse.Namespace) -> None:
    import shtab

    from dmkc.cli.app import build_parser

    parser = build_parser()
    for action in _arguments(parser):
        _say_what_completes(action, shtab.FILE)
    print(shtab.complete(parser, args.shell))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a command and of all commands below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _arguments(child)
        else:
            yield action


def _say_what_completes(action: argparse.Action, files: Any) -> None:
    """Words and files, as the placeholder of an argument names them: "standard|none|FILE"."""
    if action.choices or not isinstance(action.metavar, str):
        return
    names = action.metavar.split("|")
    words = [name for name in names if name == name.lower()]
    if words:
        action.choices = words
    elif PATHS & set(names):
        action.complete = files  # type: ignore[attr-defined]
