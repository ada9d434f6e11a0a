"""`dmkc fit`: rows in, a run folder out."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from dmkc.cli import results, runs
from dmkc.cli.answers import add_answers, answers_of, given_answers
from dmkc.cli.beside import add_beside, columns_beside, truth_of, weights_of
from dmkc.cli.common import (
    add_cluster,
    add_force,
    add_voice,
    client_of,
    define,
    is_users,
    say,
    sentence,
    voice,
)
from dmkc.cli.labels import read_labels, write_labels
from dmkc.cli.options import (
    Words,
    add_parameters,
    as_argument,
    estimator_values,
    focus,
    given_parameters,
    method_class,
    params_text,
    read_params,
    resolve,
)
from dmkc.cli.recipes import Table
from dmkc.cli.rownames import RowNames
from dmkc.cli.runs import Order, RunLog
from dmkc.cli.summary import metrics_of, show
from dmkc.cli.tables import add_input, input_name, open_table
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.data import as_rows
from dmkc.display import stage
from dmkc.errors import UserError
from dmkc.metrics import all_metrics
from dmkc.modelfile import load, read_description
from dmkc.modelfile.files import estimator_class
from dmkc.modelfile.values import decode
from dmkc.resume import CheckpointError, Journal, checkpoint
from dmkc.typing import PerRow, TableLike
from dmkc.version import __version__
from dmkc.writing import remove, write_text

EXAMPLE = "dmkc fit x.npy --seed 0 --out run"


def add(parser: argparse.ArgumentParser) -> None:
    define(parser, EXAMPLE, run)
    add_fit(parser, "fit")


def add_fit(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of a fit, which are also those of a submitted one."""
    parser.usage = f"dmkc {name} INPUT --out FOLDER [options]\n       dmkc {name} --resume FOLDER"
    parser.add_argument("--out", metavar="FOLDER", help="folder of the results")
    parser.add_argument("--resume", metavar="FOLDER", help="go on with a run that was ended early")
    parser.add_argument(
        "--start",
        metavar="MODEL",
        help="begin from the clusters of a model (model.zarr or a run folder) of the same columns, "
        "with its method and parameters where no others are given",
    )
    parser.add_argument(
        "--checkpoint",
        type=as_argument(_seconds),
        default=5.0,
        metavar="SECONDS",
        help="how often what was computed is forced to the disk [5]",
    )
    add_beside(parser)
    results.add_format(parser)
    results.add_append(parser)
    add_answers(parser)
    parser.add_argument("--no-report", action="store_true", help="write no report.html")
    add_force(parser)
    add_voice(parser)
    add_method(parser)


