"""Driving several fits at once: every scan serves all that still run.

A fit is a generator.  It yields what it wants of a scan and is sent the answer, so that it knows
models and sums only, never rows, and many fits (starts, values of C) share every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

End = TypeVar("End")


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


def run_together(
    fits: Sequence[Generator[Any, list[Any], End]],
    answer: Callable[[list[Any]], list[list[Any]]],
) -> list[End]:
    """Drive several fits to their ends; each scan serves all that still run."""
    ends: dict[int, End] = {}
    waiting: dict[int, Any] = {}

    def advance(k: int, sent: list[Any] | None) -> None:
        try:
            waiting[k] = next(fits[k]) if sent is None else fits[k].send(sent)
        except StopIteration as stop:
            ends[k] = stop.value

    for k in range(len(fits)):
        advance(k, None)
    while waiting:
        asked, waiting = waiting, {}
        replies = answer(list(asked.values()))
        for k, reply in zip(asked, replies, strict=True):
            advance(k, reply)
    return [ends[k] for k in range(len(fits))]
