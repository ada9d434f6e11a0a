"""The dual of the master by an active set, from the solution before: for masters of many cuts.

An interior-point solver begins anew with every cut, and takes as long as the cube of their number.
Here the multipliers of the last master are the start, and as a rule a few of them change.  With
x = (lambda, mu+, mu-, s, t) the dual is

    max c.x - 1/2 |(|u_k|^2)_k|_{q*},   x >= 0,   sum lambda + s = C,   h.lambda - mu+ + mu- = 0,

and with an adaptive threshold a.lambda - l (mu+ + mu-) - t = 1; the multipliers of the three rows
are the slack xi, the mean score and, but for its sign, the threshold.  Every step solves Newton's
equations of the entries that are not zero; an entry that becomes negative leaves, and one whose
gradient says so enters, until none does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dmkc.master.problem import (
    MasterProblem,
    MasterSolution,
    block_norms,
    centred_slopes,
    conjugate,
    dual_parts,
    feasible_multipliers,
    kernel_weights,
    linear_gain,
    regulariser,
    slack,
)

ENOUGH = 1e-9
"""Part of the objective that entering entries must promise."""
RIDGE = 1e-12
"""Part of every curvature that is added to it: cuts may be multiples of each other."""
FLATTEST = 1e-14
"""Part of the largest curvature that all have at least, where they are brought to one size."""
AS_KEEN = 0.2
"""Part of the largest gradient from which on an entry enters with the one that has it."""
MOST_STEPS = 4
"""Steps for every cut, and some; there are seldom as many as cuts."""
HALVINGS = 30
STILL = 1e-13
"""Changes below this part of the budget are none."""
WON = 1e-13
"""Part of the value that a step must win for another one to follow with the same entries."""
LARGEST_GAP = 1e-6
"""Relative gap between the primal and the dual value up to which a solution is of use."""


def solve_from(
    problem: MasterProblem, multipliers: np.ndarray, grams: np.ndarray | None = None
) -> MasterSolution | None:
    """The solution near some multipliers; None where this way does not lead to it.

    `problem` has been checked, and its weights are a smooth function of the multipliers.  `grams`
    are the inner products of its slopes (`more_products`), where they are known.
    """
    if problem.norm == 1 and len(problem.offsets) > 2:
        return None
    start = feasible_multipliers(problem, multipliers)
    if not start.any():
        start = feasible_multipliers(problem, np.full(len(start), problem.C / len(start)))
    try:
        known = more_products(problem, np.zeros((0, 0, 0))) if grams is None else grams
        found = _ActiveSet.of(problem, start, known).solve()
    except np.linalg.LinAlgError:
        return None
    return None if found is None else _recovered(problem, *found)


def more_products(problem: MasterProblem, known: np.ndarray) -> np.ndarray:
    """Inner products of the cuts' centred slopes, one matrix for every kernel.

    Those of the first cuts with each other are `known`.
    """
    slopes, old, n = centred_slopes(problem), known.shape[1], len(problem.cuts.loss)
    grams = np.empty((len(problem.offsets) - 1, n, n))
    for gram, (a, b) in zip(grams, pairwise(problem.offsets), strict=True):
        part = slopes[:, a:b]
        gram[old:] = part[old:] @ part.T
        gram[:old, old:] = gram[old:, :old].T
    if old:
        grams[:, :old, :old] = known
    return grams


def curve(
    grams: np.ndarray, y: np.ndarray, norm: float, some: np.ndarray | slice = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the dual's quadratic part, and the Hessian of some of its entries."""
    star = 1.0 if len(grams) == 1 else conjugate(norm)  # one kernel: no choice
    pulls = grams @ y
    squares = np.maximum(pulls @ y, 0.0)
    total = max(float(np.linalg.norm(squares, star)), 1e-300)
    ratio = squares / total
    beta = ratio ** (star - 1) if star > 1 else np.ones_like(ratio)
    part = grams[:, some][:, :, some]
    hessian = np.tensordot(beta, part, axes=1)
    if star > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            bend = np.diag(np.where(ratio > 0, ratio ** (star - 2), 0.0)) - np.outer(beta, beta)
        few = pulls[:, some]
        hessian += 2 * (star - 1) / total * few.T @ bend @ few
    return beta @ pulls, hessian


