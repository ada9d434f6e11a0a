"""Newton's steps for hard convex problems of two clusters, on a path of smoother violations.

Cutting planes crawl where a few rows have huge norms or C is large.  Here the margin violation is
made smooth (`dmkc.scan.softcuts`), Newton's method follows its minimum while the smooth part
becomes narrower, and every pass also brings a cut, so that the gap stays certified: a cut with the
soft mask of a minimum closes it by itself, as far as the width allows.

With an adaptive threshold the price of a violation would depend on the point; cuts on the way to
the master's points were faster there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dmkc.clusterers.margin.bundle import Bundle
from dmkc.clusterers.margin.geometry import BinaryMargin, Labeling, Point
from dmkc.scan.cuts import Affine
from dmkc.scan.requests import GivenLabels
from dmkc.scan.softcuts import SoftCutRequest, SoftCutSums

MOST_COLUMNS = 1000
"""Features, and stored values of a row, up to which their square matrix is summed up and solved."""
PARTS = (1.0, 0.5, 0.2, 0.05)
"""Parts of a step that are tried in one pass."""
WIDEST, WIDE, NARROWEST = 1.0, 0.3, 1e-7
"""Widths of the smooth part of the violation, in margins: from nothing, from a model, and last."""
WARM = 10.0
"""By how much wider the smooth part begins in the next problem than it ended in this one."""
NARROWER, WIDER, SHORTER = 0.4, 2.0, 0.1
"""By what the width changes after a good step, and the width and steps after none."""
RIDGE = 1e-12
"""What is added to the diagonal of a square matrix with a diagonal of ones before it is solved."""
LEAST_WEIGHT = 1e-6
"""Kernel weights below this count as this much, or steps could never leave zero."""


@dataclass
class NewtonPath:
    """Where the path is, and how wide the smooth part of the violation is there."""

    bundle: Bundle
    geometry: BinaryMargin
    label: Affine | GivenLabels
    point: Point
    width: float
    reach: float = 1.0
    """Part of a step that is gone at the most; less after steps that led nowhere."""

    @classmethod
    def begin(cls, bundle: Bundle, label: Labeling, best: Point, width: float) -> NewtonPath | None:
        """From the best point so far; None where there is no such way."""
        geometry = bundle.geometry
        if not isinstance(geometry, BinaryMargin) or bundle.settings.adaptive:
            return None
        if max(geometry.offsets[-1], geometry.space.features.plan.width) > MOST_COLUMNS:
            return None
        assert isinstance(label, Affine | GivenLabels)
        return cls(bundle, geometry, label, best, width if np.any(best[0]) else WIDEST)

    def here(self) -> SoftCutRequest:
        """What Newton's method and the master want to know of this point."""
        return self.geometry.soft_request(self.label, [self.point], self.width, True)

    def there(self, points: Sequence[Point]) -> SoftCutRequest:
        """How low other points lie."""
        return self.geometry.soft_request(self.label, points, self.width, False)

    def steps(self, sums: SoftCutSums, weights: np.ndarray) -> list[Point]:
        """Points on the way to the minimum of the quadratic model here.

        `weights` are the kernel weights of the master, for a point at zero.
        """
        (v, b), g = self.point, self.geometry
        price = self.bundle.price / sums.total
        here = self.bundle.best_weights(self.point) if np.any(v) else weights
        inverse = 1.0 / np.repeat(np.maximum(here, LEAST_WEIGHT), np.diff(g.offsets))
        assert sums.square is not None
        square = price * g.curvature(sums.square)
        square[np.arange(len(v)), np.arange(len(v))] += inverse
        square[-1, -1] += 1e-9 * price * sums.total / self.width
        slope = -price * np.append(g.space.features.slope(sums.row_sum, sums.signed), sums.signed)
        slope[:-1] += inverse * v
        level = np.append(g.mean, 1.0)
        solve = _solver(square)
        step = -solve(slope)
        limit = self.bundle.settings.balance
        if limit is not None:
            score = level @ np.append(v, b) + level @ step
            over = score - np.clip(score, -limit, limit)
            if over:
                back = solve(level)
                step -= over / (level @ back) * back
        parts = [self.reach * part for part in PARTS]
        return [(v + t * step[:-1], b + t * float(step[-1])) for t in parts]

    def advance(
        self, sums: SoftCutSums, tried: Sequence[Point], answers: Sequence[SoftCutSums]
    ) -> None:
        """Go to the lowest of the points, if it is below this one, and adapt the width."""
        price = self.bundle.price

        def smooth(point: Point, found: SoftCutSums) -> float:
            return self.bundle.size(point) + price * found.smooth / found.total

        values = [smooth(p, found) for p, found in zip(tried, answers, strict=True)]
        lowest = int(np.argmin(values))
        if values[lowest] >= smooth(self.point, sums):
            self.width, self.reach = min(WIDER * self.width, WIDEST), SHORTER * self.reach
            return
        self.point = tried[lowest]
        self.reach = min(1.0, self.reach / SHORTER)
        if lowest < 2:
            self.width = max(NARROWER * self.width, NARROWEST)


def _solver(square: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What solves for a matrix without negative eigenvalues, but for rounding."""
    unit = 1.0 / np.sqrt(np.maximum(np.diag(square), np.finfo(float).tiny))
    scaled, ridge = square * unit[:, None] * unit, RIDGE
    while True:
        try:
            factor = cho_factor(scaled + ridge * np.eye(len(unit)))
        except LinAlgError:
            ridge *= 100.0
        else:
            return lambda right: unit * cho_solve(factor, unit * right)
