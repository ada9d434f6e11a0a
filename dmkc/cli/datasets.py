"""`dmkc datasets`: data to try things on, written as Zarr groups of X and y."""

from __future__ import annotations

import argparse
import inspect
import os
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr

from dmkc import datasets as library
from dmkc.cli import runs
from dmkc.cli.common import (
    Commands,
    Failure,
    add_cluster,
    add_command,
    add_force,
    client_of,
    define,
    print_pairs,
    say,
)
from dmkc.cli.options import as_argument
from dmkc.clusterers.parameters import whole_number
from dmkc.datasets.folder import VARIABLE
from dmkc.datasets.generators import DEFAULT_CHUNK, RECIPES
from dmkc.errors import UserError
from dmkc.showing import printable
from dmkc.typing import PerRow, TableLike
from dmkc.writing import staged

EXAMPLE = "dmkc datasets make ringnorm --rows 1e6 --out ring.zarr"
OWN = ("n", "seed", "chunks", "dtype")
"""Arguments of every generator that the command has options of its own for."""


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, lambda args: parser.error("Choose list, make, fetch or copy"))
    inner = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    add_command(inner, "list", "list the data sets", "dmkc datasets list", _list)
    _add_make(inner)
    example = "dmkc datasets fetch diabetes --out diabetes.zarr"
    fetch = add_command(inner, "fetch", "download a data set from OpenML", example, _fetch)
    fetch.add_argument("name", metavar="NAME", help="its name or number at OpenML")
    fetch.add_argument("--data-version", default="active", metavar="N", help="version [active]")
    example = "dmkc datasets copy wdbc --out wdbc.zarr"
    text = f"copy a bundled data set or one from the folder {VARIABLE}"
    copy = add_command(inner, "copy", text, example, _copy)
    copy.add_argument("name", metavar="NAME")
    copy.add_argument("--from", dest="folder", metavar="FOLDER", help=f"folder [{VARIABLE}]")
    for each in (fetch, copy):
        each.add_argument("--out", required=True, metavar="FILE", help="Zarr group to write")
        add_force(each)


def _add_make(inner: Commands) -> None:
    make = add_command(inner, "make", "generate a data set", EXAMPLE, None)
    make.set_defaults(run=lambda args: make.error(f"Choose one of {', '.join(RECIPES)}"))
    kinds = make.add_subparsers(dest="name", metavar="NAME", title="kinds")
    for name in RECIPES:
        function = getattr(library, f"make_{name}")
        text = (inspect.getdoc(function) or name).split("\n")[0].rstrip(".").replace("%", "%%")
        example = f"dmkc datasets make {name} --rows 1e5 --out {name}.zarr"
        kind = add_command(kinds, name, text, example, _make)
        number = as_argument(whole_number)
        kind.add_argument("--rows", type=number, required=True, metavar="N", help="such as 1e6")
        kind.add_argument("--out", required=True, metavar="FILE", help="Zarr group to write")
        kind.add_argument("--seed", type=number, default=0, metavar="N", help="seed [0]")
        kind.add_argument("--dtype", default="float32", metavar="TYPE", help="type [float32]")
        add_force(kind)
        add_cluster(kind)
        for key, given in inspect.signature(function).parameters.items():
            if key not in OWN:
                kind.add_argument(
                    f"--{key}",
                    dest=f"recipe_{key}",
                    type=_converter(given.default),
                    default=argparse.SUPPRESS,
                    metavar="A,B" if isinstance(given.default, tuple) else "X",
                    help=f"[{given.default}]",
                )


def _converter(default: Any) -> Any:
    if isinstance(default, tuple):
        return as_argument(lambda text: tuple(whole_number(item) for item in text.split(",")))
    return float if isinstance(default, float) else as_argument(whole_number)


def _list(args: argparse.Namespace) -> None:
    found = library.available()
    place = os.environ.get(VARIABLE)
    print_pairs(
        [
            ("make", ", ".join(found["generators"])),
            ("copy (bundled)", ", ".join(found["embedded"])),
            (f"copy ({VARIABLE})", ", ".join(found["folder"]) or _why_empty(place)),
            ("fetch", "any name or number at openml.org, when online"),
        ]
    )


def _why_empty(place: str | None) -> str:
    return f"no .npz file in {place}" if place else "not set"


def _make(args: argparse.Namespace) -> None:
    path = runs.store_target(args.out, args.force)
    start = "recipe_"
    chosen = {k.removeprefix(start): v for k, v in vars(args).items() if k.startswith(start)}
    try:
        dtype = np.dtype(args.dtype)
    except TypeError:
        raise UserError(f"{args.dtype!r} is not a type of numbers, such as float32.") from None
    make = getattr(library, f"make_{args.name}")
    chunk = min(DEFAULT_CHUNK, max(args.rows, 1))
    X, y = make(args.rows, seed=args.seed, chunks=chunk, dtype=dtype, **chosen)
    with client_of(args):
        _write(path, args, X, y, args.name, {"seed": args.seed, **chosen})


def _copy(args: argparse.Namespace) -> None:
    path = runs.store_target(args.out, args.force)
    data = library.load(args.name, args.folder)
    more = {"columns": list(data.columns), "source": Path(data.source).name}
    if data.classes is not None:
        more["classes"] = list(data.classes)
    _write(path, args, data.X, data.y, data.name, more)


def _fetch(args: argparse.Namespace) -> None:
    from sklearn.datasets import fetch_openml

    path = runs.store_target(args.out, args.force)
    which: dict[str, Any] = (
        {"data_id": int(args.name)} if args.name.isdigit() else {"name": args.name}
    )
    if "name" in which:
        which["version"] = int(args.data_version) if args.data_version.isdigit() else "active"
    try:
        found = fetch_openml(**which, as_frame=True, parser="auto")
    except Exception as problem:
        text = f"{args.name} could not be fetched from OpenML ({problem}); check name and network."
        raise Failure(text) from problem
    numeric = found.data.select_dtypes("number")
    left = [str(name) for name in found.data.columns if name not in numeric.columns]
    if left:
        say(f"columns that hold no numbers are left out: {', '.join(left)}")
    if numeric.shape[1] == 0:
        raise UserError(f"{args.name} has no columns of numbers.")
    more: dict[str, Any] = {"columns": list(map(str, numeric.columns)), "source": "openml.org"}
    codes = np.zeros(len(numeric), dtype=np.int64)
    if found.target is not None:
        classes, codes = np.unique(np.asarray(found.target).astype(str), return_inverse=True)
        more["classes"] = classes.tolist()
    _write(path, args, numeric.to_numpy(np.float64), codes, args.name, more)


def _write(
    path: Path, args: argparse.Namespace, X: TableLike, y: PerRow, name: str, more: dict[str, Any]
) -> None:
    """Write X and y to a group that appears when it is whole."""
    with staged(path, replace=args.force) as folder:
        attributes = runs.mark("dataset", name=name, **more)
        group = zarr.create_group(store=folder, zarr_format=3, attributes=attributes)
        for key, values in (("X", X), ("y", y)):
            rows = min(DEFAULT_CHUNK, len(values))
            array: Any = group.create_array(
                key, shape=values.shape, chunks=(rows, *values.shape[1:]), dtype=values.dtype
            )
            if isinstance(values, da.Array):
                runs.store(values, array)
            else:
                array[...] = values
    print(f"{printable(args.out)}: X {X.shape[0]} x {X.shape[1]} {X.dtype}, y {y.shape[0]}")
