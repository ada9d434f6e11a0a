"""`dmkc.plan`: what a fit will take, before it is begun."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from dask.utils import format_bytes
from sklearn.base import BaseEstimator, clone

from dmkc.clusterers.base import seed_of
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.spread import Layout
from dmkc.clusterers.subset import subset_size
from dmkc.data import Rows, as_rows
from dmkc.display import advance
from dmkc.errors import UserError, UserTypeError
from dmkc.planning.pilot import (
    Step,
    first_run,
    forecast,
    pilot_sample,
    pilot_sizes,
    run_pilot,
)
from dmkc.resume import is_recording
from dmkc.scan.engine import open_engine
from dmkc.selection.run import select
from dmkc.showing import html_pairs
from dmkc.typing import TableLike

SURE = 0.8
"""The range of the time is widened by this factor downwards, and by its inverse upwards."""
NEGLIGIBLE = 1e-3
"""Steps below this part of the time are not shown."""
WALLTIME_FACTOR, WALLTIME_START, WALLTIME_STEP = 1.5, 300, 300
"""A walltime is this much longer than the upper end, plus seconds to start, in steps of seconds."""
SHOWN_FIRST_RUN = 0.1
"""Seconds from which on it is said that a first run takes longer."""


@dataclass(frozen=True)
class Plan:
    """What a fit will take."""

    method: str
    """Class of the estimator."""
    rows: int
    columns: int
    train_rows: int | None
    """Rows that are trained on, where these are not all rows."""
    where: str
    """On what the pilots ran, and the fit is to run."""
    workers: int
    row_bytes: int
    """Bytes of the rows."""
    feature_bytes: int
    """Bytes of what every scan goes over."""
    held_bytes: int
    """Bytes that the fit keeps in memory, on all workers together."""
    blocks: int
    """Blocks of the rows that are trained on."""
    feature_mode: str
    """How features are kept: "persist", "recompute" or "store"."""
    steps: tuple[Step, ...]
    """Calls of every kind: how many, and how long each takes."""
    scans: tuple[int, int, int]
    """Passes over all rows, as `n_scans_` counts them: fewest, expected, most."""
    seconds_per_scan: float
    """Mean over the scans of all rows."""
    coordinator_seconds: float
    """Seconds beside the steps: starts on a sample, master problems, a selection."""
    seconds: float
    """Expected time of the fit with the labels of all rows."""
    seconds_low: float
    seconds_high: float
    memory_per_worker: int
    """Bytes of a worker at most, with the code and all else that it has in memory."""
    first_run_seconds: float
    """What the first fit of this plan took beyond what it did: loading libraries and loops."""
    walltime: str
    """What to ask a queue for, as HH:MM:SS."""
    calibration_seconds: float
    """How long making this plan took."""
    pilot_rows: tuple[int, ...]
    """Rows of the fits that it was made from."""
    notes: tuple[str, ...]
    """What to know about it."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)

    def pairs(self) -> list[tuple[str, str]]:
        """What a person wants to know, as names and texts."""
        low, scans, high = self.scans
        trained = "" if self.train_rows is None else f", trained on {self.train_rows:,} of them"
        found = [
            ("method", self.method),
            ("rows", f"{self.rows:,} x {self.columns:,}{trained}"),
            ("on", self.where),
            ("bytes of the rows", format_bytes(self.row_bytes)),
            ("bytes of the features", format_bytes(self.feature_bytes)),
            ("blocks", f"{self.blocks:,}"),
            ("feature mode", self.feature_mode),
            ("memory per worker", format_bytes(self.memory_per_worker)),
            ("scans of all rows", f"{scans} ({low} to {high})"),
            ("time per scan", duration(self.seconds_per_scan)),
        ]
        for step in sorted(self.steps, key=lambda s: -s.count * s.seconds):
            if step.count * step.seconds < NEGLIGIBLE * self.seconds:
                break
            each = f"{step.count:.3g} x {duration(step.seconds)}"
            found.append((f"  {step.name}, {step.on}", each))
        found += [
            ("  coordinator", duration(self.coordinator_seconds)),
            ("expected time", duration(self.seconds)),
            ("range", f"{duration(self.seconds_low)} to {duration(self.seconds_high)}"),
        ]
        if self.first_run_seconds >= SHOWN_FIRST_RUN:
            more = f"{duration(self.first_run_seconds)} more, to load or compile what fits need"
            found.append(("a first run", more))
        found += [
            ("suggested walltime", self.walltime),
            ("planned in", duration(self.calibration_seconds)),
        ]
        return found + [("note", note) for note in self.notes]

    def __repr__(self) -> str:
        return str(self)  # a table, not forty fields

    def _repr_html_(self) -> str:
        return html_pairs(self.pairs())

    def __str__(self) -> str:
        pairs = self.pairs()
        width = max(len(name) for name, _ in pairs)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in pairs)


