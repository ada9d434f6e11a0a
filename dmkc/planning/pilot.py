"""Fits of some of the rows, run as the fit of all rows would be, measured, and what they foretell.

Some rows are whole runs of rows, spread over the input, and after them the sample that a fit of all
rows would begin from: a fit of some rows then begins like that of all, and goes on much like it.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.base import clone

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.spread import Layout
from dmkc.data import Block, Container, Lazy, Read, Rows
from dmkc.data.blocks import HeldArray, HeldSparse, Reader, Values, bounds, csr
from dmkc.data.rows import Source, scan_width
from dmkc.resume import checkpoint
from dmkc.scan.engine import Engine
from dmkc.scan.grid import MAX_LEAF_ROWS
from dmkc.scan.meter import Call, Meter, metering
from dmkc.scan.survey import TakeScan, sample_positions

SAMPLES = 4
"""Rows of the smaller pilots, in samples of the estimator: a fit of all rows goes on from such a
sample too, so that its number of scans is about the same."""
BLOCKS_A_THREAD = 4
LARGER = 4
"""How much larger the last pilot is."""
Kind = tuple[str, bool]
"""Name of a call, and whether it is on a training subset."""


def run_rows(n_rows: int, threads: int) -> int:
    """Rows in a run: no block of a fit of `n_rows` rows is larger, and each fits into a run."""
    return 1 << (max(MAX_LEAF_ROWS, -(-n_rows // (4 * threads))) - 1).bit_length()


@dataclass(frozen=True, eq=False)
class PilotSample:
    """Some rows in memory."""

    positions: np.ndarray
    """Their numbers in the input, ascending."""
    values: Values

    def __len__(self) -> int:
        return len(self.positions)

    def blocks(self, first: int, block_rows: int) -> list[Block]:
        """These rows in blocks, numbered from `first` on."""
        values = self.values
        reader: Reader = (
            HeldSparse(csr(values, values.dtype), first)
            if sp.issparse(values)
            else HeldArray(values, first, values.dtype)
        )
        return [Read(reader, first + a, first + b) for a, b in bounds(len(self), block_rows)]


def pilot_sample(rows: Rows, engine: Engine, size: int, seed: int) -> PilotSample:
    """The sample that a fit of all rows begins from, by one pass over them."""
    positions = sample_positions(rows.n_rows, size, seed)
    grid = engine.grid(rows.n_rows, scan_width(rows))
    values, _ = engine.scan(TakeScan(positions), list(rows.blocks(grid.block_rows)), grid)
    return PilotSample(positions, values)


def some_rows(
    rows: Rows, n_rows: int, threads: int, turn: int, sample: PilotSample | None = None
) -> Rows:
    """About `n_rows` of the rows, and a sample; every `turn` gives others if there are enough.

    All rows are returned where there are not more of them.
    """
    n_sampled = 0 if sample is None else len(sample)
    length = run_rows(min(n_rows, rows.n_rows) + n_sampled, threads)
    there, wanted = rows.n_rows // length, -(-n_rows // length)
    if wanted >= there:
        return rows
    chosen = np.sort((np.arange(wanted) * there // wanted + turn) % there)
    source = Runs(rows.source, chosen, length, sample)
    n_chosen = length * wanted + n_sampled
    chunks = tuple(b.stop - b.start for b in source.blocks(length)) if rows.container.lazy else None
    return replace(
        rows,
        n_rows=n_chosen,
        container=SomeRowsOf(rows.container.kind, n_chosen, chunks, whole=rows, runs=source),
        source=source,
        sampled=None if sample is None else np.arange(length * wanted, n_chosen),
    )


@dataclass(frozen=True, eq=False)
class Shifted:
    """Reads rows that have other numbers in the input."""

    reader: Reader
    by: int

    def read(self, start: int, stop: int) -> Values:
        return self.reader.read(start + self.by, stop + self.by)


@dataclass(frozen=True, eq=False)
class Runs:
    """Cuts chosen runs of an input into blocks, as if there were nothing between them."""

    source: Source
    chosen: np.ndarray
    """Numbers of the runs, ascending."""
    length: int
    """Rows of a run."""
    sample: PilotSample | None
    """What follows the runs."""

    def blocks(self, block_rows: int) -> list[Block]:
        if self.length % block_rows:
            raise ValueError(f"Blocks of {block_rows} rows do not fill a run of {self.length}.")
        each = self.length // block_rows
        every = self.source.blocks(block_rows)
        wanted = [every[run * each + i] for run in self.chosen for i in range(each)]
        blocks = [_moved(block, i * block_rows) for i, block in enumerate(wanted)]
        more = [] if self.sample is None else self.sample.blocks(self.n_in_runs, block_rows)
        return [*blocks, *more]

    @property
    def n_in_runs(self) -> int:
        return len(self.chosen) * self.length

    def original(self, positions: np.ndarray) -> np.ndarray:
        """Numbers in the input of rows with these numbers."""
        run, within = np.divmod(np.minimum(positions, self.n_in_runs - 1), self.length)
        found = self.chosen[run] * self.length + within
        if self.sample is not None:
            later = positions >= self.n_in_runs
            found[later] = self.sample.positions[positions[later] - self.n_in_runs]
        return found


def _moved(block: Block, start: int) -> Block:
    stop = start + block.stop - block.start
    if isinstance(block, Lazy):
        return Lazy(block.delayed, start, stop)
    return Read(Shifted(block.reader, block.start - start), start, stop)


@dataclass(frozen=True, eq=False)
class SomeRowsOf(Container):
    """Results are plain arrays; rows are named as in the whole input."""

    whole: Rows = field(kw_only=True)
    runs: Runs = field(kw_only=True)

    def row_labels(self, positions: np.ndarray) -> list[str]:
        return self.whole.container.row_labels(self.runs.original(np.asarray(positions)))


@dataclass(frozen=True)
class Pilot:
    """What one fit of some rows did."""

    rows: int
    seconds: float
    calls: tuple[Call, ...]
    scans: int
    """Passes over all rows, as the estimator counts them."""
    converged: bool

    @property
    def outside(self) -> float:
        """Seconds between the calls: starts on a sample, master problems."""
        return self.seconds - sum(call.seconds for call in self.calls)

    def by_kind(self) -> dict[Kind, list[Call]]:
        found: dict[Kind, list[Call]] = defaultdict(list)
        for call in self.calls:
            found[call.name, call.on_subset].append(call)
        return found


def pilot_sizes(n_rows: int, layout: Layout, threads: int) -> list[int]:
    """Rows of the pilots; the first one also warms up, and only its scans are counted."""
    small = max(SAMPLES * layout.sample_rows, BLOCKS_A_THREAD * layout.grid.leaf_rows * threads)
    if n_rows <= 2 * small:
        return [n_rows, n_rows]
    return [small, small, min(LARGER * small, n_rows)]


def run_pilot(
    estimator: RowClusterer,
    rows: Rows,
    size: int,
    train_rows: int | None,
    turn: int,
    threads: int,
    sample: PilotSample | None,
    journal: bool,
) -> Pilot:
    """Fit about `size` rows, from the same sample, and make the labels of all of them."""
    some = some_rows(rows, size, threads, turn, sample)
    meter = Meter(share=some.n_rows / rows.n_rows)
    model: Any = clone(estimator).set_params(verbose=0)
    if train_rows is not None:
        trained = min(train_rows, some.n_rows)
        meter.subset_share = trained / train_rows
        model.set_params(train_rows=trained)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if journal:
            stack.enter_context(checkpoint(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.enter_context(metering(meter))
        began = time.perf_counter()
        model.fit(some)
        if some.container.lazy:
            meter.calls.append(_labelled(model, some))
        seconds = time.perf_counter() - began
    calls, scans = tuple(meter.calls), model.n_scans_
    return Pilot(some.n_rows, seconds, calls, scans, model.converged_)


def _labelled(model: Any, rows: Rows) -> Call:
    """Have lazy labels made where they are made after a fit, without keeping them."""
    began = time.perf_counter()
    with contextlib.nullcontext() if model.client is None else model.client.as_current():
        model.labels_.max().compute()
    return Call("labels", False, False, rows.n_rows, time.perf_counter() - began, 0)


@dataclass(frozen=True)
class Step:
    """Calls of one kind in a fit of all rows."""

    name: str
    on: str
    """Whether they go over "all rows" or over the "training rows"."""
    is_scan: bool
    count: float
    """How many are expected: the mean over the pilots."""
    seconds: float
    """Time of one call."""
    held: float
    """Bytes that they leave in memory, all together."""


@dataclass(frozen=True)
class Forecast:
    """A fit of all rows as the pilots let it expect."""

    steps: tuple[Step, ...]
    outside: float
    """Seconds on the coordinator, between the calls."""
    totals: tuple[float, ...]
    """Seconds of a fit of all rows that does as many calls as each of the pilots."""


def forecast(pilots: Sequence[Pilot], n_rows: int, train_rows: int | None) -> Forecast:
    """What a fit of `n_rows` rows takes; the first pilot counts calls but not their time."""
    kinds: dict[Kind, None] = {kind: None for pilot in pilots for kind in pilot.by_kind()}
    steps = tuple(_step(kind, pilots, n_rows, train_rows) for kind in kinds)
    outside = float(np.mean([pilot.outside for pilot in pilots[1:]]))
    totals = []
    for pilot in pilots:
        counts = {kind: len(calls) for kind, calls in pilot.by_kind().items()}
        each = [counts.get(kind, 0) * step.seconds for kind, step in zip(kinds, steps, strict=True)]
        totals.append(outside + sum(each))
    return Forecast(steps, outside, tuple(totals))


def first_run(pilots: Sequence[Pilot]) -> float:
    """Seconds that the first of two pilots of one size took beyond what it did.

    These go into libraries and compiled loops that are loaded, or compiled, when they are first
    used; next to nothing where other fits have been made before.
    """
    first, second = pilots[:2]
    usual = {kind: np.mean([c.seconds for c in calls]) for kind, calls in second.by_kind().items()}
    known = sum(usual.get((call.name, call.on_subset), call.seconds) for call in first.calls)
    return max(first.seconds - second.outside - float(known), 0.0)


def _step(kind: Kind, pilots: Sequence[Pilot], n_rows: int, train_rows: int | None) -> Step:
    name, on_subset = kind
    found = [pilot.by_kind().get(kind, []) for pilot in pilots]
    target = train_rows if on_subset and train_rows is not None else n_rows
    warm = [calls for calls in found[1:] if calls] or [calls for calls in found if calls]
    rows = [float(np.mean([call.rows for call in calls])) for calls in warm]
    seconds = [float(np.mean([call.seconds for call in calls])) for calls in warm]
    held = np.mean([sum(c.held for c in calls) / calls[0].rows for calls in warm])
    return Step(
        name,
        "training rows" if on_subset else "all rows",
        warm[0][0].is_scan,
        float(np.mean([len(calls) for calls in found])),
        at_size(rows, seconds, target),
        float(held) * target,
    )


def at_size(rows: Sequence[float], seconds: Sequence[float], target: float) -> float:
    """Seconds at `target` rows: so much a call and so much a row, neither of them negative."""
    parts = np.column_stack([np.ones(len(rows)), rows])
    (a_call, a_row), _ = nnls(parts / np.max(rows), np.asarray(seconds) / np.max(rows))
    return float(a_call + a_row * target)
