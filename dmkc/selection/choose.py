"""`dmkc.select`: the best of many candidates without labels, how sure that is, and what else fits.

Where the criteria disagree, the rows have several valid clusterings: then alternatives are
returned, and answers to a few questions ("do these two rows belong together?") settle the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dmkc.clusterers.answered import Answer, check_answers, checked_answers
from dmkc.errors import UserError
from dmkc.selection.judge import confidence_of, judge, total
from dmkc.selection.pool import Candidate, Pool
from dmkc.selection.questions import Asking, Opinions, Told, best_pairs, clearness, rows_to_move
from dmkc.selection.scores import SURE, agreements, clearly_different
from dmkc.showing import html_lines
from dmkc.typing import NamedValues

PRICE_OF_CONTRADICTION = 0.8
"""What a row that answers put elsewhere takes off a candidate's score (0 to 3)."""
SHARPNESS = 2.0
"""Candidates count as likely as exp(SHARPNESS x score) when a question is looked for."""


@dataclass(frozen=True)
class Gathered:
    """A sample of the rows and candidates that were fitted to it, before they are judged."""

    pool: Pool
    values: np.ndarray
    """The sampled rows."""
    columns: list[str] | None
    """Names of their columns, where they have some."""
    positions: np.ndarray
    """Their row numbers."""
    template: Any
    """An estimator with the parameters that were not open."""
    seed: int
    row_names: list[str] | None = None
    """What the rows are called, where not by their numbers."""


