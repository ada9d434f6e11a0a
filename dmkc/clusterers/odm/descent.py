"""Block descent of margin-distribution clustering: models and labels in turn.

Labels given, Newton (or L-BFGS) steps find the model; the model given, every free row takes the
side of its score, which is the better one, and the constrained rows are labelled together
(`dmkc.constraints.assign`).  Neither step can raise the objective.  A fit is a generator that
yields what it wants scanned, so that many fits share every scan (`fits.run_together`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dmkc.clusterers.fits import MAX_ITER_REACHED, SETTLED, Fit, FitEnd, Step
from dmkc.clusterers.odm.distribution import DistributionObjective, Point, Steps, best_part
from dmkc.constraints.assign import Assigner
from dmkc.scan.distribution import DistributionSums
from dmkc.scan.multiclass import Scores

MAX_STEPS = 100
INNER = 0.1
"""A model is found when the fall that is left is this part of `tol`, relative to the value."""


@dataclass(frozen=True)
class ConstrainedRows:
    """The constrained rows of a row set, and how they are labelled."""

    weights: np.ndarray
    """Weights of these rows, in row order."""
    assigner: Assigner | None
    """None where no row is constrained."""

    @classmethod
    def none(cls) -> ConstrainedRows:
        return cls(np.empty(0), None)


@dataclass(frozen=True)
class DistributionModel:
    """A point and its own labeling."""

    point: Point
    kernel_weights: np.ndarray
    objective: float
    """Under its own labeling, penalties of violated pairs included."""
    constrained: np.ndarray
    """Labels of the constrained rows."""
    shares: np.ndarray
    """Shares of the clusters."""


@dataclass(frozen=True)
class DistributionFit(FitEnd):
    """The end of a fit."""

    model: DistributionModel

    @classmethod
    def of(cls, model: DistributionModel, n_iter: int, converged: bool) -> DistributionFit:
        reason = SETTLED if converged else MAX_ITER_REACHED
        return cls(model, shares=model.shares, n_iter=n_iter, converged=converged, reason=reason)


def distribution_fit(
    objective: DistributionObjective,
    constrained: ConstrainedRows,
    start: Point,
    first: Point,
    tell: Callable[[Step], None],
) -> Fit[DistributionSums, DistributionFit]:
    """Cluster from the labeling of `start`; the first model is looked for from `first` on."""
    labels = np.zeros(len(constrained.weights), np.int64)
    label = objective.scores(start)
    if constrained.assigner is not None:
        sums = yield objective.request(label, labels, start, None, False)
        labels = _labelled(objective, constrained, sums, None)
    point, model = objective.feasible(first), None
    settings = objective.settings
    for round_ in range(1, settings.max_iter + 1):
        before = np.inf if model is None else model.objective
        point, sums = yield from _inner(objective, constrained, label, labels, point, round_, tell)
        fresh = (
            labels
            if constrained.assigner is None
            else _labelled(objective, constrained, sums, labels)
        )
        model = _model(objective, constrained, point, sums, fresh)
        still = sums.changed == 0 and np.array_equal(fresh, labels)
        fall = before - model.objective
        if still or fall <= settings.tol * abs(model.objective):
            return DistributionFit.of(model, round_, True)
        label, labels = objective.scores(point), fresh
    assert model is not None
    return DistributionFit.of(model, settings.max_iter, False)


def _inner(
    objective: DistributionObjective,
    constrained: ConstrainedRows,
    label: Scores,
    labels: np.ndarray,
    point: Point,
    round_: int,
    tell: Callable[[Step], None],
) -> Fit[DistributionSums, tuple[Point, DistributionSums]]:
    """The best model of a labeling, and the scan at it."""
    fixed = 0.0 if constrained.assigner is None else constrained.assigner.penalty(labels)
    sums = yield objective.request(label, labels, point, None, objective.curved)
    value = objective.value(point, sums.loss + fixed)
    steps, enough = Steps(objective), INNER * objective.settings.tol
    for count in range(1, MAX_STEPS + 1):
        step, fall = steps.step(point, sums)
        gap = fall / max(abs(value), 1e-300)
        tell(Step(round_, count, value, value - fall, gap, sums.changed / sums.total, 0))
        if gap <= enough:
            break
        there = point.towards(step, 1.0)
        found = yield objective.request(label, labels, there, point, objective.curved)
        new_value = objective.value(there, found.loss + fixed)
        if new_value > value - 0.1 * fall:
            short_value, part = best_part(objective, point, step, found)
            short_value += 0.5 * objective.settings.C * fixed
            if short_value < min(value, new_value):
                there = point.towards(step, part)
                found = yield objective.request(label, labels, there, None, objective.curved)
                new_value = objective.value(there, found.loss + fixed)
        if not new_value < value:
            break
        point, value, sums = there, new_value, found
    return point, sums


def gains(
    objective: DistributionObjective, constrained: ConstrainedRows, scores: np.ndarray
) -> np.ndarray:
    """(constrained rows, clusters): how much smaller the losses are if a row is in a cluster."""
    count = objective.shape.constrained * constrained.weights
    gain = (count * (objective.shape.of(-scores) - objective.shape.of(scores))).T
    every = np.zeros((len(gain), objective.space.n_clusters))
    every[:, objective.space.scored_clusters] = gain
    return every


def _labelled(
    objective: DistributionObjective,
    constrained: ConstrainedRows,
    sums: DistributionSums,
    labels: np.ndarray | None,
) -> np.ndarray:
    """The label step of the constrained rows."""
    assert constrained.assigner is not None
    return constrained.assigner.assign(
        gains(objective, constrained, sums.constrained_scores), labels
    )


def _model(
    objective: DistributionObjective,
    constrained: ConstrainedRows,
    point: Point,
    sums: DistributionSums,
    labels: np.ndarray,
) -> DistributionModel:
    losses, shares = sums.own, sums.counts.copy()
    if constrained.assigner is not None:
        sides = np.where(labels == objective.space.scored_clusters[:, None], 1.0, -1.0)
        each = objective.shape.of(sides * sums.constrained_scores).sum(axis=0)
        losses += objective.shape.constrained * float(
            each @ constrained.weights
        ) + constrained.assigner.penalty(labels)
        shares += np.bincount(labels, constrained.weights, minlength=len(shares))
    return DistributionModel(
        point,
        objective.kernel_weights(point),
        objective.value(point, losses),
        labels,
        shares / shares.sum(),
    )
