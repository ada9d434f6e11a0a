"""Solving the convex problem of a labeling by scans: reweighted least squares, or a bundle.

Both are generators that yield what they want of a scan, so that many fits share every scan.  Both
know a lower bound of the minimum and stop at a relative gap.  Beyond a few hundred features they
work on those that matter: the others have weight 0, a scan of all features tells which of them
would not stay there, and the bound holds for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.fits import Fit, Step
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.errors import UserError
from dmkc.master.planes_bundle import Bundle, BundleSolution, solve_bundle
from dmkc.scan.planes import (
    Loss,
    Mixed,
    PlaneRequest,
    Planes,
    PlaneSums,
    Reweighted,
    Rounded,
    Signs,
)
from dmkc.scan.requests import GivenLabels

WHOLE = 256
"""Up to this many features all are worked on at once."""
FIRST = 32
"""Groups of features that are worked on at first, where there are more."""
LARGEST = 2048
"""Features that are worked on at most: beyond, the Gram matrices would be too large."""
ROW_GROUPS = 8
"""Groups of rows with cuts of their own."""
MAX_STEPS = 600
LOOSE = 0.05
"""Gap of the first problem on few of many features."""
COLD, WARM = 0.5, 0.05
"""How far losses are rounded off in the first step, without and with a model before."""
ROUNDER, SHARPER = 3.0, 0.7
"""Losses are rounded off at most by this multiple of the gap, and less in every step."""
ABOVE, LEAST_ABOVE = 0.3, 0.2
"""How far quadratics are those above the losses instead of Newton's: at first and at least."""
AFTER_FALL, AFTER_RISE, LEAST_AFTER_RISE = 0.7, 3.0, 1.3
"""Factors of that share after a step that lowered the value and after one that raised it, and of
the least share after the latter: where Newton's steps fail often, only safe ones are left."""
INACTIVE = 1e-6
SPECK = 1e-6
"""Weights of a master below this share of the largest are zero."""


@dataclass(frozen=True)
class Asker:
    """One labeling's convex problem and how its sums are asked for."""

    problem: PlaneProblem
    label: Planes | GivenLabels
    sides: Planes | None
    view: Callable[[np.ndarray], np.ndarray] | None
    working: np.ndarray | None = None
    """Features that hold all weights of the start; reweighting begins with them. None: all."""

    def request(self, model: Planes, rule: Any, **more: Any) -> PlaneRequest:
        problem = self.problem
        loss = Loss(problem.hinge, problem.together)
        return PlaneRequest(
            self.label, model, loss, rule, problem.n_features, self.view, self.sides, **more
        )


@dataclass(frozen=True)
class Solved:
    """The best model of a convex problem and what a scan found there."""

    model: Planes
    sums: PlaneSums
    value: float
    bound: float
    steps: int
    dual: tuple[Planes, Reweighted | Mixed]
    """The model and the multipliers of the losses that gave the bound."""
    working: np.ndarray | None = None
    """The features that a next step would work on; None: all."""

    @property
    def gap(self) -> float:
        return gap_of(self.value, self.bound)


def gap_of(value: float, bound: float) -> float:
    return float((value - bound) / max(abs(value), 1e-300)) if np.isfinite(bound) else np.inf


def solve_convex(
    asker: Asker,
    solver: str,
    start: Planes | None,
    wanted: float,
    tell: Callable[[int, float, float, PlaneSums, int], None],
) -> Fit[PlaneSums, Solved]:
    """Solve to a relative gap of `wanted`, from the planes of an earlier labeling if given."""
    inner = _reweight if solver == "irls" else _bundle
    problem = asker.problem
    warm = problem.zero() if start is None else start
    if problem.n_features <= WHOLE:
        whole = warm.on(None, problem.n_features)
        return (yield from inner(asker, whole, start is not None, wanted, 0, tell))
    sums = yield asker.request(warm, Reweighted(None, Rounded(COLD)))
    alive = _alive(problem, warm)
    columns = _grown(problem, sums, alive, FIRST)
    steps, tight, best = 1, max(LOOSE, 0.5 * wanted), -np.inf
    while True:
        model = warm.on(columns, problem.n_features)
        found = yield from inner(asker, model, start is not None or steps > 1, tight, steps, tell)
        at, rule = found.dual
        sums = yield asker.request(at, rule)
        best, steps = max(best, problem.bound(sums)), found.steps + 1
        found = replace(found, bound=best, steps=steps)
        if problem.value(at, sums) < found.value:
            found = replace(found, model=at, sums=sums, value=problem.value(at, sums))
        tell(steps, found.value, best, sums, len(columns))
        if found.gap <= wanted or steps >= MAX_STEPS:
            return found
        alive = _alive(problem, found.model)
        grown = _grown(problem, sums, alive, max(FIRST, int(alive.sum())))
        # no use in solving tightly before the features are known
        tight = min(tight, max(0.3 * found.gap, 0.5 * wanted))
        if np.array_equal(grown, columns):
            tight *= 0.3
        warm, columns = found.model, grown


def _alive(problem: PlaneProblem, model: Planes) -> np.ndarray:
    """Which groups of all features have weights."""
    full = Planes(model.spread(problem.n_features), model.b)
    return np.max(problem.sizes(full), axis=0) > 0


