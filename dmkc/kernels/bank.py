"""All kernels by name, and banks: how they are named, and which columns each kernel sees."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dmkc.errors import UserError, UserTypeError
from dmkc.kernels.base import Kernel
from dmkc.kernels.kernels import (
    Callable_,
    ColumnGaussian,
    Columns,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
)
from dmkc.kernels.neighbours import Neighbours
from dmkc.registry import Registry

KERNELS: Registry[Kernel] = Registry("dmkc.kernels", "kernel", Kernel)  # type: ignore[type-abstract]
_BUILT_IN: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "columns": Columns,
    "column-gaussian": ColumnGaussian,
    "neighbours": Neighbours,
}
for _name, _cls in _BUILT_IN.items():
    KERNELS.register(_name, _cls)

register_kernel = KERNELS.register


ALIASES = {"rbf": "gaussian"}
EVERY_VIEW = "*"
"""Stands for a kernel of each view, as `columns`."""
DEFAULT_BANK: tuple[Kernel, ...] = (Linear(), Polynomial(2), Gaussian(0.5))
TWELVE: tuple[Kernel, ...] = (
    *(Gaussian(diameters=2.0**e) for e in range(-3, 4)),
    *(Polynomial(b, gamma=1.0, coef0=a) for a in (0.0, 1.0) for b in (2, 4)),
    Linear(),
)
"""The bank on which multiple-kernel k-means is compared in the literature."""

Views = Mapping[str, tuple[int, int]]
"""Where the columns of each view begin and end."""


def as_bank(kernels: Any) -> tuple[Kernel, ...]:
    """Kernel objects from None, a name, a kernel, a function, or a sequence of these.

    A name may carry its one parameter, ``"gaussian:0.5"`` (width), ``"polynomial:3"`` (degree), and
    the view that it sees, ``"gaussian:0.5@pixels"``; ``"gaussian@*"`` is one for each view.
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
        raise UserError("`kernels` must be a kernel, a name, or a non-empty list of these.")
    return tuple(_as_kernel(k) for k in kernels)


def per_column(n_columns: int, gamma: float = 10.0) -> list[Kernel]:
    """A Gaussian of every column alone: a nonlinear bank that can still name columns.

    The width suits columns scaled to a range of 1.
    """
    return [ColumnGaussian(column, gamma) for column in range(n_columns)]


def per_view(kernels: Any = None) -> list[Kernel]:
    """The kernels of a bank once for each view of the rows.

    Examples
    --------
    >>> from dmkc.kernels import per_view
    >>> per_view("gaussian:0.5")
    [Gaussian(width=0.5, columns='*')]
    """
    return [replace(kernel, columns=EVERY_VIEW) for kernel in as_bank(kernels)]


def bound(kernels: Sequence[Kernel], views: Views) -> tuple[Kernel, ...]:
    """The bank for rows with these views: a kernel of each view becomes one for every view."""
    found: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel.columns, str) and kernel.columns == EVERY_VIEW:
            found += [replace(kernel, columns=name) for name in views] or [
                replace(kernel, columns=None)
            ]
        else:
            found.append(kernel)
    return tuple(found)


def columns_seen(
    kernel: Kernel, n_columns: int, names: Sequence[str] | None, views: Views
) -> tuple[int, ...] | None:
    """Numbers of the columns that a kernel sees, ascending; None: all."""
    chosen = kernel.columns
    if chosen is None:
        return None
    if isinstance(chosen, str) and chosen in views:
        return tuple(range(*views[chosen]))
    if isinstance(chosen, slice):
        found = list(range(n_columns))[chosen]
    else:
        items = [chosen] if isinstance(chosen, (str, int, np.integer)) else list(chosen)
        found = [_number(kernel, item, n_columns, names, views) for item in items]
    if not found:
        raise UserError(f"The kernel {kernel} is bound to no column.")
    if len(set(found)) < len(found):
        raise UserError(f"The kernel {kernel} is bound to a column twice.")
    return tuple(sorted(found))


def _number(
    kernel: Kernel, item: Any, n_columns: int, names: Sequence[str] | None, views: Views
) -> int:
    """The number of one column that is named, or numbered."""
    if isinstance(item, str):
        known = [*(names or ()), *views]
        if names is not None and item in names:
            return list(names).index(item)
        close = difflib.get_close_matches(item, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        what = "column or view" if views else "column"
        tail = "" if known else "; X has no column names, so give numbers"
        raise UserError(f"The kernel {kernel} asks for the unknown {what} {item!r}{tail}.{hint}")
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
        raise UserTypeError(
            f"A kernel is bound to names, numbers, a slice or a view, but not to {item!r}."
        )
    if not -n_columns <= item < n_columns:
        raise UserError(f"The kernel {kernel} asks for column {item}, but `X` has {n_columns}.")
    return int(item) % n_columns


def _as_kernel(item: Any) -> Kernel:
    if isinstance(item, Kernel):
        return item
    if isinstance(item, type) and issubclass(item, Kernel):
        return item()
    if isinstance(item, str):
        return _named(item)
    if callable(item):
        return Callable_(item)
    raise UserTypeError(f"A kernel must be a kernel object, name or function, not {item!r}.")


def _named(text: str) -> Kernel:
    """The kernel of a text such as "gaussian:0.5@pixels"."""
    rest, _, view = text.partition("@")
    name, _, value = rest.partition(":")
    known = ALIASES.get(name, name)
    if known not in KERNELS:
        names = [*KERNELS, *ALIASES]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(f"Unknown kernel {name!r}; known are {', '.join(names)}.{hint}")
    kind: Any = KERNELS[known]
    bind = {"columns": view} if view else {}
    if not value:
        return kind(**bind)
    if all(f.kw_only for f in fields(kind)):
        raise UserError(f"The {name} kernel takes no parameter, but {text!r} gives one.")
    try:
        number = float(value)
    except ValueError:
        raise UserError(f"The parameter in {text!r} is not a number.") from None
    return kind(int(number) if number.is_integer() else number, **bind)
