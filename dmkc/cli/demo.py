"""`dmkc demo`: the demonstration."""

from __future__ import annotations

import argparse
from pathlib import Path

from dmkc.cli.common import add_cluster, client_of, define
from dmkc.cli.options import as_argument
from dmkc.clusterers.parameters import whole_number


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, "dmkc demo --out demo-output", run)
    parser.add_argument(
        "--out", default="demo-output", metavar="FOLDER", help="folder of the results [demo-output]"
    )
    parser.add_argument(
        "--seed", type=as_argument(whole_number), default=0, metavar="N", help="seed [0]"
    )
    add_cluster(parser)


def run(args: argparse.Namespace) -> None:
    from dmkc import demo

    with client_of(args):
        demo.run(Path(args.out), seed=args.seed)
