"""`dmkc plan`: what a fit will take, before it is begun."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dmkc.cli.common import client_of, define, print_pairs, say
from dmkc.cli.fit import add_method, chosen
from dmkc.cli.options import estimator_values, method_class
from dmkc.cli.tables import open_table
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.planning import plan
from dmkc.writing import write_text

EXAMPLE = "dmkc plan x.zarr --clusters 2 --cluster cluster_configs/local.yaml"


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    parser.usage = "dmkc plan INPUT [options of dmkc fit]"
    parser.add_argument("--json", metavar="FILE", help="write the plan to a file too")
    parser.add_argument(
        "--quiet", action="store_true", help="say nothing while running, but for errors"
    )
    add_method(parser)


def run(args: argparse.Namespace) -> None:
    method, plain = chosen(args)
    cls = method_class(method)
    values = estimator_values(cls, plain)
    target = None if args.json is None else _target(args.json)
    table = open_table(args)
    for note in table.notes:
        say(note, args.quiet)
    with client_of(args) as client, stage("fitting some of the rows"):
        found = plan(table.X, cls(**values, client=client), journal=True)
    if target is not None:
        write_text(target, json.dumps(found.as_dict(), indent=2) + "\n")
    print_pairs(found.pairs())


def _target(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.parent.is_dir():
        raise UserError(f"The folder {path.parent} does not exist; create it first.")
    if path.exists() and not path.is_file():
        raise UserError(f"{text} is not a file; choose another --json.")
    return path