@dataclass(frozen=True)
class Selection:
    """Candidates by falling score, and what can be said of the choice."""

    candidates: list[Candidate]
    criteria: dict[str, np.ndarray]
    """One value per candidate; larger is better."""
    score: np.ndarray
    """Without answers."""
    confidence: float
    """Agreement of the best candidate with what single criteria would pick, and with k-means."""
    gathered: Gathered
    """What was judged."""
    answers: tuple[Answer, ...] = ()

    @classmethod
    def of(cls, gathered: Gathered) -> Selection:
        """Judge the candidates of a pool on the rows that it was made of."""
        pool, n_clusters = gathered.pool, gathered.template.n_clusters
        criteria = judge(pool, gathered.values, n_clusters, gathered.seed)
        agreement = agreements(np.array([c.labels for c in pool.candidates]))
        score = total(criteria)
        best = int(np.argmax(score))
        plain = agreements(np.array([pool.candidates[best].labels, *pool.k_means]))[0, 1:]
        confidence = confidence_of(best, criteria, agreement, plain)
        order = np.argsort(-score, kind="stable")
        ordered = {name: values[order] for name, values in criteria.items()}
        candidates = [pool.candidates[i] for i in order]
        return cls(candidates, ordered, score[order], confidence, gathered)

    def __repr__(self) -> str:
        return "\n".join(shown_selection(self))

    def _repr_html_(self) -> str:
        return html_lines(shown_selection(self))

    @property
    def positions(self) -> np.ndarray:
        """Numbers of the rows that the candidates were compared on."""
        return self.gathered.positions

    @property
    def template(self) -> Any:
        """An estimator with the parameters that were not open."""
        return self.gathered.template

    @cached_property
    def standing(self) -> np.ndarray:
        """The scores, lowered for every answer that a candidate contradicts."""
        return self.score - PRICE_OF_CONTRADICTION * self.contradictions

    @cached_property
    def contradictions(self) -> np.ndarray:
        """How many rows every candidate would have to move so that the answers hold."""
        return rows_to_move(self._labels, self._told, self.template.n_clusters)

    @property
    def _labels(self) -> np.ndarray:
        return np.array([c.labels for c in self.candidates])

    @property
    def _told(self) -> list[Told]:
        """The answers by places in the sample."""
        rows = [answer[:2] for answer in self.answers]
        at = np.searchsorted(self.positions, np.array(rows).reshape(-1, 2)).tolist()
        return [(i, j, answer[2]) for (i, j), answer in zip(at, self.answers, strict=True)]

    @cached_property
    def _clearness(self) -> np.ndarray:
        values = self.gathered.values
        return np.array([clearness(c.model.score_pipeline()(values)) for c in self.candidates])

    @property
    def best(self) -> Candidate:
        return self.candidates[int(np.argmax(self.standing))]

    @cached_property
    def alternatives(self) -> list[Candidate]:
        """The best candidate and, unless confidence is high, up to two clearly different ones."""
        order = np.argsort(-self.standing, kind="stable").tolist()
        chosen = order[:1]
        if self.confidence < SURE:
            chosen = clearly_different(order, agreements(self._labels))
        return [self.candidates[i] for i in chosen]

    def asking(self, show: Callable[[int], str] | None = None) -> Asking:
        """Questions one after the other, to be answered in a notebook or by a program.

        `show` makes HTML of a row number, such as an image; without it the values are shown.
        """
        return Asking(self, show)

    def questions(
        self, count: int = 1, without: Collection[frozenset[int]] = ()
    ) -> list[tuple[int, int]]:
        """Pairs of rows whose answer would tell most about which candidate is right.

        Likely candidates disagree about them and are sure of them.  Ask one, give the answer to
        `answered`, and ask the next: a question that was asked is not asked again, nor are those in
        `without`.  There is none where all candidates agree.
        """
        weight = np.exp(SHARPNESS * (self.standing - self.standing.max()))
        opinions = Opinions(
            self._labels, self._clearness, weight / weight.sum(), self.template.n_clusters
        )
        left_out = {frozenset(np.searchsorted(self.positions, list(p)).tolist()) for p in without}
        seed = [self.gathered.seed, 8, len(self.answers)]
        found = best_pairs(opinions, self._told, count, left_out, seed)
        return [(int(self.positions[i]), int(self.positions[j])) for i, j in found]

    def answered(self, answers: Iterable[Sequence[Any]]) -> Selection:
        """The selection after more answers: (row, row, whether they belong together)."""
        known = checked_answers(answers)
        for i, j, _ in known:
            for row in (i, j):
                if row not in self.positions:
                    raise UserError(
                        f"Row {row} is not among the rows that candidates were compared on; give "
                        "its answers to select(..., answers=...), which takes the row in."
                    )
        every = (*self.answers, *known)
        check_answers(every, int(self.positions.max()) + 1, self.template.n_clusters)
        return replace(self, answers=every)

    def estimator(self, which: int = 0) -> Any:
        """An unfitted estimator that refines an alternative (0: the best) on all rows."""
        if not 0 <= which < len(self.alternatives):
            raise UserError(
                f"There are {len(self.alternatives)} alternatives, numbered from 0, not {which}."
            )
        chosen = self.alternatives[which]
        parameters = {
            "scale": chosen.scale,
            "kernels": list(chosen.kernels),
            "C": chosen.C,
            "init": chosen.model,
        }
        if self.template.n_clusters == 2 or self.template.balance == "auto":
            parameters["balance"] = chosen.balance
        return type(self.template)(**self.template.get_params(deep=False) | parameters)

    def records(self) -> list[NamedValues]:
        """How every candidate was made and what the criteria say of it, best first."""
        order = np.argsort(-self.standing, kind="stable")
        kept = [id(c) for c in self.alternatives]
        return [
            self.candidates[i].described()
            | {name: float(values[i]) for name, values in self.criteria.items()}
            | {
                "score": float(self.standing[i]),
                "contradictions": int(self.contradictions[i]),
                "alternative": kept.index(id(self.candidates[i]))
                if id(self.candidates[i]) in kept
                else None,
            }
            for i in order
        ]

    def table(self) -> pd.DataFrame:
        """`records` as a table."""
        return pd.DataFrame(self.records())


def shown_selection(found: Selection) -> list[str]:
    """A selection in a few short lines: what was chosen, how sure that is, what to do next."""
    others, answers = len(found.alternatives) - 1, len(found.answers)
    told = f", {answers} answer{'s' if answers != 1 else ''}" if answers else ""
    made = {name: value for name, value in found.best.described().items() if value is not None}
    kernels = ", ".join(map(repr, made.pop("kernels")))
    rest = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in made.items())
    best = f"{kernels}; {', '.join(rest)}"
    lines = [
        f"{len(found.candidates)} candidates of {found.template.n_clusters} clusters, compared on "
        f"{len(found.positions):,} rows{told}: confidence {found.confidence:.2f}",
        f"best: {best}",
    ]
    if others:
        each = f"1 to {others}" if others > 1 else "1"
        what = "clusterings differ" if others > 1 else "clustering differs"
        lines.append(
            f"{others} other {what} clearly: .estimator({each}), or settle it by .asking()"
        )
    return [*lines, ".estimator() is to be fitted to all rows, .table() lists all candidates"]
