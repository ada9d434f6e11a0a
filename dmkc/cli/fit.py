"""`dmkc fit`: rows in, a run folder out."""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dmkc import __version__
from dmkc.cli import outputs
from dmkc.cli.common import (
    add_command,
    add_force,
    add_scheduler,
    add_voice,
    client_of,
    kernel_text,
    print_pairs,
    say,
    voice,
)
from dmkc.cli.errors import UserError, is_users, sentence
from dmkc.cli.labels import cluster_sizes, read_labels, write_labels
from dmkc.cli.options import add_parameters, estimator_values, given_parameters
from dmkc.cli.params import params_text, read_params, resolve
from dmkc.cli.tables import Table, add_input, open_table
from dmkc.data import as_rows
from dmkc.metrics import all_metrics
from dmkc.modelfile import ESTIMATORS

FITTED = {
    "C": "C_",
    "objective": "objective_",
    "start": "start_",
    "relabelings": "n_iter_",
    "scans": "n_scans_",
}
EXAMPLE = "dmkc fit x.npy --clusters 2 --kernels linear,gaussian:0.5 --seed 0 --out run"


def add(commands: Any) -> None:
    parser = add_command(commands, "fit", "cluster the rows of a file", EXAMPLE, run)
    parser.usage = "dmkc fit INPUT --out FOLDER [options]"
    parser.add_argument(
        "input", metavar="INPUT", help=".zarr, .npy, .npz, .parquet or .csv; FILE::NAME in groups"
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder of the results")
    parser.add_argument("--truth", metavar="FILE", help="true classes to compare with")
    parser.add_argument("--params", metavar="FILE", help="parameters in YAML or TOML")
    method = parser.add_argument(
        "--method", metavar="|".join(ESTIMATORS), help=f"clusterer [{next(iter(ESTIMATORS))}]"
    )
    method.words = tuple(ESTIMATORS)
    parser.add_argument("--no-report", action="store_true", help="write no report.html")
    add_force(parser)
    add_scheduler(parser)
    add_voice(parser)
    add_input(parser)
    add_parameters(parser)


def run(args: argparse.Namespace) -> None:
    stored = read_params(Path(args.params)) if args.params else {}
    method, cls, plain = resolve(args.method, stored, given_parameters(args), args.params)
    values = estimator_values(cls, plain)
    folder = outputs.run_target(args.out, args.force)
    table = open_table(args)
    truth = None if args.truth is None else _truth(args.truth, table)
    for note in table.notes:
        say(note, args.quiet)
    is_new = outputs.make_run_folder(folder)
    with _log(folder) as log:
        try:
            log.info("dmkc %s fit %s", __version__, args.input)
            with client_of(args) as client:
                model = cls(**values, verbose=voice(args), client=client)
                title = f"dmkc {__version__} fit of {Path(args.input).name}"
                _fit(args, model, table, truth, folder, params_text(method, plain, title), log)
        except BaseException as problem:
            log.info("ended early: %s: %s", type(problem).__name__, sentence(problem))
            if is_new and is_users(problem):
                outputs.discard_run(folder)
            raise


def _fit(
    args: argparse.Namespace,
    model: Any,
    table: Table,
    truth: Any,
    folder: Path,
    params: str,
    log: logging.Logger,
) -> None:
    began = time.perf_counter()
    model.fit(table.X)
    seconds = time.perf_counter() - began
    for record in model.history_:
        log.info("scan %s", json.dumps(record))
    log.info("fitted in %.1f s, objective %.6g", seconds, model.objective_)
    # Earlier results stay until there is something to replace them with.
    outputs.clear_results(folder)
    outputs.write_text(folder / "params.yaml", params)
    model.save(folder / "model.zarr")
    n = write_stored_labels(model.labels_, table.X, folder / "labels.zarr", False, args.quiet)
    log.info("%d labels written", n)
    found = _metrics(model, folder, n, seconds)
    if truth is not None:
        if len(truth) != n:
            raise UserError(f"The truth has {len(truth)} rows, but {n} rows were clustered.")
        found["metrics"] = all_metrics(truth, read_labels(str(folder / "labels.zarr")))
    outputs.write_text(folder / "metrics.json", json.dumps(found, indent=2) + "\n")
    _show(found, args.out)
    sys.stdout.flush()
    if not args.no_report:
        from dmkc.report import write_report

        write_report(
            model,
            table.X,
            folder / "report.html",
            title=f"{Path(args.input).name}",
            truth=truth,
            seconds=seconds,
            notes=table.notes,
        )
    log.info("done")


def write_stored_labels(labels: Any, X: Any, path: Path, replace: bool, quiet: bool) -> int:
    """Write the labels of X; a Dask frame's partitions are counted without labelling them."""
    lengths = as_rows(X).container.row_chunks if hasattr(labels, "to_dask_array") else None
    return write_labels(labels, path, lengths=lengths, replace=replace, quiet=quiet)


def _truth(where: str, table: Table) -> Any:
    truth = read_labels(where)
    if table.kept is not None and len(truth) == len(table.kept):
        truth = truth[table.kept]
    if table.n_rows is not None and len(truth) != table.n_rows:
        raise UserError(f"{where} has {len(truth)} labels, but the input has {table.n_rows} rows.")
    return truth


def _metrics(model: Any, folder: Path, n: int, seconds: float) -> dict[str, Any]:
    weights = zip(model.kernels_, np.asarray(model.kernel_weights_).tolist(), strict=True)
    found = {
        "rows": n,
        "columns": int(model.n_features_in_),
        "cluster_sizes": cluster_sizes(folder / "labels.zarr"),
        "seconds": round(seconds, 3),
    }
    for key, name in FITTED.items():
        if hasattr(model, name):
            found[key] = np.asarray(getattr(model, name)).tolist()
    found["kernel_weights"] = {
        f"{number}: {kernel_text(kernel)}": weight
        for number, (kernel, weight) in enumerate(weights, start=1)
    }
    return found


def _show(found: dict[str, Any], out: str) -> None:
    pairs: list[tuple[str, Any]] = []
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            pairs += [(label, ""), *((f"  {key}", item) for key, item in value.items())]
        elif isinstance(value, list):
            pairs.append((label, ", ".join(map(str, value))))
        else:
            pairs.append((label, value))
    print_pairs([*pairs, ("results", out)])


class _log:
    """The log of a run: what the library logs, warnings, and what the command adds."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / outputs.LOG
        self._logger = logging.getLogger("dmkc")

    def __enter__(self) -> logging.Logger:
        if not self._path.exists():
            self._path.write_text(outputs.RUN_MARK, encoding="utf-8")
        self._handler = logging.FileHandler(self._path, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._level, self._show = self._logger.level, warnings.showwarning
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._logger.info("started %s", started)
        shown = self._show

        def show(message: Any, *args: Any, **kwargs: Any) -> None:
            self._logger.info("warning: %s", " ".join(str(message).split()))
            shown(message, *args, **kwargs)

        warnings.showwarning = show
        return self._logger

    def __exit__(self, *_: Any) -> None:
        warnings.showwarning = self._show
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
        self._handler.close()
