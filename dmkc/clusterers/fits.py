"""Fits, the same for every method: how they share scans, race from starts, and what is kept.

A fit is a generator.  It yields what it wants of a scan and is sent the answer, so that it knows
models and sums only, never rows, and many fits (starts, values of C) share every pass.  Starts race
on a sample, as one batch; the best of them, or all, go on with all rows, again as one batch.  A
method says how a fit begins on some rows and what an end costs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from dmkc.clusterers.rowset import RowSet
from dmkc.scan.requests import Answer, Request
from dmkc.typing import NamedValues

End = TypeVar("End")
Fit = Generator[Request[Answer], Answer, End]
"""A fit that asks for `Answer`s and comes to an `End`."""
Value = TypeVar("Value")
Start = TypeVar("Start")
MAX_ITER_REACHED = "max_iter was reached"
SETTLED = "labels settled"
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Step:
    """What is told to the progress display after each scan of a fit."""

    round: int
    step: int
    objective: float
    bound: float
    gap: float
    changed: float
    cuts: int


def run_together(fits: Sequence[Fit[Answer, End]], rows: RowSet) -> list[End]:
    """Drive several fits of the same rows to their ends."""
    ends: dict[int, End] = {}
    waiting: dict[int, Request[Answer]] = {}

    def advance(k: int, ask: Callable[[], Request[Answer]]) -> None:
        try:
            waiting[k] = ask()
        except StopIteration as stop:
            ends[k] = stop.value

    for k, fit in enumerate(fits):
        advance(k, partial(next, fit))
    while waiting:
        asked, waiting = waiting, {}
        answers = rows.answer(list(asked.values()))
        for k, answer in zip(asked, answers, strict=True):
            advance(k, partial(fits[k].send, answer))
    return [ends[k] for k in range(len(fits))]


@dataclass(frozen=True)
class Named(Generic[Value]):
    """A start, or how far a fit has come, under the name of its start."""

    name: str
    value: Value


@dataclass(frozen=True)
class Stage(Generic[Start, Answer, End]):
    """Fits of some rows: from starts, or from where fits of other rows have ended."""

    rows: RowSet
    begin: Callable[[str, Start], Fit[Answer, End]]
    """A fit of these rows, from a start and its name."""

    def run(self, starts: Sequence[Named[Start]]) -> list[Named[End]]:
        """The ends of fits from all starts, which share every scan."""
        ends = run_together([self.begin(start.name, start.value) for start in starts], self.rows)
        return [Named(start.name, end) for start, end in zip(starts, ends, strict=True)]


def race(
    starts: Sequence[Named[Start]],
    first: Stage[Start, Answer, End],
    then: Stage[End, Answer, End] | None,
    cost: Callable[[End], float],
    refine: str = "best",
) -> Named[End]:
    """The end of least cost over all starts; those that `refine` names go on with other rows."""

    def of_named(end: Named[End]) -> float:
        return cost(end.value)

    ends = first.run(starts)
    if then is not None:
        ends = then.run(ends if refine == "all" else [min(ends, key=of_named)])
    return min(ends, key=of_named)


@dataclass(frozen=True, kw_only=True)
class FitEnd:
    """How a fit came out; a method adds what it has found."""

    shares: np.ndarray
    """Sizes of the clusters: shares of the rows, or their weights."""
    n_iter: int
    converged: bool
    reason: str
    """Why it ended."""


Kept = TypeVar("Kept", bound=FitEnd)


@dataclass(frozen=True)
class Learned(Generic[Kept, Settings]):
    """The fit that was kept, and how it came about."""

    fit: Kept
    start: str
    """Name of the start that it began from."""
    settings: Settings
    """What was asked for, with everything calibrated that was left open."""
    selection: list[NamedValues] | None = None
    """Scores of all that was chosen from, where something was left open."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further fitted attributes of the estimator, by name."""

    def continued(self, stage: Stage[Kept, Any, Kept]) -> Learned[Kept, Settings]:
        """The same after the fit went on with other rows; it has converged if it had before."""
        (found,) = stage.run([Named(self.start, self.fit)])
        converged = found.value.converged or self.fit.converged
        return replace(self, fit=replace(found.value, converged=converged))


AnyLearned: TypeAlias = Learned[Any, Any]
"""The same of any method."""
