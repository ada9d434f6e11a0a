"""Options that several commands share, and which exceptions are mistakes of a user."""

from __future__ import annotations

import argparse
import contextlib
import errno
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from dmkc.cli.speaking import said
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.showing import one_line, printable

if TYPE_CHECKING:
    from dmkc.clusterers.estimator import Facts
    from dmkc.kernels import Kernel
    from dmkc.typing import MaybeClient

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The commands of a parser, to which others are added."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OUTSIDE = (*FULL, errno.EIO, errno.EMFILE)
"""What is wrong with the machine and not with the use of it."""


class Failure(Exception):
    """Something outside went wrong; the text is the sentence shown."""


def is_users(problem: BaseException) -> bool:
    """Whether an exception says that the use or the input is wrong, and not that dmkc failed."""
    if isinstance(problem, UserError):
        return True
    if isinstance(problem, OSError):
        named = problem.filename is not None or problem.errno is None
        return named and problem.errno not in OUTSIDE and not isinstance(problem, ConnectionError)
    return False


def is_full(problem: BaseException) -> bool:
    """Whether an exception says that nothing more can be written."""
    return isinstance(problem, OSError) and problem.errno in FULL


def sentence(problem: BaseException) -> str:
    """One line about an exception."""
    if is_full(problem):
        place = getattr(problem, "filename", None)
        where = "" if place is None else f" at {printable(place)}"
        text = f"There is no space left on the disk{where}; make room and try again."
    elif isinstance(problem, OSError) and problem.filename is not None:
        text = f"{printable(problem.filename)}: {(problem.strerror or 'cannot be used').lower()}."
    elif isinstance(problem, MemoryError):
        text = f"The memory does not suffice ({problem or 'no details'})."
    else:
        text = said(problem) or type(problem).__name__
    # Our own sentences are one line, so that a line break can only be part of a name.
    text = one_line(text if isinstance(problem, UserError) else " ".join(text.split()))
    return text if text.endswith((".", "?", "!")) else f"{text}."


def add_command(
    commands: Commands,
    name: str,
    text: str,
    example: str,
    run: Callable[[argparse.Namespace], None] | None,
) -> argparse.ArgumentParser:
    """A command with its help, its example and the options of all commands."""
    parser = add_name(commands, name, text)
    define(parser, example, run)
    return parser


def add_name(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    """A command of which no more than a line of help is known yet."""
    description = textwrap.fill(f"{text[0].upper()}{text[1:]}.", 78)
    return commands.add_parser(name, help=text, description=description)


def define(
    parser: argparse.ArgumentParser,
    example: str,
    run: Callable[[argparse.Namespace], None] | None,
) -> None:
    """What a command does, its example and the options of all commands."""
    parser.epilog = f"example:\n  {example}"
    parser.set_defaults(run=run)
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")


def add_voice(parser: argparse.ArgumentParser) -> None:
    """How much is said while a command runs."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--quiet", action="store_true", help="say nothing while running, but for errors"
    )
    group.add_argument("--verbose", action="store_true", help="a line for every scan")


def voice(args: argparse.Namespace) -> int:
    """The estimators' `verbose`."""
    return 0 if args.quiet else 2 if args.verbose else 1


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Where a command computes."""
    parser.set_defaults(quiet=False)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--cluster",
        metavar="CONFIG",
        help="cluster to run on, a YAML file as in cluster_configs [threads of this machine]",
    )
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="running Dask scheduler, such as tcp://host:8786"
    )


@contextlib.contextmanager
def client_of(args: argparse.Namespace) -> Iterator[MaybeClient]:
    """The client of the chosen cluster while a command runs, or None."""
    config: Any = args.cluster
    if args.scheduler is not None:
        config = {"kind": "existing", "address": args.scheduler, "timeout": "10s"}
    if config is None:
        yield None
        return
    from dmkc import clusters
    from dmkc.clusters.opening import dashboard_of

    with contextlib.ExitStack() as stack:
        try:
            checked = clusters.read(config)
            with stage("starting the cluster"):
                client = stack.enter_context(clusters.open(checked))
        except clusters.ClusterError as problem:
            kind = UserError if args.scheduler is not None else Failure
            raise kind(str(problem)) from problem
        link = dashboard_of(client, checked)
        if link:
            say(f"dashboard: {link}", args.quiet)
        yield client


def add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--force", action="store_true", help="replace an earlier output of dmkc at --out"
    )


def say(text: str, quiet: bool = False) -> None:
    """A line about what is going on."""
    if not quiet:
        print(f"dmkc: {printable(text)}", file=sys.stderr, flush=True)


def print_pairs(pairs: Facts) -> None:
    """Names and values in two columns."""
    lines = [
        (printable(name), printable(shown(value) + _meaning(name, value))) for name, value in pairs
    ]
    width = max((len(name) for name, _ in lines), default=0)
    for name, value in lines:
        print(f"{name:<{width}}  {value}".rstrip())


def _meaning(name: str, value: Any) -> str:
    """What a number says that nobody knows by its name."""
    if not isinstance(value, float | int):
        return ""
    from dmkc.selection.scores import SURE
    from dmkc.selection.structure import EVIDENCE

    known = {
        "confidence": f"of 1; below {SURE:g} others fit too",
        "evidence": f"below {EVIDENCE:g} there is none",
    }
    return f" ({known[name]})" if name in known else ""


def shown(value: Any) -> str:
    """A value for people: few digits."""
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def kernel_text(kernel: Kernel) -> str:
    """A kernel with its numbers, in few digits."""
    values = {name: value for name, value in vars(kernel).items() if value is not None}
    columns = values.pop("columns", None)
    numbers = ", ".join(f"{name}={shown(value)}" for name, value in values.items())
    name = type(kernel).__name__.lower()
    text = f"{name}({numbers})" if numbers else name
    return text if columns is None else f"{text} of {columns}"


def counted(n_bytes: float) -> str:
    """A size for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"
