"""`dmkc evaluate`: how well labels fit true classes."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from dmkc.cli.common import add_cluster, client_of, define, print_pairs
from dmkc.cli.labels import read_labels
from dmkc.contingency import cluster_name
from dmkc.errors import UserError
from dmkc.metrics import Contingency, all_metrics, contingency
from dmkc.showing import printable

EXAMPLE = "dmkc evaluate y-labels.zarr truth.csv::class"
MOST_CLUSTERS = 20


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    text = "%s: .zarr, .npy, .npz, .csv, .parquet or one a line; FILE::NAME chooses"
    parser.add_argument("labels", metavar="LABELS", help=text % "labels or a run folder")
    parser.add_argument("truth", metavar="TRUTH", help=text % "true classes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster(parser)


def run(args: argparse.Namespace) -> None:
    labels, truth = read_labels(args.labels), read_labels(args.truth)
    if len(labels) != len(truth):
        raise UserError(
            f"{args.labels} has {len(labels)} labels, but {args.truth} has {len(truth)}."
        )
    with client_of(args):
        counted = contingency(truth, labels)
    metrics = all_metrics(counted)
    if args.json:
        print(json.dumps({"metrics": metrics, **_table(counted)}, indent=2))
        return
    print_pairs([(name, f"{value:.4f}") for name, value in metrics.items()])
    print()
    _print_table(counted)


def _table(counted: Contingency) -> dict[str, Any]:
    return {
        "classes": counted.classes.tolist(),
        "clusters": counted.clusters.tolist(),
        "table": np.rint(counted.table).astype(int).tolist(),
    }


def _print_table(counted: Contingency) -> None:
    table = np.rint(counted.table).astype(int)
    if table.shape[1] > MOST_CLUSTERS:
        print(f"(a table of {table.shape[0]} x {table.shape[1]} cells; --json prints it)")
        return
    head = ["class", *map(cluster_name, counted.clusters.tolist())]
    lines = [head]
    for name, row in zip(counted.classes.tolist(), table.tolist(), strict=True):
        lines.append([printable(name), *map(str, row)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        right = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join([line[0].ljust(widths[0]), *list(right)[1:]]))
