"""The objective of margin-distribution clustering, its derivatives, and where to step.

Zhang, Li and Jin (2022), eqs 1-2, in the primal, for labels that are given:

    1/2 sum_k |v_k|^2 / weight_k + 1/2 b^2 + C/2 sum_i count_i loss(y_i f(x_i)),   f = v.Phi + b

is smooth and piecewise quadratic, so that a few Newton steps solve it.  Kernel weights are learned
as in multiple kernel clustering: for given v the best ones have a closed form, and a step is taken
under those.  The bias is bounded where nothing else keeps clusters from vanishing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dmkc.clusterers.model import ScoreSpace
from dmkc.master.problem import regulariser, weights_for
from dmkc.scan.distribution import STEPS, DistributionRequest, DistributionSums, LossShape
from dmkc.scan.multiclass import Scores

NEWTON_FEATURES = 1000
"""Beyond this many features (less for several clusters) steps are L-BFGS steps."""
LEAST_WEIGHT = 1e-8
"""Kernel weights under which steps are taken are at least this, so that none is lost for good."""
REMEMBERED = 12


@dataclass(frozen=True)
class Point:
    """Feature weights and biases of all scores."""

    v: np.ndarray
    """(scores, features)"""
    b: np.ndarray

    def towards(self, step: Point, part: float) -> Point:
        return Point(self.v + part * step.v, self.b + part * step.b)


@dataclass(frozen=True)
class DistributionSettings:
    """The problem and when to stop."""

    C: float
    theta: float
    nu: float
    norm: float
    balance: float | None
    """How far biases may be from where clusters of equal size put them."""
    share: float
    """The part of all losses that the constrained rows count for, at least."""
    penalty: float | None
    """What a violated pair costs, in losses of a constrained row; None: none may be violated."""
    tol: float
    max_iter: int


@dataclass(frozen=True)
class DistributionObjective:
    """The objective on some rows, as a function of points; what scores are is the space's to say.

    Margin clustering has no such function: it knows its objective by cuts alone.
    """

    space: ScoreSpace
    settings: DistributionSettings
    shape: LossShape

    @property
    def curved(self) -> bool:
        """Whether steps are Newton steps."""
        return self.space.n_scores * self.space.n_features**2 <= NEWTON_FEATURES**2

    def zero(self) -> Point:
        n = self.space.n_scores
        b = np.full(n, self.centre if self.settings.balance is not None else 0.0)
        return Point(np.zeros((n, self.space.n_features)), b)

    @property
    def centre(self) -> float:
        """The mean score of a cluster of average size whose margins are all 1."""
        return 2.0 / self.space.n_clusters - 1.0

    def feasible(self, point: Point) -> Point:
        """The point with biases moved to where the bound holds."""
        bound = self.settings.balance
        if bound is None:
            return point
        return Point(point.v, np.clip(point.b, self.centre - bound, self.centre + bound))

    def kernel_weights(self, point: Point) -> np.ndarray:
        lengths = self._lengths(point)
        return weights_for(lengths, range(len(lengths) + 1), self.settings.norm)

    def value(self, point: Point, losses: float) -> float:
        """The objective at a point whose losses add up to `losses`."""
        lengths = self._lengths(point)
        size = regulariser(lengths, range(len(lengths) + 1), self.settings.norm)
        return size + 0.5 * float(point.b @ point.b) + 0.5 * self.settings.C * losses

    def scores(self, point: Point) -> Scores:
        """The scores on raw columns."""
        return self.space.scores(point.v, point.b)

    def request(
        self,
        label: Scores,
        constrained: np.ndarray,
        point: Point,
        before: Point | None,
        curved: bool,
    ) -> DistributionRequest:
        at = self.scores(point)
        columns = self.space.features.plan
        return DistributionRequest(
            label,
            constrained,
            at,
            at if before is None else self.scores(before),
            self.space.decision == "sign",
            self.shape,
            columns.offsets[-1],
            curved,
        )

    def gradient(self, point: Point, sums: DistributionSums) -> np.ndarray:
        """(scores, features + 1): the gradient, the bias last."""
        root = np.sqrt(self._metric(point))
        pulls = zip(sums.slope, sums.bias_slope, strict=True)
        losses = np.stack([self.space.features.slope(g, float(w)) for g, w in pulls])
        own = np.concatenate([point.v / root**2, point.b[:, None]], axis=1)
        steep = np.concatenate([losses, sums.bias_slope[:, None]], axis=1)
        return own + self.settings.C * steep

    def newton(self, point: Point, sums: DistributionSums) -> tuple[Point, float]:
        """The step to the lowest point of the quadratic around a point, and how far it falls."""
        assert sums.square is not None and sums.cross is not None
        assert sums.bias_square is not None
        metric = np.append(np.sqrt(self._metric(point)), 1.0)
        gradient = self.gradient(point, sums)
        step, fall = np.zeros_like(gradient), 0.0
        for k in range(self.space.n_scores):
            weight = float(sums.bias_square[k])
            size = gradient.shape[1]
            losses = np.empty((size, size))
            losses[:-1, :-1] = self.space.features.squares(sums.square[k], sums.cross[k], weight)
            losses[-1, :-1] = losses[:-1, -1] = self.space.features.slope(sums.cross[k], weight)
            losses[-1, -1] = weight
            # in units of the kernel weights, where the regulariser is the identity
            square = np.eye(size) + self.settings.C * (metric[:, None] * losses * metric)
            scaled = self._solve(square, metric * gradient[k], float(point.b[k]))
            fall -= float(scaled @ (metric * gradient[k]) + 0.5 * scaled @ square @ scaled)
            step[k] = metric * scaled
        return Point(step[:, :-1], step[:, -1]), fall

    def _solve(self, square: np.ndarray, gradient: np.ndarray, bias: float) -> np.ndarray:
        """The lowest point of a quadratic in which the last variable is bounded."""
        step = -cho_solve(cho_factor(square), gradient)
        bound = self.settings.balance
        if bound is None:
            return step
        low, high = self.centre - bound - bias, self.centre + bound - bias
        if low <= step[-1] <= high:
            return step
        last = float(np.clip(step[-1], low, high))
        rest = gradient[:-1] + last * square[:-1, -1]
        return np.append(-cho_solve(cho_factor(square[:-1, :-1]), rest), last)

    def _metric(self, point: Point) -> np.ndarray:
        """The kernel weight of every feature at a point."""
        weights = np.maximum(self.kernel_weights(point), LEAST_WEIGHT)
        return np.repeat(weights, np.diff(self.space.features.offsets))

    def _lengths(self, point: Point) -> np.ndarray:
        by_feature = np.einsum("ij,ij->j", point.v, point.v)
        return np.sqrt(np.add.reduceat(by_feature, self.space.features.offsets[:-1]))


@dataclass
class Steps:
    """Where to step from a point: by Newton, or by L-BFGS from the gradients seen so far."""

    objective: DistributionObjective
    _moves: deque = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _last: tuple[np.ndarray, np.ndarray] | None = None

    def step(self, point: Point, sums: DistributionSums) -> tuple[Point, float]:
        """A step, and how far the objective should fall along it."""
        if sums.square is not None:
            return self.objective.newton(point, sums)
        objective = self.objective
        gradient = objective.gradient(point, sums)
        here = np.concatenate([point.v, point.b[:, None]], axis=1).ravel()
        flat = gradient.ravel()
        if self._last is not None:
            moved, bent = here - self._last[0], flat - self._last[1]
            if moved @ bent > 1e-12 * np.linalg.norm(moved) * np.linalg.norm(bent):
                self._moves.append((moved, bent))
        self._last = here, flat
        scale = np.tile(np.append(objective._metric(point), 1.0), objective.space.n_scores)
        direction = self._two_loops(-flat, scale).reshape(gradient.shape)
        step = Point(direction[:, :-1], direction[:, -1])
        ends = objective.feasible(point.towards(step, 1.0))
        step = Point(step.v, ends.b - point.b)
        fall = -float(np.sum(gradient[:, :-1] * step.v) + gradient[:, -1] @ step.b)
        return step, 0.5 * fall

    def _two_loops(self, q: np.ndarray, scale: np.ndarray) -> np.ndarray:
        kept = []
        for moved, bent in reversed(self._moves):
            part = (moved @ q) / (moved @ bent)
            q = q - part * bent
            kept.append((part, moved, bent))
        if self._moves:
            moved, bent = self._moves[-1]
            q = scale * q * ((moved @ bent) / (bent @ (scale * bent)))
        else:
            q = scale * q / (1.0 + self.objective.settings.C)
        for part, moved, bent in reversed(kept):
            q = q + (part - (bent @ q) / (moved @ bent)) * moved
        return q


def best_part(
    objective: DistributionObjective, start: Point, step: Point, sums: DistributionSums
) -> tuple[float, float]:
    """The value at the best of the shorter steps, and that part of the step."""
    values = [
        objective.value(start.towards(step, t), float(loss))
        for t, loss in zip(STEPS, sums.shorter, strict=True)
    ]
    at = int(np.argmin(values))
    return values[at], STEPS[at]
