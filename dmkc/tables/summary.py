"""What a column holds, in a few numbers that can be added up over the parts of a table."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

MOST_TRACKED = 1000
"""Different values of a column that are counted one by one."""
ISO_DATE = (
    r"\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
INFERRED = {
    "string": "text",
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "decimal": "number",
    "mixed-integer-float": "number",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
    "period": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
    "categorical": "text",
    "empty": "empty",
}
"""What pandas finds in a column of objects, in our words; anything else is "other"."""
DAY = pd.Timedelta(days=1)
MICROSECONDS = 86_400e6
"""Of a day."""
TRUTH_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Summary:
    """What some rows of a column hold."""

    sort: str
    """number, boolean, text, date, duration, empty or other."""
    rows: int
    missing: int
    distinct: int
    """Different values; at least so many where parts were added up and not all are counted."""
    all_differ: bool
    """Whether no value was seen twice."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often the values are there, as text; the most frequent ones where there are many."""
    total: float = 0.0
    """Sum of the values as numbers, as far as they are finite."""
    finite: int = 0
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    """Whether all numbers are whole."""

    @property
    def present(self) -> int:
        return self.rows - self.missing

    @property
    def mean(self) -> float:
        """The mean in twelve digits, which do not depend on how rows were cut into parts."""
        return float(f"{self.total / self.finite:.12g}") if self.finite else 0.0


def summarised(series: pd.Series) -> Summary:
    """What a column in memory holds."""
    values = series.dropna()
    sort, n = sort_of(values), len(series)
    if sort == "empty":
        return Summary(sort, n, n, 0, True)
    if sort == "other":
        return Summary(sort, n, n - len(values), len(values), False)
    texts = sort in ("text", "boolean") or not pd.api.types.is_numeric_dtype(values.dtype)
    distinct = int(values.nunique())
    counts: Counter[str] = Counter()
    if texts or distinct <= MOST_TRACKED:
        found = values.value_counts()
        found = found[found > 0]  # categories that pandas knows of and no row has are none
        named = _frequent(found) if sort == "text" else found
        for text, count in zip(as_text(named.index), named.tolist(), strict=True):
            counts[text] += count
        distinct = len(found) if len(named) < len(found) else len(counts)
        counts = _most(counts)
    more: dict[str, Any] = {}
    if sort != "text":
        numbers = as_numbers(values, sort).to_numpy()
        numbers = numbers[np.isfinite(numbers)]
        more = {"total": float(numbers.sum()), "finite": len(numbers)}
        if len(numbers):
            more |= {"low": float(numbers.min()), "high": float(numbers.max())}
            more["whole"] = bool((numbers == np.rint(numbers)).all())
    return Summary(sort, n, n - len(values), distinct, distinct == len(values), counts, **more)


def added(parts: list[Summary]) -> Summary:
    """What a column holds by what its parts hold."""
    return reduce(_add, parts)


def sort_of(values: pd.Series) -> str:
    """The sort of values of a column, none of them missing."""
    dtype = values.dtype
    if not len(values):
        return "empty"
    if isinstance(dtype, pd.CategoricalDtype):
        return "text"
    if isinstance(dtype, pd.PeriodDtype):
        return "date"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "other" if getattr(dtype, "kind", "f") == "c" else "number"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "date"
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "duration"
    found = INFERRED.get(pd.api.types.infer_dtype(values, skipna=True), "other")
    if found == "other" and all(isinstance(value, str | int | float) for value in values):
        return "text"  # words and numbers in one column
    return _written(values) if found == "text" else found


def as_text(values: Any) -> pd.Series:
    """Values as text; whole numbers look the same whatever their type."""
    series = pd.Series(values).astype(object)
    return series.map(_text, na_action="ignore").astype(object)


