"""From any rows to a method: a sample, its structure, candidates of all families, the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dmkc.constraints.linked import Constraints
from dmkc.data import Rows
from dmkc.display import stage
from dmkc.scan.engine import Engine
from dmkc.selection.families import K_MEANS, Recipe, fitted, within_bounds
from dmkc.selection.judge import judge
from dmkc.selection.questions import Told
from dmkc.selection.sampling import take_sample
from dmkc.selection.structure import ADVICE, NONE, SOME, Structure, structure
from dmkc.typing import NamedValues, PerRow, TableLike

FEWEST_ROWS = 4
"""Fewer rows are not looked at for clusters."""


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
    """Candidates that would have been too much work, or that a limit of time has cut."""

    def summary(self) -> str:
        if not self.records:  # one cluster, for which there is nothing to choose
            return ADVICE[self.verdict]
        tried = f"Of {len(self.records)} candidates {self.recipe} was chosen."
        late = f" {len(self.cut)} more were left out, to save time." if self.cut else ""
        return f"{ADVICE[self.verdict]} {tried}{late}"


def choose(
    rows: Rows,
    engine: Engine,
    wanted: Wanted,
    sample_weight: PerRow,
    pairs: Constraints | None = None,
) -> Chosen:
    """Look at a sample of the rows, and choose; a run that is taken up again remembers it.

    The rows of known pairs are in the sample, and candidates pay for those that they would have to
    move.
    """
    asked = np.empty(0, np.int64) if pairs is None else pairs.rows
    sample = take_sample(
        rows, engine, wanted.sample_rows, wanted.fewest, sample_weight, asked, wanted.seed
    )
    told = [] if pairs is None else _told(pairs, np.searchsorted(sample.positions, asked))
    return engine.remember("choice", lambda: chosen_on(sample.values, wanted, sample.form, told))


def _told(pairs: Constraints, places: np.ndarray) -> list[Told]:
    links = ((pairs.must, True), (pairs.cannot, False))
    return [(int(places[i]), int(places[j]), same) for some, same in links for i, j in some]


def chosen_on(
    values: np.ndarray,
    wanted: Wanted,
    form: Callable[[np.ndarray], TableLike],
    told: Sequence[Told] = (),
) -> Chosen:
    """The choice for some rows in memory."""
    seen = seen_in(values, wanted.fewest, wanted.most, wanted.seed)
    k = seen.best if wanted.fewest < wanted.most else wanted.fewest
    if wanted.may_be_one and not seen.found:
        k = 1
    if k == 1 or len(values) < FEWEST_ROWS:
        recipe = Recipe("kmeans", {"n_clusters": k}, K_MEANS)
        verdict = SOME if seen.found else NONE
        return Chosen(recipe, verdict, seen.evidence, 0.0, [], seen.numbers, [], [])
    tried = fitted(values, k, wanted.seed, form, wanted.max_seconds)
    judged = judge(tried.candidates, within_bounds(values), k).knowing(told, k)
    offered = [judged.candidates[i].recipe for i in judged.offered(seen.found)]
    first, *others = [recipe for recipe in offered if recipe is not None]
    return Chosen(
        first,
        judged.verdict(seen.found),
        seen.evidence,
        judged.confidence,
        judged.records(seen.found),
        seen.numbers,
        others,
        [str(recipe) for recipe in tried.cut],
    )


def seen_in(values: np.ndarray, fewest: int, most: int, seed: int) -> Structure:
    """What some rows say of clusters; of few rows nothing is known."""
    if len(values) < FEWEST_ROWS:
        return Structure(0.0, "few rows", [{"n_clusters": fewest, "leak": 0.0, "rise": 0.0}])
    with stage("looking for clusters in a sample"):
        return structure(within_bounds(values), fewest, most, seed)
