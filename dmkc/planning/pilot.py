"""Fits of some of the rows, run as the fit of all rows would be and measured call by call."""

from __future__ import annotations

import contextlib
import tempfile
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.spread import Layout
from dmkc.data import Rows
from dmkc.planning.some_rows import Sample, some_rows
from dmkc.resume import checkpoint
from dmkc.scan.meter import Call, Meter, metering

SAMPLES = 4
"""Rows of the smaller pilots, in samples of the estimator: a fit of all rows goes on from such a
sample too, so that its number of scans is about the same."""
BLOCKS_A_THREAD = 4
LARGER = 4
"""How much larger the last pilot is."""

Kind = tuple[str, bool]
"""Name of a call, and whether it is on a training subset."""


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
    sample: Sample | None,
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