@dataclass
class _ActiveSet:
    """The dual in its standard form, and a point of it."""

    problem: MasterProblem
    grams: np.ndarray
    """Inner products of the cuts' slopes, one matrix for every kernel."""
    costs: np.ndarray
    rows: np.ndarray
    """The equations that x obeys, less their right sides."""
    x: np.ndarray

    @classmethod
    def of(cls, problem: MasterProblem, multipliers: np.ndarray, grams: np.ndarray) -> _ActiveSet:
        cuts, n = problem.cuts, len(problem.cuts.loss)
        settled = problem.bias and problem.balance is not None
        has_sign = problem.bias and problem.balance != 0
        sides = 2 if settled and has_sign else 0
        size = n + sides + 1 + problem.adaptive
        gain = np.zeros(size)
        gain[:n] = cuts.loss
        gain[n : n + sides] = -(problem.balance or 0.0)
        budget = np.zeros(size)
        budget[:n], budget[n + sides] = 1.0, 1.0
        rows, x = [budget], np.zeros(size)
        x[:n], x[n + sides] = multipliers, problem.C - multipliers.sum()
        if has_sign:
            level = np.zeros(size)
            level[:n] = cuts.sign
            level[n : n + sides] = (-1.0, 1.0)[:sides]
            rows.append(level)
        if sides:
            side = float(cuts.sign @ multipliers)
            x[n], x[n + 1] = max(side, 0.0), max(-side, 0.0)
        costs = gain
        if problem.adaptive:
            x[-1] = linear_gain(problem, multipliers) - 1.0
            costs = np.zeros(size)
            rows.append(gain.copy())
            rows[-1][-1] = -1.0
        x[:] = np.maximum(x, 0.0)
        return cls(problem, grams, costs, np.stack(rows), x)

    def solve(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The optimal multipliers and those of the equations; None where it takes too long."""
        n, still = len(self.problem.cuts.loss), STILL * self.problem.C
        free = self.x > still
        self.x[~free] = 0.0
        for _ in range(MOST_STEPS * (n + 10)):
            gradient, hessian = self._slope(free)
            step, prices = self._newton(free, gradient, hessian)
            move = np.abs(step).max(initial=0.0)
            if move > still and self._advance(free, step):
                continue
            wants = gradient - prices @ self.rows
            wants[free] = -np.inf
            most = float(wants.max())
            worth = max(abs(self._value()), 1e-300)
            if most * self.problem.C <= ENOUGH * worth:
                return self.x[:n], prices
            free |= wants >= AS_KEEN * most
        return None

    def _slope(self, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the objective, and the curvature of the free entries."""
        n = len(self.problem.cuts.loss)
        some = np.flatnonzero(free[:n])
        pull, bend = curve(self.grams, self.x[:n], self.problem.norm, some)
        gradient = self.costs.copy()
        gradient[:n] -= pull
        hessian = np.zeros((free.sum(), free.sum()))
        hessian[: len(some), : len(some)] = bend
        return gradient, hessian

    def _newton(
        self, free: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton's step of the free entries, and the prices of the equations."""
        bends = np.diag(hessian)
        top = max(float(bends.max(initial=0.0)), 1e-300)
        curved = np.flatnonzero(free) < len(self.problem.cuts.loss)
        units = 1.0 / np.sqrt(np.where(curved, np.maximum(bends, FLATTEST * top), top))
        rows = self.rows[:, free] * units
        heights = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-300)
        rows = rows / heights[:, None]
        k, m = rows.shape[1], len(rows)
        system = np.zeros((k + m, k + m))
        system[:k, :k] = hessian * units * units[:, None]
        system[np.arange(k), np.arange(k)] += RIDGE
        system[:k, k:], system[k:, :k] = rows.T, rows
        system[k + np.arange(m), k + np.arange(m)] -= RIDGE * RIDGE
        solved = np.linalg.solve(system, np.concatenate([gradient[free] * units, np.zeros(m)]))
        step = np.zeros(len(self.x))
        step[free] = solved[:k] * units
        return step, solved[k:] / heights

    def _advance(self, free: np.ndarray, step: np.ndarray) -> bool:
        """Move as far as nothing becomes negative; whether an entry has left or value was won."""
        falls = step < 0
        room = np.where(falls, self.x / np.where(falls, -step, 1.0), np.inf)
        far = float(room.min(initial=np.inf))
        length = min(1.0, far)
        before, x = self._value(), self.x
        for _ in range(HALVINGS):
            self.x = np.maximum(x + length * step, 0.0)
            if self._value() >= before - 1e-14 * abs(before):
                break
            length /= 2
        if length < far:
            return self._value() - before > WON * abs(before)
        gone = free & (room <= far)
        self.x[gone], free[gone] = 0.0, False
        return True

    def _value(self) -> float:
        n = len(self.problem.cuts.loss)
        y = self.x[:n]
        squares = np.maximum((self.grams @ y) @ y, 0.0)
        star = 1.0 if len(squares) == 1 else conjugate(self.problem.norm)
        return float(self.costs @ self.x) - 0.5 * float(np.linalg.norm(squares, star))


def _recovered(
    problem: MasterProblem, multipliers: np.ndarray, prices: np.ndarray
) -> MasterSolution | None:
    """The point that belongs to multipliers and prices, if its objective meets their value."""
    multipliers = feasible_multipliers(problem, multipliers)
    combined = multipliers @ centred_slopes(problem)
    gain, cost = dual_parts(problem, multipliers, combined)
    beta = kernel_weights(block_norms(combined, problem.offsets) ** 2, problem.norm)
    weights = np.repeat(beta, np.diff(problem.offsets)) * combined
    threshold = max(-float(prices[-1]), 0.0) if problem.adaptive else 1.0
    bias = 0.0
    if problem.bias:
        score = float(prices[1]) if problem.balance != 0 else 0.0
        if problem.balance is not None:
            limit = problem.balance * threshold
            score = min(max(score, -limit), limit)
        bias = score - float(weights @ problem.mean)
    value = -cost if problem.adaptive else gain - cost
    xi = slack(problem, weights, bias, threshold)
    found = MasterSolution(value, weights, bias, beta, xi, multipliers, threshold)
    objective = regulariser(weights, problem.offsets, problem.norm) + problem.C * xi
    if problem.adaptive:
        objective -= threshold
    if threshold <= 0 or objective - value > LARGEST_GAP * abs(value):
        return None
    return replace(found, value=min(value, objective))
