"""The file of answers about pairs of rows, which `select` writes and `fit` reads."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dmkc.cli.errors import UserError
from dmkc.selection.asking import read_answers


def add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="pairs of rows that do or do not belong together, which --auto heeds: lines such as "
        "3,17,yes (dmkc select --ask writes them)",
    )


def answers_of(args: argparse.Namespace, may_be_new: bool = False) -> list[Any]:
    """The answers in the file that was named; none when it may be new and is."""
    if args.answers is None:
        return []
    path = Path(args.answers).expanduser()
    if not path.exists():
        if may_be_new:
            return []
        raise UserError(f"There is no file {args.answers}; dmkc select --ask makes one.")
    return read_answers(path)
