"""Candidates of multiple kernel clustering: starts x banks x scalings, fitted in batches.

All starts of a bank share every scan.  C is calibrated to the data (see `calibrated_c`),
without which most candidates would collapse or never leave their start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmkc.clusterers.margin.base import calibrated_c, on_sample
from dmkc.clusterers.margin.bundle import MarginSettings
from dmkc.clusterers.prepare import FeatureSettings, Prepared, prepare
from dmkc.clusterers.sampled import shaped
from dmkc.clusterers.starts import Start, in_order, k_means_start, starts_on_sample
from dmkc.data import as_rows
from dmkc.display import advance
from dmkc.kernels import Gaussian, Kernel, Linear, Neighbours, Polynomial
from dmkc.progress import Progress
from dmkc.scan.engine import ThreadEngine
from dmkc.selection.families import Candidate, Recipe
from dmkc.selection.sampling import Sample
from dmkc.typing import NamedValues

Bank = tuple[Kernel, ...]
WIDE_BANK: Bank = (Linear(), *(Gaussian(width) for width in (0.05, 0.15, 0.5, 2.0)))
NARROW_BANK: Bank = (Linear(), Polynomial(2), Gaussian(0.5))
GRAPH_BANK: Bank = (Linear(), Neighbours(12))
MARGIN = "margin"
MADE_OF = ("scale", "kernels", "C", "balance")
BALANCES = (0.0, 0.3)
INIT = ("k-means", "kernel-k-means", "pca", "random")
PER_KIND = 2
"""Components per kernel, and random starts."""
SMALLEST = 0.1
"""Candidates with a cluster below this part of an equal share are dropped."""


@dataclass(frozen=True)
class Ingredients:
    """What candidates are made of; a parameter that is given has one value."""

    scales: tuple[str | None, ...]
    bank: Bank | None
    """None: the library's banks."""
    C: float | None
    """None: calibrated."""
    balances: tuple[float | None, ...]
    norm: float
    rank: int
    solver: str

    def batches(self) -> list[tuple[str | None, Bank, tuple[float | None, ...]]]:
        """Scaling, bank and balances of every batch; what is tried beside the first is less."""
        if self.bank is not None:
            return [(scale, self.bank, self.balances) for scale in self.scales]
        wide = [(scale, WIDE_BANK, self.balances[-1:]) for scale in self.scales]
        graph = [(scale, GRAPH_BANK, self.balances[-1:]) for scale in self.scales]
        return [*wide, *graph, (self.scales[0], NARROW_BANK, self.balances[:1])]


@dataclass(frozen=True, repr=False)
class MarginCandidate(Candidate):
    """A fit of multiple kernel clustering from a start."""

    def described(self) -> NamedValues:
        made = {} if self.recipe is None else self.recipe.parameters
        return {name: made[name] for name in MADE_OF} | {"start": self.start}


def margin_candidates(
    sample: Sample, n_clusters: int, made_of: Ingredients, seed: int
) -> list[MarginCandidate]:
    """Fit all candidates to a sample of rows in memory."""
    found: list[MarginCandidate] = []
    shapes: dict[str | None, list[Start]] = {}
    batches = made_of.batches()
    for number, (scale, bank, balances) in enumerate(batches):
        advance(number, len(batches), f"{len(bank)} kernels, scale {scale}")
        ready = _ready(sample, bank, scale, n_clusters, made_of.rank, seed)
        if scale not in shapes:
            shapes[scale] = _shapes(ready, n_clusters, seed)
        starts = _all_starts(ready, shapes[scale], n_clusters, seed)
        for balance in balances if n_clusters == 2 else (None,):
            found += _fits(ready, starts, bank, scale, balance, n_clusters, made_of, seed)
    return _distinct(found, n_clusters)


def _ready(
    sample: Sample, bank: Bank, scale: str | None, n_clusters: int, rank: int, seed: int
) -> Prepared:
    n = len(sample.values)
    settings = FeatureSettings(
        bank, scale, rank, "uniform", "float64", "persist", None, max(n, 2), seed
    )
    return prepare(as_rows(sample.form(sample.values)), ThreadEngine(), settings, n_clusters)


def _shapes(ready: Prepared, m: int, seed: int) -> list[Start]:
    """The starts that do not depend on kernels."""
    kinds = ("spectral", "mixture", "radius") if m == 2 else ("spectral", "mixture")
    weights = ready.sample.weights
    made = [Start(kind, shaped(kind, ready.standardised, weights, m, seed)) for kind in kinds]
    return [start for start in made if start.shares(m, weights).min() > 0]


def _all_starts(ready: Prepared, shapes: Sequence[Start], m: int, seed: int) -> list[Start]:
    kinds = INIT if m == 2 else INIT[:3]
    starts = [*starts_on_sample(ready, list(kinds), PER_KIND, m, seed), *shapes]
    return list({in_order(start.labels).tobytes(): start for start in reversed(starts)}.values())


def _fits(
    ready: Prepared,
    starts: list[Start],
    bank: Bank,
    scale: str | None,
    balance: float | None,
    m: int,
    made_of: Ingredients,
    seed: int,
) -> list[MarginCandidate]:
    c = made_of.C
    if c is None:
        c = calibrated_c(ready, k_means_start(ready, starts, m, seed), m, made_of.norm)
    settings = MarginSettings(c, balance, made_of.norm, 5e-3, 1e-2, 12, made_of.solver)
    stage, labelings = on_sample(ready, settings, m, starts, Progress(0, settings.tol))
    made = {"n_clusters": m, "scale": scale, "kernels": list(bank), "C": c, "balance": balance}
    recipe = Recipe("mkc", made, MARGIN)
    found = []
    for start, end in zip(starts, stage.run(labelings), strict=True):
        model = end.value.model.kernel_model(ready.features)
        labels = model.label_pipeline().answer(ready.sample.record)
        found.append(MarginCandidate(MARGIN, recipe, labels, model, start.name))
    return found


def _distinct(candidates: Sequence[MarginCandidate], m: int) -> list[MarginCandidate]:
    """Candidates with different labelings and no tiny cluster; any, if all have one."""
    unique: dict[bytes, MarginCandidate] = {}
    for candidate in candidates:
        unique.setdefault(in_order(candidate.labels).tobytes(), candidate)
    large = [
        c
        for c in unique.values()
        if np.bincount(c.labels, minlength=m).min() * m >= SMALLEST * len(c.labels)
    ]
    return large or list(unique.values())
