"""A bank of kernels: how it is named, and the widths it takes from the data."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from dmkc.kernels.kernels import (
    Callable_,
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


def as_bank(kernels: Any) -> tuple[Kernel, ...]:
    """Kernel objects from None, a name, a kernel, a function, or a sequence of these.

    A name may carry its one parameter: ``"gaussian:0.5"`` (width), ``"polynomial:3"`` (degree).
    """
    if kernels is None:
        return DEFAULT_BANK
    if isinstance(kernels, (str, Kernel)) or callable(kernels):
        return (_as_kernel(kernels),)
    if not isinstance(kernels, Sequence) or len(kernels) == 0:
        raise ValueError("kernels must be a kernel, a name, or a non-empty list of these.")
    return tuple(_as_kernel(k) for k in kernels)


def _as_kernel(item: Any) -> Kernel:
    if isinstance(item, Kernel):
        return item
    if isinstance(item, str):
        name, _, value = item.partition(":")
        if name not in NAMES:
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"Unknown kernel {name!r}; known are {', '.join(NAMES)}.{hint}")
        kernel = NAMES[name]
        if not value:
            return kernel()
        if kernel in (Linear, Cosine):
            raise ValueError(f"The {name} kernel takes no parameter, but {item!r} gives one.")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"The parameter in {item!r} is not a number.") from None
        return kernel(int(number) if number.is_integer() else number)  # type: ignore[operator]
    if callable(item):
        return Callable_(item)
    raise TypeError(f"A kernel must be a kernel object, name or function, not {item!r}.")


def data_scale(sample: np.ndarray) -> DataScale:
    """Typical distances between standardised rows of a sample."""
    rows = sample
    if len(rows) > MEDIAN_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MEDIAN_ROWS).astype(int)]
    return DataScale(
        sample.shape[1],
        _median(pdist(rows, "sqeuclidean")),
        _median(pdist(rows, "cityblock")),
    )


def _median(distances: np.ndarray) -> float:
    """The median, of the non-zero distances if more than half of the rows coincide."""
    positive = distances[distances > 0]
    if len(positive) == 0:
        return 1.0
    middle = float(np.median(distances))
    return middle if middle > 0 else float(np.median(positive))
