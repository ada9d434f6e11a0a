"""The convex relaxation of margin-distribution clustering, as a source of starts.

Zhang, Li and Jin (2022), eqs 4-12: labelings that keep the constraints are mixed with weights mu,

    min over mu in the simplex, w_t:   1/2 sum_t |w_t|^2 / mu_t
                                       + C/2 sum_i count_i loss( sum_t y_ti w_t.Phi(x_i) ),

and labelings are added one by one.  For given mu this is one smooth problem (eq 6, solved in the
primal by Newton steps), for given w_t the best mu are |w_t| over their sum (eq 10), and the next
labeling is the one that goes furthest along the best labeling so far (eq 12; what is maximised
there is linear in the new labeling, so that the label step of components is exact).  Runs on a
sample in this process.  Its bound is loose: labelings are rounded and go on by block descent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dmkc.clusterers.odm.constrained import RaceRows
from dmkc.clusterers.odm.distribution import DistributionObjective
from dmkc.scan.distribution import LossShape

MOST_LABELINGS = 8
ALTERNATIONS = 50
ENOUGH = 1e-4
"""Relative fall at which alternating, and adding labelings, ends."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of labelings."""

    labelings: np.ndarray
    """(labelings, rows) of -1 and 1."""
    weights: np.ndarray
    """How much each counts; they add up to 1."""
    value: float
    """The relaxed objective."""
    pulls: np.ndarray
    """(rows,): the dual variables alpha - beta of eq 8."""


def mix(
    phi: np.ndarray, counts: np.ndarray, shape: LossShape, C: float, labelings: np.ndarray
) -> Mixture:
    """The best mixture of given labelings (eqs 6 and 10 in turn)."""
    mu = np.full(len(labelings), 1.0 / len(labelings))
    parts = labelings[:, :, None] * phi
    w = np.zeros((len(labelings), phi.shape[1]))
    value, margins = np.inf, np.zeros(len(phi))
    for _ in range(ALTERNATIONS):
        roots = np.sqrt(mu)
        rows = np.concatenate(list(roots[:, None, None] * parts), axis=1)
        start = np.divide(w, roots[:, None], out=np.zeros_like(w), where=roots[:, None] > 0)
        found, new_value = _smooth(rows, counts, shape, C, start.ravel())
        w = found.reshape(w.shape) * roots[:, None]
        margins = rows @ found
        lengths = np.linalg.norm(w, axis=1)
        mu = lengths / max(lengths.sum(), 1e-300)
        done = value - new_value <= ENOUGH * abs(new_value)
        value = new_value
        if done:
            break
    short = np.maximum(1.0 - shape.theta - margins, 0.0)
    over = np.maximum(margins - 1.0 - shape.theta, 0.0)
    losses = float(counts @ shape.of(margins))
    return Mixture(
        labelings,
        mu,
        0.5 * float(np.linalg.norm(w, axis=1).sum()) ** 2 + 0.5 * C * losses,
        C * counts * (short - shape.nu * over),
    )


def _smooth(
    rows: np.ndarray, counts: np.ndarray, shape: LossShape, C: float, w: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton steps on 1/2 |w|^2 + C/2 sum of losses of the margins rows.w."""

    def value_at(v: np.ndarray) -> float:
        return 0.5 * float(v @ v) + 0.5 * C * float(counts @ shape.of(rows @ v))

    value = value_at(w)
    for _ in range(ALTERNATIONS):
        margin = rows @ w
        short, over = margin < 1.0 - shape.theta, margin > 1.0 + shape.theta
        bend = counts * (short + shape.nu * over)
        aim = np.where(short, 1.0 - shape.theta, 1.0 + shape.theta)
        gradient = w + C * ((bend * (margin - aim)) @ rows)
        active = bend > 0
        square = np.eye(len(w)) + C * (rows[active].T * bend[active]) @ rows[active]
        step = -cho_solve(cho_factor(square), gradient)
        part, new_value = 1.0, value_at(w + step)
        while new_value >= value and part > 1e-3:
            part *= 0.5
            new_value = value_at(w + part * step)
        if not new_value < value:
            break
        fall, value, w = value - new_value, new_value, w + part * step
        if fall <= 0.1 * ENOUGH * abs(value):
            break
    return w, value


def relax(
    phi: np.ndarray,
    counts: np.ndarray,
    shape: LossShape,
    C: float,
    label: Callable[[np.ndarray], np.ndarray],
    first: np.ndarray,
) -> list[Mixture]:
    """Mixtures of one, two, ... labelings; `label` turns wishes of rows into a labeling."""
    labelings = first[None, :]
    found = [mix(phi, counts, shape, C, labelings)]
    while len(labelings) < MOST_LABELINGS:
        now = found[-1]
        sums = (labelings * now.pulls) @ phi
        furthest = int(np.argmax(np.einsum("ij,ij->i", sums, sums)))
        new = label(now.pulls * (phi @ sums[furthest]))
        if any(np.array_equal(new, y) or np.array_equal(-new, y) for y in labelings):
            break
        labelings = np.concatenate([labelings, new[None, :]])
        found.append(mix(phi, counts, shape, C, labelings))
        if now.value - found[-1].value <= ENOUGH * abs(now.value):
            break
    return found


def rounded(mixture: Mixture, label: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """Labelings to go on from: those that count most, and the leading direction of the mixture."""
    order = np.argsort(-mixture.weights, kind="stable")
    best = [mixture.labelings[t] for t in order[:3] if mixture.weights[t] > 0]
    scaled = np.sqrt(mixture.weights)[:, None] * mixture.labelings
    _, vectors = np.linalg.eigh(scaled @ scaled.T)
    return [*best, label(vectors[:, -1] @ scaled)]


@dataclass(frozen=True)
class RelaxedStart:
    """What the relaxation leads to on some rows."""

    labelings: list[np.ndarray]
    """Labelings of the rows to begin from, as cluster numbers."""
    mixture: Mixture


def relaxed_start(race: RaceRows, objective: DistributionObjective) -> RelaxedStart:
    """The relaxation on the rows of a race, all kernels weighing alike."""
    columns = race.rows.stored
    equal = np.sqrt(objective.kernel_weights(objective.zero()))
    roots = np.repeat(equal, np.diff(objective.space.features.offsets))
    phi = np.column_stack(
        [objective.space.features.features(columns) * roots, np.ones(len(columns))]
    )
    number = race.rows.record.constrained
    if number is None:
        number = np.zeros(len(columns), np.int64)
    constrained = np.flatnonzero(number)
    constrained = constrained[np.argsort(number[constrained])]
    counts = race.rows.weights * np.where(number > 0, race.shape.constrained, race.shape.free)

    def label(wish: np.ndarray) -> np.ndarray:
        y = np.where(wish >= 0, 1.0, -1.0)
        if race.constrained.assigner is not None:
            gain = np.stack([-wish[constrained], wish[constrained]], axis=1)
            y[constrained] = 2.0 * race.constrained.assigner.assign(gain, None) - 1.0
        return y

    _, vectors = np.linalg.eigh((phi[:, :-1].T * race.rows.weights) @ phi[:, :-1])
    first = label(phi[:, :-1] @ vectors[:, -1])
    mixture = relax(phi, counts, objective.shape, objective.settings.C, label, first)[-1]
    labelings = [(y > 0).astype(np.int64) for y in rounded(mixture, label)]
    return RelaxedStart(labelings, mixture)
