"""The cuts of one labeling's convex problem, the master over them, and what they certify.

With an adaptive threshold rho (Wu and Zhang 2012, eqs 10-15) points are kept divided by their
threshold, so that the margin is at 1 in every scan.  A point then stands for all its multiples, and
its objective is that of the best one (`Objective`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np

from dmkc.clusterers.margin.geometry import CutValues, Labeling, MarginGeometry, Point, Sums
from dmkc.clusterers.model import KernelModel
from dmkc.kernels import FeatureMap
from dmkc.master import (
    Cuts,
    MasterProblem,
    MasterSolution,
    MasterSolverError,
    barely_separated,
    more_products,
    regulariser,
    solve,
    solve_from,
    weights_for,
)

PARTS_OF_THE_WAY = (0.5, 0.2, 0.08, 0.03)
"""Where else a hard problem without Newton's steps is looked at, on the way from the best point to
the master's: these jump about where cuts say little, and the optimum is near the best point."""
MULTIPLES = (3.0, 10.0, 100.0)
FEW_CUTS = 16
"""Masters of more cuts are solved from the multipliers of the one before."""
LONG_IDLE = 12
"""Masters in a row without a multiplier after which a cut of a hard problem is dropped."""
INACTIVE = 1e-7
"""A cut is inactive when its multiplier is below this share of C."""
NEGLIGIBLE = 1e-4
"""Part of the first bound below which an adaptive threshold's objective, which is 0 where nothing
separates the clusters, counts as 0."""
LEAST_C = 1.01
"""With an adaptive threshold C must exceed 1, and no start is easier to separate than here."""


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
    adaptive: bool = False
    """Whether the threshold of the margin is a variable."""

    @property
    def objective(self) -> Objective:
        return Objective(self.C, self.adaptive)


@dataclass(frozen=True)
class Objective:
    """The value of a point from its size R = 1/2 sum_k |v_k|^2 / beta_k and its margin violation H.

    It is R + C H, or with an adaptive threshold the least t^2 R - t + C t H over multiples t of
    the point; t is then the threshold.
    """

    C: float
    adaptive: bool

    def __call__(self, size: float, hinge: float) -> float:
        if not self.adaptive:
            return size + self.C * hinge
        return -size * self.threshold(size, hinge) ** 2

    def threshold(self, size: float, hinge: float) -> float:
        if not self.adaptive:
            return 1.0
        return max(1.0 - self.C * hinge, 0.0) / (2.0 * size) if size > 0 else 0.0

    def eased(self) -> Objective | None:
        """The same with a lower C, for a labeling that cannot be separated; None at the lowest."""
        lower = 1.0 + (self.C - 1.0) / 2.0
        return replace(self, C=lower) if lower >= LEAST_C else None


@dataclass(frozen=True)
class MarginModel:
    """A point and what a scan knows of it."""

    geometry: MarginGeometry
    """What makes scores of the point."""
    point: Point
    kernel_weights: np.ndarray
    objective: float
    """True objective under the point's own labeling."""
    threshold: float
    """Threshold of the margin, by which the point has been divided."""
    shares: np.ndarray
    """Shares of the clusters under that labeling."""
    changed: float
    """Share of the rows that it relabels."""
    label_hash: int
    """Hash of its labeling."""

    def kernel_model(self, features: FeatureMap) -> KernelModel:
        """The model in the form that labels rows."""
        weights, biases = self.geometry.by_score(self.point)
        return self.geometry.space.on(features).model(weights, biases, self.kernel_weights)


@dataclass
class _Cut:
    point: Point
    values: CutValues
    idle: int = 0
    multiplier: float = 0.0


