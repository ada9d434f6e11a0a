"""From the columns of a table to the rows that are clustered: what is made of them and what is not.

One pass says what will be dropped and what is unknown, the same for tables in memory and lazy ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dmkc.cli.reading import DELIMITERS, CsvOptions, Held, find_column, read_columns, suffix_of
from dmkc.errors import UserError
from dmkc.showing import printable
from dmkc.tables import Column, MissingValues, Recipe, is_lazy
from dmkc.tables.columns import numbers_of, strangers, summaries
from dmkc.tables.frames import of_parts
from dmkc.tables.recipe import MOST_LISTED, few
from dmkc.tables.summary import Summary
from dmkc.typing import TableLike


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, which of its columns count and as what."""

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    index_column: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    dtype: str | None = None
    missing: tuple[str, ...] = ()
    gaps: str | None = None
    """What is done about missing values: drop or impute; None: refuse, or as the model does."""

    @property
    def plain(self) -> bool:
        """Whether nothing is asked for that only tables have."""
        return self == TableOptions()

    @property
    def csv(self) -> CsvOptions:
        return CsvOptions(self.delimiter, self.header, self.missing)


@dataclass(frozen=True, eq=False)
class Source:
    """The table that rows come from, of which some may have been dropped."""

    frame: Any
    """All rows and columns, in memory or lazily."""
    recipe: Recipe
    index: Any
    """The column that names the rows; None: their numbers do."""
    lengths: tuple[int, ...]
    """Rows of every part of the frame."""
    kept_lengths: tuple[int, ...]
    """The same without those that were dropped."""
    texts: Callable[[], Any] | None = None
    """The cells of a file of text as they are written."""

    @property
    def n_rows(self) -> int:
        return sum(self.lengths)

    def kept(self) -> np.ndarray:
        """Which rows were not dropped."""
        return np.concatenate(of_parts(self.frame, self.recipe.kept))

    def column(self, name: Any) -> pd.Series:
        """The values of a column in the rows that were not dropped."""
        parts = of_parts(self.frame, partial(_column, name=name, recipe=self.recipe))
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Table:
    """Input rows in the form a clusterer takes."""

    X: TableLike
    n_rows: int | None
    """None when only a pass over the file would tell."""
    notes: tuple[str, ...] = ()
    source: Source | None = None
    """None where the rows come from an array."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What was left out and dropped, for metrics.json."""


def read_held(path: str, kind: str, options: TableOptions) -> Held:
    """All columns of a table; the index column is the one asked for, or the file's own."""
    if options.dtype is not None:
        _check_dtype(options.dtype)
    if options.delimiter is None:
        options = replace(options, delimiter=DELIMITERS.get(suffix_of(path), ","))
    held = read_columns(path, kind, options.csv)
    if options.index_column is None:
        return held
    index = find_column(options.index_column, list(held.frame.columns))
    return replace(held, index=index)


def decided(
    held: Held,
    options: TableOptions,
    besides: Sequence[str] = (),
    known: Mapping[Any, Summary] | None = None,
) -> Recipe:
    """The recipe for a new table; what its columns hold may be known already."""
    there = list(held.frame.columns)
    find = partial(find_column, there=there)
    out = {find(name) for name in (*options.exclude, *besides)}
    if held.index is not None:
        out.add(held.index)
    chosen = there if options.columns is None else [find(name) for name in options.columns]
    kinds = {find(name): kind for name, kind in options.kinds}
    include = [find(name) for name in options.include]
    wanted = [name for name in dict.fromkeys(chosen) if name not in out]
    wanted += [name for name in (*include, *kinds) if name not in wanted and name not in out]
    if not wanted:
        raise UserError("No column is left to cluster; choose fewer with --exclude.")
    # Whoever lists columns wants them, whatever they look like.
    include += [] if options.columns is None else wanted
    kinds = {name: kind for name, kind in kinds.items() if name in wanted}
    include = [name for name in include if name in wanted]
    return Recipe.decided(
        summaries(held.frame[wanted]) if known is None else {name: known[name] for name in wanted},
        missing=options.gaps or "refuse",
        kinds=kinds,
        include=include,
    )


def _by_names(held: Held, options: TableOptions, names: Any) -> Recipe:
    """Columns as they are, for a model that has no recipe but may know names."""
    there = list(held.frame.columns)
    wanted = there
    if options.columns is not None:
        wanted = [find_column(name, there) for name in options.columns]
    elif names is not None and any(isinstance(name, str) for name in there):
        wanted = list(names)
    out = [find_column(name, there) for name in options.exclude]
    kept = [n for n in dict.fromkeys(wanted) if n not in out and n != held.index]
    if not kept:
        raise UserError("No column is left to cluster; choose fewer with --exclude.")
    return Recipe(tuple(Column(name, "number") for name in kept), options.gaps or "refuse")


