"""Asking a person about pairs of rows, one after the other, in a terminal or a notebook.

`Asking` is a small machine without input or output of its own: it holds the pair to be asked about
next and takes the answer.  In a notebook it is shown as the two rows side by side.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dmkc.errors import UserError
from dmkc.selection.evidence import standardised

if TYPE_CHECKING:
    from dmkc.selection.choose import Selection

MOST_SHOWN = 12
"""Columns of two rows that are shown, those first in which they differ most."""


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

    def _repr_html_(self) -> str:
        known = f"{len(self.selection.answers)} answers"
        if self.pair is None:
            return f"<div>{known}; there is nothing left to ask.</div>"
        i, j = self.pair
        if self._show is None:
            shown = self.rows().to_html(float_format=lambda value: f"{value:.4g}")
        else:
            cells = (f"<td>row {row}<br>{self._show(row)}</td>" for row in (i, j))
            shown = f"<table><tr>{''.join(cells)}</tr></table>"
        how = html.escape(".same(), .different() or .skip()")
        return f"<div>{known}. Do rows {i} and {j} belong together? Answer by {how}.{shown}</div>"


def side_by_side(selection: Selection, i: int, j: int, most: int = MOST_SHOWN) -> pd.DataFrame:
    """Two rows of the sample as columns; those first that differ most, in standard deviations."""
    values, names = selection.gathered.values, selection.gathered.columns
    at = np.searchsorted(selection.positions, [i, j])
    apart = np.abs(np.subtract(*standardised(values)[at]))
    order = np.argsort(-apart, kind="stable")[:most]
    names = names or [f"column {k}" for k in range(values.shape[1])]
    table = values[np.ix_(at, order)].T
    return pd.DataFrame(table, index=[names[k] for k in order], columns=[f"row {i}", f"row {j}"])