def plan(X: TableLike, estimator: RowClusterer, *, journal: bool = False) -> Plan:
    """Say what `estimator.fit(X)` will take: time, scans, memory, and a walltime.

    The estimator is fitted to some of the rows two or three times, where the fit of all rows would
    run (on the workers of its client, if it has one), from the sample that it would begin from,
    with features held in the way that all rows would have.  What was done is counted and timed; the
    time of a call grows with the rows, and the number of calls is that of the pilots.  One pass
    goes over all rows, for the sample.  Neither the estimator nor `X` is changed.

    Parameters
    ----------
    X : rows
        Anything that `fit` takes.
    estimator : clusterer
        With the parameters of the fit.  Labels as `init` and links between rows cannot be planned
        with, because they do not hold for some of the rows.
    journal : bool, default=False
        Whether the fit will be inside `dmkc.checkpoint`, as that of the command is.

    Returns
    -------
    Plan
        Printed, it is a table.  Times are those of the fit with the labels of all rows, without
        the start of a cluster; what the first fit of a process or of workers costs is apart.

    Examples
    --------
    >>> import dmkc
    >>> from dmkc.datasets import make_blobs
    >>> X, y = make_blobs(3000, centers=2, seed=0)
    >>> found = dmkc.plan(X, dmkc.KMeans(2, random_state=0))
    >>> found.feature_mode
    'persist'
    """
    if isinstance(X, BaseEstimator):
        raise UserTypeError("Rows come first, as in dmkc.select: dmkc.plan(X, estimator).")
    if not isinstance(estimator, RowClusterer):
        raise UserTypeError(
            f"A plan is made for a clusterer of dmkc, not for a {type(estimator).__name__}."
        )
    if is_recording():
        raise UserError(
            "A plan inside dmkc.checkpoint would be recorded as part of the run: plan before it, "
            "with `journal=True`."
        )
    _check_plannable(estimator)
    began = time.perf_counter()
    rows = as_rows(X)
    settled, selected = _settled(estimator, rows)
    seed = seed_of(settled.random_state)
    settled.set_params(random_state=seed)
    engine = open_engine(settled.client)
    layout = settled._layout(rows, engine)
    if "dtype" in settled.get_params(deep=False):
        settled.set_params(dtype=layout.dtype.name)  # which would depend on the number of rows
    train = getattr(settled, "train_rows", None)
    train_rows = None if train is None else subset_size(train, rows.n_rows)
    sample = None
    if train_rows is None and layout.sample_rows < rows.n_rows:
        sample = pilot_sample(rows, engine, layout.sample_rows, seed)
    threads = engine.threads
    pilots, resident = [], []
    sizes = pilot_sizes(rows.n_rows, layout, threads)
    for turn, size in enumerate(sizes):
        advance(turn, len(sizes), f"{size} rows")
        pilots.append(run_pilot(settled, rows, size, train_rows, turn, threads, sample, journal))
        resident.append(engine.resident())  # with all code that a fit loads and compiles
    base = min(map(max, resident))  # some of a pilot's blocks may not have been let go of yet
    workers = len(resident[-1])
    working = _working(rows, layout, -(-threads // workers))
    found = forecast(pilots, rows.n_rows, train_rows)
    expected = float(np.mean(found.totals)) + selected
    low = SURE * (min(found.totals) + selected)
    high = (max(found.totals) + selected) / SURE
    scans = [s for s in found.steps if s.is_scan and s.on == "all rows"]
    held = sum(step.held for step in found.steps)
    counted = [pilot.scans for pilot in pilots]
    notes = () if all(p.converged for p in pilots) else (_NOT_CONVERGED,)
    return Plan(
        method=type(estimator).__name__,
        rows=rows.n_rows,
        columns=rows.n_columns,
        train_rows=train_rows,
        where=engine.description,
        workers=workers,
        row_bytes=_row_bytes(rows),
        feature_bytes=layout.n_bytes,
        held_bytes=int(held),
        blocks=layout.grid.n_blocks,
        feature_mode=layout.mode,
        steps=found.steps,
        scans=(min(counted), round(float(np.mean(counted))), max(counted)),
        seconds_per_scan=sum(s.count * s.seconds for s in scans) / sum(s.count for s in scans),
        coordinator_seconds=found.outside + selected,
        seconds=expected,
        seconds_low=low,
        seconds_high=high,
        memory_per_worker=base + int(held / workers) + working,
        first_run_seconds=first_run(pilots),
        walltime=walltime(high),
        calibration_seconds=time.perf_counter() - began,
        pilot_rows=tuple(pilot.rows for pilot in pilots),
        notes=notes,
    )


_NOT_CONVERGED = "fits of some of the rows did not converge: the fit may end at max_iter too"


def walltime(seconds: float) -> str:
    """A walltime with a margin for a fit of at most `seconds`, as HH:MM:SS."""
    asked = WALLTIME_START + WALLTIME_FACTOR * seconds
    whole = WALLTIME_STEP * math.ceil(asked / WALLTIME_STEP)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _check_plannable(estimator: Any) -> None:
    given = estimator.get_params(deep=False)
    init = given.get("init", "auto")
    items = init if isinstance(init, list | tuple) else [init]
    known = (str, KernelModel)
    labels = "train_rows" in given and not all(isinstance(item, known) for item in items)
    for name, there in (
        ("init", labels),
        ("must_link", given.get("must_link") is not None),
        ("cannot_link", given.get("cannot_link") is not None),
    ):
        if there:
            raise UserError(
                f"A plan is made from fits of some of the rows, for which the given `{name}` does "
                "not hold: leave it out for the plan."
            )


def _settled(estimator: Any, rows: Rows) -> tuple[Any, float]:
    """The estimator with all that is left open chosen, and the seconds that this took."""
    given = estimator.get_params(deep=False)
    if not any(isinstance(given[n], str) and given[n] == "auto" for n in estimator.selectable):
        return clone(estimator), 0.0
    began = time.perf_counter()
    return select(rows, estimator).estimator(), time.perf_counter() - began


def _row_bytes(rows: Rows) -> int:
    """Bytes of the rows as they are loaded; sparse ones have an index beside every number."""
    each = rows.dtype.itemsize + (4 if rows.sparse else 0)
    return int(rows.n_rows * rows.n_columns * rows.density * each)


def _working(rows: Rows, layout: Layout, threads: int) -> int:
    """Bytes that the threads of a worker need at a time: a block of rows and its columns each."""
    of_rows, grid = _row_bytes(rows) / rows.n_rows, layout.grid
    made = grid.leaf_rows if layout.mode == "recompute" else grid.block_rows
    a_block = grid.block_rows * of_rows + made * layout.width * layout.dtype.itemsize
    return int(min(a_block, rows.n_rows * of_rows + layout.n_bytes) * threads)
