"""Linear maps from what is stored of a row to its features: nothing, a factor each, a matrix.

Rows are never multiplied by these maps: models on features are carried back to stored values
instead, and sums of stored values are carried forward, both on the coordinator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dmkc.kernels.loops import products


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
        """The same for one vector, in bits that depend on the numbers alone."""
        return self.back(weights)

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
        return products(self.values, weights)

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
