"""Maximum-margin clustering of two clusters: CCCP outside, cutting planes inside.

Zhao, Kwok and Zhang (2009), eqs 2.6-2.18.  A fit is written as a generator: it yields the cuts it
needs and is sent what a scan found, so that many fits (starts, values of C) share every scan
(`run_together`).  It knows models and sums only, never rows.

For a labeling z the convex problem is solved by cutting planes until the relative gap between the
best model's true value and the master's lower bound is small; then z becomes the best model's own
labeling.  The bundle is rebuilt for the new labeling from the *models* of the active cuts: the
cut [z f < 1] at an old model f is as valid as any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from dmkc.kernels.features import FeatureMap
from dmkc.master import Cuts, MasterProblem, regulariser, solve
from dmkc.scan.cuts import Affine, CutRequest, CutSums

MAX_STEPS = 200
INACTIVE = 1e-7
"""A cut is inactive when its multiplier is below this share of C."""
LOOSE_GAP = 1e-2
"""Gap that is good enough while labels still move a lot."""

Fit = Generator[CutRequest, list[CutSums], "MarginFit"]


@dataclass(frozen=True)
class MarginSettings:
    """The problem and when to stop."""

    C: float
    balance: float | None
    norm: float
    tol: float
    max_iter: int
    solver: str


@dataclass(frozen=True)
class MarginModel:
    """A two-cluster model in feature space and what a scan knows of it."""

    v: np.ndarray
    b: float
    kernel_weights: np.ndarray
    objective: float
    """True objective under the model's own labeling."""
    positive: float
    """Share of the rows on the positive side."""
    mark: int
    """Hash of the model's own labeling."""


@dataclass(frozen=True)
class MarginFit:
    """The end of a fit."""

    model: MarginModel
    kept: tuple[tuple[np.ndarray, float], ...]
    """Models (v, b) of the active cuts, to warm-start another fit."""
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
    v: np.ndarray
    b: float
    loss: float
    sign: float
    slope: np.ndarray
    idle: int = 0


class _Bundle:
    """The cuts of one labeling and the master over them."""

    def __init__(self, features: FeatureMap, mean: np.ndarray, settings: MarginSettings) -> None:
        self.features, self.mean, self.settings = features, mean, settings
        self.cuts: list[_Cut] = []
        self.bound = 0.0

    def add(self, v: np.ndarray, b: float, sums: CutSums) -> None:
        slope = self.features.slope(sums.row_sum, sums.signed) / sums.total
        cut = _Cut(v, b, sums.masked / sums.total, sums.signed / sums.total, slope)
        self.cuts.append(cut)

    def solve(self) -> tuple[np.ndarray, float, np.ndarray]:
        cuts = Cuts(
            np.array([c.loss for c in self.cuts]),
            np.array([c.sign for c in self.cuts]),
            np.array([c.slope for c in self.cuts]),
        )
        s = self.settings
        problem = MasterProblem(cuts, self.features.offsets, self.mean, s.C, s.balance, s.norm)
        solution = solve(problem, s.solver)
        self.bound = max(self.bound, float(solution.value))
        for cut, multiplier in zip(self.cuts, solution.multipliers, strict=True):
            cut.idle = 0 if multiplier > INACTIVE * s.C else cut.idle + 1
        return solution.weights, solution.bias, solution.kernel_weights


