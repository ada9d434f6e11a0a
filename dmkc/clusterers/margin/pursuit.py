"""Which few vectors a sparse basis is made of: cutting-plane subspace pursuit on a sample.

Algorithm 3 of Wu and Zhang, Sparse Kernel Maximum Margin Clustering, on rows in memory: every cut
of the margin problem brings one or a few pre-images, the master is solved in the span of all of
them, and a new labeling begins with no cut and no vector.  The vectors of the last labeling are
the landmarks of the feature map that the fit of all rows then uses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmkc.clusterers.margin.bundle import MarginSettings, Objective
from dmkc.clusterers.margin.cccp import MAX_STEPS
from dmkc.clusterers.margin.geometry import BinaryMargin
from dmkc.clusterers.margin.preimage import Basis, gaussian, pre_image
from dmkc.clusterers.starts import distinct_rows
from dmkc.master import Cuts, MasterProblem, barely_separated, solve

LOOSE_GAP = 0.03
"""Relative gap that ends a pursuit: vectors have to span the solution, which the fit in their span
then finds to its own gap."""
ON_EDGE = 1e-9
"""A row that falls short of its margin by less than this lies on it: the master puts rows there,
and rounding must not decide whether they are part of the next cut."""
SCALE_ROWS = 1000
"""Rows from which the size of the centred kernel is estimated."""


@dataclass(frozen=True)
class Pursuit:
    """What a pursuit found."""

    vectors: np.ndarray
    """The pre-images, one a row."""
    labels: np.ndarray
    """Cluster (0 or 1) of the sampled rows."""
    objective: float
    n_iter: int


@dataclass(frozen=True)
class PursuitSettings:
    """How vectors are looked for."""

    margin: MarginSettings
    vectors_per_cut: int
    most_vectors: int


def pursue(
    rows: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    gamma: float,
    settings: PursuitSettings,
    seed: int,
) -> Pursuit:
    """The vectors that a fit from this labeling makes.

    Rows are taken without repetition, so that a row of weight 3 is three equal rows.
    """
    rng = np.random.default_rng([seed, 5])
    rows, weights, first, place = distinct_rows(rows, weights)
    weights = weights / weights.sum()
    side = np.where(labels[first] > 0, 1.0, -1.0)
    unit, settings = _normalised(rows, weights, side, gamma, settings)
    best: Pursuit | None = None
    for round_ in range(1, settings.margin.max_iter + 1):
        search = _Search(rows, weights, side, Basis(gamma, rows), unit, settings, rng)
        search.run()
        found = search.scores >= 0
        changed = float(weights[found != (side > 0)].sum())
        everyone = found[place].astype(np.int64)
        new = Pursuit(search.basis.vectors, everyone, search.own_value(), round_)
        if not 0 < weights[found].sum() < 1:
            return best or new  # everything on one side: the labeling before was better
        fall = np.inf if best is None else best.objective - new.objective
        if best is not None and fall < 0:
            return replace(best, n_iter=round_)
        stop = changed == 0 or fall <= settings.margin.tol * abs(new.objective)
        best, side = new, np.where(found, 1.0, -1.0)
        if stop:
            break
    assert best is not None
    return best


def _normalised(
    rows: np.ndarray,
    weights: np.ndarray,
    side: np.ndarray,
    gamma: float,
    settings: PursuitSettings,
) -> tuple[float, PursuitSettings]:
    """The factor that gives the centred images a mean squared norm of 1, and C if it is open."""
    used = np.flatnonzero(weights)
    some = used[np.linspace(0, len(used) - 1, min(len(used), SCALE_ROWS)).astype(int)]
    heavy = weights[some] / max(weights[some].sum(), 1e-300)
    gram = gaussian(rows[some], rows[some], gamma)
    spread = max(1.0 - float(heavy @ gram @ heavy), 1e-12)
    if np.isnan(settings.margin.C):
        signs = heavy * side[some]
        signs = signs - signs.sum() * heavy
        C = BinaryMargin.calibration * spread / max(float(signs @ gram @ signs), 1e-12)
        settings = replace(settings, margin=replace(settings.margin, C=C))
    return spread**-0.5, settings


class _Search:
    """One labeling's convex problem in a span that grows with its cuts."""

    def __init__(
        self,
        rows: np.ndarray,
        weights: np.ndarray,
        side: np.ndarray,
        basis: Basis,
        unit: float,
        settings: PursuitSettings,
        rng: np.random.Generator,
    ) -> None:
        self.weights, self.side, self.basis, self.unit = weights, side, basis, unit
        self.settings, self.rng = settings, rng
        self.objective: Objective = settings.margin.objective
        self.masks: list[np.ndarray] = []
        self.scores = side.astype(float)
        self._size = 0.0

    def run(self) -> None:
        """Add cuts and vectors until the best point's value meets the master's."""
        value, wanted = np.inf, max(LOOSE_GAP, self.settings.margin.gap)
        self._add(np.ones(len(self.side)))
        for _ in range(MAX_STEPS):
            solved = self._solve()
            if solved is None:
                break
            scores, size, bound = solved
            short = np.maximum(1.0 - self.side * scores, 0.0)
            new = self.objective(size, float(self.weights @ short))
            if new < value or not np.isfinite(value):
                value, self.scores, self._size = new, scores, size
            if value - bound <= wanted * abs(value):
                break
            self._add((short > ON_EDGE).astype(float))

    def own_value(self) -> float:
        """The objective under the scores' own labeling."""
        short = np.maximum(1.0 - np.abs(self.scores), 0.0)
        return self.settings.margin.objective(self._size, float(self.weights @ short))

    def _add(self, mask: np.ndarray) -> None:
        """A cut, and vectors for what the basis misses of its centred sum of images."""
        self.masks.append(mask)
        signs = self.weights * self.side * mask
        signs = signs - signs.sum() * self.weights
        for _ in range(self.settings.vectors_per_cut):
            if len(self.basis) >= self.settings.most_vectors:
                return
            vector = pre_image(self.basis, signs, self.rng)
            if vector is None or not self.basis.add(vector):
                return

    def _solve(self) -> tuple[np.ndarray, float, float] | None:
        """Scores of the master's point divided by its threshold, its size, and the bound."""
        margin, w = self.settings.margin, self.weights
        features = self.unit * (self.basis.features - w @ self.basis.features)
        masks = np.array(self.masks)
        signed = masks * (w * self.side)
        cuts = Cuts(masks @ w, signed.sum(axis=1), signed @ features)
        mean, edges = np.zeros(features.shape[1]), (0, features.shape[1])
        while True:
            problem = MasterProblem(
                cuts, edges, mean, self.objective.C, margin.balance, adaptive=margin.adaptive
            )
            found = solve(problem, margin.solver)
            hard = margin.adaptive and barely_separated(problem, found)
            eased = self.objective.eased() if hard else None
            if eased is None:
                break
            self.objective = eased
        if found.threshold == 0:
            return None
        v, b = found.weights / found.threshold, found.bias / found.threshold
        return features @ v + b, 0.5 * float(v @ v), found.value
