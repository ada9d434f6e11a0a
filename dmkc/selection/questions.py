"""Which pair of rows to ask a person about, the asking, and what answers say of candidates.

A person's answer is taken as right, but a right clustering, too, puts some rows elsewhere than a
person does: most likely those near its boundary.  So questions are about rows that candidates
disagree on and that lie clearly inside their clusters, and a candidate pays for every row that it
would have to move.  With two clusters every question compares a new row with the same known ones:
ten answers then place eleven rows, and a candidate that has the first of them wrong pays for it
once, not ten times.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from dmkc.errors import UserError
from dmkc.selection.scores import standardised
from dmkc.showing import printable

HIT = 0.85
"""How likely a candidate is right about a row of middling clearness ..."""
BOUNDARY = 0.3
"""... and how much less (more) so, relative to a guess, about the least (most) clear one."""
SURE_HIT = 0.99
NEGLIGIBLE = 1e-9
"""Below this weight of those who disagree a question has only one likely answer."""
LOOKED_AT = 2000
"""Pairs of rows among which a question about several clusters is looked for."""

Told = tuple[int, int, bool]
"""Two rows by their place in the sample, and whether they belong together."""
MOST_SHOWN = 12
"""Columns of two rows that are shown, those first in which they differ most."""


@dataclass(frozen=True)
class Opinions:
    """What candidates say of the rows of a sample."""

    labels: np.ndarray
    """(candidates, rows)"""
    clearness: np.ndarray
    """(candidates, rows): 0 for the row nearest the boundary, 1 for the farthest."""
    weight: np.ndarray
    """How likely each candidate is."""
    n_clusters: int

    @property
    def hit(self) -> np.ndarray:
        """How likely each candidate is right about each row."""
        sway = 1.0 + BOUNDARY * (2.0 * self.clearness - 1.0)
        return np.minimum(0.5 + (HIT - 0.5) * sway, SURE_HIT)

    def information(self, chances: np.ndarray) -> np.ndarray:
        """What answers are expected to tell, from each candidate's chance of a yes."""
        return entropy(self.weight @ chances) - self.weight @ entropy(chances)

    def split(self, says: np.ndarray) -> np.ndarray:
        """Whether likely candidates disagree."""
        yes = self.weight @ says
        return np.minimum(yes, 1.0 - yes) > NEGLIGIBLE


