"""How columns are scaled, and what the kernels of a bank share for a tile of rows, each made once.

Kernels share what they refer to together: two kernels with the same array of landmarks share the
inner products with it.  Buffers live as long as a block is worked on, so that memory is touched
once and not for every tile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from dmkc.errors import UserError
from dmkc.kernels import loops
from dmkc.scan.survey import Survey

Made = TypeVar("Made")
MIXED = 5.0
"""Columns have different units where the largest spread is more than this many times the median."""

FAR_FROM_ONE = 1e10
"""Columns of one unit that are larger or smaller are divided by one number, which changes it."""
TILE_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Scaling:
    """How columns are shifted and scaled before any kernel sees them."""

    shift: np.ndarray
    factor: np.ndarray

    def apply(self, rows: Any) -> np.ndarray:
        """Standardised rows in float64 (for samples; sparse rows become dense)."""
        dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return (dense.astype(np.float64) - self.shift) * self.factor


def constant_columns(survey: Survey) -> np.ndarray:
    """Which columns do not vary, or by no more than rounding takes away."""
    return (survey.spread <= 1e-14 * np.abs(survey.mean)) | (survey.high == survey.low)


def two_valued(survey: Survey) -> np.ndarray:
    """Which columns hold two values: no other ones vary as much between their ends."""
    most = (survey.mean - survey.low) * (survey.high - survey.mean)
    return np.asarray(survey.deviation / survey.count >= (1.0 - 1e-9) * most)


def scaling_of(
    survey: Survey,
    scale: str | None,
    min_rows: int = 2,
    views: Iterable[tuple[int, int]] = (),
    together: Iterable[tuple[int, int]] = (),
) -> Scaling:
    """Columns are always shifted to mean zero; `scale` says what they are divided by.

    "if-mixed" is "standard" where the columns of a view seem to have different units, and None
    where not; of a column of two values it takes half the range, so that a rare one is not blown
    up.  Columns that belong `together` are those of one category; see `_of_categories`.
    """
    constant = constant_columns(survey)
    if constant.all() and min_rows > 1:
        raise UserError(
            "All rows are equal (every column is constant), so there is nothing to cluster."
        )
    size = np.ones_like(survey.mean)
    spread, width = _of_categories(survey, together)
    unit = np.where(two_valued(survey) & (spread == survey.spread), width / 2.0, spread)
    if scale == "standard":
        size = spread
    elif scale == "minmax":
        size = width
    elif scale == "if-mixed":
        for start, stop in views or [(0, len(size))]:
            part = unit[start:stop][~constant[start:stop]]
            if mixed_units(part):
                size[start:stop] = unit[start:stop]
            elif len(part) and not 1.0 / FAR_FROM_ONE < part.max() < FAR_FROM_ONE:
                size[start:stop] = part.max()  # squares and cubes of them must be numbers
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, size))
    return Scaling(survey.mean, factor)


def _of_categories(
    survey: Survey, together: Iterable[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """What columns are divided by: their spread and their range, but for those of categories.

    The zeros and ones of a category are divided by one number: the spread that they have together
    where all values are equally frequent.  So they have the variance of one other column at most,
    however many values there are, and a rare value is not blown up.  In the range, rows of two
    categories are as far apart as the ends of another column.
    """
    spread, width = survey.spread.copy(), survey.high - survey.low
    for start, stop in together:
        low, high, m = survey.low[start:stop], survey.high[start:stop], stop - start
        if low.min() >= 0 and high.max() <= 1:
            spread[start:stop] = np.sqrt((m - 1) / m) if m > 1 else 0.5
            width[start:stop] = np.sqrt(2.0) if m > 1 else 1.0
    return spread, width


def evened(scaling: Scaling, survey: Survey, views: Iterable[tuple[int, int]]) -> Scaling:
    """The same with every view divided by the root of its summed variance, so that all weigh alike.

    What looks at all columns at once, such as a k-means start, would else see wide views only.
    """
    factor = scaling.factor.copy()
    for start, stop in views:
        size = np.sqrt(np.sum((survey.spread[start:stop] * factor[start:stop]) ** 2))
        factor[start:stop] /= size if size > 0 else 1.0
    return Scaling(scaling.shift, factor) if views else scaling


def in_unit_range(scaling: Scaling, survey: Survey) -> Scaling:
    """The same with all columns divided by one number, such that the widest one has range 1."""
    widest = float(np.max((survey.high - survey.low) * scaling.factor, initial=0.0))
    return Scaling(scaling.shift, scaling.factor / widest) if widest > 0 else scaling


def mixed_units(spread: np.ndarray) -> bool:
    """Whether columns of these standard deviations (none of them 0) seem to have no common unit."""
    return len(spread) > 0 and bool(spread.max() > MIXED * np.median(spread))


@dataclass(frozen=True, eq=False)
class View:
    """The columns that some kernels see, and how these are scaled."""

    columns: tuple[int, ...] | None
    """Their numbers, ascending; None: all."""
    scaling: Scaling
    """Of these columns alone."""

    @classmethod
    def of(cls, columns: tuple[int, ...] | None, whole: Scaling) -> View:
        """A view of rows that are scaled like this."""
        if columns is None:
            return cls(None, whole)
        some = list(columns)
        return cls(columns, Scaling(whole.shift[some], whole.factor[some]))

    @property
    def n_columns(self) -> int:
        return len(self.scaling.shift)

    def __call__(self, rows: Any) -> Any:
        """The columns of some rows, in memory as the loops want them."""
        if self.columns is None:
            return rows
        first, last = self.columns[0], self.columns[-1]
        adjacent = last - first + 1 == len(self.columns)
        part = rows[:, slice(first, last + 1) if adjacent else list(self.columns)]
        return part if sp.issparse(part) else np.ascontiguousarray(part)


class Tiles:
    """Cuts the rows of a block into tiles, under one view."""

    def __init__(self, view: View, dtype: np.dtype, tile_rows: int) -> None:
        self.view, self.dtype, self.tile_rows = view, dtype, tile_rows
        self._kept: dict[Hashable, tuple[Any, Any]] = {}

    def of(self, rows: Any) -> Iterator[tuple[slice, Tile]]:
        """Every tile with its place among the rows."""
        kind = SparseTile if sp.issparse(rows) else DenseTile
        for start in range(0, rows.shape[0], self.tile_rows):
            place = slice(start, start + self.tile_rows)
            yield place, kind(self, self.view(rows[place]))

    def kept(self, what: str, owner: np.ndarray, make: Callable[[], Made]) -> Made:
        """Something about an array, made once for all tiles."""
        key = (what, id(owner))
        if key not in self._kept:
            self._kept[key] = (make(), owner)  # holding the owner keeps its id from being reused
        return self._kept[key][0]

    def buffer(self, what: str, owner: np.ndarray, n: int, width: int) -> np.ndarray:
        """Memory for the first `n` rows of a tile."""
        return self.kept(what, owner, lambda: np.empty((self.tile_rows, width), self.dtype))[:n]

    def landmarks(self, points: np.ndarray) -> np.ndarray:
        return self.kept("landmarks", points, lambda: points.astype(self.dtype))

    def landmark_squares(self, points: np.ndarray) -> np.ndarray:
        def make() -> np.ndarray:
            return np.einsum("ij,ij->i", points, points).astype(self.dtype)

        return self.kept("squares", points, make)


class Tile(ABC):
    """Some rows as the kernels of one view see them: shifted, scaled, in the plan's precision."""

    rows: np.ndarray
    """Dense rows."""
    squares: np.ndarray
    """Their squared norms."""

    def __init__(self, tiles: Tiles, n: int) -> None:
        self.tiles, self.n = tiles, n
        self._made: dict[Hashable, Any] = {}

    def shared(self, what: str, owner: np.ndarray, make: Callable[[], Made]) -> Made:
        """Something about this tile and an array, made once for all kernels that ask for it."""
        key = (what, id(owner))
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def products(self, points: np.ndarray) -> np.ndarray:
        """Inner products of the rows with these points (float64, one a row)."""
        return self.shared("products", points, lambda: self._product(points))

    def landmarks(self, points: np.ndarray) -> np.ndarray:
        """The points in the precision of the rows."""
        return self.tiles.landmarks(points)

    def landmark_squares(self, points: np.ndarray) -> np.ndarray:
        """Squared norms of the points."""
        return self.tiles.landmark_squares(points)

    @abstractmethod
    def fill_distances(
        self, points: np.ndarray, found: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> None:
        """Squared distances of each row to some points, whose scores |z|^2 - 2 x.z are known.

        From differences where rows are dense, since a product of large numbers loses small ones.
        """

    @abstractmethod
    def _product(self, points: np.ndarray) -> np.ndarray:
        """Inner products of the rows with these points."""


class DenseTile(Tile):
    """A tile of dense rows."""

    def __init__(self, tiles: Tiles, part: np.ndarray) -> None:
        n, d = part.shape
        super().__init__(tiles, n)
        scaling = tiles.view.scaling
        self.rows = tiles.buffer("rows", scaling.shift, n, d)
        self.squares = tiles.buffer("row squares", scaling.shift, n, 1)[:, 0]
        loops.standardise(part, scaling.shift, scaling.factor, self.rows, self.squares)
        check_finite(self.squares, part)

    def _product(self, points: np.ndarray) -> np.ndarray:
        out = self.tiles.buffer("product", points, self.n, len(points))
        return np.dot(self.rows, self.landmarks(points).T, out=out)

    def fill_distances(
        self, points: np.ndarray, found: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> None:
        loops.differences(self.rows, self.landmarks(points), found, out)


class SparseTile(Tile):
    """A tile of sparse rows, which become dense only for kernels that look at single columns."""

    def __init__(self, tiles: Tiles, part: Any) -> None:
        super().__init__(tiles, part.shape[0])
        self._values = part.astype(np.float64)
        scaling = tiles.view.scaling
        factor, shift = scaling.factor**2, scaling.shift
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._values.multiply(self._values) @ factor
            squares = squares - 2.0 * (self._values @ (factor * shift)) + factor @ shift**2
        check_finite(squares, part)
        self.squares = np.maximum(squares, 0.0).astype(tiles.dtype)

    @property
    def rows(self) -> np.ndarray:  # type: ignore[override]
        scaling = self.tiles.view.scaling

        def make() -> np.ndarray:
            return scaling.apply(self._values).astype(self.tiles.dtype)

        return self.shared("rows", scaling.shift, make)

    def _product(self, points: np.ndarray) -> np.ndarray:
        """x.z of standardised rows as a product with the raw sparse rows less a constant."""
        scaling = self.tiles.view.scaling

        def make() -> tuple[np.ndarray, np.ndarray]:
            product = np.ascontiguousarray((points * scaling.factor).T)
            return product, scaling.shift @ product

        product, base = self.tiles.kept("sparse product", points, make)
        return (self._values @ product - base).astype(self.tiles.dtype)

    def fill_distances(
        self, points: np.ndarray, found: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> None:
        np.maximum(scores + self.squares[:, None].astype(np.float64), 0.0, out=out)


def check_finite(squares: np.ndarray, rows: Any) -> None:
    """Refuse rows with values that are not finite, or whose squares are not; new rows may be so."""
    bad = int(np.sum(~np.isfinite(squares)))
    if not bad:
        return
    values = np.abs(np.asarray(rows.data if sp.issparse(rows) else rows, dtype=np.float64))
    if np.isfinite(values).all():
        raise UserError(
            f"Input `X` holds values as large as {values.max():.6g}, which cannot be squared and "
            f"summed up in the units of the model, in {bad} of {len(squares)} rows that were "
            "looked at: drop these rows, or divide columns by a constant before the fit."
        )
    raise UserError(
        f"Input `X` contains NaN or infinite (inf) values in {bad} of {len(squares)} rows that "
        "were looked at: fill in or drop these rows first."
    )
