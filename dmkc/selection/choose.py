"""`dmkc.select`: the best of many candidates without labels, how sure that is, and what else fits.

Where several clusterings fit the rows, alternatives are returned, and answers to a few questions
("do these two rows belong together?") settle the choice.
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
from dmkc.selection.families import Candidate, within_bounds
from dmkc.selection.judge import Judged, judge, votes
from dmkc.selection.questions import Asking, Opinions, Told, best_pairs, clearness
from dmkc.selection.sampling import Sample
from dmkc.selection.structure import Structure, warn_of_no_clusters
from dmkc.showing import html_lines
from dmkc.typing import NamedValues

SHARPNESS = 2.0
"""Candidates count as likely as exp(SHARPNESS x score) when a question is looked for."""


@dataclass(frozen=True)
class Gathered:
    """A sample of the rows and candidates that were fitted to it, before they are judged."""

    candidates: list[Candidate]
    """Those that can be chosen, and witnesses."""
    sample: Sample
    template: Any
    """An estimator with the parameters that were not open."""
    seed: int
    seen: Structure
    """What the sample says of clusters."""
    cut: list[str]
    """Candidates that would have been too much work, or that a limit of time has cut."""

    @property
    def n_clusters(self) -> int:
        return int(self.template.n_clusters)


@dataclass(frozen=True)
class Selection:
    """Candidates by falling score, and what can be said of the choice."""

    judged: Judged
    """Without answers."""
    gathered: Gathered
    """What was judged."""
    answers: tuple[Answer, ...] = ()

    @classmethod
    def of(cls, gathered: Gathered) -> Selection:
        """Judge the candidates of a pool on the rows that it was made of."""
        values = within_bounds(gathered.sample.values)
        return cls(judge(gathered.candidates, values, gathered.n_clusters), gathered)

    def __repr__(self) -> str:
        return "\n".join(shown_selection(self))

    def _repr_html_(self) -> str:
        return html_lines(shown_selection(self))

    def warn_of_no_clusters(self) -> None:
        """Warn where the number of clusters was open and there is no evidence of any."""
        warn_of_no_clusters(self.gathered.seen, len(self.positions))

    @property
    def positions(self) -> np.ndarray:
        """Numbers of the rows that the candidates were compared on."""
        return self.gathered.sample.positions

    @property
    def template(self) -> Any:
        """An estimator with the parameters that were not open."""
        return self.gathered.template

    @property
    def candidates(self) -> list[Candidate]:
        """All that can be chosen; best first, as things were without answers."""
        return [self.judged.candidates[i] for i in self.judged.order]

    @property
    def score(self) -> np.ndarray:
        """Of the candidates, without answers."""
        return self.judged.score[self.judged.order]

    @cached_property
    def _now(self) -> Judged:
        """With answers, for every one of which a candidate pays that contradicts it."""
        return self.judged.knowing(self._told, self.gathered.n_clusters)

    @property
    def standing(self) -> np.ndarray:
        """The scores, lowered for every answer that a candidate contradicts."""
        return self._now.score[self.judged.order]

    @property
    def contradictions(self) -> np.ndarray:
        """How many rows every candidate would have to move so that the answers hold."""
        return self._now.moves[self.judged.order]

    @property
    def confidence(self) -> float:
        """How far other families of methods, and k-means, find what the best candidate finds.

        Or how clear the valleys between its clusters are beside those of other candidates,
        whichever is more.
        """
        return self._now.confidence

    @property
    def evidence(self) -> float:
        """By how many standard deviations rows are cut better than clouds without clusters."""
        return self.gathered.seen.evidence

    @property
    def verdict(self) -> str:
        """Whether there are clusters: as `AutoClustering.verdict_` says it."""
        return self._now.verdict(self.gathered.seen.found)

    @property
    def _told(self) -> list[Told]:
        """The answers by places in the sample."""
        rows = [answer[:2] for answer in self.answers]
        at = np.searchsorted(self.positions, np.array(rows).reshape(-1, 2)).tolist()
        return [(i, j, answer[2]) for (i, j), answer in zip(at, self.answers, strict=True)]

    @property
    def best(self) -> Candidate:
        return self._now.candidates[self._now.order[0]]

    @property
    def alternatives(self) -> list[Candidate]:
        """The best candidate and, unless clusters are clear, up to two clearly different ones."""
        return [self._now.candidates[i] for i in self._now.offered(self.gathered.seen.found)]

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
        labels = self.judged.labels[self.judged.order]
        clear = np.array([clearness(votes(self.judged.nearest, some)) for some in labels])
        opinions = Opinions(labels, clear, weight / weight.sum(), self.gathered.n_clusters)
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
        check_answers(every, int(self.positions.max()) + 1, self.gathered.n_clusters)
        return replace(self, answers=every)

    def estimator(self, which: int = 0) -> Any:
        """An unfitted estimator that refines an alternative (0: the best) on all rows."""
        alternatives = self.alternatives
        if not 0 <= which < len(alternatives):
            raise UserError(
                f"There are {len(alternatives)} alternatives, numbered from 0, not {which}."
            )
        chosen, template = alternatives[which], self.template
        assert chosen.recipe is not None
        if not template.selectable:  # any method
            running = {name: getattr(template, name) for name in ("verbose", "client")}
            return chosen.recipe.estimator(random_state=self.gathered.seed, **running)
        parameters = chosen.recipe.parameters | {"init": chosen.model}
        if self.gathered.n_clusters > 2 and template.balance != "auto":
            del parameters["balance"]
        return type(template)(**template.get_params(deep=False) | parameters)

    def records(self) -> list[NamedValues]:
        """How every candidate was made and what speaks for it, best first."""
        return self._now.records(self.gathered.seen.found)

    def table(self) -> pd.DataFrame:
        """`records` as a table."""
        return pd.DataFrame(self.records())


def shown_selection(found: Selection) -> list[str]:
    """A selection in a few short lines: what was chosen, how sure that is, what to do next."""
    others, answers = len(found.alternatives) - 1, len(found.answers)
    told = f", {answers} answer{'s' if answers != 1 else ''}" if answers else ""
    lines = [
        f"{len(found.candidates)} candidates of {found.gathered.n_clusters} clusters, compared on "
        f"{len(found.positions):,} rows{told}: {found.verdict}, confidence {found.confidence:.2f}",
        f"best: {made_of(found.best)}",
    ]
    if others:
        each = f"1 to {others}" if others > 1 else "1"
        what = "clusterings differ" if others > 1 else "clustering differs"
        lines.append(
            f"{others} other {what} clearly: .estimator({each}), or settle it by .asking()"
        )
    return [*lines, ".estimator() is to be fitted to all rows, .table() lists all candidates"]


def made_of(candidate: Candidate) -> str:
    """How a candidate was made, in a line."""
    made = {name: value for name, value in candidate.described().items() if value is not None}
    if "kernels" not in made:
        return str(made["candidate"])
    kernels = ", ".join(map(repr, made.pop("kernels")))
    rest = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in made.items())
    return f"{kernels}; {', '.join(rest)}"
