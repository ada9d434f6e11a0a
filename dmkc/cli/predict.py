"""`dmkc predict`: the labels of new rows by a stored model."""

from __future__ import annotations

import argparse
from typing import Any

from dmkc.cli import results, runs
from dmkc.cli.common import add_cluster, add_force, add_voice, client_of, define, say
from dmkc.cli.fit import write_stored_labels
from dmkc.cli.labels import cluster_sizes
from dmkc.cli.tables import add_input, open_table, split_name
from dmkc.clusterers.reach import warn_of_far
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.modelfile import load

EXAMPLE = "dmkc predict run/model.zarr y.csv --out y-labels.csv"


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    parser.usage = "dmkc predict MODEL INPUT --out FILE [options]"
    parser.add_argument("model", metavar="MODEL", help="model.zarr or a run folder")
    parser.add_argument("input", metavar="INPUT", nargs="?", help="rows, as for fit")
    parser.add_argument("--out", required=True, metavar="FILE", help=".csv, .parquet or .zarr")
    results.add_append(parser)
    add_force(parser)
    add_cluster(parser)
    add_voice(parser)
    add_input(parser)


def run(args: argparse.Namespace) -> None:
    model: Any = load(runs.model_path(args.model))
    shape = results.format_of(args.out)
    if shape == "zarr":
        if args.append:
            raise UserError("--append writes a table: choose --out NAME.csv or NAME.parquet.")
        path = runs.store_target(args.out, args.force)
    else:
        path = runs.file_target(args.out, args.force, results.is_own_table)
        if args.input is not None and path.exists() and path.samefile(split_name(args.input)[0]):
            raise UserError(f"{args.out} is the input itself; choose another --out.")
    # The columns of the fit are found by name, so that the table may have others too.
    table = open_table(args, model)
    results.check_append(args.append, table.source)
    for note in table.notes:
        say(note, args.quiet)
    with client_of(args), stage("labelling rows"):
        labels = model.predict(table.X)
        if shape == "zarr":
            write_stored_labels(labels, table.X, path, args.force)
            sizes, noise = cluster_sizes(path)
            results.place_dropped(path, table.source)
        else:
            values = {results.LABEL: labels, **results.scored(model, table)}
            counts = results.write_table(
                path, values, table.source, append=args.append, replace=args.force
            )
            noise = counts.pop(-1, 0)
            sizes = [counts[cluster] for cluster in range(max(counts, default=-1) + 1)]
        rows = model._new_rows(table.X)
        if rows.container.lazy:
            warn_of_far(model._fitted("reach_"), rows)
    for cluster, size in enumerate(sizes):
        print(f"cluster {cluster}  {size} rows")
    if noise:
        print(f"noise      {noise} rows")