@dataclass
class Bundle(Generic[Labeling, Sums]):
    """The cuts of one labeling and the master over them."""

    geometry: MarginGeometry[Labeling, Sums]
    settings: MarginSettings
    from_start: bool
    """Whether the labeling is a start, which perhaps no model separates; C is then lowered."""
    cuts: list[_Cut] = field(default_factory=list)
    bound: float = -np.inf
    first_bound: float = 0.0
    products: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """Inner products of the slopes of the first cuts, as far as they are known."""

    def __post_init__(self) -> None:
        self.objective = self.settings.objective

    def add(self, point: Point, sums: Sums) -> None:
        """The cut that a scan found at a point."""
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
        while True:
            price = self.price
            problem = MasterProblem(
                cuts, g.offsets, g.mean, price, balance, s.norm, g.has_bias, s.adaptive
            )
            solution = self._solved(problem)
            hard = self.from_start and s.adaptive and barely_separated(problem, solution)
            if not hard or not self._eased():
                break
        if not np.isfinite(self.bound):
            self.first_bound = float(solution.value)
        self.bound = max(self.bound, float(solution.value))
        for cut, multiplier in zip(self.cuts, solution.multipliers, strict=True):
            cut.multiplier = float(multiplier)
            cut.idle = 0 if multiplier > INACTIVE * price else cut.idle + 1
        if solution.threshold == 0:
            return g.zero(), solution.kernel_weights
        v, b = solution.weights / solution.threshold, solution.bias / solution.threshold
        return (v, b), solution.kernel_weights

    def _solved(self, problem: MasterProblem) -> MasterSolution:
        """From the master before, where there are many cuts."""
        if len(self.cuts) > FEW_CUTS and self.settings.solver == "clarabel":
            near = self._solved_from_before(problem)
            if near is not None:
                return near
        try:
            return solve(problem, self.settings.solver)
        except MasterSolverError:
            near = self._solved_from_before(problem)
            if near is None:
                raise
            return near

    def _solved_from_before(self, problem: MasterProblem) -> MasterSolution | None:
        self.products = more_products(problem, self.products)
        return solve_from(problem, np.array([c.multiplier for c in self.cuts]), self.products)

    def drop_idle(self) -> None:
        """Forget cuts that have long said nothing; the bound stays, and so does the cut at zero."""
        stay = [c.idle <= LONG_IDLE or not np.any(c.point[0]) for c in self.cuts]
        known = np.flatnonzero(stay[: self.products.shape[1]])
        self.products = self.products[:, known][:, :, known]
        self.cuts = [cut for cut, stays in zip(self.cuts, stay, strict=True) if stays]

    def towards(self, best: Point, value: float, point: Point) -> list[Point]:
        """The master's point, and some on the way to it from the best one.

        With an adaptive threshold a point of value 0 leaves too many rows inside its margin, and
        its multiples have narrower ones.
        """
        (v, b), (end, end_b) = best, point
        if self.settings.adaptive and value >= 0:
            found = [(t * u, t * c) for u, c in ((v, b), (end, end_b)) for t in MULTIPLES]
            balance = self.settings.balance
            return [point, *(self.geometry.feasible(one, balance) for one in found)]
        return [point, *((v + t * (end - v), b + t * (end_b - b)) for t in PARTS_OF_THE_WAY)]

    def best_weights(self, point: Point) -> np.ndarray:
        """The kernel weights that suit a point best."""
        return weights_for(point[0], self.geometry.offsets, self.settings.norm)

    def _eased(self) -> bool:
        """Lower C, unless it is as low as it can be."""
        eased = self.objective.eased()
        if eased is not None:
            self.objective, self.bound = eased, -np.inf
        return eased is not None

    def gap(self, value: float) -> float:
        """How far a value may be above the least one, relative to it."""
        if not np.isfinite(value):
            return np.inf
        unit = max(abs(value), 1e-300)
        if self.settings.adaptive:
            unit = max(unit, NEGLIGIBLE * abs(self.first_bound))
        return float((value - self.bound) / unit)

    def active(self) -> list[Point]:
        """Points whose cuts mattered in one of the last two masters."""
        return [c.point for c in self.cuts if c.idle <= 1]

    def value(self, point: Point, hinge: float) -> float:
        return self._objective()(self.size(point), hinge)

    def model(self, point: Point, kernel_weights: np.ndarray, sums: Sums) -> MarginModel:
        g, size, objective = self.geometry, self.size(point), self.settings.objective
        hinge = g.own_hinge(sums)
        return MarginModel(
            g,
            point,
            kernel_weights,
            objective(size, hinge),
            objective.threshold(size, hinge),
            g.shares(sums),
            sums.changed / sums.total,
            sums.label_hash,
        )

    def _objective(self) -> Objective:
        """The objective per weight of the rows, which may be below 1 where clusters are weighted.

        With an adaptive threshold 1 / C is a share of that weight: the loss of the cut at zero.
        """
        if not self.settings.adaptive:
            return self.objective
        return replace(self.objective, C=self.objective.C / max(c.values.loss for c in self.cuts))

    @property
    def price(self) -> float:
        """C per weight of the rows."""
        return self._objective().C

    def size(self, point: Point) -> float:
        """Half the squared length of a point, at the kernel weights that suit it best."""
        return regulariser(point[0], self.geometry.offsets, self.settings.norm)
