"""What a kernel is, before and after it has seen data.

A *kernel* is a plain value that a user writes.  `fit` on a sample makes a *fitted kernel*, which
owns everything that rows become features by: widths, landmarks or other state, how a tile of rows
becomes stored values, how these become features, k(x, x), and its arrays in a model file.  Whoever
uses kernels asks for these and never for a class.

Rows are never multiplied by the maps from stored values to features: models on features are carried
back to stored values instead, and sums of stored values forward, both on the coordinator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dmkc.kernels.loops import products
from dmkc.kernels.tiles import Tile

State = Mapping[str, np.ndarray]
"""Arrays of a fitted kernel by name."""


class StoredMap(ABC):
    """From the stored values of one kernel to its features."""

    n_features: int
    """Features that it makes."""

    @abstractmethod
    def forward(self, stored: np.ndarray) -> np.ndarray:
        """Features of stored values (their last axis)."""

    @abstractmethod
    def back(self, weights: np.ndarray) -> np.ndarray:
        """Weights on stored values (their first axis) that do what these do on features."""

    def back_exactly(self, weights: np.ndarray) -> np.ndarray:
        """The same for a line of weights each, in bits that depend on the numbers alone."""
        return self.back(weights.T).T

    @abstractmethod
    def then(self, projection: np.ndarray) -> StoredMap:
        """This map followed by a projection of the features."""

    @property
    def array(self) -> np.ndarray | None:
        """The numbers of the map; `map_of` makes it from them."""
        return None


@dataclass(frozen=True)
class Identity(StoredMap):
    """Stored values are the features."""

    n_features: int

    def forward(self, stored: np.ndarray) -> np.ndarray:
        return stored

    def back(self, weights: np.ndarray) -> np.ndarray:
        return weights

    def then(self, projection: np.ndarray) -> StoredMap:
        return Matrix(projection)


@dataclass(frozen=True)
class Diagonal(StoredMap):
    """Every stored value has a factor."""

    factors: np.ndarray

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.factors)

    def forward(self, stored: np.ndarray) -> np.ndarray:
        return stored * self.factors

    def back(self, weights: np.ndarray) -> np.ndarray:
        return (weights.T * self.factors).T

    def then(self, projection: np.ndarray) -> StoredMap:
        return Matrix(self.back(projection))

    @property
    def array(self) -> np.ndarray:
        return self.factors


@dataclass(frozen=True)
class Matrix(StoredMap):
    """Features are combinations of stored values."""

    values: np.ndarray
    """Stored values x features."""

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.values.shape[1]

    def forward(self, stored: np.ndarray) -> np.ndarray:
        return stored @ self.values

    def back(self, weights: np.ndarray) -> np.ndarray:
        return self.values @ weights

    def back_exactly(self, weights: np.ndarray) -> np.ndarray:
        return products(self.values, np.ascontiguousarray(weights))

    def then(self, projection: np.ndarray) -> StoredMap:
        return Matrix(self.values @ projection)

    @property
    def array(self) -> np.ndarray:
        return self.values


def map_of(array: np.ndarray | None, stored_width: int) -> StoredMap:
    """The map with these numbers: none, one for each stored value, or a matrix."""
    if array is None:
        return Identity(stored_width)
    if len(array) != stored_width:
        raise ValueError(f"A map of {len(array)} stored values does not fit {stored_width}.")
    return Diagonal(array) if array.ndim == 1 else Matrix(array)


def whiten(gram: np.ndarray, cut_off: float) -> Matrix:
    """W with W W^T the pseudo-inverse of a kernel matrix, small eigenvalues cut off."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    keep = values > cut_off * max(values[-1], 0.0)
    if values[-1] <= 0:
        return Matrix(np.zeros((len(gram), 1)))
    order = np.flatnonzero(keep)[::-1]
    vectors = vectors[:, order]
    sides = np.sign((vectors**3).sum(axis=0))  # eigenvectors have no sign of their own
    turned = vectors * np.where(sides == 0, 1.0, sides)
    return Matrix(np.ascontiguousarray(turned / np.sqrt(values[order])))


if TYPE_CHECKING:
    from dmkc.kernels.sample import KernelSample


