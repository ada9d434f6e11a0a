"""`dmkc select`: what would be chosen without labels, how sure that is, and what else fits."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dmkc.cli.answers import add_answers, answers_of, write_answers
from dmkc.cli.common import (
    add_voice,
    client_of,
    define,
    kernel_text,
    print_pairs,
    say,
    shown,
)
from dmkc.cli.fit import add_method, chosen
from dmkc.cli.interrupts import heed
from dmkc.cli.options import as_argument, estimator_values, method_class
from dmkc.cli.tables import open_table
from dmkc.clusterers.estimator import Facts
from dmkc.clusterers.parameters import whole_number
from dmkc.errors import UserError
from dmkc.selection.choose import Selection
from dmkc.selection.questions import Asking
from dmkc.selection.run import select
from dmkc.showing import printable

EXAMPLE = "dmkc select x.npy --clusters 2 --seed 0 --ask 10 --answers answers.csv"
QUESTIONS = 10
WORDS = "[y]es, [n]o, [s]kip, [q]uit"


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    parser.usage = "dmkc select INPUT [--ask [N]] [--answers FILE] [options of dmkc fit]"
    parser.add_argument(
        "--ask",
        nargs="?",
        const=QUESTIONS,
        type=as_argument(whole_number),
        metavar="N",
        help=f"ask about pairs of rows, at most N times [{QUESTIONS}]",
    )
    add_answers(parser)
    add_voice(parser)
    add_method(parser)


def run(args: argparse.Namespace) -> None:
    args.auto = True
    method, plain = chosen(args)
    cls: Any = method_class(method)
    values = estimator_values(cls, plain)
    if args.ask is not None and args.answers is None:
        raise UserError("--ask needs --answers FILE, where the answers are kept for dmkc fit.")
    kept = None if args.answers is None else Path(args.answers).expanduser()
    known = answers_of(args, may_be_new=args.ask is not None)
    table = open_table(args)
    for note in table.notes:
        say(note, args.quiet)
    with client_of(args) as client:
        say("fitting candidates to a sample of the rows", args.quiet)
        found = select(table.X, cls(**values, client=client), answers=known)
    if args.ask is not None:
        assert kept is not None
        found = ask(found, args.ask, kept)
    print_pairs(_about(found))


def ask(found: Selection, count: int, kept: Path) -> Selection:
    """Ask in the terminal; every answer is written at once, so that none is lost."""
    asking, asked = Asking(found), 0
    while asked < count and asking.pair is not None:
        heed()
        i, j = asking.pair
        shown_rows = asking.rows().rename(index=printable, columns=printable)
        print(shown_rows.to_string(float_format=lambda value: f"{value:.4g}"))
        word = _word(f"Do rows {i} and {j} belong together? {WORDS} ")
        if word == "q":
            break
        try:
            {"y": asking.same, "n": asking.different, "s": asking.skip}[word]()
        except UserError as problem:  # it contradicts earlier answers
            print(problem)
            asking.skip()
        asked += 1
        write_answers(kept, asking.selection.answers)
    if asking.pair is None:
        print("There is nothing left to ask: all likely candidates agree.")
    return asking.selection


def _word(prompt: str) -> str:
    """The first letter of an answer; the end of the input quits."""
    while True:
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            return "q"
        letter = line.strip().lower()[:1]
        if letter and letter in "ynsq":
            return letter


def _about(found: Selection) -> Facts:
    pairs: Facts = [
        ("candidates", len(found.candidates)),
        ("answers", len(found.answers)),
        ("confidence", round(found.confidence, 3)),
    ]
    for number, candidate in enumerate(found.alternatives):
        shares = np.bincount(candidate.labels) / len(candidate.labels)
        made = candidate.described()
        pairs += [
            (f"alternative {number}", ""),
            ("  shares", ", ".join(f"{share:.0%}" for share in shares)),
            ("  kernels", ", ".join(map(kernel_text, made.pop("kernels")))),
            *((f"  {name}", shown(value)) for name, value in made.items()),
        ]
    return pairs
