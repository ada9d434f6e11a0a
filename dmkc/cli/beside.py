"""True classes and weights: files of their own, or columns of the input that are not clustered.

They are put beside the rows before a fit begins, without those that were dropped.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
import pandas as pd

from dmkc.cli.labels import read_labels
from dmkc.cli.reading import SUFFIXES, TABLES, find_column, kind_of, suffix_of
from dmkc.cli.recipes import Table
from dmkc.cli.tables import split_name
from dmkc.errors import UserError


def add_beside(parser: argparse.ArgumentParser) -> None:
    """The options that name them."""
    parser.add_argument(
        "--truth", metavar="FILE", help="true classes to compare with, or a column of the input"
    )
    parser.add_argument(
        "--row-weights", metavar="FILE", help="weights of the rows, or a column of the input"
    )


def columns_beside(args: argparse.Namespace) -> list[str]:
    """The columns of the input that hold classes or weights."""
    found = (_own_column(where, args) for where in (args.truth, args.row_weights))
    return [name for name in found if name is not None]


def truth_of(args: argparse.Namespace, table: Table) -> Any:
    """The true class of every row that is clustered; None where none are given."""
    return _values(args.truth, args, table, "--truth")


def weights_of(args: argparse.Namespace, table: Table) -> Any:
    """The weight of every row that is clustered; None where none are given."""
    found = _values(args.row_weights, args, table, "--row-weights")
    if found is None or not isinstance(found, np.ndarray):
        return found
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError(f"--row-weights {args.row_weights}: these are not numbers.") from None


def _own_column(where: str | None, args: argparse.Namespace) -> str | None:
    """The column of the input that is meant, if it is one."""
    if where is None or args.input is None:
        return None
    path, name = split_name(where)
    if name is not None:
        same = os.path.exists(path) and os.path.exists(args.input)
        return name if same and os.path.samefile(path, args.input) and _is_table(path) else None
    is_file = os.path.exists(where) or "://" in where or os.sep in where
    if is_file or suffix_of(where) in (*SUFFIXES, ".zarr", ".txt"):
        return None
    return where if _is_table(args.input) else None


def _is_table(path: str) -> bool:
    return kind_of(split_name(path)[0]) in TABLES


def _values(where: str | None, args: argparse.Namespace, table: Table, flag: str) -> Any:
    if where is None:
        return None
    name, source = _own_column(where, args), table.source
    if name is not None and source is not None:
        column = find_column(name, list(source.frame.columns))
        found: Any = source.column(column).to_numpy()
    else:
        found = read_labels(where)
        whole = source is not None and len(found) == source.n_rows
        if source is not None and whole and source.n_rows != table.n_rows:
            found = found[source.kept()]
    if table.n_rows is not None and len(found) != table.n_rows:
        count = table.n_rows if source is None else source.n_rows
        raise UserError(f"{where} has {len(found)} labels, but the input has {count} rows.")
    if isinstance(found, np.ndarray) and pd.isna(found).any():
        raise UserError(
            f"{flag} {where}: {int(pd.isna(found).sum())} of {len(found)} rows have a missing "
            "value there; fill them in, or take such rows out of the input."
        )
    return found
