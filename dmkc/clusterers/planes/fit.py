"""Clustering by nonparallel planes: a convex fit and a relabeling in turn.

Fang and Liu (2020), section 3, steps (a)-(e), for any number of clusters.  A fit is a generator
that yields what it wants of a scan, as `cccp.margin_fit` does, so that several starts share every
scan.  A labeling is the nearest plane of a model and is never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dmkc.clusterers.learned import MAX_ITER_REACHED, SETTLED, FitEnd
from dmkc.clusterers.planes.solvers import Asker, Solved, solve_convex, teller
from dmkc.clusterers.planes.steps import PlaneProblem
from dmkc.clusterers.rowset import RowSet, SampleRows
from dmkc.clusterers.together import Fit, Step, run_together
from dmkc.data import RowRecord
from dmkc.scan.planes import Planes, PlaneSums, Signs
from dmkc.scan.requests import GivenLabels

LOOSE_GAP, LOOSE_SHARE = 1e-2, 0.5
"""Gap that is good enough while labels still move a lot, and as a share of the rows that moved."""
TRIVIAL_GAP = 1e-4
TOO_SMALL = "a cluster would have become too small"
ADVICE = {
    MAX_ITER_REACHED: "increase max_iter or tol.",
    TOO_SMALL: (
        "of the rounds before, the one whose planes explain most is kept. Planes cannot hold a "
        "cluster that lies around another: try kernels='gaussian', loss='hinge' or another start."
    ),
}
"""What to do about a fit that ended for this reason."""


@dataclass(frozen=True)
class PlaneFit(FitEnd):
    """Planes and what a scan knows of their own labeling."""

    model: Planes
    objective: float
    """Value of the convex problem of the last labeling."""
    explained: float
    """Share of the value without any plane that the planes save."""
    gap: float
    separation: float = 0.0
    """How far the clusters of the sample lie apart."""


@dataclass(frozen=True)
class Course:
    """When a fit stops, and how its convex problems are solved."""

    tol: float
    max_iter: int
    smallest: float
    """Share of the rows below which a cluster must not fall."""
    solver: str


def plane_fit(
    problem: PlaneProblem,
    label: Planes | GivenLabels,
    view: Callable[[np.ndarray], np.ndarray] | None,
    course: Course,
    tell: Callable[[Step], None],
    start: Planes | None = None,
) -> Fit[PlaneSums, PlaneFit]:
    """Cluster from a labeling; `start` are planes to begin the first convex fit from."""
    seen: dict[int, _Round] = {}
    rounds: list[_Round] = []
    model, moved, working = start, 1.0, None
    label_hash: int | None = None
    sides = start if isinstance(label, Planes) else None
    for round_ in range(1, course.max_iter + 1):
        wanted = max(course.tol, min(LOOSE_GAP, LOOSE_SHARE * moved))
        asker = Asker(problem, label, sides, view, working)
        solved = yield from solve_convex(asker, course.solver, model, wanted, teller(tell, round_))
        model, sums, working = solved.model, solved.sums, solved.working
        here = _Round(problem, round_, solved)
        shares, moved = sums.counts / sums.total, sums.changed / sums.total
        before, label_hash = label_hash, int(sums.label_hash[0])
        if shares.min() < course.smallest:
            kept = max(rounds or [here], key=lambda r: r.explained)
            return kept.fit(round_, False, TOO_SMALL)
        tight = solved.gap <= course.tol
        if tight and (label_hash == before or moved <= (course.tol if problem.together else 0.0)):
            return here.fit(round_, True, SETTLED)
        if tight and label_hash in seen and label_hash != before:
            cycle = [r for r in seen.values() if r.number >= seen[label_hash].number]
            kept = max([*cycle, here], key=lambda r: r.explained)
            return kept.fit(round_, True, "a labeling came back")
        if tight:
            seen[label_hash] = here
        rounds.append(here)
        label = sides = model
    return rounds[-1].fit(len(rounds), False, MAX_ITER_REACHED)


@dataclass(frozen=True)
class _Round:
    """One labeling's convex problem, solved."""

    problem: PlaneProblem
    number: int
    solved: Solved

    @cached_property
    def explained(self) -> float:
        """Share of the value without any plane that the planes save (found when asked for)."""
        counts = self.solved.sums.members[:, -1]
        return 1.0 - self.solved.value / trivial_value(self.problem, counts)

    def fit(self, n_iter: int, converged: bool, reason: str) -> PlaneFit:
        solved = self.solved
        shares = solved.sums.counts / solved.sums.total
        return PlaneFit(
            solved.model,
            solved.value,
            self.explained,
            solved.gap,
            shares=shares,
            n_iter=n_iter,
            converged=converged,
            reason=reason,
        )


def trivial_value(problem: PlaneProblem, counts: np.ndarray) -> float:
    """The value of the convex problem without any plane, which depends on cluster sizes alone.

    It falls to 0 as one cluster takes all rows, so that values of different labelings can be
    compared only relative to it.
    """
    k = len(counts)
    shares, labels = counts / counts.sum(), np.arange(k)[:, None]
    rows = SampleRows(RowRecord(np.zeros((k, 1)), shares, labels=labels), max(k, 64))
    bare = replace(problem, offsets=np.array([0, 1]))
    solving = solve_convex(
        Asker(bare, GivenLabels(0), None, None), "irls", None, TRIVIAL_GAP, _silent
    )
    (solved,) = run_together([solving], rows)
    return float(solved.value)


def first_pull(
    problem: PlaneProblem,
    rows: RowSet,
    label: Planes | GivenLabels,
    view: Callable[[np.ndarray], np.ndarray] | None,
) -> float:
    """The c2 at which about all weights vanish, for a labeling: the pull on them at zero."""
    asker = Asker(problem, label, None, view)
    sums = rows.ask(asker.request(problem.zero(), Signs()))
    return float(problem.pressure(sums).max())


def cost_of(fit: PlaneFit) -> float:
    """What a fit is judged by: the farther its clusters lie apart, the better.

    Of two clusters one collapsed if the other took all, and such a fit wins only where all have.
    Where one of several becomes too small, the others are still there.
    """
    collapsed = fit.reason == TOO_SMALL and fit.model.n_clusters == 2
    return -(fit.separation - (10.0 if collapsed else 0.0))


def _silent(*_: Any) -> None:
    """Nobody is told of the value without planes."""