def margin_fit(
    features: FeatureMap,
    mean: np.ndarray,
    start: Affine,
    settings: MarginSettings,
    tell: Callable[[Step], None],
    model: MarginModel | None = None,
    kept: Sequence[tuple[np.ndarray, float]] = (),
) -> Fit:
    """Cluster from a labeling `start`, or on from a `model` (then `start` is its labeling)."""
    best = model
    kept_models = list(kept) if best is None else [(best.v, best.b), *kept]
    seen: set[int] = set()
    label, fall, reason = start, 1.0, "max_iter was reached"
    round_ = 0
    while round_ < settings.max_iter:
        round_ += 1
        bundle = _Bundle(features, mean, settings)
        models = kept_models or [(np.zeros(features.offsets[-1]), 0.0)]
        answers = yield CutRequest(label, tuple(features.to_columns(v, b) for v, b in models))
        for (v, b), sums in zip(models, answers, strict=True):
            bundle.add(v, b, sums)
        if round_ == 1 and best is not None:  # its value on these rows, which may be new to it
            best = _model(best.v, best.b, best.kernel_weights, answers[0], settings, features)
        wanted = max(settings.tol, min(LOOSE_GAP, 0.1 * fall))
        found, gap = yield from _inner(bundle, label, best, settings, wanted, round_, tell)
        active = [(c.v, c.b) for c in bundle.cuts if c.idle <= 1 and c.v is not found.v]
        kept_models = [(found.v, found.b), *active]
        tight = gap <= settings.tol
        if best is not None:
            fall = (best.objective - found.objective) / max(best.objective, 1e-300)
            if tight and (fall <= settings.tol or found.mark == best.mark):
                return MarginFit(found, tuple(kept_models), round_, True, "labels settled")
            if found.mark in seen and found.mark != best.mark:
                return MarginFit(found, tuple(kept_models), round_, tight, "a labeling came back")
            seen.add(best.mark)
        best, label = found, features.to_columns(found.v, found.b)
        if gap > wanted:
            reason = "the cutting plane did not close the gap"
            break
    assert best is not None
    return MarginFit(best, tuple(kept_models), round_, False, reason)


def _inner(
    bundle: _Bundle,
    label: Affine,
    best: MarginModel | None,
    settings: MarginSettings,
    wanted: float,
    round_: int,
    tell: Callable[[Step], None],
) -> Generator[CutRequest, list[CutSums], tuple[MarginModel, float]]:
    """The best model of one labeling's convex problem, never worse than `best`, and its gap.

    A loose gap ends it only once it has found something better than `best`.
    """
    value = np.inf if best is None else best.objective
    incumbent, features, gap = best, bundle.features, np.inf
    for step in range(1, MAX_STEPS + 1):
        v, b, beta = bundle.solve()
        gap = _gap(value, bundle.bound)
        if best is not None and gap <= (settings.tol if best is incumbent else wanted):
            break
        (sums,) = yield CutRequest(label, (features.to_columns(v, b),))
        new_value = regulariser(v, features.offsets, settings.norm)
        new_value += settings.C * sums.hinge / sums.total
        if new_value < value:
            best, value = _model(v, b, beta, sums, settings, features), new_value
        gap = _gap(value, bundle.bound)
        changed = sums.changed / sums.total
        tell(Step(round_, step, value, bundle.bound, gap, changed, len(bundle.cuts)))
        if best is not incumbent and gap <= wanted:
            break
        bundle.add(v, b, sums)
    assert best is not None
    return best, gap


def _gap(value: float, bound: float) -> float:
    return float((value - bound) / max(abs(value), 1e-300)) if np.isfinite(value) else np.inf


def _model(
    v: np.ndarray,
    b: float,
    beta: np.ndarray,
    sums: CutSums,
    settings: MarginSettings,
    features: FeatureMap,
) -> MarginModel:
    objective = regulariser(v, features.offsets, settings.norm)
    objective += settings.C * sums.own_hinge / sums.total
    return MarginModel(v, b, beta, objective, sums.positive / sums.total, sums.mark)


def run_together(
    fits: Sequence[Fit], answer: Callable[[list[CutRequest]], list[list[CutSums]]]
) -> list[MarginFit]:
    """Drive several fits to their ends; each scan serves all that still run."""
    ends: dict[int, MarginFit] = {}
    waiting: dict[int, CutRequest] = {}

    def advance(k: int, sent: list[CutSums] | None) -> None:
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