def as_numbers(values: pd.Series, sort: str) -> pd.Series:
    """Values as float64: dates and durations in days, true as 1; what is not one is missing."""
    if sort == "date":
        return _days(values)
    if sort == "duration":
        spans = pd.to_timedelta(values.astype(object), errors="coerce")
        return (spans / DAY).astype("float64")
    if sort == "boolean" and not pd.api.types.is_numeric_dtype(values.dtype):
        found = values.astype(object).map(_truth, na_action="ignore")
        return pd.to_numeric(found, errors="coerce").astype("float64")
    if not pd.api.types.is_numeric_dtype(values.dtype):
        values = pd.to_numeric(values.astype(object), errors="coerce")
    return pd.Series(values.to_numpy(dtype=np.float64, na_value=np.nan), index=values.index)


def _days(values: pd.Series) -> pd.Series:
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        stamps = values
    elif pd.api.types.is_numeric_dtype(values.dtype):
        return as_numbers(values, "number")
    else:
        texts = values.astype(object).map(str, na_action="ignore")
        stamps = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")
        if stamps.isna().sum() > values.isna().sum():
            stamps = pd.to_datetime(texts, errors="coerce", utc=True, format="mixed")
    if stamps.dt.tz is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    # In microseconds, which reach the year 9999 and whatever else stands for "never".
    times = stamps.to_numpy().astype("datetime64[us]")
    days = times.astype(np.int64) / MICROSECONDS
    return pd.Series(np.where(np.isnat(times), np.nan, days), index=values.index)


def _written(values: pd.Series) -> str:
    """The sort of what is written as text: dates and truth values are known by their form."""
    # One look at the first values spares most columns the slow tests of all of them.
    first = values.head(20).astype(str)
    if not (all(first.str.lower().isin(TRUTH_WORDS)) or all(first.str.fullmatch(ISO_DATE))):
        return "text"
    unique = pd.Series(values.unique()).astype(object).astype(str)
    if set(unique.str.lower()) <= set(TRUTH_WORDS):
        return "boolean"
    if unique.str.fullmatch(ISO_DATE).all():
        stamps = pd.to_datetime(unique, errors="coerce", utc=True, format="ISO8601")
        return "date" if stamps.notna().all() else "text"
    return "text"


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    return str(value)


def _truth(value: Any) -> float:
    return TRUTH_WORDS.get(str(value).lower(), math.nan)


def _frequent(found: pd.Series) -> pd.Series:
    """The most frequent of many values, without sorting all of those that are rare."""
    if len(found) <= MOST_TRACKED:
        return found
    edge = found.iloc[MOST_TRACKED - 1]
    if found.iloc[0] == 1:
        return found.head(MOST_TRACKED)  # names of rows, none of them worth more than another
    above, tied = found[found > edge], found.index[found == edge]
    first = heapq.nsmallest(MOST_TRACKED - len(above), tied.astype(object), key=str)
    return pd.concat([above, pd.Series(edge, index=first)])


def _most(counts: Counter[str]) -> Counter[str]:
    """The most frequent values, the first in the alphabet where they are equally frequent."""
    if len(counts) <= MOST_TRACKED:
        return counts
    return Counter(
        dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TRACKED])
    )


def _add(a: Summary, b: Summary) -> Summary:
    if a.sort == "empty" or b.sort == "empty":
        seen = b if a.sort == "empty" else a
        return Summary(**{**vars(seen), "rows": a.rows + b.rows, "missing": a.missing + b.missing})
    both = a.counts + b.counts
    known = len(a.counts) == a.distinct and len(b.counts) == b.distinct
    overlap = bool(a.counts.keys() & b.counts.keys())
    differ = a.all_differ and b.all_differ and not overlap
    if known:
        distinct = len(both)
    elif differ:
        distinct = a.distinct + b.distinct
    else:
        distinct = max(a.distinct, b.distinct, len(both))
    return Summary(
        _common_sort(a.sort, b.sort),
        a.rows + b.rows,
        a.missing + b.missing,
        distinct,
        differ,
        _most(both),
        a.total + b.total,
        a.finite + b.finite,
        min(a.low, b.low),
        max(a.high, b.high),
        a.whole and b.whole,
    )


def _common_sort(a: str, b: str) -> str:
    if a == b:
        return a
    if "other" in (a, b):
        return "other"
    return "number" if {a, b} == {"number", "boolean"} else "text"
