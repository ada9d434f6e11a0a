"""From measured pilots to the steps of a fit of all rows, and their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from dmkc.planning.pilot import Kind, Pilot


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
