"""Maximum-margin clustering: CCCP outside, cutting planes inside.

Zhao, Kwok and Zhang (2009), eqs 2.6-2.18 and 4.33-4.35.  A fit is written as a generator: it
yields the cuts it needs and is sent what a scan found, so that many fits (starts, values of C)
share every scan (`run_together`).  It knows points and sums only, never rows.

For a labeling z the convex problem is solved by cutting planes until the relative gap between the
best point's true value and the master's lower bound is small; then z becomes the best point's own
labeling.  The bundle is rebuilt for the new labeling from the *points* of the active cuts: the cut
at an old point is as valid as any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dmkc.clusterers.geometry import CutValues, Geometry, Label, Point
from dmkc.master import Cuts, MasterProblem, regulariser, solve

MAX_STEPS = 200
INACTIVE = 1e-7
"""A cut is inactive when its multiplier is below this share of C."""
LOOSE_GAP = 1e-2
"""Gap that is good enough while labels still move a lot."""

Fit = Generator[Any, list[Any], "MarginFit"]


@dataclass(frozen=True)
class MarginSettings:
    """The problem and when to stop."""

    C: float
    balance: float | None
    norm: float
    tol: float
    """Relative fall of the objective, or share of relabeled rows, at which to stop."""
    gap: float
    """Relative gap of a convex problem that counts as solved."""
    max_iter: int
    solver: str


@dataclass(frozen=True)
class MarginModel:
    """A point and what a scan knows of it."""

    point: Point
    kernel_weights: np.ndarray
    objective: float
    """True objective under the point's own labeling."""
    shares: np.ndarray
    """Shares of the clusters under that labeling."""
    changed: float
    """Share of the rows that it relabels."""
    mark: int
    """Hash of its labeling."""


@dataclass(frozen=True)
class MarginFit:
    """The end of a fit."""

    model: MarginModel
    kept: tuple[Point, ...]
    """Points of the active cuts, to warm-start another fit."""
    n_iter: int
    converged: bool
    reason: str


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


@dataclass
class _Cut:
    point: Point
    values: CutValues
    idle: int = 0


@dataclass
class _Bundle:
    """The cuts of one labeling and the master over them."""

    geometry: Geometry
    settings: MarginSettings
    cuts: list[_Cut] = field(default_factory=list)
    bound: float = 0.0

    def add(self, point: Point, sums: Any) -> None:
        self.cuts.append(_Cut(point, self.geometry.cut(sums)))

    def solve(self) -> tuple[Point, np.ndarray]:
        """The master's point and kernel weights; the bound rises to its value."""
        g, s = self.geometry, self.settings
        cuts = Cuts(
            np.array([c.values.loss for c in self.cuts]),
            np.array([c.values.sign for c in self.cuts]),
            np.array([c.values.slope for c in self.cuts]),
        )
        balance = s.balance if g.has_bias else None
        problem = MasterProblem(cuts, g.offsets, g.mean, s.C, balance, s.norm, g.has_bias)
        solution = solve(problem, s.solver)
        self.bound = max(self.bound, float(solution.value))
        for cut, multiplier in zip(self.cuts, solution.multipliers, strict=True):
            cut.idle = 0 if multiplier > INACTIVE * s.C else cut.idle + 1
        return (solution.weights, solution.bias), solution.kernel_weights

    def active(self) -> list[Point]:
        """Points whose cuts mattered in one of the last two masters."""
        return [c.point for c in self.cuts if c.idle <= 1]

    def value(self, point: Point, hinge: float) -> float:
        size = regulariser(point[0], self.geometry.offsets, self.settings.norm)
        return size + self.settings.C * hinge

    def model(self, point: Point, kernel_weights: np.ndarray, sums: Any) -> MarginModel:
        g = self.geometry
        objective = self.value(point, g.own_hinge(sums))
        changed = sums.changed / sums.total
        return MarginModel(point, kernel_weights, objective, g.shares(sums), changed, sums.mark)


