"""Small real data sets that come with scikit-learn, for examples that need no download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn import datasets as bundled

from dmkc.errors import UserError

from .recipes import Array


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table in memory: features X, true classes y, and where they come from.

    Examples
    --------
    >>> from dmkc.datasets import load_wdbc
    >>> data = load_wdbc()
    >>> data.name, data.X.shape, data.classes
    ('wdbc', (569, 30), ('malignant', 'benign'))
    """

    name: str
    X: Array
    y: Array
    columns: tuple[str, ...]
    source: str
    classes: tuple[str, ...] | None = None
    split: Array | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2:
            raise UserError(
                f"X of {self.name} has {self.X.ndim} dimensions; store a table of rows and columns."
            )
        if self.y.shape != (len(self.X),):
            raise UserError(
                f"y of {self.name} has shape {self.y.shape} but X has {len(self.X)} rows; "
                "store one class per row."
            )
        if len(self.columns) != self.X.shape[1]:
            raise UserError(
                f"{self.name} has {self.X.shape[1]} columns but {len(self.columns)} names; "
                "give one name per column."
            )


def load_digits(classes: Sequence[int] | None = (1, 7)) -> Dataset:
    """Handwritten digits of 8 x 8 pixels; `classes` chooses the digits (None: all ten).

    Examples
    --------
    >>> from dmkc.datasets import load_digits
    >>> load_digits((3, 8)).X.shape
    (357, 64)
    """
    chosen = tuple(range(10)) if classes is None else tuple(classes)
    if not chosen or not set(chosen) <= set(range(10)):
        raise UserError(f"classes is {chosen}; choose digits from 0 to 9.")
    data = bundled.load_digits()
    keep = np.isin(data.target, chosen)
    return Dataset(
        name="digits",
        X=data.data[keep],
        y=data.target[keep].astype(np.int64),
        columns=tuple(data.feature_names),
        source="Optical recognition of handwritten digits (UCI), test part, from scikit-learn",
        classes=tuple(str(digit) for digit in sorted(set(chosen))),
    )


def load_wdbc() -> Dataset:
    """The Wisconsin diagnostic breast cancer table: 569 rows of 30 measurements.

    Examples
    --------
    >>> from dmkc.datasets import load_wdbc
    >>> load_wdbc().columns[:2]
    ('mean radius', 'mean texture')
    """
    data = bundled.load_breast_cancer()
    return Dataset(
        name="wdbc",
        X=data.data,
        y=data.target.astype(np.int64),
        columns=tuple(str(name) for name in data.feature_names),
        source="Breast cancer Wisconsin, diagnostic (UCI), from scikit-learn",
        classes=tuple(str(name) for name in data.target_names),
    )


EMBEDDED: dict[str, Callable[[], Dataset]] = {"digits": load_digits, "wdbc": load_wdbc}