def table_of(
    path: str,
    kind: str,
    options: TableOptions,
    model: Any = None,
    besides: Sequence[str] = (),
    as_it_is: bool = False,
    whole: bool = False,
) -> Table:
    """The rows of a table for a new fit, or for a model; `besides` are columns for other uses.

    A table that is taken as it is has numbers in all of its columns.  Of a whole one all columns
    are kept, for copies of it.
    """
    held = read_held(path, kind, options)
    stored = None if model is None else model._fitted("table_")
    seen = held
    if as_it_is:
        recipe = _by_names(held, options, None)
    elif model is None:
        recipe = replace(decided(held, options, besides), index=held.index)
    elif stored is None:
        recipe = _by_names(held, options, model._fitted("feature_names_in_"))
    else:
        recipe = _of_model(Recipe.from_json(stored), options)
        if held.index is None and recipe.index in held.frame.columns:
            held = replace(held, index=recipe.index)
        seen = _narrowed(held, options)
    if not whole:
        held = seen = _only_used(seen, recipe, besides)
    looks = _looked(path, seen, recipe)
    unknown: dict[str, Counter[str]] = {}
    for look in looks:
        for name, counts in look.unknown.items():
            unknown[name] = unknown.get(name, Counter()) + counts
    lengths, kept = tuple(look.rows for look in looks), tuple(look.kept for look in looks)
    source = Source(held.frame, recipe, held.index, lengths, kept, held.texts)
    left_out = recipe.left_out() if model is None else {}
    notes, facts = _told(left_out, sum(lengths), sum(kept))
    X = _numbers(path, seen, recipe, options.dtype)
    said = tuple(printable(note) for note in (*notes, *strangers(unknown)))
    return Table(X, sum(kept), said, source, facts)


def _only_used(held: Held, recipe: Recipe, besides: Sequence[str]) -> Held:
    """A lazy table without the columns that nobody asks for, which would be read on every pass."""
    there = list(held.frame.columns)
    if held.some is None or not recipe.fits(there):
        return held
    names = [column.name for column in recipe.used]
    names += [find_column(name, there) for name in besides]
    names += [] if held.index is None else [held.index]
    return replace(held, frame=held.some(list(dict.fromkeys(names))))


def _of_model(recipe: Recipe, options: TableOptions) -> Recipe:
    for value, flag in ((options.include, "--include"), (options.kinds, "--kinds")):
        if value:
            raise UserError(f"The model knows what is made of columns; leave {flag} out.")
    return recipe if options.gaps is None else recipe.with_missing(options.gaps)


def _narrowed(held: Held, options: TableOptions) -> Held:
    """The columns that may be looked at for those of a model, and the one that names rows."""
    there = list(held.frame.columns)
    out = [find_column(name, there) for name in options.exclude]
    chosen = there if options.columns is None else [find_column(n, there) for n in options.columns]
    names = [name for name in chosen if name not in out or name == held.index]
    if held.index is not None and held.index not in names:
        names.append(held.index)
    return held if names == there else replace(held, frame=held.frame[names])


def _told(left_out: dict[str, str], n_rows: int, n_kept: int) -> tuple[list[str], dict[str, Any]]:
    """What was left out and dropped, in sentences and as facts."""
    notes: list[str] = []
    facts: dict[str, Any] = {}
    if left_out:
        listed = few([f"{name} ({why})" for name, why in left_out.items()])
        notes.append(f"Columns left out: {listed}; use one all the same with --include.")
        facts["columns_left_out"] = left_out
    if n_kept < n_rows:
        notes.append(f"{n_rows - n_kept} of {n_rows} rows were dropped for missing values.")
        facts["rows_dropped"] = n_rows - n_kept
    return notes, facts


@dataclass(frozen=True)
class _Look:
    """What a recipe will make of a part of a table."""

    rows: int
    kept: int
    gaps: Counter[str]
    holed: int
    unknown: dict[str, Counter[str]]


def _look(part: pd.DataFrame, recipe: Recipe) -> _Look:
    found = recipe.gaps(part)
    holed = int(found.any(axis=1).sum())
    gaps = Counter({str(name): int(count) for name, count in found.sum().items() if count})
    kept = len(part) - holed if recipe.missing == "drop" else len(part)
    return _Look(len(part), kept, gaps, holed, recipe.unknown(part))


def _looked(path: str, held: Held, recipe: Recipe) -> list[_Look]:
    """One pass over a table: what will be dropped and what is unknown; refuses missing values."""
    looks = of_parts(held.frame, partial(_look, recipe=recipe))
    holed, n_rows = sum(look.holed for look in looks), sum(look.rows for look in looks)
    if holed and recipe.missing == "refuse":
        gaps: Counter[str] = sum((look.gaps for look in looks), Counter())
        problem = MissingValues(dict(gaps), holed, n_rows)
        exclude = "--exclude" if len(gaps) > MOST_LISTED else f"--exclude {','.join(gaps)}"
        text = problem.told("--drop-missing", "--impute-missing", exclude)
        raise UserError(f"{path}: {text}")
    if holed == n_rows and recipe.missing == "drop":
        raise UserError(
            f"Every row of {path} has a missing value, so that none is left; fill values in with "
            "--impute-missing or leave columns out with --exclude."
        )
    return looks


def _numbers(path: str, held: Held, recipe: Recipe, dtype: str | None) -> Any:
    """The rows that are clustered, named by the index column."""
    frame = held.frame
    if held.index is not None and not is_lazy(frame):
        frame = frame.set_index(held.index)
    if is_lazy(frame):
        X = numbers_of(frame, recipe)
    else:
        X = recipe.apply(frame).numbers
    if dtype is None:
        return X
    plain = [str(c.name) if isinstance(X.columns[0], str) else c.name for c in recipe.used]
    plain = [name for name in plain if name in X.columns]
    if np.dtype(dtype).kind in "iu" and not is_lazy(X):
        if (X[plain] != np.rint(X[plain])).any(axis=None):
            raise UserError(
                f"{path} cannot be read as numbers of type {dtype}: some have fractions."
            )
    return X.astype({name: dtype for name in plain})


def _column(part: pd.DataFrame, name: Any, recipe: Recipe) -> pd.Series:
    return part.loc[recipe.kept(part), name]


def _check_dtype(name: str) -> None:
    try:
        fine = np.dtype(name).kind in "iuf"
    except TypeError:
        fine = False
    if not fine:
        raise UserError(f"{name!r} is not a type of numbers; use one such as float32 or float64.")