def margin_fit(
    geometry: Geometry,
    label: Label,
    settings: MarginSettings,
    tell: Callable[[Step], None],
    points: Sequence[Point] = (),
    kernel_weights: np.ndarray | None = None,
) -> Fit:
    """Cluster from a labeling.

    With `kernel_weights` the fit goes on from a model: `points[0]` is its point and `label` its
    own labeling.  Otherwise `points` are just where the first cuts are made.
    """
    best: MarginModel | None = None
    kept = list(points) or [geometry.zero()]
    seen: set[int] = set()
    fall, round_, reason = 1.0, 0, "max_iter was reached"
    while round_ < settings.max_iter:
        round_ += 1
        bundle = _Bundle(geometry, settings)
        answers = yield geometry.request(label, kept)
        for point, sums in zip(kept, answers, strict=True):
            bundle.add(point, sums)
        if round_ == 1 and kernel_weights is not None:
            best = bundle.model(kept[0], kernel_weights, answers[0])
        # its value under this labeling, whose cluster weights may come from other rows
        before = np.inf if best is None else bundle.value(kept[0], _hinge(answers[0]))
        wanted = max(settings.gap, min(LOOSE_GAP, 0.1 * fall))
        found, value, gap = yield from _inner(bundle, label, best, before, wanted, round_, tell)
        kept = [found.point, *(p for p in bundle.active() if p is not found.point)]
        tight = gap <= settings.gap
        if np.any(found.shares == 0) and len(found.shares) > 2 and best is not None:
            reason = "a cluster would have become empty"
            break
        if best is not None:
            fall = (before - value) / max(before, 1e-300)
            still = found.mark == best.mark or (
                not geometry.monotone and found.changed <= settings.tol
            )
            if tight and (fall <= settings.tol or still):
                return MarginFit(found, tuple(kept), round_, True, "labels settled")
            if found.mark in seen and found.mark != best.mark:
                done = found if found.objective <= best.objective else best
                return MarginFit(done, tuple(kept), round_, tight, "a labeling came back")
            seen.add(best.mark)
        best, label = found, geometry.label(found.point, found.shares)
        if gap > wanted:
            reason = "the cutting plane did not close the gap"
            break
    assert best is not None
    return MarginFit(best, tuple(kept), round_, False, reason)


def _inner(
    bundle: _Bundle,
    label: Label,
    best: MarginModel | None,
    value: float,
    wanted: float,
    round_: int,
    tell: Callable[[Step], None],
) -> Generator[Any, list[Any], tuple[MarginModel, float, float]]:
    """The best model of one labeling's convex problem, its value and gap.

    It is never worse than `best`, whose value is `value`; a loose gap ends the search only once
    something better has been found.
    """
    incumbent, gap = best, np.inf
    enough = bundle.settings.gap
    for step in range(1, MAX_STEPS + 1):
        point, kernel_weights = bundle.solve()
        gap = _gap(value, bundle.bound)
        if best is not None and gap <= (enough if best is incumbent else wanted):
            break
        (sums,) = yield bundle.geometry.request(label, [point])
        new_value = bundle.value(point, _hinge(sums))
        if new_value < value:
            best, value = bundle.model(point, kernel_weights, sums), new_value
        assert best is not None
        gap = _gap(value, bundle.bound)
        changed = sums.changed / sums.total
        tell(Step(round_, step, value, bundle.bound, gap, changed, len(bundle.cuts)))
        if best is not incumbent and gap <= wanted:
            break
        bundle.add(point, sums)
    assert best is not None
    return best, value, gap


def _hinge(sums: Any) -> float:
    """Mean margin violation under the given labeling."""
    return sums.hinge / sums.total


def _gap(value: float, bound: float) -> float:
    return float((value - bound) / max(abs(value), 1e-300)) if np.isfinite(value) else np.inf


def run_together(
    fits: Sequence[Fit], answer: Callable[[list[Any]], list[list[Any]]]
) -> list[MarginFit]:
    """Drive several fits to their ends; each scan serves all that still run."""
    ends: dict[int, MarginFit] = {}
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
