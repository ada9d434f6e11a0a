"""The kernels that come with the library.

Each is a plain value; a width that is not given is taken from the data when it is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from dmkc.errors import UserError
from dmkc.importing import Later
from dmkc.kernels import loops
from dmkc.kernels.base import FittedKernel, OnColumns, PairwiseKernel, State
from dmkc.kernels.sample import KernelSample
from dmkc.kernels.tiles import Tile

pairwise = Later("sklearn.metrics.pairwise")  # workers need no scikit-learn

WIDE = 2048
"""Beyond this many columns the linear kernel goes through landmarks like the others."""
MOST_DEGREE = 100
"""Polynomials of a higher degree overflow on any rows."""
MOST_OFFSET = 1e100
MOST_WIDTH, MOST_UNITS = 1e300, 1e50
"""Widths, and widths in units that are taken from the rows, lie within these and their inverses."""


@dataclass(frozen=True, repr=False)
class Linear(PairwiseKernel):
    """x.z: clusters separated by a plane in the (scaled) columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Linear
    >>> Linear().matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    linear: ClassVar[bool] = True
    by_products: ClassVar[bool] = True
    most_columns: ClassVar[int | None] = WIDE
    """With more columns than this it goes through landmarks; None: never."""

    def fit(self, sample: KernelSample) -> FittedKernel:
        direct = self._is_direct(sample.n_columns)
        return OnColumns(self, sample.n_columns) if direct else super().fit(sample)

    def restore(self, state: State, n_columns: int) -> FittedKernel:
        direct = self._is_direct(n_columns)
        return OnColumns(self, n_columns) if direct else super().restore(state, n_columns)

    def stored_width(self, n_columns: int, n_landmarks: int) -> int:
        return n_columns if self._is_direct(n_columns) else n_landmarks

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return A @ B.T

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        out[:, at : at + len(landmarks)] = tile.products(landmarks)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return tile.squares.astype(np.float64)

    def _is_direct(self, n_columns: int) -> bool:
        return self.most_columns is None or n_columns <= self.most_columns


@dataclass(frozen=True, repr=False)
class Columns(Linear):
    """The (scaled) columns themselves, however many there are; never through landmarks."""

    most_columns: ClassVar[int | None] = None
    raw: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class ColumnGaussian(PairwiseKernel):
    """exp(-gamma (x_j - z_j)^2) of one column j: a bank of these can still name columns."""

    column: int
    gamma: float = 10.0

    @property
    def only_column(self) -> int:
        return self.column

    def __post_init__(self) -> None:
        whole = isinstance(self.column, Real) and 0 <= self.column < np.inf
        if not whole or int(self.column) != self.column:
            raise UserError(f"ColumnGaussian column must be a column number, not {self.column!r}.")
        _positive("ColumnGaussian", gamma=self.gamma)

    @property
    def found_width(self) -> float | None:
        return self.gamma

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-self.gamma * (A[:, self.column, None] - B[None, :, self.column]) ** 2)

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        values = self.matrix(tile.rows, tile.landmarks(landmarks))
        out[:, at : at + len(landmarks)] = values

    def diagonal(self, tile: Tile) -> np.ndarray:
        return np.ones(tile.n)


@dataclass(frozen=True, repr=False)
class Polynomial(PairwiseKernel):
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

    by_products: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole = isinstance(self.degree, Real) and 1 <= self.degree < np.inf
        if not whole or int(self.degree) != self.degree:
            raise UserError(f"Polynomial degree must be a positive integer, not {self.degree}.")
        if self.degree > MOST_DEGREE:
            raise UserError(f"Polynomial degree must be at most {MOST_DEGREE}, not {self.degree}.")
        if not isinstance(self.coef0, Real) or not abs(self.coef0) <= MOST_OFFSET:
            raise UserError(
                f"Polynomial coef0 must lie within {MOST_OFFSET:g} of zero, not {self.coef0!r}."
            )
        _positive("Polynomial", gamma=self.gamma)

    def resolve(self, sample: KernelSample) -> Self:
        return self if self.gamma is not None else replace(self, gamma=1.0 / sample.n_columns)

    @property
    def title(self) -> str:
        offset = "" if self.coef0 == 1 else f", offset {self.coef0:g}"
        return f"Polynomial, degree {self.degree}{offset}"

    @property
    def found_width(self) -> float | None:
        return self.gamma

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.polynomial_kernel(A, B, self.degree, _resolved(self.gamma), self.coef0)

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        products, gamma = tile.products(landmarks), _resolved(self.gamma)
        loops.polynomial(products, gamma, self.coef0, int(self.degree), out, at)

    def diagonal(self, tile: Tile) -> np.ndarray:
        squares = tile.squares.astype(np.float64)
        return (_resolved(self.gamma) * squares + self.coef0) ** int(self.degree)


