"""`dmkc select`: what would be chosen without labels, how sure that is, and what else fits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dmkc.cli import runs
from dmkc.cli.answers import add_answers, answers_of, write_answers
from dmkc.cli.common import (
    add_force,
    add_voice,
    client_of,
    define,
    kernel_text,
    print_pairs,
    say,
    shown,
)
from dmkc.cli.fit import add_method, chosen, write_stored_labels
from dmkc.cli.interrupts import heed
from dmkc.cli.options import as_argument, estimator_values, method_class, params_text
from dmkc.cli.recipes import Table
from dmkc.cli.results import place_dropped
from dmkc.cli.rownames import RowNames
from dmkc.cli.tables import input_name, open_table
from dmkc.clusterers.estimator import Facts
from dmkc.clusterers.labelling import apply
from dmkc.clusterers.parameters import whole_number
from dmkc.data import as_rows
from dmkc.display import close, stage
from dmkc.errors import UserError
from dmkc.kernels import as_bank
from dmkc.modelfile.values import kernel_to_json
from dmkc.selection.choose import Selection
from dmkc.selection.questions import Asking, plainly
from dmkc.selection.run import select
from dmkc.showing import printable
from dmkc.version import __version__
from dmkc.writing import write_text

EXAMPLE = "dmkc select x.npy --clusters 2 --seed 0 --out choice.yaml"
QUESTIONS = 10
WORDS = "[y]es, [n]o, [s]kip, [q]uit"


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    parser.usage = "dmkc select INPUT [--out FILE] [--ask --answers FILE] [options of fit]"
    parser.add_argument(
        "--out", metavar="FILE", help="write the choice, for dmkc fit --params: a .yaml file"
    )
    parser.add_argument(
        "--ask",
        nargs="?",
        const=QUESTIONS,
        type=as_argument(whole_number),
        metavar="N",
        help=f"ask about pairs of rows, at most N times [{QUESTIONS}]",
    )
    add_answers(parser)
    add_force(parser)
    add_voice(parser)
    add_method(parser)


def run(args: argparse.Namespace) -> None:
    method, plain = chosen(args, to_choose=True)
    cls: Any = method_class(method)
    values = estimator_values(cls, plain)
    if args.ask is not None and args.answers is None:
        raise UserError("--ask needs --answers FILE, where the answers are kept for dmkc fit.")
    target = None if args.out is None else _target(args.out, args.force)
    kept = None if args.answers is None else Path(args.answers).expanduser()
    table = open_table(args)
    names = RowNames(table)
    known = answers_of(args, names, may_be_new=args.ask is not None)
    for note in table.notes:
        say(note, args.quiet)
    with client_of(args) as client, stage("taking a sample of the rows"):
        found = select(table.X, cls(**values, client=client), answers=known)
    if args.ask is not None:
        assert kept is not None
        close()  # from here on the terminal belongs to questions and answers
        recipe = None if table.source is None else table.source.recipe
        dates = [str(c.name) for c in recipe.columns if c.kind == "date"] if recipe else []
        found = ask(found, args.ask, kept, names, dates)
    print_pairs(_about(found))
    if target is not None:
        write_choice(target, method, plain, found, table, args)


def ask(
    found: Selection, count: int, kept: Path, names: RowNames, dates: Sequence[str] = ()
) -> Selection:
    """Ask in the terminal; every answer is written at once, so that none is lost.

    Columns of `dates` are days since 1970, and shown as dates.
    """
    asking, asked = Asking(found), 0
    while asked < count and asking.pair is not None:
        heed()
        i, j = map(printable, names.of(asking.pair))
        rows = asking.rows().set_axis([f"row {i}", f"row {j}"], axis=1)
        cells = rows.map(plainly)
        for name in cells.index.intersection(dates):
            cells.loc[name] = [str(np.datetime64(round(day), "D")) for day in rows.loc[name]]
        print(cells.rename(index=printable).to_string())
        word = _word(f"Do rows {i} and {j} belong together? {WORDS} ")
        if word == "q":
            break
        try:
            {"y": asking.same, "n": asking.different, "s": asking.skip}[word]()
        except UserError as problem:  # it contradicts earlier answers
            print(problem)
            asking.skip()
        asked += 1
        write_answers(kept, asking.selection.answers, names)
    if asking.pair is None:
        print("There is nothing left to ask: all likely candidates agree.")
        if not kept.exists():  # a fit that is told of it can go on
            write_answers(kept, asking.selection.answers, names)
    return asking.selection


def write_choice(
    path: Path,
    method: str,
    plain: dict[str, Any],
    found: Selection,
    table: Table,
    args: argparse.Namespace,
) -> None:
    """Write the best candidate as parameters of a fit.

    One of several settings of a method is fitted from its labels, which are written, too.
    """
    recipe = found.best.recipe
    assert recipe is not None
    values = {"method": recipe.method, **recipe.parameters, "random_state": found.gathered.seed}
    if "kernels" in values:
        values["kernels"] = [kernel_to_json(kernel) for kernel in as_bank(values["kernels"])]
    if recipe.method == method:
        labels = path.with_suffix(".labels.zarr")
        begin = apply(as_rows(table.X), found.best.model.label_pipeline(), np.dtype(np.int32), None)
        write_stored_labels(begin, table.X, labels, args.force)
        place_dropped(labels, table.source)
        values = plain | values | {"init": str(labels)}
    write_text(path, params_text(values, f"dmkc {__version__} select of {input_name(args)}"))
    say(
        f"fit it to all rows, with the same options for the input: dmkc fit "
        f"{args.input or '--view ...'} --params {args.out} --out run",
        args.quiet,
    )


def _target(text: str, force: bool) -> Path:
    """The file of parameters to write, once it is known that it may be written."""
    if Path(text).suffix not in (".yaml", ".yml"):
        raise UserError(
            f"Parameters are written as YAML: choose an --out that ends in .yaml, not {text}."
        )
    path = runs.file_target(text, force, lambda file: file.read_bytes()[:7] == b"# dmkc ")
    runs.store_target(str(path.with_suffix(".labels.zarr")), force)
    return path


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
        ("verdict", found.verdict),
        ("evidence", round(found.evidence, 2)),
        ("clusters", found.gathered.n_clusters),
        ("candidates", len(found.candidates)),
        ("answers", len(found.answers)),
        ("confidence", round(found.confidence, 3)),
    ]
    for number, candidate in enumerate(found.alternatives):
        shares = np.bincount(candidate.labels) / len(candidate.labels)
        made = candidate.described()
        kernels = made.pop("kernels", None)
        pairs += [
            (f"alternative {number}", ""),
            ("  shares", ", ".join(f"{share:.0%}" for share in shares)),
            *([] if kernels is None else [("  kernels", ", ".join(map(kernel_text, kernels)))]),
            *((f"  {name}", shown(value)) for name, value in made.items()),
        ]
    return pairs
