"""Columns as the user knows them: numbers, categories by name, dates as dates, gaps as gaps.

Whatever made numbers of a table (a recipe, a Pipeline), a report speaks of the table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from dmkc.showing import printable
from dmkc.tables.kinds import decide
from dmkc.tables.recipe import Recipe
from dmkc.tables.summary import as_numbers, as_text, summarised

YES_NO = ("no", "yes")
MOST_WORDS = 30
"""Categories of a column that are told apart; the others are one."""
OTHERS, GAP = "others", "missing"
LONGEST = 60
"""Characters of a name or a category that are shown."""
EXPONENT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?e[+-]\d+")
EPOCH = np.datetime64("1970-01-01", "s")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the sampled rows."""

    name: str
    kind: str
    """number, boolean, category, date or duration."""
    values: np.ndarray
    """float64: numbers, days of dates, numbers of categories; NaN where missing."""
    words: tuple[str, ...] = ()
    """What the categories, or no and yes, are called."""
    places: tuple[int, ...] = ()
    """Columns of the rows as they were given that it stands in."""

    @cached_property
    def present(self) -> np.ndarray:
        return self.values[np.isfinite(self.values)]

    @property
    def is_words(self) -> bool:
        return bool(self.words)

    @cached_property
    def is_whole(self) -> bool:
        return bool((self.present == np.rint(self.present)).all())

    @cached_property
    def _step(self) -> float:
        """A difference that is worth showing: a hundredth of the spread."""
        if not len(self.present):
            return 1.0
        low, high = np.quantile(self.present, [0.05, 0.95])
        spread = float(high - low) or float(np.ptp(self.present)) or float(abs(high)) or 1.0
        return spread / 100

    def text(self, value: float) -> str:
        """A value, or a mean of some, as it is read."""
        if not np.isfinite(value):
            return GAP
        if self.words:
            return self.words[round(value)]
        if self.kind == "date":
            return date(value, self._step)
        shown = number(value, 1.0 if self.is_whole and value == round(value) else self._step)
        return f"{shown} days" if self.kind == "duration" else shown

    def taken(self, rows: np.ndarray) -> Column:
        """The same column of some of the rows."""
        return Column(self.name, self.kind, self.values[rows], self.words, self.places)


def number(value: float, step: float = 1.0) -> str:
    """A number to the digit that `step` has, with thousands apart and without an exponent."""
    if not np.isfinite(value):
        return GAP
    digits = max(0, -math.floor(math.log10(step))) if step > 0 else 0
    if digits > 8 or abs(value) >= 1e15:
        return _power(value)
    rounded = round(value, digits) + 0.0
    plain = f"{rounded:,.{digits}f}" if abs(rounded) >= 10_000 else f"{rounded:.{digits}f}"
    return plain.replace("-", "\N{MINUS SIGN}")


def date(days: float, step: float = 1.0) -> str:
    """Days since 1970 as a date, with the time of the day where a day is much."""
    try:
        stamp = EPOCH + np.timedelta64(round(days * 86_400), "s")
    except (OverflowError, ValueError):
        return number(days)
    return str(stamp)[: 10 if step >= 1 / 24 else 16].replace("T", " ")


def share(part: float) -> str:
    """A share in per cent."""
    percent = 100 * part
    fine = 0.05 <= percent < 9.95 or 99 < percent < 99.95
    shown = f"{percent:.1f}" if fine else "<0.1" if 0 < percent < 0.05 else f"{percent:.0f}"
    return f"{shown}\N{NO-BREAK SPACE}%"


def without_exponents(text: str) -> str:
    """A text in which numbers such as 4.03e+04 are written out."""
    return EXPONENT.sub(lambda found: number(float(found[0]), _last_digit(found[0])), text)


def _last_digit(text: str) -> float:
    """The unit of the last digit of a number that is written with an exponent."""
    digits, power = text.split("e")
    return 10.0 ** (int(power) - len(digits.partition(".")[2]))


def shortened(text: object) -> str:
    """A name of others in one line of bearable length."""
    plain = printable(text)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def of_numbers(values: Any, names: Sequence[str], chosen: Sequence[int]) -> list[Column]:
    """Columns of an array or a sparse matrix."""
    dense = _dense(values, chosen)
    return [
        Column(shortened(names[j]), "number", dense[:, i], (), (j,)) for i, j in enumerate(chosen)
    ]


def of_recipe(values: Any, recipe: Recipe, chosen: Sequence[int]) -> list[Column]:
    """Columns of a table, from the columns of numbers that a recipe has made of it."""
    wanted, found, start = set(chosen), [], 0
    for column in recipe.used:
        places = tuple(range(start, start + len(column.made)))
        start += len(places)
        if not wanted.intersection(places):
            continue
        dense = _dense(values, places)
        absent = dense[:, -1] > 0.5 if column.indicator else np.zeros(len(dense), dtype=bool)
        own = dense[:, : len(places) - column.indicator]
        words: tuple[str, ...] = ()
        if column.kind == "category":
            words = tuple(map(shortened, column.categories))
            # all zeros are a category that has no column of its own
            numbers = np.where(own.any(axis=1), own.argmax(axis=1), len(words))
            words += (OTHERS,) if (~own.any(axis=1) & ~absent).any() else ()
            numbers = numbers.astype(np.float64)
        else:
            numbers = own[:, 0].copy()
            words = YES_NO if column.kind == "boolean" else ()
        numbers[absent] = np.nan
        found.append(Column(shortened(column.name), column.kind, numbers, words, places))
    return found


def of_frame(frame: pd.DataFrame, recipe: Recipe | None) -> list[Column]:
    """Columns of a table in memory; a recipe says what they are, where there is one."""
    known = {} if recipe is None else {column.name: column.kind for column in recipe.used}
    found = []
    for place, name in enumerate(frame.columns):
        series = frame.iloc[:, place]
        if recipe is None:
            decision = decide(name, summarised(series))
            if decision.left_out:
                continue
            kind = decision.kind
        elif name in known:
            kind = known[name]
        else:
            continue
        words: tuple[str, ...] = ()
        if kind == "category":
            numbers, words = _coded(series)
        else:
            numbers = as_numbers(series, kind).to_numpy().astype(np.float64)
            words = YES_NO if kind == "boolean" else ()
        found.append(Column(shortened(name), kind, numbers, words, (place,)))
    return found


def _coded(series: pd.Series) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numbers and the names of categories, the most frequent ones."""
    texts = as_text(series)
    frequent = texts.value_counts()
    names = sorted(frequent.index[:MOST_WORDS], key=str)
    codes = pd.Index(names).get_indexer(texts).astype(np.float64)
    rare = (codes < 0) & texts.notna().to_numpy()
    codes[codes < 0] = np.nan
    codes[rare] = len(names)
    return codes, (*map(shortened, names), *([OTHERS] if rare.any() else []))


def _dense(values: Any, chosen: Sequence[int]) -> np.ndarray:
    some = values[:, list(chosen)]
    return np.asarray(some.toarray() if sp.issparse(some) else some, dtype=np.float64)


def _power(value: float) -> str:
    """A number that is far from 1, as a multiple of a power of ten."""
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value / 10.0**power:.2f} × 10{raised}".replace("-", "\N{MINUS SIGN}")