@dataclass(frozen=True, repr=False)
class Kernel(ABC):
    """What a user puts into a bank.

    `columns` binds a kernel to some columns: names, numbers, a slice, or the name of a view; None
    are all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dmkc import Gaussian, Kernel
    >>> isinstance(Gaussian(0.5), Kernel)
    True
    >>> Gaussian(gamma=1.0).matrix(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[1.]])
    """

    columns: Any = field(default=None, kw_only=True)

    linear: ClassVar[bool] = False
    """Whether k(x, z) is the inner product of the columns it sees."""
    raw: ClassVar[bool] = False
    """Whether its features are to be used as they are, neither centred nor scaled."""
    by_products: ClassVar[bool] = False
    """Whether its values follow one by one from inner products, and so are quick to make."""
    shows_clusters: ClassVar[bool] = False
    """Whether k-means on its features is a start worth trying, whatever the number of clusters."""
    has_pre_images: ClassVar[bool] = False
    """Whether it is exp(-gamma |x - z|^2), for which the fixed point of pre-images holds."""

    @property
    def title(self) -> str:
        """The kernel in words, for pictures and reports."""
        values = [f"{f.name} {getattr(self, f.name):g}" for f in fields(self) if not f.kw_only]
        return ", ".join([type(self).__name__, *values])

    @property
    def found_width(self) -> float | None:
        """The width that it has, given or taken from the data, if it has any."""
        return None

    @property
    def code(self) -> Any:
        """The class or function whose code the kernel is."""
        return type(self)

    @property
    def pre_image_gamma(self) -> float:
        """That gamma, once it is known."""
        raise TypeError(f"The kernel {self} has no pre-images.")

    @property
    def only_column(self) -> int | None:
        """The column that the kernel looks at, where it is a single one by its nature."""
        return None

    def resolve(self, sample: KernelSample) -> Self:
        """The kernel with every width that it takes from the data."""
        return self

    @abstractmethod
    def fit(self, sample: KernelSample) -> FittedKernel:
        """The kernel with all that it takes from the data."""

    def stored_width(self, n_columns: int, n_landmarks: int) -> int:
        """Numbers that are stored of a row once it is fitted, for planning."""
        return n_landmarks

    def compared_with(self, n_landmarks: int) -> int:
        """Points that a row is compared with, for planning."""
        return n_landmarks

    @abstractmethod
    def restore(self, state: State, n_columns: int) -> FittedKernel:
        """The fitted kernel whose `state` a model file holds; a ValueError where it does not fit.

        Called on the kernel with the widths that it had been fitted with.
        """

    def __repr__(self) -> str:
        ordered = sorted(fields(self), key=lambda f: f.name == "columns")
        given = [f for f in ordered if getattr(self, f.name) is not None or f.default is not None]
        values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in given)
        return f"{type(self).__name__}({values})"


class FittedKernel(ABC):
    """A kernel that has seen data."""

    kernel: Kernel
    """The kernel with its widths."""

    @property
    @abstractmethod
    def stored_width(self) -> int:
        """Numbers that are stored of a row."""

    @abstractmethod
    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        """Write the stored values of a tile into ``out[:, at : at + stored_width]``."""

    def stored_mean(self) -> np.ndarray | None:
        """The mean of the stored values of all rows, where that is known."""
        return None

    @abstractmethod
    def feature_map(self, cut_off: float) -> StoredMap:
        """From stored values to features; eigenvalues below a share of the largest are noise."""

    @abstractmethod
    def diagonal(self, tile: Tile) -> np.ndarray:
        """k(x, x) of every row of a tile."""

    def state(self) -> State:
        """All arrays that `fill` and `diagonal` need; kernels that share one write it once."""
        return {}


@dataclass(frozen=True, eq=False)
class OnColumns(FittedKernel):
    """A kernel whose features are the columns themselves."""

    kernel: Kernel
    n_columns: int

    @property
    def stored_width(self) -> int:
        return self.n_columns

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        out[:, at : at + self.n_columns] = tile.rows

    def feature_map(self, cut_off: float) -> StoredMap:
        return Identity(self.n_columns)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return tile.squares.astype(np.float64)


@dataclass(frozen=True, repr=False)
class PairwiseKernel(Kernel):
    """A positive semi-definite function of two rows, fitted by a Nyström map on landmarks."""

    def fit(self, sample: KernelSample) -> FittedKernel:
        return OnLandmarks(self.resolve(sample), sample.landmarks)

    def restore(self, state: State, n_columns: int) -> FittedKernel:
        points = state.get("landmarks")
        if points is None or points.ndim != 2 or not len(points):
            raise ValueError("it has no landmarks")
        if points.shape[1] != n_columns:
            raise ValueError(f"its landmarks have {points.shape[1]} columns and not {n_columns}")
        return OnLandmarks(self, points)

    @abstractmethod
    def matrix(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The exact kernel matrix in float64."""

    def fill(self, tile: Tile, landmarks: np.ndarray, out: np.ndarray, at: int) -> None:
        """Write k(x, landmarks) of a tile into ``out[:, at:]``."""
        out[:, at : at + len(landmarks)] = self.matrix(tile.rows.astype(np.float64), landmarks)

    def diagonal(self, tile: Tile) -> np.ndarray:
        """k(x, x) of every row of a tile; row by row unless there is a quicker way."""
        rows = tile.rows.astype(np.float64)
        return np.array([self.matrix(row[None], row[None])[0, 0] for row in rows])


@dataclass(frozen=True, eq=False)
class OnLandmarks(FittedKernel):
    """A function of two rows that is stored as its values at landmarks."""

    kernel: PairwiseKernel
    landmarks: np.ndarray
    """Standardised, float64, one a row; kernels with the same array share inner products."""

    @property
    def stored_width(self) -> int:
        return len(self.landmarks)

    def fill(self, tile: Tile, out: np.ndarray, at: int) -> None:
        self.kernel.fill(tile, self.landmarks, out, at)

    def feature_map(self, cut_off: float) -> StoredMap:
        return whiten(self.kernel.matrix(self.landmarks, self.landmarks), cut_off)

    def diagonal(self, tile: Tile) -> np.ndarray:
        return self.kernel.diagonal(tile)

    def state(self) -> State:
        return {"landmarks": self.landmarks}
