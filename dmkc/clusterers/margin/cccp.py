"""Maximum-margin clustering: CCCP outside, cutting planes inside.

Zhao, Kwok and Zhang (2009), eqs 2.6-2.18 and 4.33-4.35.  A fit is written as a generator: it
yields the cuts it needs and is sent what a scan found, so that many fits (starts, values of C)
share every scan (`fits.run_together`).  It knows points and sums only, never rows.

For a labeling z the convex problem is solved by cutting planes until the relative gap between the
best point's true value and the master's lower bound is small; then z becomes the best point's own
labeling.  The bundle is rebuilt for the new labeling from the *points* of the active cuts: the cut
at an old point is as valid as any.

A problem that is not solved after a few steps is hard.  With two clusters and a threshold of 1
Newton's steps then bring points and cuts (`newton`); else more points on the way to the master's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from dmkc.clusterers.fits import MAX_ITER_REACHED, SETTLED, Fit, FitEnd, Step
from dmkc.clusterers.margin.bundle import Bundle, MarginModel, MarginSettings
from dmkc.clusterers.margin.geometry import Labeling, MarginGeometry, Point, Sums
from dmkc.clusterers.margin.newton import WARM, WIDE, NewtonPath
from dmkc.master import MasterSolverError

MAX_STEPS = 200
ALL_STEPS, ALL_STEPS_OF_SEVERAL = 600, 250
"""Steps of all convex problems of a fit together, of two clusters and of several."""
EASY_STEPS = 15
"""Steps after which a convex problem is hard."""
LOOSE_GAP, LOOSER_GAP = 1e-2, 0.1
"""Gaps that are good enough while labels still move a lot: of easy problems and of hard ones."""
UNMET = "the cutting plane did not close the gap"


@dataclass(frozen=True)
class MarginFit(FitEnd):
    """The end of a fit."""

    model: MarginModel
    kept: tuple[Point, ...]
    """Points of the active cuts, to warm-start another fit."""

    @classmethod
    def of(
        cls, model: MarginModel, kept: Sequence[Point], n_iter: int, converged: bool, reason: str
    ) -> MarginFit:
        return cls(
            model,
            tuple(kept),
            shares=model.shares,
            n_iter=n_iter,
            converged=converged,
            reason=reason,
        )


def margin_fit(
    geometry: MarginGeometry[Labeling, Sums],
    label: Labeling,
    settings: MarginSettings,
    tell: Callable[[Step], None],
    points: Sequence[Point] = (),
    kernel_weights: np.ndarray | None = None,
) -> Fit[list[Sums], MarginFit]:
    """Cluster from a labeling.

    With `kernel_weights` the fit goes on from a model: `points[0]` is its point and `label` its
    own labeling.  Otherwise `points` are just where the first cuts are made.
    """
    best: MarginModel | None = None
    # the cut at zero holds every row, without which an adaptive threshold would not be bounded
    zero = geometry.zero()
    fixed = [zero] if settings.adaptive else []
    kept = list(points) or [zero]
    seen: set[int] = set()
    fall, round_, reason = 1.0, 0, MAX_ITER_REACHED
    easy_steps, width = EASY_STEPS, WIDE
    left = ALL_STEPS if geometry.space.n_clusters == 2 else ALL_STEPS_OF_SEVERAL
    while round_ < settings.max_iter:
        round_ += 1
        bundle = Bundle(geometry, settings, best is None and kernel_weights is None)
        asked = _distinct([*kept, *fixed])
        answers = yield geometry.request(label, asked)
        for point, sums in zip(asked, answers, strict=True):
            bundle.add(point, sums)
        if round_ == 1 and kernel_weights is not None:
            best = bundle.model(kept[0], kernel_weights, answers[0])
        # its value under this labeling, whose cluster weights may come from other rows
        before = np.inf if best is None else bundle.value(kept[0], _hinge(answers[0]))
        wanted = max(settings.gap, min(LOOSE_GAP, 0.1 * fall))
        looser = max(settings.gap, min(LOOSER_GAP, 0.3 * fall))
        search = _Search(bundle, label, best, before, (wanted, looser), round_, tell, width)
        yield from search.run(min(easy_steps, left), min(MAX_STEPS, left))
        found, value, gap = search.found()
        left -= search.step
        width = search.width
        easy_steps = EASY_STEPS if search.step <= easy_steps else 1  # the next will be hard, too
        kept = _distinct([found.point, *bundle.active()])
        tight = gap <= settings.gap
        if np.any(found.shares == 0) and geometry.space.n_clusters > 2 and best is not None:
            reason = "a cluster would have become empty"
            break
        if best is not None:
            fall = (before - value) / max(abs(before), 1e-300)
            still = found.label_hash == best.label_hash or (
                not geometry.monotone and found.changed <= settings.tol
            )
            if tight and (fall <= settings.tol or still):
                return MarginFit.of(found, kept, round_, True, SETTLED)
            if found.label_hash in seen and found.label_hash != best.label_hash:
                done = found if found.objective <= best.objective else best
                return MarginFit.of(done, kept, round_, tight, "a labeling came back")
            seen.add(best.label_hash)
        best, label = found, geometry.label(found.point, found.shares)
        if gap > looser or left <= 0:
            reason = UNMET
            break
    assert best is not None
    return MarginFit.of(best, kept, round_, False, reason)


@dataclass
class _Search(Generic[Labeling, Sums]):
    """One labeling's convex problem: the best model so far, its value and how sure that is.

    It is never worse than the model that it begins with; a loose gap, of an easy problem or of a
    hard one, ends the search only once something better has been found.
    """

    bundle: Bundle[Labeling, Sums]
    label: Labeling
    best: MarginModel | None
    value: float
    loose: tuple[float, float]
    round: int
    tell: Callable[[Step], None]
    width: float
    step: int = 0
    gap: float = np.inf

    def __post_init__(self) -> None:
        self._first = self.best

    def found(self) -> tuple[MarginModel, float, float]:
        """The best model, its value and its gap."""
        assert self.best is not None
        return self.best, self.value, self.gap

    def run(self, easy_steps: int, most_steps: int) -> Fit[list[Sums], None]:
        """Search until the gap is small, at most for so many steps."""
        done = yield from self._by_cuts(easy_steps, False)
        if done or self.best is None:
            return
        path = NewtonPath.begin(self.bundle, self.label, self.best.point, self.width)
        if path is None:
            yield from self._by_cuts(most_steps, True)
        else:
            yield from self._by_newton(path, most_steps)
            self.width = min(path.width * WARM, WIDE)

    def _by_cuts(self, most_steps: int, hard: bool) -> Fit[list[Sums], bool]:
        """The master's points, and if it is hard others on the way; whether the search is over."""
        while self.step < most_steps:
            solved = self._solve()
            if solved is None:
                return True
            point, kernel_weights = solved
            asked = [point]
            if hard and self.best is not None:
                asked = self.bundle.towards(self.best.point, self.value, point)
            answers = yield self.bundle.geometry.request(self.label, asked)
            self._look(asked, answers, kernel_weights, 0)
            if self._better_and_sure():
                return True
            for other, sums in zip(asked, answers, strict=True):
                self.bundle.add(other, sums)
            if hard:
                self.bundle.drop_idle()
        return False

    def _by_newton(self, path: NewtonPath, most_steps: int) -> Fit[Any, None]:
        """Newton's steps, and cuts where they lead."""
        while self.step < most_steps:
            (here,) = yield path.here()
            self.bundle.add(path.point, here)
            solved = self._solve()
            if solved is None:
                return
            point, kernel_weights = solved
            asked = [*path.steps(here, kernel_weights), point]
            answers = yield path.there(asked)
            self._look(asked, answers, kernel_weights, len(asked) - 1)
            if self._better_and_sure():
                return
            for k in (0, -1):
                self.bundle.add(asked[k], answers[k])
            self.bundle.drop_idle()
            path.advance(here, asked, answers)

    def _solve(self) -> tuple[Point, np.ndarray] | None:
        """The master's point and weights; None where that ends the search."""
        self.step += 1
        try:
            solved = self.bundle.solve()
        except MasterSolverError:
            if self.best is None:
                raise
            return None
        self.gap = self.bundle.gap(self.value)
        enough = self.bundle.settings.gap if self.best is self._first else self._wanted
        return None if self.best is not None and self.gap <= enough else solved

    def _look(
        self,
        asked: Sequence[Point],
        answers: Sequence[Sums],
        kernel_weights: np.ndarray,
        masters: int,
    ) -> None:
        """Keep the best of some points; the one of the master has weights of its own."""
        for k, (point, sums) in enumerate(zip(asked, answers, strict=True)):
            value = self.bundle.value(point, _hinge(sums))
            if value < self.value or self.best is None:
                suited = kernel_weights if k == masters else self.bundle.best_weights(point)
                self.best, self.value = self.bundle.model(point, suited, sums), value
        self.gap = self.bundle.gap(self.value)
        changed = answers[masters].changed / answers[masters].total
        bundle = self.bundle
        self.tell(
            Step(
                self.round, self.step, self.value, bundle.bound, self.gap, changed, len(bundle.cuts)
            )
        )

    def _better_and_sure(self) -> bool:
        return self.best is not self._first and self.gap <= self._wanted

    @property
    def _wanted(self) -> float:
        """The gap that is enough for something better."""
        return self.loose[self.step > 2 * EASY_STEPS]


def _distinct(points: Sequence[Point]) -> list[Point]:
    """The points without those that have come before."""
    return list({id(point): point for point in points}.values())


def _hinge(sums: Sums) -> float:
    """Mean margin violation under the given labeling."""
    return sums.hinge / sums.total
