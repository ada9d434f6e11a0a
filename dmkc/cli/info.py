"""`dmkc info`: what a model, a run or a store holds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from dmkc.cli import runs
from dmkc.cli.common import counted, define, print_pairs
from dmkc.cli.runs import model_path
from dmkc.cli.summary import fitted_values, weights_by_kernel
from dmkc.cli.tableinfo import describe_table, is_table_file, print_table
from dmkc.cli.tables import add_columns, options_of
from dmkc.clusterers.estimator import Facts
from dmkc.documents import read_bytes
from dmkc.errors import UserError
from dmkc.modelfile import is_model_file, load, read_description
from dmkc.modelfile.folder import MOST_DESCRIPTION

EXAMPLE = "dmkc info run"
CARE = "treat the file with the care the data need"
ANCHORS = f"centroids of training rows, or the rows where these are few, scaled: {CARE}"
PLAIN_NAMES = ("cluster_sizes", "kernel_weights")


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    parser.add_argument("path", metavar="PATH", help="model.zarr, run folder, Zarr store or table")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_columns(parser.add_argument_group("tables, as fit takes them"))


def run(args: argparse.Namespace) -> None:
    options = options_of(args)
    is_one = is_table_file(args.path)
    if not is_one and not options.plain:
        raise UserError(f"{args.path} is no table, which alone has columns to choose or convert.")
    found = describe_table(args.path, options) if is_one else describe(args.path)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    if is_one:
        print_table(found)
        return
    print_pairs([pair for name, value in found.items() for pair in _lines(name, value)])


def describe(text: str) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    path = Path(text).expanduser()
    if "://" in text:
        return describe_store(text)
    if not path.exists():
        raise UserError(f"There is nothing at {text}; check the path.")
    if runs.is_run_folder(path):
        return describe_run(path)
    if is_model_file(path):
        return describe_model(text)
    return describe_store(path)


def describe_model(text: str) -> dict[str, Any]:
    """Kernels, sizes, parameters and versions of a model that has been read and checked."""
    model: Any = load(model_path(text))
    stored = read_description(model_path(text))
    columns = model.model_.label_pipeline().plan
    names = model._fitted("feature_names_in_")
    found = {
        "model": stored["estimator"],
        "clusters": model.n_clusters_,
        "columns": int(model.n_features_in_),
        "column names": [] if names is None else list(map(str, names)),
    }
    recipe = model._recipe()
    if recipe is not None:
        found["table"] = {str(column.name): column.told() for column in recipe.columns}
    if model._has_kernels:
        found["kernel weights"] = weights_by_kernel(model)
    found["features"] = model.model_.n_features
    if model._has_scores:
        found["scores"] = len(model.model_.biases)
    found["precision"] = np.dtype(columns.dtype).name
    if model._has_kernels and "landmarks" in model.parameters():
        marks, what = columns.n_landmarks, _landmark_kind(model, stored)
        found["landmarks"] = f"The file holds {marks} landmarks, which are {what}."
    if model._has_kernels and (points := _anchors(columns)):
        found["anchors"] = f"The file holds {points} anchors, which are {ANCHORS}."
    reach = model._fitted("reach_")
    more = "" if reach is None else f", and {len(reach['points'])} rows along a few directions"
    found["medoids"] = f"The file holds a medoid for every cluster{more}: training rows; {CARE}."
    return found | {
        "fitted": fitted_values(model),
        "parameters": {k: _plain(v) for k, v in model.get_params().items() if k != "client"},
        "not stored": stored["left_out"],
        "versions": stored["libraries"],
        "created": stored["created"],
    }


def describe_run(path: Path) -> dict[str, Any]:
    """A run folder: which results there are, and the summary of the fit."""
    there = [name for name in (*runs.RESULTS, runs.LOG) if (path / name).exists()]
    found: dict[str, Any] = {"run": str(path), "files": there}
    if "metrics.json" in there:
        try:
            found |= json.loads(read_bytes(path / "metrics.json", MOST_DESCRIPTION))
        except (ValueError, TypeError, RecursionError):
            raise UserError(f"{path / 'metrics.json'} is damaged.") from None
    else:
        found["state"] = "unfinished; log.txt says how far it came"
    return found


def describe_store(place: Any) -> dict[str, Any]:
    """The arrays of a Zarr store."""
    try:
        node: Any = zarr.open(store=place, mode="r")
        if isinstance(node, zarr.Array):
            return {"array": str(place), **_array(node)}
        members = node.members(max_depth=None)
        arrays = {name: _array(array) for name, array in members if isinstance(array, zarr.Array)}
    except Exception as problem:
        raise UserError(
            f"{place} is not a model, a run folder or a Zarr store "
            f"({type(problem).__name__}: {problem})."
        ) from None
    return {"group": str(place), **{f"array {name}": array for name, array in arrays.items()}}


def _array(array: Any) -> dict[str, Any]:
    return {
        "shape": list(array.shape),
        "chunks": list(array.shards or array.chunks),
        "dtype": str(array.dtype),
        "bytes": int(array.nbytes),
        "bytes stored": int(array.nbytes_stored()),
    }


def _anchors(plan: Any) -> int:
    """How many anchors of neighbour graphs there are; kernels may share them."""
    found = [fitted.state().get("anchors") for fitted in plan.fitted]
    return sum(len(points) for points in {id(p): p for p in found if p is not None}.values())


def _landmark_kind(model: Any, stored: dict[str, Any]) -> str:
    if "landmarks" in stored["left_out"]:
        return "rows given by the caller, scaled"
    if model.landmarks == "kmeans":
        return "centroids of training rows, scaled (training rows where there were few)"
    return f"training rows, scaled: {CARE}"


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _lines(name: str, value: Any) -> Facts:
    """A value as lines of text."""
    label = name.replace("_", " ") if name in PLAIN_NAMES else name
    if isinstance(value, dict) and "shape" in value:
        text = f"{_product(value['shape'])} {value['dtype']} in chunks of "
        text += f"{_product(value['chunks'])}, {counted(value['bytes'])}"
        return [(name, f"{text} ({counted(value['bytes stored'])} stored)")]
    if isinstance(value, dict):
        pairs = [pair for key, item in value.items() for pair in _lines(key, item)]
        return [(label, ""), *((f"  {key}", item) for key, item in pairs)] if pairs else []
    if isinstance(value, list):
        return [(label, ", ".join(map(str, value)))] if value else []
    if name in ("bytes", "bytes stored"):
        return [(name, f"{value} ({counted(value)})")]
    return [(label, value)]


def _product(sizes: list[int]) -> str:
    return " x ".join(map(str, sizes))
