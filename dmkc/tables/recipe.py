"""The recipe by which columns of a table become columns of numbers.

It is decided on the table of a fit, is plain JSON in a model file, and makes the same columns of
any other table: numbers stay as they are, dates become days since 1970, every category has a column
`name=category` of zeros and ones, and truth values one that is `name=True`.  Estimators know such
columns by their names (`Rows.together`) and scale those of one category by one number, so that it
weighs no more than a number does, however many values it has and however rare they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dmkc.data.rows import BETWEEN
from dmkc.errors import UserError
from dmkc.tables.kinds import KINDS, categories_of, decide
from dmkc.tables.summary import Summary, as_numbers, as_text

MISSING = ("refuse", "drop", "impute")
"""What is done about missing values."""
ABSENT = "missing"
"""What follows the name of a column that says where values were missing."""
MOST_SHOWN, MOST_LISTED = 5, 20
"""Values and columns that a sentence names."""


def few(items: Sequence[Any], between: str = ", ") -> str:
    """The first of many items, and how many more there are."""
    more = f" and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return between.join(map(str, items[:MOST_LISTED])) + more


class MissingValues(UserError):
    """Rows with missing values, which nobody said what to do about."""

    def __init__(self, counts: dict[str, int], rows: int, n_rows: int, first: Any = None) -> None:
        self.counts, self.rows, self.n_rows, self.first = counts, rows, n_rows, first
        super().__init__(self.told('missing="drop"', 'missing="impute"', "exclude"))

    def told(self, drop: str, impute: str, exclude: str) -> str:
        """A sentence that says what to do in the words of Python or of the command line."""
        columns = few([f"{name} {count}" for name, count in self.counts.items()])
        place = "" if self.first is None else f"; the first is row {self.first}"
        have = "has" if self.rows == 1 else "have"
        return (
            f"{self.rows} of {self.n_rows} rows {have} missing values ({columns}{place}): drop "
            f"such rows with {drop}, fill values in with {impute}, or leave the columns out with "
            f"{exclude}."
        )

    def __reduce__(self) -> Any:
        return type(self), (self.counts, self.rows, self.n_rows, self.first)


@dataclass(frozen=True)
class Column:
    """One column of the table and what is made of it."""

    name: str | int
    kind: str
    left_out: str = ""
    """Why nothing is made of it, if so."""
    categories: tuple[str, ...] = ()
    fill: float = 0.0
    """What stands for a missing number: the mean."""
    indicator: bool = False
    """Whether a further column says where values were missing."""

    @property
    def made(self) -> list[str | int]:
        """The names of the columns that are made."""
        if self.left_out:
            return []
        absent: list[str | int] = [f"{self.name}{BETWEEN}{ABSENT}"] if self.indicator else []
        if self.kind == "category":
            return [*(f"{self.name}{BETWEEN}{text}" for text in self.categories), *absent]
        if self.kind == "boolean":
            return [f"{self.name}{BETWEEN}{True}", *absent]
        return [self.name, *absent]

    def told(self) -> str:
        """What is done with the column, in a few words."""
        if self.left_out:
            return f"left out: {self.left_out}"
        if self.kind == "category":
            return f"{len(self.categories)} columns of 0 and 1"
        words = {"date": "days since 1970", "duration": "days", "boolean": "a column of 0 and 1"}
        return words.get(self.kind, "as it is")


@dataclass(frozen=True, eq=False)
class Applied:
    """What a recipe makes of a table in memory."""

    numbers: pd.DataFrame
    kept: np.ndarray
    """Which rows of the table these are."""
    unknown: dict[str, Counter[str]] = field(default_factory=dict)
    """How often categories were met that the fit had not seen, by column."""


@dataclass(frozen=True)
class Recipe:
    """What is made of every column of a table."""

    columns: tuple[Column, ...]
    missing: str = "refuse"
    index: str | int | None = None
    """The column that names the rows, where there is one."""

    @classmethod
    def decided(
        cls,
        found: Mapping[Any, Summary],
        *,
        missing: str = "refuse",
        kinds: Mapping[Any, str] | None = None,
        include: Sequence[Any] = (),
        exclude: Sequence[Any] = (),
    ) -> Recipe:
        """The recipe for a table that holds this, as far as nobody wants something else."""
        kinds = dict(kinds or {})
        for name, kind in kinds.items():
            if kind not in KINDS:
                raise UserError(
                    f"{kind!r}, asked for of the column {name!r}, is no kind of columns; kinds are "
                    f"{', '.join(KINDS)}."
                )
        for name in (*kinds, *include, *exclude):
            if name not in found:
                raise UserError(_no_column(name, list(found)))
        columns = []
        for name, summary in found.items():
            decision = decide(name, summary)
            kind = kinds.get(name, decision.kind)
            left_out = "" if name in kinds or name in include else decision.left_out
            if name in exclude:
                left_out = "as asked"
            if summary.sort == "other" and not left_out:
                raise UserError(f"The column {name!r} holds {decision.left_out}; leave it out.")
            values = categories_of(summary) if kind == "category" and not left_out else ()
            gaps = missing == "impute" and summary.missing > 0 and not left_out
            columns.append(Column(name, kind, left_out, values, summary.mean, gaps))
        recipe = cls(tuple(columns), missing)
        recipe._check()
        return recipe

    @property
    def used(self) -> list[Column]:
        """The columns that something is made of."""
        return [column for column in self.columns if not column.left_out]

    @property
    def made(self) -> list[str | int]:
        """The names of all columns that are made; all are text where one of them has to be."""
        names = [name for column in self.used for name in column.made]
        return names if all(isinstance(name, int) for name in names) else list(map(str, names))

    def left_out(self) -> dict[str, str]:
        """The columns that nothing is made of, and why, but for those that were not wanted."""
        return {str(c.name): c.left_out for c in self.columns if c.left_out not in ("", "as asked")}

    def with_missing(self, missing: str) -> Recipe:
        """The same columns with another answer to missing values."""
        return replace(self, missing=missing)

    def apply(self, frame: pd.DataFrame) -> Applied:
        """The columns of numbers of a table in memory, found by name."""
        used, gaps = self._found_in(frame), self.gaps(frame)
        holed = gaps.any(axis=1).to_numpy()
        if self.missing == "refuse" and holed.any():
            counts = {str(name): int(count) for name, count in gaps.sum().items() if count}
            raise MissingValues(counts, int(holed.sum()), len(frame), frame.index[holed][0])
        kept = ~holed if self.missing == "drop" else np.ones(len(frame), dtype=bool)
        part = frame if kept.all() else frame[kept]
        made: dict[Any, Any] = {}
        unknown: dict[str, Counter[str]] = {}
        for column, there in used:
            absent = gaps[column.name].to_numpy()[kept]
            if column.kind == "category":
                values, strange = _one_hot(part[there], column)
                made |= values
                if strange:
                    unknown[str(column.name)] = strange
            else:
                made[column.name] = _filled(part[there], column, absent)
            if column.indicator:
                made[f"{column.name}{BETWEEN}{ABSENT}"] = absent.astype(np.float32)
        numbers = pd.DataFrame(made, index=part.index)
        return Applied(numbers.set_axis(self.made, axis=1), kept, unknown)

    def kept(self, frame: pd.DataFrame) -> np.ndarray:
        """Which rows of a table something is made of."""
        if self.missing != "drop":
            return np.ones(len(frame), dtype=bool)
        return ~self.gaps(frame).any(axis=1).to_numpy()

    def gaps(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Where values are missing that something should be made of, by the recipe's names."""
        used = self._found_in(frame)
        found = frame[[there for _, there in used]].isna()
        return found.set_axis([column.name for column, _ in used], axis=1)

    def unknown(self, frame: pd.DataFrame) -> dict[str, Counter[str]]:
        """How often categories are met that have no column, by column."""
        found = {
            str(column.name): _codes(frame[there], column)[1]
            for column, there in self._found_in(frame)
            if column.kind == "category"
        }
        return {name: counts for name, counts in found.items() if counts}

    def fits(self, names: Sequence[Any]) -> bool:
        """Whether a table of these columns has all that the recipe asks for."""
        return {c.name for c in self.used} <= set(names)

    def wants(self, names: Sequence[Any]) -> bool:
        """Whether a table of these columns is one to apply it to, and not what it makes of one.

        Where nothing but numbers is made, under their own names, it does no harm to do so twice.
        """
        made = self.made
        return not set(made) <= set(names) or made == [column.name for column in self.used]

    def as_json(self) -> dict[str, Any]:
        """The recipe as plain values."""
        columns = [{**asdict(c), "categories": list(c.categories)} for c in self.columns]
        return {"missing": self.missing, "index": self.index, "columns": columns}

    @classmethod
    def from_json(cls, stored: Any) -> Recipe:
        """The recipe that was stored; a sentence where it is none."""
        try:
            columns = tuple(
                Column(**{**found, "categories": tuple(found["categories"])})
                for found in stored["columns"]
            )
            index = stored["index"]
            fine = stored["missing"] in MISSING and all(map(_is_fine, columns))
            fine = fine and (index is None or isinstance(index, str | int)) and bool(columns)
        except (KeyError, TypeError, AttributeError):
            fine = False
        if not fine:
            raise UserError("What is stored of the table's columns is malformed.")
        return cls(columns, stored["missing"], index)

    def _found_in(self, frame: pd.DataFrame) -> list[tuple[Column, Any]]:
        """Every column with its name in the table; columns without names are taken in order."""
        names, used = list(frame.columns), self.used
        if not self.fits(names) and len(names) == len(used):
            if all(isinstance(name, int) for name in names):
                return list(zip(used, names, strict=True))
        absent = [str(column.name) for column in used if column.name not in names]
        if absent:
            many = "columns" if len(absent) > 1 else "a column"
            raise UserError(f"The table lacks {many} that the model was fitted on: {few(absent)}.")
        return [(column, column.name) for column in used]

    def _check(self) -> None:
        if not self.used:
            reasons = few([f"{c.name} ({c.left_out})" for c in self.columns])
            raise UserError(f"No column is left to cluster: {reasons or 'the table has none'}.")
        names = self.made
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise UserError(
                f"Two columns would be called {twice[0]!r}: rename one of the table, or leave it "
                "out."
            )