@dataclass(frozen=True, repr=False)
class Gaussian(PairwiseKernel):
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
        _positive("Gaussian", gamma=self.gamma)
        _positive("Gaussian", MOST_UNITS, width=self.width, diameters=self.diameters)

    by_products: ClassVar[bool] = True
    has_pre_images: ClassVar[bool] = True

    @property
    def pre_image_gamma(self) -> float:
        return _resolved(self.gamma)

    def resolve(self, sample: KernelSample) -> Self:
        if self.gamma is not None:
            return self
        if self.diameters is not None:
            return replace(self, gamma=0.5 / (self.diameters**2 * sample.largest_squared))
        return replace(self, gamma=1.0 / (self.width * sample.median_squared))

    @property
    def title(self) -> str:
        if self.diameters is not None:
            return f"Gaussian, {self.diameters:g} diameters"
        return _width_title(self)

    @property
    def found_width(self) -> float | None:
        return self.gamma

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.rbf_kernel(A, B, _resolved(self.gamma))

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        loop = loops.gaussian32 if out.dtype == np.float32 else loops.gaussian64
        products, squares = tile.products(landmarks), tile.landmark_squares(landmarks)
        loop(products, tile.squares, squares, _resolved(self.gamma), out, at)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return np.ones(tile.n)


@dataclass(frozen=True, repr=False)
class Laplacian(PairwiseKernel):
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

    def __post_init__(self) -> None:
        _positive("Laplacian", gamma=self.gamma)
        _positive("Laplacian", MOST_UNITS, width=self.width)

    def resolve(self, sample: KernelSample) -> Self:
        if self.gamma is not None:
            return self
        return replace(self, gamma=1.0 / (self.width * sample.median_manhattan))

    @property
    def title(self) -> str:
        return _width_title(self)

    @property
    def found_width(self) -> float | None:
        return self.gamma

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.laplacian_kernel(A, B, _resolved(self.gamma))

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        turned = np.ascontiguousarray(tile.landmarks(landmarks).T)
        loops.laplacian(tile.rows, turned, _resolved(self.gamma), out, at)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return np.ones(tile.n)


@dataclass(frozen=True, repr=False)
class Cosine(PairwiseKernel):
    """x.z / (|x| |z|): the angle between rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Cosine
    >>> Cosine().matrix(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """

    by_products: ClassVar[bool] = True

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return pairwise.cosine_similarity(A, B)

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        products, squares = tile.products(landmarks), tile.landmark_squares(landmarks)
        loops.cosine(products, tile.squares, squares, out, at)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return (tile.squares > 0).astype(np.float64)


@dataclass(frozen=True, repr=False)
class Callable_(PairwiseKernel):
    """Any function k(A, B) that returns the kernel matrix of two sets of (scaled) rows."""

    function: Callable[[np.ndarray, np.ndarray], Any]

    @property
    def code(self) -> Any:
        return self.function

    @property
    def title(self) -> str:
        return getattr(self.function, "__name__", "function")

    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        result = np.asarray(self.function(A, B), dtype=np.float64)
        if result.shape != (len(A), len(B)):
            raise UserError(
                f"The kernel function returned shape {result.shape} for {len(A)} x {len(B)} rows; "
                "it must return one value per pair."
            )
        return result


def _width_title(kernel: Gaussian | Laplacian) -> str:
    by_width = f"width {kernel.width:g}" if kernel.gamma is None else f"gamma {kernel.gamma:g}"
    return f"{type(kernel).__name__}, {by_width}"


def _resolved(gamma: float | None) -> float:
    if gamma is None:
        raise RuntimeError("The kernel's width has not been resolved from data yet.")
    return float(gamma)


def _positive(owner: str, most: float = MOST_WIDTH, **values: float | None) -> None:
    for name, value in values.items():
        if value is None or (isinstance(value, Real) and 1.0 / most <= value <= most):
            continue
        bounds = f" between {1.0 / most:g} and {most:g}" if isinstance(value, Real) else ""
        raise UserError(f"{owner} {name} must be a positive number{bounds}, not {value!r}.")
