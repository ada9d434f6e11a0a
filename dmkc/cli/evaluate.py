"""`dmkc evaluate`: how well labels fit true classes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dmkc.cli import runs
from dmkc.cli.common import add_cluster, client_of, define, print_pairs, say
from dmkc.cli.labels import label_column, read_labels, read_whole
from dmkc.cli.reading import kind_of
from dmkc.cli.results import LABEL
from dmkc.cli.tables import split_name
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
    labels, truth, note = aligned(args.labels, args.truth)
    if note:
        say(note)
    with client_of(args):
        counted = contingency(truth, labels)
    metrics = all_metrics(counted)
    if args.json:
        print(json.dumps({"metrics": metrics, **_table(counted)}, indent=2))
        return
    print_pairs([(name, f"{value:.4f}") for name, value in metrics.items()])
    print()
    _print_table(counted)


def aligned(labels: str, truth: str) -> tuple[Any, Any, str]:
    """Labels and classes of the same rows: by the column that names them, else by their order.

    Rows without a label were dropped before the fit; how many is said in a sentence.
    """
    labels, truth = _of_run(labels), _of_run(truth)
    path, name = split_name(labels)
    kind = kind_of(path)
    if kind in ("csv", "parquet", "feather"):
        frame = read_whole(path, kind).frame
        column = label_column(path, list(frame.columns), name)
        names = [each for each in frame.columns if each != column]
        if column == LABEL and names:
            return _by_name(frame, column, names[0], labels, truth)
    found, classes = read_labels(labels, dropped=True), read_labels(truth, dropped=True)
    _check_lengths(len(found), labels, len(classes), truth)
    known = _labelled(found) & _labelled(classes)
    if known.all():
        return found, classes, ""
    return np.asarray(found)[known], np.asarray(classes)[known], _left_out(known)


def _of_run(where: str) -> str:
    """The table of labels of a run folder that has one."""
    if "://" in where or not runs.is_run_folder(Path(where)):
        return where
    there = (Path(where) / name for name in runs.TABLES)
    return next((str(path) for path in there if path.exists()), where)


def _by_name(frame: Any, column: Any, index: Any, labels: str, truth: str) -> tuple[Any, Any, str]:
    """Labels of a table that dmkc wrote, whose first column names the rows, beside classes."""
    path, name = split_name(truth)
    kind = kind_of(path)
    table = read_whole(path, kind).frame if kind in ("csv", "parquet", "feather") else None
    if table is not None and _names_rows(index, frame, table):
        rest = [each for each in table.columns if each != index]
        classes = table[label_column(path, rest, name)]
        at = pd.Index(table[index]).get_indexer(pd.Index(frame[index]))
        absent = int(np.sum(at < 0))
        if absent:
            raise UserError(
                f"{path} has no row for {absent} of the labels in {labels}, by {index!r}."
            )
        values = classes.to_numpy()[at]
    else:
        stored = read_labels(truth, dropped=True)
        masked = isinstance(stored, np.ma.MaskedArray)
        values = stored.astype(object).filled(np.nan) if masked else np.asarray(stored)
        _check_lengths(len(frame), labels, len(values), truth)
    known = frame[column].notna().to_numpy() & ~pd.isna(values)
    return _numbers(frame[column][known]), _plain(values[known]), _left_out(known)


def _labelled(values: Any) -> np.ndarray:
    """Which rows have a value: all of them, but for those that were dropped before a fit."""
    masked = isinstance(values, np.ma.MaskedArray)
    return ~np.ma.getmaskarray(values) if masked else np.ones(len(values), dtype=bool)


def _left_out(known: np.ndarray) -> str:
    out = len(known) - int(known.sum())
    return f"{out} rows without a label or a class are left out." if out else ""


def _names_rows(index: Any, frame: pd.DataFrame, table: pd.DataFrame) -> bool:
    """Whether a column names the rows of both tables."""
    if index not in table.columns or len(table.columns) == 1:
        return False
    return bool(frame[index].is_unique and table[index].is_unique and frame[index].notna().all())


def _check_lengths(n_labels: int, labels: str, n_classes: int, truth: str) -> None:
    if n_labels != n_classes:
        raise UserError(f"{labels} has {n_labels} labels, but {truth} has {n_classes}.")


def _plain(classes: np.ndarray) -> np.ndarray:
    """Classes without the type that columns with gaps have."""
    return pd.Series(classes).infer_objects().convert_dtypes().to_numpy()


def _numbers(labels: Any) -> np.ndarray:
    return labels.to_numpy(dtype=np.int64)


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