def _is_fine(column: Column) -> bool:
    texts = (column.left_out, *column.categories)
    return (
        isinstance(column.name, str | int)
        and column.kind in KINDS
        and all(isinstance(text, str) for text in texts)
        and isinstance(column.fill, int | float)
        and isinstance(column.indicator, bool)
    )


def _no_column(name: Any, there: list[Any]) -> str:
    return f"There is no column {name!r}; the columns are {few(there)}."


def _one_hot(series: pd.Series, column: Column) -> tuple[dict[Any, np.ndarray], Counter[str]]:
    """A column of zeros and ones for every category, and what is none of them."""
    codes, strange = _codes(series, column)
    values = {
        name: (codes == number).astype(np.float32)
        for number, name in enumerate(column.made[: len(column.categories)])
    }
    return values, strange


def _codes(series: pd.Series, column: Column) -> tuple[np.ndarray, Counter[str]]:
    """The number of every row's category, -1 for none, and how often others were met."""
    found, values = pd.factorize(series)
    texts = as_text(values)
    known = pd.Index(list(column.categories), dtype=object).get_indexer(texts)
    codes = np.append(known, -1)[found]
    times = np.bincount(found[(codes < 0) & (found >= 0)], minlength=len(texts))
    strange: Counter[str] = Counter()
    for place in np.flatnonzero(times):
        strange[texts.iloc[place]] += int(times[place])
    return codes, strange


def _filled(series: pd.Series, column: Column, absent: np.ndarray) -> Any:
    """A column of numbers, in its own type where that is one of numbers and nothing is missing."""
    plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf"
    if column.kind in ("number", "boolean", "duration") and plain:
        if not absent.any():
            return series.to_numpy()
        return series.fillna(column.fill).to_numpy()
    numbers = as_numbers(series, column.kind).to_numpy().copy()
    wrong = np.isnan(numbers) & ~absent
    if wrong.any():
        value = str(series.iloc[int(np.flatnonzero(wrong)[0])])[:40]
        where = series.index[wrong][0]
        raise UserError(
            f"The column {str(column.name)!r} is used as a {column.kind}, but {value!r} in row "
            f"{where} is none ({int(wrong.sum())} such rows)."
        )
    numbers[absent] = column.fill
    return numbers
