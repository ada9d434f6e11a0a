"""Parse, run one command, and turn whatever happens into an exit code and a line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dmkc import display, surfaces
from dmkc.cli.common import Commands, Failure, add_name, is_full, is_users, sentence
from dmkc.cli.interrupts import Terminated, tidy_end
from dmkc.cli.speaking import meant, said
from dmkc.errors import UserError
from dmkc.showing import one_line
from dmkc.version import __version__


@dataclass(frozen=True)
class Command:
    """What is known of a command before its module is imported."""

    text: str
    """A line of help."""
    module: str
    add: str = "add"
    """The function that fills its parser."""
    shows: str = ""
    """Whether what it does is shown while it runs: "always", or in a "terminal" alone."""

    def fill(self, parser: argparse.ArgumentParser) -> None:
        vars(importlib.import_module(f"dmkc.cli.{self.module}"))[self.add](parser)


COMMANDS = {
    "fit": Command("cluster the rows of a file", "fit", shows="always"),
    "select": Command(
        "choose parameters without labels, and ask about pairs of rows", "select", shows="always"
    ),
    "plan": Command(
        "say what a fit will take: time, scans, memory and a walltime", "plan", shows="always"
    ),
    "submit": Command("send a fit to a batch queue, coordinator and workers", "submit"),
    "status": Command("say how a run is doing", "submit", "add_status"),
    "logs": Command("print the log of a run", "submit", "add_logs"),
    "cancel": Command("end a run that is in the queue", "submit", "add_cancel"),
    "predict": Command("label rows by a fitted model", "predict", shows="always"),
    "evaluate": Command("compare labels with true classes", "evaluate", shows="terminal"),
    "info": Command(
        "say what a model, a run folder, a Zarr store or a table holds", "info", shows="terminal"
    ),
    "datasets": Command("list, make or fetch data sets", "datasets", shows="terminal"),
    "cluster": Command("check a cluster config, or make certificates", "cluster"),
    "demo": Command("run the demonstration", "demo", shows="terminal"),
    "warm": Command(
        "compile the inner loops, which the first fit does otherwise", "warm", shows="terminal"
    ),
    "completion": Command("print a shell's completion", "completion"),
}
SILENT = {"--quiet", "--help", "-h", "--version"}
"""Words with which nothing is shown while a command runs."""
DESCRIPTION = "Cluster rows by the widest margin in a learned combination of kernels."
EXAMPLE = """\
example:
  dmkc datasets make ringnorm --rows 1e5 --out ring.zarr
  dmkc fit ring.zarr --clusters 2 --seed 0 --truth ring.zarr::y --out run
  dmkc info run
"""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line and leaves the ending to `main`."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", Formatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(**kwargs)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Say which choice may have been meant."""
        if action.choices is not None and value not in action.choices:
            what = "/".join(action.option_strings) or (action.metavar or action.dest)
            known = list(action.choices)
            hint = meant(value, known, "{}") or f" Known are {', '.join(map(str, known))}."
            raise UserError(f"{value!r} is no {str(what).lower()}.{hint}")

    def error(self, message: str) -> NoReturn:
        text = message.rstrip(".")
        raise UserError(f"{text[:1].upper()}{text[1:]} (see {self.prog} --help).")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Options in a narrow column, for 80 columns."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        super().__init__(prog, max_help_position=24, **kwargs)
        self._action_max_length = 14  # argparse forgets that commands are indented


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; of one alone, beside the names of the others, if it is chosen."""
    parser: argparse.ArgumentParser = Parser(prog="dmkc", description=DESCRIPTION, epilog=EXAMPLE)
    parser.set_defaults(run=None)
    parser.add_argument("--version", action="version", version=f"dmkc {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        inner = add_name(commands, name, command.text)
        if chosen in (None, name):
            command.fill(inner)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 is done, 1 a failure, 2 a mistake in use or input, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    try:
        with tidy_end(), _shown(words) as loading, _plain_warnings():
            args = _parse(words)
            if args is None:
                return 2
            loading.tell("", text=COMMANDS[args.command].text)
            args.run(args)
            sys.stdout.flush()
        return 0
    except Terminated:
        return _end("ended by a signal; whatever was only half written is removed.", 143, debug)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    except KeyboardInterrupt:
        return _end("interrupted; whatever was only half written has been removed.", 130, debug)
    except BrokenPipeError:
        # The reader of our output has left; nothing is to be said to it any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as problem:
        if is_users(problem):
            return _end(f"error: {sentence(problem)}", 2, debug)
        plain = isinstance(problem, Failure | MemoryError | ImportError) or is_full(problem)
        kind = "" if plain else f"{type(problem).__name__}: "
        hint = "" if debug else " (--debug shows where)"
        return _end(f"failed: {kind}{sentence(problem)}{hint}", 1, debug)


@contextlib.contextmanager
def _shown(words: list[str]) -> Iterator[display.Stage]:
    """Show what the command does while it runs, from before its libraries are loaded."""
    command = COMMANDS.get(_chosen(words))
    shows = "" if command is None or SILENT & set(words) else command.shows
    live = surfaces.is_live(sys.stderr) and "--verbose" not in words
    if not (shows == "always" or (shows == "terminal" and live)):
        yield display.Stage(None, "")
        return
    surface = surfaces.Terminal(sys.stderr) if live else surfaces.Plain(sys.stderr)
    with display.shown_on(surface) as shown:
        yield shown.begin("loading libraries", told=False)


def _chosen(words: list[str]) -> str:
    # No option before a command takes a value, so that the first other word is the command.
    return next((word for word in words if not word.startswith("-")), "")


def _parse(words: list[str]) -> argparse.Namespace | None:
    chosen = _chosen(words)
    parser = build_parser(chosen)
    commands = _commands(parser)
    assert commands is not None
    if chosen in commands.choices:
        focus = commands.choices[chosen].get_default("focus")
        if focus is not None:
            focus(commands.choices[chosen], chosen, words)
    args, unknown = parser.parse_known_args(words)
    if unknown:
        known = [o for a in _deepest(parser, args)._actions for o in a.option_strings]
        comma = "" if unknown[0].startswith("-") else " (lists are written with commas: a,b)"
        hint = meant(unknown[0].partition("=")[0], known, "{}") or f" See {_prog(args)} --help."
        raise UserError(f"Unknown argument {unknown[0]!r}{comma}.{hint}")
    args.words = words
    if args.run is None:
        _deepest(parser, args).print_help(sys.stderr)
        return None
    return args


def _commands(parser: argparse.ArgumentParser) -> Commands | None:
    """The choice of a command among a parser's arguments, or None."""
    inner = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return next(inner, None)


def _prog(args: argparse.Namespace) -> str:
    return f"dmkc {args.command}" if args.command else "dmkc"


def _deepest(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the command that was chosen."""
    commands = _commands(parser)
    chosen = None if commands is None else vars(args).get(commands.dest)
    if commands is None or chosen is None:
        return parser
    return _deepest(commands.choices[chosen], args)


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as lines without the place in the code, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        for kind in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)

        def show(message: Any, *_: Any, **__: Any) -> None:
            text = one_line(" ".join(said(message).split()))
            print(f"dmkc: warning: {text}", file=sys.stderr)

        warnings.showwarning = show
        yield


def _end(text: str, code: int, debug: bool) -> int:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    if debug:
        traceback.print_exc()
    print(f"dmkc: {text}", file=sys.stderr)
    return code
