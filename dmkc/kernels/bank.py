"""A bank of kernels: how it is named, and the widths it takes from the data."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics import euclidean_distances

from dmkc.errors import UserError, UserTypeError
from dmkc.kernels.kernels import (
    Callable_,
    ColumnGaussian,
    Cosine,
    DataScale,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
)

MEDIAN_ROWS = 1000
NAMES = {
    "linear": Linear,
    "polynomial": Polynomial,
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "cosine": Cosine,
}
DEFAULT_BANK: tuple[Kernel, ...] = (Linear(), Polynomial(2), Gaussian(0.5))
TWELVE: tuple[Kernel, ...] = (
    *(Gaussian(diameters=2.0**e) for e in range(-3, 4)),
    *(Polynomial(b, gamma=1.0, coef0=a) for a in (0.0, 1.0) for b in (2, 4)),
    Linear(),
)
"""The bank on which multiple-kernel k-means is compared in the literature."""


def as_bank(kernels: Any) -> tuple[Kernel, ...]:
    """Kernel objects from None, a name, a kernel, a function, or a sequence of these.

    A name may carry its one parameter: ``"gaussian:0.5"`` (width), ``"polynomial:3"`` (degree).
    ``"twelve"`` is a whole bank: seven Gaussians, four polynomials and the linear kernel.
    """
    if kernels is None:
        return DEFAULT_BANK
    if isinstance(kernels, str) and kernels == "twelve":
        return TWELVE
    if isinstance(kernels, np.ndarray):
        kernels = kernels.tolist()
    if isinstance(kernels, (str, Kernel)) or callable(kernels):
        return (_as_kernel(kernels),)
    if not isinstance(kernels, Sequence) or len(kernels) == 0:
        raise UserError("kernels must be a kernel, a name, or a non-empty list of these.")
    return tuple(_as_kernel(k) for k in kernels)


def per_column(n_columns: int, gamma: float = 10.0) -> list[Kernel]:
    """A Gaussian of every column alone: a nonlinear bank that can still name columns.

    The width suits columns scaled to a range of 1.
    """
    return [ColumnGaussian(column, gamma) for column in range(n_columns)]


def _as_kernel(item: Any) -> Kernel:
    if isinstance(item, Kernel):
        return item
    if isinstance(item, type) and issubclass(item, Kernel):
        return item()
    if isinstance(item, str):
        name, _, value = item.partition(":")
        if name not in NAMES:
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise UserError(f"Unknown kernel {name!r}; known are {', '.join(NAMES)}.{hint}")
        kernel = NAMES[name]
        if not value:
            return kernel()
        if kernel in (Linear, Cosine):
            raise UserError(f"The {name} kernel takes no parameter, but {item!r} gives one.")
        try:
            number = float(value)
        except ValueError:
            raise UserError(f"The parameter in {item!r} is not a number.") from None
        return kernel(int(number) if number.is_integer() else number)  # type: ignore[operator]
    if callable(item):
        return Callable_(item)
    raise UserTypeError(f"A kernel must be a kernel object, name or function, not {item!r}.")


def data_scale(
    sample: np.ndarray, weights: np.ndarray | None = None, manhattan: bool = True
) -> DataScale:
    """Typical distances between standardised rows of a sample; a row of weight 2 counts twice.

    Manhattan distances cost the most and may be left out (then 1).
    """
    weights = np.ones(len(sample)) if weights is None else weights
    some = np.flatnonzero(weights > 0)
    if len(some) > MEDIAN_ROWS:
        some = some[np.linspace(0, len(some) - 1, MEDIAN_ROWS).astype(int)]
    rows, weights = sample[some], weights[some]
    first, second = np.triu_indices(len(rows), 1)
    pairs = weights[first] * weights[second]
    itself = float(np.maximum(weights * (weights - 1.0) / 2.0, 0.0).sum())  # of a repeated row
    squared = euclidean_distances(rows, squared=True)[first, second]
    return DataScale(
        sample.shape[1],
        _median(squared, pairs, itself),
        _median(pdist(rows, "cityblock"), pairs, itself) if manhattan else 1.0,
    )


def _median(distances: np.ndarray, weights: np.ndarray, zeros: float) -> float:
    """The median, of the non-zero distances if more than half of the rows coincide."""
    positive = distances > 0
    if not positive.any():
        return 1.0
    every = np.append(distances, 0.0), np.append(weights, zeros)
    middle = weighted_median(*every)
    return middle if middle > 0 else weighted_median(distances[positive], weights[positive])


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The median of values that are repeated as often as their weights say."""
    if np.all(weights[:-1] == 1) and weights[-1] == 0:
        return float(np.median(values[:-1]))
    order = np.argsort(values, kind="stable")
    values, reach = values[order], np.cumsum(weights[order])
    half = reach[-1] / 2.0
    at = int(np.searchsorted(reach, half * (1.0 - 1e-12)))
    if reach[at] <= half * (1.0 + 1e-12):  # the middle lies between two values
        after = int(np.searchsorted(reach, half * (1.0 + 1e-12), side="right"))
        return float(values[at] + values[min(after, len(values) - 1)]) / 2.0
    return float(values[at])
