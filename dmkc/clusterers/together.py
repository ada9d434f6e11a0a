"""Driving several fits at once: every scan serves all that still run.

A fit is a generator.  It yields what it wants of a scan and is sent the answer, so that it knows
models and sums only, never rows, and many fits (starts, values of C) share every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from dmkc.clusterers.rowset import RowSet
from dmkc.scan.requests import Answer, Request

End = TypeVar("End")
Fit = Generator[Request[Answer], Answer, End]
"""A fit that asks for `Answer`s and comes to an `End`."""


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
