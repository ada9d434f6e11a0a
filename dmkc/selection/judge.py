"""What speaks for a candidate, without labels.

Three things do: that candidates of other families find the same clusters (agreement); that the
nearest neighbours of a row tell its cluster (neighbours); and that few edges to nearest neighbours
leave a cluster (clearness).  Clearness counts only where there are valleys between clusters, for
elsewhere it knows nothing, but then it counts most; and less if a cluster is much smaller than the
others, since a few rows far from all others are cut off at no cost.

Of the many settings of a single method some look good by luck.  Where nothing else can be chosen
they must also find what the best of the other methods finds (likeness).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dmkc.selection.families import K_MEANS, SOME_COLUMNS, WITNESS, Candidate
from dmkc.selection.questions import Told, rows_to_move
from dmkc.selection.scores import SURE, agreements, clearly_different
from dmkc.selection.structure import CLEAR as CLEAR_CLUSTERS
from dmkc.selection.structure import FLOOR, NONE, SOME, leaks, nearest_rows, telling
from dmkc.typing import NamedValues

CLEAR = 0.95
"""Clearness from which on it counts."""
CLEARER = 0.98
"""The same of candidates that see some columns: those in which clearness is measured."""
WEIGHT_OF_CLEARNESS = 3.0
WEIGHT_OF_LIKENESS = 2.0
SMALL = 0.5
"""A smallest cluster below this part of an equal share lowers what clearness counts for."""
PRICE_OF_A_MOVE = 0.3
"""What a row that known pairs put elsewhere takes off a candidate's score.

Scores are 0 to 5 among all methods, and 0 to 7 among settings of one, which likeness is for."""
RIVAL = 2.0
"""Candidates whose clusters leak at most so many times as those of the best are its rivals."""


@dataclass(frozen=True)
class Judged:
    """Candidates, and what speaks for each."""

    candidates: list[Candidate]
    agreement: np.ndarray
    """Mean adjusted Rand index with the candidates of every other family."""
    neighbours: np.ndarray
    """Share of the rows of a cluster whose neighbours tell it, mean of the clusters."""
    clearness: np.ndarray
    """One less the mean leak of the clusters."""
    valleys: np.ndarray
    """What clearness counts for, 0 to 1."""
    whole: np.ndarray
    """Whether no cluster is missing."""
    together: np.ndarray
    """Adjusted Rand index of every pair."""
    nearest: np.ndarray
    """Numbers of every row's nearest other rows."""
    moves: np.ndarray
    """Rows that every candidate would have to move so that known pairs hold."""

    def knowing(self, answers: Sequence[Told], n_clusters: int) -> Judged:
        """The same once some pairs are known."""
        return replace(self, moves=rows_to_move(self.labels, answers, n_clusters))

    @property
    def labels(self) -> np.ndarray:
        """Of the sample, a candidate a row."""
        return np.array([candidate.labels for candidate in self.candidates])

    @cached_property
    def score(self) -> np.ndarray:
        return self._by_itself + WEIGHT_OF_LIKENESS * self.likeness

    @cached_property
    def _by_itself(self) -> np.ndarray:
        """The score without likeness."""
        score = self.agreement + self.neighbours + WEIGHT_OF_CLEARNESS * self.valleys
        score = score - PRICE_OF_A_MOVE * self.moves
        return np.where(self.whole, score, score - 10.0)

    @cached_property
    def likeness(self) -> np.ndarray:
        """Adjusted Rand index with the best witness of another method; 0 where there is none."""
        methods = [
            i for i, c in enumerate(self.candidates) if c.recipe is None and c.family != WITNESS
        ]
        if not methods:
            return np.zeros(len(self.candidates))
        return self.together[:, max(methods, key=lambda i: self._by_itself[i])]

    @cached_property
    def order(self) -> list[int]:
        """Candidates that can be chosen, best first."""
        by_score = np.argsort(-self.score, kind="stable").tolist()
        return [i for i in by_score if self.candidates[i].recipe is not None]

    @cached_property
    def confidence(self) -> float:
        """How sure the best one is, 0 to 1.

        Either other families find its clusters, and so does k-means, however columns are scaled;
        or there are valleys between them that are clearer than those of any different clustering.
        """
        best = self.order[0]
        plain = [i for i, c in enumerate(self.candidates) if c.family == K_MEANS]
        agreed = min(self.agreement[best], *self.together[best, plain]) if plain else 0.0
        return float(np.clip(max(agreed, self.by_valleys), 0.0, 1.0))

    @property
    def by_valleys(self) -> float:
        """How sure the valleys of the best one alone make it."""
        best = self.order[0]
        leak = 1.0 - self.clearness + FLOOR
        rivals = (leak <= RIVAL * leak[best]) & (self.valleys > 0)
        least = self.together[best, rivals].min() if rivals.any() else 0.0
        return float(self.valleys[best] * least)

    def verdict(self, found: bool) -> str:
        """In words, where there is evidence of clusters (`found`) or none."""
        if not found:
            return NONE
        return CLEAR_CLUSTERS if self.confidence >= SURE else SOME

    def offered(self, found: bool) -> list[int]:
        """The best candidate, and up to two clearly different ones unless clusters are clear.

        What is not like the best of another method is just what an alternative may be.
        """
        best, *others = self.order
        if self.verdict(found) == CLEAR_CLUSTERS:
            return [best]
        others.sort(key=lambda i: -self._by_itself[i])
        return clearly_different([best, *others], self.together)

    def records(self, found: bool) -> list[NamedValues]:
        """How every candidate was made and what speaks for it, best first.

        `alternative` numbers those that are offered, from 0.
        """
        numbers = {i: number for number, i in enumerate(self.offered(found))}
        return [
            {
                **self.candidates[i].described(),
                "agreement": float(self.agreement[i]),
                "neighbours": float(self.neighbours[i]),
                "clearness": float(self.clearness[i]),
                **({"likeness": float(self.likeness[i])} if self.likeness.any() else {}),
                "score": float(self.score[i]),
                "contradictions": int(self.moves[i]),
                "alternative": numbers.get(i),
            }
            for i in self.order
        ]