def _grown(problem: PlaneProblem, sums: PlaneSums, alive: np.ndarray, more: int) -> np.ndarray:
    """The features of the groups in use and of those that are pulled hardest from zero."""
    pressure = np.where(alive, np.inf, problem.pressure(sums))
    order = np.argsort(-pressure, kind="stable")
    n_alive = int(alive.sum())
    new = order[n_alive : n_alive + more]
    chosen = np.sort(np.concatenate([order[:n_alive], new[pressure[new] > problem.c2]]))
    if not len(chosen):
        chosen = np.sort(order[:more])
    edges = problem.offsets
    columns = np.concatenate([np.arange(edges[g], edges[g + 1]) for g in chosen])
    if len(columns) > LARGEST:
        raise UserError(
            f"At this `c2` ({problem.c2:g}) more than {LARGEST} features would get weights, which "
            "is too many to work on at once: increase `c2`."
        )
    return columns


def _reweight(
    asker: Asker, model: Planes, warm: bool, wanted: float, steps: int, tell: Callable
) -> Fit[PlaneSums, Solved]:
    """Reweighted least squares on the model's features, between Newton's and safe steps."""
    problem, columns = asker.problem, model.columns
    curve, least = Rounded(WARM if warm else COLD, ABOVE), LEAST_ABOVE
    rule = Reweighted(None, curve)
    best, bound, before, gram = None, -np.inf, np.inf, None
    inner = asker.working if columns is None else None
    dual = model, rule
    while True:
        steps += 1
        sums = yield asker.request(
            model, rule, columns=columns, inner=inner, curved=curve, gram=gram is None
        )
        gram = sums.gram if gram is None else gram
        value, here = problem.value(model, sums), problem.bound(sums, columns)
        if best is None or value < best[0]:
            best = value, model, sums
        if here > bound:
            bound, dual = here, (model, rule)
        tell(steps, best[0], bound, sums, 0)
        gap = gap_of(best[0], bound)
        if gap <= wanted or steps >= MAX_STEPS:
            working = problem.working(best[1], best[2], columns) if columns is None else None
            return Solved(best[1], best[2], best[0], bound, steps, dual, working)
        rule = Reweighted(model, curve)
        model = problem.reweighted(model, sums, gram, inner)
        inner = problem.working(model, sums, columns)
        if value > before:
            least = min(LEAST_AFTER_RISE * least, 1.0)
            above = min(AFTER_RISE * curve.above, 1.0)
        else:
            above = max(AFTER_FALL * curve.above, least)
        before, scale = value, best[0] / problem.c1
        eps = min(SHARPER * curve.eps, ROUNDER * gap * scale)
        curve = Rounded(max(eps, 0.1 * wanted * scale, 1e-9), above)


def _bundle(
    asker: Asker, model: Planes, warm: bool, wanted: float, steps: int, tell: Callable
) -> Fit[PlaneSums, Solved]:
    """Cutting planes of the losses, with a cut for every group of rows."""
    problem, columns = asker.problem, model.columns
    gram, bound, best = None, -np.inf, None
    models: list[Planes] = []
    cuts: list[tuple[np.ndarray, np.ndarray]] = []
    idle: list[int] = []
    while True:
        steps += 1
        sums = yield asker.request(
            model, Signs(), columns=columns, groups=ROW_GROUPS, gram=gram is None
        )
        gram = sums.gram / sums.total if gram is None else gram
        value = problem.value(model, sums)
        models.append(model)
        cuts.append((sums.height / sums.total, sums.slope / sums.total))
        idle.append(0)
        if best is None or value < best[0]:
            best = (value, model, sums)
        master = solve_bundle(
            Bundle(
                gram,
                np.stack([height for height, _ in cuts]),
                np.stack([slope for _, slope in cuts]),
                problem.edges(columns),
                problem.together,
                problem.c1,
                problem.c2,
                problem.ridge,
            )
        )
        bound = max(bound, master.bound)
        tell(steps, best[0], bound, sums, len(cuts))
        if gap_of(best[0], bound) <= wanted or steps >= MAX_STEPS:
            rule = Mixed(tuple(models), master.shares)
            dual = _planes(master, problem, columns), rule
            return Solved(best[1], best[2], best[0], bound, steps, dual)
        used = master.shares.max(axis=0) > INACTIVE
        idle = [0 if u else i + 1 for u, i in zip(used, idle, strict=True)]
        keep = [i for i, count in enumerate(idle) if count <= 1]
        models, cuts = [models[i] for i in keep], [cuts[i] for i in keep]
        idle = [idle[i] for i in keep]
        model = _planes(master, problem, columns)


def _planes(master: BundleSolution, problem: PlaneProblem, columns: np.ndarray | None) -> Planes:
    """The master's planes; an interior-point method leaves specks where the weights are zero."""
    model = Planes(master.planes[:, :-1].copy(), master.planes[:, -1].copy(), columns)
    sizes = np.max(problem.sizes(model), axis=0)
    specks = np.repeat(sizes <= SPECK * sizes.max(), np.diff(problem.edges(columns)))
    model.w[:, specks] = 0.0
    return model


def teller(
    tell: Callable[[Step], None], round_: int
) -> Callable[[int, float, float, PlaneSums, int], None]:
    """Tells the progress display about the steps of one round."""

    def say(step: int, value: float, bound: float, sums: PlaneSums, cuts: int) -> None:
        changed = sums.changed / sums.total
        tell(Step(round_, step, value, bound, gap_of(value, bound), changed, cuts))

    return say