def clearness(scores: np.ndarray) -> np.ndarray:
    """Ranks of rows by how far their cluster is ahead of the next, 0 to 1; from scores or votes."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        apart = np.abs(scores.ravel())
    else:
        top = np.sort(scores, axis=1)
        apart = top[:, -1] - top[:, -2]
    return (rankdata(apart) - 1.0) / max(len(apart) - 1, 1)


def best_pairs(
    opinions: Opinions,
    answers: Sequence[Told],
    count: int,
    without: Collection[frozenset[int]],
    seed: Sequence[int],
) -> list[tuple[int, int]]:
    """Pairs whose answers would tell most about which candidate is right."""
    if opinions.n_clusters == 2:
        pairs, gain = _with_known(opinions, answers, without)
    else:
        pairs, gain = _at_random(opinions, seed)
    asked = {frozenset(answer[:2]) for answer in answers} | set(without)
    found: list[tuple[int, int]] = []
    for k in np.argsort(-gain, kind="stable"):
        pair = (int(pairs[k, 0]), int(pairs[k, 1]))
        if gain[k] > -np.inf and frozenset(pair) not in asked and len(found) < count:
            asked.add(frozenset(pair))
            found.append(pair)
    return found


def _with_known(
    opinions: Opinions, answers: Sequence[Told], without: Collection[frozenset[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """A known row with every other one; the clearest row where none is known."""
    labels, n = opinions.labels, opinions.labels.shape[1]
    known, side = max(sides(answers), key=lambda part: len(part[0]), default=(None, None))
    clear = opinions.weight @ opinions.clearness
    skipped = Counter(row for pair in without for row in pair)
    among = np.arange(n) if known is None else known
    shown = min(among.tolist(), key=lambda row: (skipped[row], -clear[row]))
    if known is None:
        known, side = np.array([shown]), np.zeros(1, dtype=bool)
    flipped = (labels[:, known] != side).mean(axis=1) > 0.5
    says = (labels == 1) ^ flipped[:, None]
    gain = opinions.information(np.where(says, opinions.hit, 1.0 - opinions.hit))
    gain[~opinions.split(says)] = -np.inf
    gain[known] = -np.inf
    return np.column_stack([np.full(n, shown), np.arange(n)]), gain


def _at_random(opinions: Opinions, seed: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of any rows."""
    labels, others = opinions.labels, opinions.n_clusters - 1
    pairs = np.random.default_rng(seed).integers(labels.shape[1], size=(LOOKED_AT, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    first, second = pairs.T
    says = labels[:, first] == labels[:, second]
    one, two = opinions.hit[:, first], opinions.hit[:, second]
    half, none = one * (1 - two) + (1 - one) * two, (1 - one) * (1 - two)
    apart = half / others + none * (others - 1) / others**2
    gain = opinions.information(np.where(says, one * two + none / others, apart))
    gain[~opinions.split(says)] = -np.inf
    return pairs, gain


def rows_to_move(labels: np.ndarray, answers: Sequence[Told], n_clusters: int) -> np.ndarray:
    """How many rows every candidate would have to move so that the answers hold.

    Exact for two clusters; for more, every contradicted answer counts for a row.
    """
    moves = np.zeros(len(labels), dtype=np.int64)
    if n_clusters == 2:
        for known, side in sides(answers):
            wrong = (labels[:, known] != side).sum(axis=1)
            moves += np.minimum(wrong, len(known) - wrong)
        return moves
    for i, j, together in answers:
        moves += (labels[:, i] == labels[:, j]) != together
    return moves


def sides(answers: Iterable[Told]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows that answers join, and the side of two that each is on relative to the first.

    An answer that contradicts those before it is left out.
    """
    part: dict[int, int] = {}
    side: dict[int, bool] = {}
    for i, j, together in answers:
        for row in (i, j):
            part.setdefault(row, row)
            side.setdefault(row, False)
        if part[i] != part[j]:
            turn, old = side[i] ^ side[j] ^ (not together), part[j]
            for row in [r for r in part if part[r] == old]:
                part[row], side[row] = part[i], side[row] ^ turn
    rows = {p: np.array([r for r in part if part[r] == p]) for p in dict.fromkeys(part.values())}
    return [(known, np.array([side[r] for r in known])) for known in rows.values()]


def entropy(chance: np.ndarray) -> np.ndarray:
    """Of a yes or no, in nats."""
    chance = np.clip(chance, 1e-12, 1.0 - 1e-12)
    return -(chance * np.log(chance) + (1.0 - chance) * np.log1p(-chance))


if TYPE_CHECKING:
    from dmkc.selection.choose import Selection


class Asking:
    """Questions about pairs of rows, and what their answers leave of a selection.

    Parameters
    ----------
    selection : Selection
        What `dmkc.select` found.
    show : function or None, default=None
        From a row number to HTML, such as an image; None shows the values of the two rows.

    Attributes
    ----------
    selection : Selection
        With all answers given so far.
    pair : tuple of two row numbers, or None when there is nothing left to ask.
    skipped : set of pairs that were not answered.
    """

    def __init__(self, selection: Selection, show: Callable[[int], str] | None = None) -> None:
        self.selection, self._show = selection, show
        self.skipped: set[frozenset[int]] = set()
        self._next()

    def same(self) -> Asking:
        """The two rows belong together."""
        return self._answer(True)

    def different(self) -> Asking:
        """The two rows do not belong together."""
        return self._answer(False)

    def skip(self) -> Asking:
        """No answer; another pair is asked about."""
        self.skipped.add(frozenset(self._asked()))
        self._next()
        return self

    def rows(self) -> pd.DataFrame:
        """The two rows of the question side by side, the columns first that tell them apart."""
        i, j = self._asked()
        return side_by_side(self.selection, i, j)

    def _answer(self, same: bool) -> Asking:
        i, j = self._asked()
        self.selection = self.selection.answered([(i, j, same)])
        self._next()
        return self

    def _asked(self) -> tuple[int, int]:
        if self.pair is None:
            raise UserError("There is no question left: all likely candidates agree.")
        return self.pair

    def _next(self) -> None:
        found = self.selection.questions(without=self.skipped)
        self.pair: tuple[int, int] | None = found[0] if found else None

    def _question(self) -> str:
        known = f"{len(self.selection.answers)} answers"
        if self.pair is None:
            return f"{known}; there is nothing left to ask."
        rows = "rows {} and {}".format(*called(self.selection, *self.pair))
        how = ".same(), .different() or .skip()"
        return f"{known}. Do {rows} belong together? Answer by {how}."

    def __repr__(self) -> str:
        if self.pair is None:
            return self._question()
        rows = self.rows().rename(index=printable, columns=printable)
        return f"{self._question()}\n{rows.to_string(float_format=plainly)}"

    def _repr_html_(self) -> str:
        shown = ""
        if self.pair is not None and self._show is None:
            shown = self.rows().to_html(float_format=plainly)
        elif self.pair is not None and self._show is not None:
            named = zip(self.pair, called(self.selection, *self.pair), strict=True)
            cells = (
                f"<td>row {html.escape(name)}<br>{self._show(row)}</td>" for row, name in named
            )
            shown = f"<table><tr>{''.join(cells)}</tr></table>"
        return f"<div>{html.escape(self._question())}{shown}</div>"


def side_by_side(selection: Selection, i: int, j: int, most: int = MOST_SHOWN) -> pd.DataFrame:
    """Two rows of the sample as columns; those first that differ most, in standard deviations."""
    values, names = selection.gathered.sample.values, selection.gathered.sample.rows.column_names
    at = np.searchsorted(selection.positions, [i, j])
    apart = np.abs(np.subtract(*standardised(values)[at]))
    order = np.argsort(-apart, kind="stable")[:most]
    names = names or tuple(f"column {k}" for k in range(values.shape[1]))
    table = values[np.ix_(at, order)].T
    titles = [f"row {name}" for name in called(selection, i, j)]
    return pd.DataFrame(table, index=[names[k] for k in order], columns=titles)


def plainly(value: float) -> str:
    """A number with thousands apart, and with an exponent only where it is very small or large."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def called(selection: Selection, *rows: int) -> list[str]:
    """What rows of the sample are called: by the index of X, where it has one."""
    return selection.gathered.sample.rows.container.row_labels(np.array(rows))
