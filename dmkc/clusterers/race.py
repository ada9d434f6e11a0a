"""One way from starts to a fit of all rows, for every method.

Starts race on a sample, as one batch; the best of them, or all, go on with all rows, again as one
batch.  A method says how a fit begins on some rows and what an end costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.together import End, Fit, run_together
from dmkc.scan.requests import Answer

REFINE = ("best", "all")
"""Which starts are carried on from the sample to all rows."""

Value = TypeVar("Value")
Start = TypeVar("Start")


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
