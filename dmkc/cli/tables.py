"""The input of a command: rows of arrays as they are, and of tables by their recipe."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.cli.options import as_argument
from dmkc.cli.raw import read_npz
from dmkc.cli.reading import DELIMITERS, KNOWN, TABLES, kind_of, suffix_of
from dmkc.cli.recipes import Table, TableOptions, table_of
from dmkc.data import as_rows
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.showing import printable
from dmkc.tables import KINDS


def add_input(parser: argparse.ArgumentParser) -> None:
    """The options that say how the input is read."""
    parser.add_argument(
        "--view",
        action="append",
        type=as_argument(_view),
        metavar="NAME=FILE",
        help="instead of INPUT, one of several files with the same rows; may be repeated",
    )
    group = parser.add_argument_group("input")
    group.add_argument(
        "--variable", metavar="NAME", help="array of a Zarr group or an .npz file [X]"
    )
    add_columns(group)


def add_columns(group: Any) -> None:
    """The options that say what is made of the columns of a table."""
    group.add_argument("--columns", metavar="A,B", help="columns of a table to use [all]")
    group.add_argument("--exclude", metavar="A,B", help="columns of a table to leave out")
    group.add_argument(
        "--include", metavar="A,B", help="columns to use though they are constant or like ids"
    )
    group.add_argument(
        "--kinds", metavar="A=KIND", help=f"what columns are, such as zip=category: {_any(KINDS)}"
    )
    group.add_argument("--index-column", metavar="A", help="column that names the rows")
    group.add_argument("--delimiter", metavar="C", help="between the fields of a CSV, or 'tab'")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether a CSV begins with names [yes, unless its first line is all numbers]",
    )
    group.add_argument(
        "--column-dtype", metavar="TYPE", help="type of the numbers of a table, such as float32"
    )
    group.add_argument(
        "--missing", metavar="A,B", help="further values of a CSV that stand for a missing one"
    )
    gaps = group.add_mutually_exclusive_group()
    gaps.add_argument(
        "--drop-missing", action="store_true", help="drop rows of a table with missing values"
    )
    gaps.add_argument(
        "--impute-missing",
        action="store_true",
        help="fill missing values in by means, and add columns that say where",
    )


def options_of(args: argparse.Namespace) -> TableOptions:
    """What the command line says of a table."""
    return TableOptions(
        columns=_listed(args.columns),
        exclude=_listed(args.exclude) or (),
        include=_listed(args.include) or (),
        kinds=_kinds(args.kinds),
        index_column=args.index_column,
        delimiter={"tab": "\t", "\\t": "\t"}.get(args.delimiter, args.delimiter),
        header=args.header,
        dtype=args.column_dtype,
        missing=_listed(args.missing) or (),
        gaps="drop" if args.drop_missing else "impute" if args.impute_missing else None,
    )


def input_name(args: argparse.Namespace) -> str:
    """The input of a command in a few words, which are safe to print."""
    if args.view:
        return printable(", ".join(name for name, _ in args.view))
    return printable(Path(args.input).name)


def open_table(args: argparse.Namespace, model: Any = None, besides: Sequence[str] = ()) -> Table:
    """The input of a command, for a new fit or a model; `besides` are columns for other uses."""
    if (args.input is None) == (not args.view):
        raise UserError("Either INPUT or at least one --view NAME=FILE is required.")
    options = options_of(args)
    with stage(f"reading {input_name(args)}"):
        if args.view:
            return _views_table(args.view, args.variable, options)
        whole = getattr(args, "append", False)
        return read_table(args.input, args.variable, options, model, besides, whole=whole)


def _view(text: str) -> tuple[str, str]:
    """The name and the file of a view."""
    name, sign, where = text.partition("=")
    if not (name and sign and where):
        raise UserError(f"a view is given as NAME=FILE, such as pixels=pix.zarr, not {text!r}")
    return name, where


def _views_table(
    views: list[tuple[str, str]], variable: str | None, options: TableOptions
) -> Table:
    """Several files with the same rows."""
    names = [name for name, _ in views]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"There are two views {twice[0]!r}; give each a name of its own.")
    if variable is not None or not options.plain:
        raise UserError(
            "Options that choose or convert columns go with one INPUT; name arrays of groups as "
            "NAME=FILE::ARRAY, and make tables as they should be clustered."
        )
    # A model of views has no recipe for each of them.
    parts = {name: read_table(where, None, options, as_it_is=True) for name, where in views}
    X = {name: part.X for name, part in parts.items()}
    known = [part.n_rows for part in parts.values() if part.n_rows is not None]
    return Table(X, known[0] if known else None)


def read_table(
    where: str,
    variable: str | None,
    options: TableOptions,
    model: Any = None,
    besides: Sequence[str] = (),
    as_it_is: bool = False,
    whole: bool = False,
) -> Table:
    """The rows at a path, a URL or "path::name"; see `table_of`."""
    path, variable = split_name(where, variable)
    kind = table_kind(path)
    if kind in TABLES:
        if variable is not None:
            raise UserError(f"{path} is a table; choose from it with --columns, not --variable.")
        return table_of(path, kind, options, model, besides, as_it_is, whole)
    if not options.plain:
        raise UserError(
            f"{path} is an array and not a table (.csv or .parquet), so columns cannot be chosen, "
            "converted or searched for missing values."
        )
    if kind == "npz":
        X = read_npz(path, variable, ("X",))
        return Table(X, as_rows(X).n_rows)
    text = path if variable is None else f"{path}::{variable}"
    return Table(text, as_rows(text).n_rows)


def table_kind(path: str) -> str:
    """What a path holds, if that can be clustered."""
    kind = kind_of(path)
    if kind == "text" and suffix_of(path) not in DELIMITERS:
        raise UserError(f"{path} is of no known kind; give {KNOWN}.")
    return kind


def read_small(where: str) -> np.ndarray:
    """A table of numbers that fits in memory."""
    table = read_table(where, None, TableOptions(), as_it_is=True)
    blocks = as_rows(table.X)
    block = blocks.blocks(blocks.n_rows)[0]
    found = block.delayed.compute() if hasattr(block, "delayed") else block.load()
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def split_name(where: str, variable: str | None = None) -> tuple[str, str | None]:
    """Split "path::name" unless a file has that very name."""
    base, mark, name = where.rpartition("::")
    if not mark or not name or "://" in name or os.path.exists(where):
        return where, variable
    if variable not in (None, name):
        raise UserError(f"{where} names {name!r}, but --variable says {variable!r}.")
    return base, name


def _kinds(text: str | None) -> tuple[tuple[str, str], ...]:
    """Names and kinds from "zip=category,year=number"."""
    found = []
    for item in _listed(text) or ():
        name, sign, kind = item.rpartition("=")
        if not (name and sign) or kind not in KINDS:
            raise UserError(f"--kinds takes NAME=KIND, where KIND is {_any(KINDS)}, not {item!r}.")
        found.append((name, kind))
    return tuple(found)


def _any(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(item.strip() for item in text.split(","))
