"""From any rows to a method: a sample, its structure, candidates of all families, the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dmkc.clusterers.checks import check_enough, check_finite, check_range, check_weighted
from dmkc.clusterers.members import as_given
from dmkc.clusterers.prepare import SAMPLE_BYTES
from dmkc.clusterers.sampled import spread_out
from dmkc.constraints.linked import Constraints
from dmkc.data import Rows, check_weights, with_weights
from dmkc.data.rows import scan_width
from dmkc.display import stage
from dmkc.scan.engine import Engine
from dmkc.scan.survey import Survey, SurveyScan, sample_positions
from dmkc.selection.families import K_MEANS, Judged, Recipe, fitted, judge, within_bounds
from dmkc.selection.questions import Told, rows_to_move
from dmkc.selection.scores import SURE, clearly_different
from dmkc.selection.structure import ADVICE, CLEAR, NONE, SOME, Structure, structure
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
    values, told = _sampled(rows, engine, wanted, sample_weight, pairs)

    def form(some: np.ndarray) -> TableLike:
        return as_given(some, dict(rows.views), rows.column_names)

    return engine.remember("choice", lambda: chosen_on(values, wanted, form, told))


def _sampled(
    rows: Rows,
    engine: Engine,
    wanted: Wanted,
    sample_weight: PerRow,
    pairs: Constraints | None,
) -> tuple[np.ndarray, list[Told]]:
    """Some rows, once it is known that all of them can be clustered, and known pairs of them."""
    check_enough(rows.n_rows, wanted.fewest)
    grid = engine.grid(rows.n_rows, scan_width(rows))
    blocks = list(rows.blocks(grid.block_rows))
    if sample_weight is not None:
        blocks = with_weights(blocks, check_weights(sample_weight, rows.n_rows))
    size = min(wanted.sample_rows, max(SAMPLE_BYTES // (8 * rows.n_columns), 64))
    positions = sample_positions(rows.n_rows, min(size, rows.n_rows), wanted.seed)
    asked = np.empty(0, np.int64) if pairs is None else pairs.rows
    positions = np.union1d(positions, asked)
    survey: Survey = engine.scan(SurveyScan(positions), blocks, grid)
    check_finite(survey, rows)
    check_weighted(survey, wanted.fewest)
    check_range(survey, rows, wanted.fewest)
    found = survey.sample.toarray() if sp.issparse(survey.sample) else survey.sample
    values = np.asarray(found, dtype=np.float64)
    places = np.searchsorted(positions, asked)
    if sample_weight is not None:
        some = np.union1d(spread_out(survey.sample_weights), places)
        values, places = values[some], np.searchsorted(some, places)
    return values, [] if pairs is None else _told(pairs, places)


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
    seen = Structure(0.0, "few rows", [])
    if len(values) >= FEWEST_ROWS:
        with stage("looking for clusters in a sample"):
            seen = structure(within_bounds(values), wanted.fewest, wanted.most, wanted.seed)
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
    judged = judge(tried.candidates, within_bounds(values), k)
    if told:
        labels = np.array([c.labels for c in judged.candidates])
        judged = replace(judged, moves=rows_to_move(labels, told, k))
    verdict = NONE if not seen.found else CLEAR if judged.confidence >= SURE else SOME
    offered = judged.order[:1]
    if verdict != CLEAR:
        offered = clearly_different(judged.order, judged.together)
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