def judge(candidates: list[Candidate], values: np.ndarray, n_clusters: int) -> Judged:
    """What speaks for every candidate."""
    labelings = np.array([c.labels for c in candidates])
    together = agreements(labelings)
    families = np.array([c.family for c in candidates])
    groups = {family: families == family for family in sorted({*families})}
    agreement = np.array(
        [
            np.mean([row[some].mean() for family, some in groups.items() if family != own] or [1.0])
            for row, own in zip(together, families, strict=True)
        ]
    )
    nearest = nearest_rows(telling(values))
    clearness = np.array([1.0 - leaks(nearest, labels).mean() for labels in labelings])
    sizes = np.array([np.bincount(labels, minlength=n_clusters).min() for labels in labelings])
    even = np.clip(sizes * n_clusters / (SMALL * len(values)), 0.0, 1.0)
    in_part = np.array([family.endswith(SOME_COLUMNS) for family in families])
    enough = np.where(in_part, CLEARER, CLEAR)
    valleys = even * np.clip((clearness - enough) / (1.0 - enough), 0.0, 1.0)
    by_neighbours = np.array([_told_by_neighbours(nearest, labels) for labels in labelings])
    by_neighbours[in_part] = 0.0  # neighbours know nothing but what the candidate has seen
    moves = np.zeros(len(candidates), dtype=np.int64)
    return Judged(
        candidates,
        agreement,
        by_neighbours,
        clearness,
        valleys,
        sizes > 0,
        together,
        nearest,
        moves,
    )


def votes(nearest: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For every row, the share of its neighbours in every cluster over the root of its share.

    A vote of a small cluster counts more.
    """
    numbers = np.unique(labels, return_inverse=True)[1]
    members = np.eye(numbers.max() + 1)[numbers]
    return members[nearest].mean(axis=1) / np.sqrt(members.mean(axis=0))


def _told_by_neighbours(nearest: np.ndarray, labels: np.ndarray) -> float:
    """Share of the rows of a cluster whose neighbours vote for it, mean of the clusters."""
    numbers = np.unique(labels, return_inverse=True)[1]
    right = votes(nearest, labels).argmax(axis=1) == numbers
    return float(np.mean(np.bincount(numbers, weights=right) / np.bincount(numbers)))
