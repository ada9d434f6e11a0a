"""From any rows to a method: a sample, its structure, candidates of all families, the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.members import as_given
from dmkc.data import Rows
from dmkc.scan.engine import Engine
from dmkc.selection.families import K_MEANS, Judged, Recipe, fitted, judge
from dmkc.selection.run import take
from dmkc.selection.structure import CLEAR, EVIDENCE, NONE, SOME, Structure, structure
from dmkc.typing import NamedValues, PerRow, TableLike

__all__ = ["ADVICE", "EVIDENCE", "Chosen", "Wanted", "choose"]

SURE = 0.8
"""Confidence from which on clusters are called clear."""
DIFFERENT = 0.5
"""Alternatives agree with each other less than this (adjusted Rand index)."""
MOST_ALTERNATIVES = 2
FEWEST_ROWS = 4
"""Fewer rows are not looked at for clusters."""
ADVICE = {
    CLEAR: "There are clear clusters.",
    SOME: "There is some structure, but several clusterings fit it: look at the alternatives.",
    NONE: "There is no evidence of clusters: rows without any can be cut as well as these.",
}


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    fewest: int
    most: int
    may_be_one: bool
    """Whether one cluster is an answer where nothing speaks for more."""
    sample_rows: int
    max_seconds: float | None
    seed: int


@dataclass(frozen=True)
class Chosen:
    """The method for all rows, and what can be said of the choice."""

    recipe: Recipe
    verdict: str
    evidence: float
    confidence: float
    records: list[NamedValues]
    """One per candidate, best first; `alternative` numbers those that are offered, from 0."""
    numbers: list[NamedValues]
    alternatives: list[Recipe]
    """Other clusterings that differ from the chosen one and from each other."""
    cut: list[str]
    """Candidates that a limit of time has cut."""

    @property
    def is_evident(self) -> bool:
        return self.verdict != NONE

    def summary(self) -> str:
        tried = f"Of {len(self.records)} candidates {self.recipe} was chosen."
        late = f" {len(self.cut)} more were cut by max_seconds." if self.cut else ""
        return f"{ADVICE[self.verdict]} {tried}{late}"


def choose(rows: Rows, engine: Engine, wanted: Wanted, sample_weight: PerRow) -> Chosen:
    """Look at a sample of the rows, and choose; a run that is taken up again remembers it."""
    _, values = take(rows, engine, wanted.sample_rows, (), sample_weight, wanted.seed)

    def form(some: np.ndarray) -> TableLike:
        return as_given(some, dict(rows.views), None)

    return engine.remember("choice", lambda: chosen_on(values, wanted, form))


def chosen_on(
    values: np.ndarray, wanted: Wanted, form: Callable[[np.ndarray], TableLike]
) -> Chosen:
    """The choice for some rows in memory."""
    seen = Structure(0.0, "few rows", [])
    if len(values) >= FEWEST_ROWS:
        seen = structure(values, wanted.fewest, wanted.most, wanted.seed)
    k = wanted.fewest
    if wanted.fewest < wanted.most and seen.numbers:
        k = seen.best
    if wanted.may_be_one and not seen.found:
        k = 1
    if k == 1 or len(values) < FEWEST_ROWS:
        recipe = Recipe("kmeans", {"n_clusters": k}, K_MEANS)
        verdict = SOME if seen.found else NONE
        return Chosen(recipe, verdict, seen.evidence, 0.0, [], seen.numbers, [], [])
    tried = fitted(values, k, wanted.seed, form, wanted.max_seconds)
    judged = judge(tried.candidates, values, k)
    verdict = NONE if not seen.found else CLEAR if judged.confidence >= SURE else SOME
    offered = judged.order[:1] if verdict == CLEAR else _offered(judged)
    places = {judged.order.index(i): number for number, i in enumerate(offered)}
    records = [
        record | {"alternative": places.get(place)} for place, record in enumerate(judged.records())
    ]
    recipes = [_recipe(judged, i) for i in offered]
    cut = [str(recipe) for recipe in tried.cut]
    return Chosen(
        recipes[0], verdict, seen.evidence, judged.confidence, records, seen.numbers,
        recipes[1:], cut,
    )  # fmt: skip


def _recipe(judged: Judged, i: int) -> Recipe:
    recipe: Any = judged.candidates[i].recipe
    return recipe


def _offered(judged: Judged) -> list[int]:
    """The best candidate, and others by falling score that differ from it and from each other."""
    kept: list[int] = judged.order[:1]
    for i in judged.order:
        if len(kept) <= MOST_ALTERNATIVES and np.all(judged.together[i, kept] < DIFFERENT):
            kept.append(i)
    return kept
