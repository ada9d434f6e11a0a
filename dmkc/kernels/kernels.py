"""Kernel objects: what a user puts into a bank.

A kernel says how to fill its raw columns k(x, landmarks) for a tile of rows, and gives its exact
matrix in float64 for the landmarks themselves.  A width that is not given is resolved from the
data before use (`resolve`), so that a resolved kernel is a plain value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import pairwise

from dmkc.errors import UserError
from dmkc.kernels import loops


@dataclass(frozen=True)
class DataScale:
    """What data-driven widths are derived from."""

    n_columns: int
    median_squared: float
    """Median squared Euclidean distance between sampled rows."""
    median_l1: float
    """Median Manhattan distance between sampled rows."""
    largest_squared: float = 1.0
    """Largest squared Euclidean distance between rows, where a kernel asks for it."""


@dataclass(frozen=True)
class Tile:
    """What the kernels of a bank share for a tile of rows."""

    rows: np.ndarray | None
    """Standardised rows; None for sparse rows where no kernel needs them dense."""
    dots: np.ndarray
    """Inner products with the landmarks."""
    row_squares: np.ndarray
    mark_squares: np.ndarray
    marks: np.ndarray
    """Standardised landmarks."""


class Kernel(ABC):
    """A positive semi-definite function of two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Gaussian, Kernel
    >>> isinstance(Gaussian(0.5), Kernel)
    True
    >>> Gaussian(gamma=1.0).matrix(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[1.]])
    """

    needs_rows = False
    needs_largest = False
    """Whether a width is in units of the largest distance, which takes two scans to find."""

    def resolve(self, scale: DataScale) -> Kernel:
        """The kernel with every data-driven parameter filled in."""
        return self

    @abstractmethod
    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The exact kernel matrix in float64."""

    @abstractmethod
    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        """Write the raw columns of a tile into ``out[:, at:]``."""

    def diagonal(self, squares: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """k(x, x) from the rows' squared norms (1 unless said otherwise)."""
        return np.ones_like(squares)


@dataclass(frozen=True)
class Linear(Kernel):
    """x.z: clusters separated by a plane in the (scaled) columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Linear
    >>> Linear().matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return A @ B.T

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        out[:, at : at + tile.dots.shape[1]] = tile.dots

    def diagonal(self, squares: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        return squares


@dataclass(frozen=True)
class Columns(Linear):
    """The (scaled) columns themselves, however many there are; never through landmarks."""


@dataclass(frozen=True)
class ColumnGaussian(Kernel):
    """exp(-gamma (x_j - z_j)^2) of one column j: a bank of these can still name columns."""

    column: int
    gamma: float = 10.0
    needs_rows = True

    def __post_init__(self) -> None:
        if self.column < 0 or int(self.column) != self.column:
            raise UserError(f"ColumnGaussian column must be a column number, not {self.column!r}.")
        _positive("ColumnGaussian", gamma=self.gamma)

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-self.gamma * (A[:, self.column, None] - B[None, :, self.column]) ** 2)

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        assert tile.rows is not None
        out[:, at : at + len(tile.marks)] = self.matrix(tile.rows, tile.marks)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x.z + coef0)^degree; gamma defaults to 1 / number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Polynomial
    >>> Polynomial(2, gamma=1.0).matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 2
    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if not (1 <= self.degree < np.inf and int(self.degree) == self.degree):
            raise UserError(f"Polynomial degree must be a positive integer, not {self.degree}.")
        _positive("Polynomial", gamma=self.gamma)

    def resolve(self, scale: DataScale) -> Kernel:
        return self if self.gamma is not None else replace(self, gamma=1.0 / scale.n_columns)

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.polynomial_kernel(A, B, self.degree, _resolved(self.gamma), self.coef0)

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        loops.polynomial(tile.dots, _resolved(self.gamma), self.coef0, int(self.degree), out, at)

    def diagonal(self, squares: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        return (_resolved(self.gamma) * squares + self.coef0) ** int(self.degree)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """exp(-gamma |x - z|^2), by default gamma = 1 / (width x median squared distance).

    With `diameters` the standard deviation is that many times the largest distance between rows:
    gamma = 1 / (2 (diameters x largest distance)^2).

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Gaussian
    >>> Gaussian(gamma=0.5).matrix(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    width: float = 1.0
    gamma: float | None = None
    diameters: float | None = None

    def __post_init__(self) -> None:
        _positive("Gaussian", width=self.width, gamma=self.gamma, diameters=self.diameters)

    @property
    def needs_largest(self) -> bool:  # type: ignore[override]
        return self.gamma is None and self.diameters is not None

    def resolve(self, scale: DataScale) -> Kernel:
        if self.gamma is not None:
            return self
        if self.diameters is not None:
            return replace(self, gamma=0.5 / (self.diameters**2 * scale.largest_squared))
        return replace(self, gamma=1.0 / (self.width * scale.median_squared))

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.rbf_kernel(A, B, _resolved(self.gamma))

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        loop = loops.gaussian32 if out.dtype == np.float32 else loops.gaussian64
        gamma = _resolved(self.gamma)
        loop(tile.dots, tile.row_squares, tile.mark_squares, gamma, out, at)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma |x - z|_1), by default gamma = 1 / (width x median Manhattan distance).

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Laplacian
    >>> Laplacian(gamma=0.5).matrix(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368]])
    """

    width: float = 1.0
    gamma: float | None = None
    needs_rows = True

    def __post_init__(self) -> None:
        _positive("Laplacian", width=self.width, gamma=self.gamma)

    def resolve(self, scale: DataScale) -> Kernel:
        if self.gamma is not None:
            return self
        return replace(self, gamma=1.0 / (self.width * scale.median_l1))

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.laplacian_kernel(A, B, _resolved(self.gamma))

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        marks_t = np.ascontiguousarray(tile.marks.T)
        loops.laplacian(tile.rows, marks_t, _resolved(self.gamma), out, at)


@dataclass(frozen=True)
class Cosine(Kernel):
    """x.z / (|x| |z|): the angle between rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Cosine
    >>> Cosine().matrix(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.cosine_similarity(A, B)

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        loops.cosine(tile.dots, tile.row_squares, tile.mark_squares, out, at)

    def diagonal(self, squares: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        return (squares > 0).astype(np.float64)


@dataclass(frozen=True)
class Callable_(Kernel):
    """Any function k(A, B) that returns the kernel matrix of two sets of (scaled) rows."""

    function: Callable[[np.ndarray, np.ndarray], Any]
    needs_rows = True

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        result = np.asarray(self.function(A, B), dtype=np.float64)
        if result.shape != (len(A), len(B)):
            raise UserError(
                f"The kernel function returned shape {result.shape} for {len(A)} x {len(B)} rows; "
                "it must return one value per pair."
            )
        return result

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        assert tile.rows is not None
        out[:, at : at + len(tile.marks)] = self.matrix(
            tile.rows.astype(np.float64), tile.marks.astype(np.float64)
        )

    def diagonal(self, squares: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        assert rows is not None
        return np.array([self.matrix(row[None], row[None])[0, 0] for row in rows])


def _resolved(gamma: float | None) -> float:
    if gamma is None:
        raise RuntimeError("The kernel's width has not been resolved from data yet.")
    return float(gamma)


def _positive(owner: str, **values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not (np.isfinite(value) and value > 0):
            raise UserError(f"{owner} {name} must be a positive number, not {value!r}.")