def add_method(parser: argparse.ArgumentParser) -> None:
    """The options that say what is fitted to what, and where."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="?",
        help=".zarr, .npy, .npz, .parquet, .feather or .csv; FILE::NAME in groups",
    )
    parser.add_argument("--params", metavar="FILE", help="parameters in YAML or TOML")
    parser.add_argument(
        "--method",
        metavar="NAME",
        choices=Words(ESTIMATORS),
        help=f"clusterer: {', '.join(ESTIMATORS)} [{next(iter(ESTIMATORS))}]",
    )
    parser.add_argument(
        "--auto", action="store_true", help="mkc with scale, kernels, C and balance left open"
    )
    add_cluster(parser)
    add_input(parser)
    add_parameters(parser)
    parser.set_defaults(focus=focus)


def run(args: argparse.Namespace) -> None:
    if args.resume is not None:
        found = resumed(args)
        if found is None:
            return
        args, order, folder = found
    else:
        order, folder = ordered(args), runs.run_target(args.out, args.force)
    with contextlib.chdir(order.folder):
        _perform(args, order, folder, fresh=not runs.is_begun(folder) or args.force)


def ordered(args: argparse.Namespace) -> Order:
    """A new run, with everything that the command line says."""
    given = {"INPUT (or --view)": args.input or args.view, "--out": args.out}
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise UserError(
            f"The following arguments are required: {', '.join(missing)} (see dmkc fit --help)."
        )
    method, plain = chosen(args)
    words = ["fit", *args.words[1:]]
    return Order(words, str(Path.cwd()), {"method": method, **plain})


def estimator_of(order: Order) -> tuple[type[RowClusterer], dict[str, Any]]:
    """The estimator of a run and what it is given, checked."""
    plain = dict(order.parameters)
    cls = method_class(plain.pop("method"))
    return cls, estimator_values(cls, plain)


def chosen(args: argparse.Namespace, to_choose: bool = False) -> tuple[str, dict[str, Any]]:
    """The method and a plain value for each of its parameters.

    `to_choose`: there must be candidates to choose from, as with --auto, but of all methods where
    none is named.
    """
    stored = read_params(Path(args.params)) if args.params else {}
    given = given_parameters(args)
    if getattr(args, "start", None) is not None:
        stored = {**_of_model(args.start, args.method or stored.get("method")), **stored}
    default = _selectable()[0] if args.auto else None
    method, cls, plain = resolve(args.method, stored, given, args.params, default)
    if args.auto or (to_choose and method != next(iter(ESTIMATORS))):
        plain |= {name: "auto" for name in _left_open(cls, {**stored, **given})}
    return method, plain


def _of_model(where: str, method: str | None) -> dict[str, Any]:
    """The method of a stored model and its parameters; those of another method do not count."""
    described = read_description(runs.model_path(where))
    own = ESTIMATORS.name_of(estimator_class(described.get("estimator")))
    if method not in (None, own):
        return {}
    kept = described.get("parameters", {})
    values = {k: v if k == "kernels" else decode(v) for k, v in kept.items() if k != "verbose"}
    return {"method": own, **values}


def resumed(args: argparse.Namespace) -> tuple[argparse.Namespace, Order, Path] | None:
    """The run to go on with, as it was ordered; None when it is finished."""
    from dmkc.cli.app import build_parser

    if args.out or args.force:
        raise UserError("--resume names the folder itself; leave --out and --force out.")
    folder = Path(args.resume).expanduser().absolute()
    if runs.is_finished(folder):
        remove(folder / runs.JOURNAL)
        say(f"{args.resume} is finished; dmkc info {args.resume} shows it.", args.quiet)
        return None
    order = runs.read_order(folder)
    if order is None:
        if args.input is None and not args.view:
            raise UserError(f"There is no run at {args.resume}; give INPUT to start one there.")
        say(f"there is no run at {args.resume} yet; starting one", args.quiet)
        args.out = args.resume
        # A run that was killed before it had an order has left its log.
        return args, ordered(args), runs.run_target(args.out, force=True)
    if given_parameters(args) or args.params or args.method:
        raise UserError("--resume goes on with the parameters of the run; give none of them.")
    then = build_parser(order.words[0]).parse_args(order.words)
    if args.input not in (None, then.input) or args.view not in (None, then.view):
        ours, theirs = input_name(then), input_name(args)
        raise UserError(f"{args.resume} is a run of {ours} and not of {theirs}.")
    if args.cluster or args.scheduler:
        then.scheduler = args.scheduler
        then.cluster = None if args.cluster is None else str(Path(args.cluster).absolute())
    then.quiet, then.verbose, then.debug = args.quiet, args.verbose, args.debug
    then.force, then.words = False, order.words
    say(f"going on with the run in {args.resume}", args.quiet)
    return then, order, folder


def _perform(args: argparse.Namespace, order: Order, folder: Path, fresh: bool) -> None:
    cls, values = estimator_of(order)
    earlier = None if args.start is None else load(runs.model_path(args.start))
    table = open_table(args, earlier, columns_beside(args))
    pairs, more = given_answers(cls, values, answers_of(args, RowNames(table)), table.X)
    truth, weights = truth_of(args, table), weights_of(args, table)
    shape = results.format_for(args, table)
    results.check_append(args.append, table.source)
    for note in table.notes:
        say(note, args.quiet)
    fitted = False
    is_new = runs.make_run_folder(folder)
    # The journal is the lock of the run: nothing in the folder is touched before it is held.
    with checkpoint(folder, every=args.checkpoint) as journal:
        if fresh:
            _clear(args, folder, journal)
        # Before the log, by which a folder is known as a run that can be gone on with.
        order.save(folder)
        runs.write_status(folder, "running")
        with RunLog(folder) as log:
            try:
                log.info("dmkc %s fit %s", __version__, input_name(args))
                left = runs.tidy(folder)
                if left:
                    say(f"removed what was left half written: {', '.join(left)}", args.quiet)
                with runs.reported(folder, log), client_of(args) as client:
                    model = cls(**values | pairs, verbose=voice(args), client=client)
                    title = f"dmkc {__version__} fit of {input_name(args)}"
                    more |= {} if earlier is None else {"start": earlier}
                    more |= {} if weights is None else {"sample_weight": weights}
                    params = params_text(order.parameters, title)
                    seconds = _fit(model, table, folder, params, log, more)
                    fitted = True
                    _write(args, model, table, truth, shape, folder, seconds, log)
                runs.write_status(folder, runs.DONE)
                journal.remove()
            except BaseException as problem:
                log.info("ended early: %s: %s", type(problem).__name__, sentence(problem))
                # What was fitted is kept: to go on from it takes a moment.
                if fresh and is_users(problem) and not fitted:
                    runs.forget(folder)
                    if is_new:
                        runs.discard_run(folder)
                elif not isinstance(problem, CheckpointError):
                    with contextlib.suppress(OSError):  # the disk may be full
                        runs.write_status(folder, "ended early", reason=sentence(problem))
                    say(f"go on with it: dmkc fit --resume {folder}", args.quiet)
                raise


def _clear(args: argparse.Namespace, folder: Path, journal: Journal) -> None:
    """Forget an earlier run; one that came after the folder had been looked at is left alone."""
    if not args.force and (folder / runs.ORDER).exists():
        if (folder / "metrics.json").exists():
            journal.remove()
        raise UserError(f"{folder} holds a run that another process began; choose another --out.")
    journal.clear()
    runs.forget(folder, besides=runs.JOURNAL)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise UserError(f"{text!r} is not a number of seconds.")
    return found


def _left_open(cls: type[RowClusterer], given: Any) -> list[str]:
    """The parameters that --auto leaves open: those that are not given."""
    if not cls.selectable:
        raise UserError(
            f"There are candidates to choose from for --method {' or '.join(_selectable())} alone, "
            "or among all methods where none is named."
        )
    return [name for name in cls.selectable if name not in given]


def _selectable() -> list[str]:
    """Methods whose parameters can be left open."""
    return [name for name, cls in ESTIMATORS.items() if cls.selectable]


def _fit(
    model: Any,
    table: Table,
    folder: Path,
    params: str,
    log: logging.Logger,
    more: dict[str, Any],
) -> float:
    """Fit and keep the model; return the seconds that it took."""
    began = time.perf_counter()
    model.fit(table.X, **more)
    seconds = time.perf_counter() - began
    log.info("fitted in %.1f s, objective %.6g", seconds, model.objective_)
    if table.source is not None:
        model.table_ = table.source.recipe.as_json()
    # Earlier results stay until there is something to replace them with.
    runs.clear_results(folder)
    write_text(folder / "params.yaml", params)
    model.save(folder / runs.MODEL, overwrite=(folder / runs.MODEL).exists())
    return seconds


def _write(
    args: argparse.Namespace,
    model: Any,
    table: Table,
    truth: PerRow,
    shape: str,
    folder: Path,
    seconds: float,
    log: logging.Logger,
) -> None:
    """Write labels, metrics and the report of a fit."""
    with stage("writing labels"):
        for name in model._per_row:
            target = folder / f"{name.removesuffix('_')}.zarr"
            n = write_stored_labels(vars(model)[name], table.X, target, False)
            log.info("%d %s written", n, target.stem)
        if shape != "zarr":
            results.write_labels_of(model, table, folder, shape, args.append)
            log.info("labels.%s written", shape)
    found = metrics_of(model, folder, n, seconds) | table.facts
    if truth is not None:
        if len(truth) != n:
            raise UserError(f"The truth has {len(truth)} rows, but {n} rows were clustered.")
        found["metrics"] = all_metrics(truth, read_labels(str(folder / "labels.zarr")))
    for name in model._per_row:
        results.place_dropped(folder / f"{name.removesuffix('_')}.zarr", table.source)
    show(found, folder)
    sys.stdout.flush()
    if not args.no_report:
        from dmkc.report import Command, write_report

        with stage("making the report"):
            write_report(
                model,
                table.X,
                folder / "report.html",
                title=input_name(args),
                truth=truth,
                seconds=seconds,
                notes=table.notes,
                command=Command(args.words, args.input, args.out),
            )
    # Last, since it says that the run is finished.
    write_text(folder / "metrics.json", json.dumps(found, indent=2) + "\n")
    log.info("done")


def write_stored_labels(labels: PerRow, X: TableLike, path: Path, replace: bool) -> int:
    """Write the labels of X; a Dask frame's partitions are counted without labelling them."""
    lengths = as_rows(X).container.row_chunks if hasattr(labels, "to_dask_array") else None
    return write_labels(labels, path, lengths=lengths, replace=replace)
