"""What the parts of a model are called in pictures."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from dmkc.kernels import Kernel
from dmkc.kernels.bank import bound


def kernel_names(model: Any) -> list[str]:
    """Readable names of the kernels of a fitted model, such as "Gaussian, width 0.5".

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.kernel_names(model)
    ['Linear', 'Polynomial, degree 2', 'Gaussian, width 0.5']
    """
    check_is_fitted(model)
    names = [_with_columns(kernel) for kernel in bound(model._kernels(), model._views())]
    widths = [kernel.found_width for kernel in model.kernels_]
    return [
        f"{name}, gamma {width:g}" if names.count(name) > 1 and width is not None else name
        for name, width in zip(names, widths, strict=True)
    ]


def _with_columns(kernel: Kernel) -> str:
    """The name of a kernel and of the columns that it sees, where these are not all."""
    if kernel.columns is None:
        return kernel.title
    seen = kernel.columns if isinstance(kernel.columns, str) else "some columns"
    return f"{kernel.title} of {seen}"


def feature_name(model: Any, j: int) -> str:
    names = model._fitted("feature_names_in_")
    if not model.selects_columns_:
        return f"component {j}"
    return f"column {j}" if names is None else str(names[j])


def has_margin(model: Any) -> bool:
    """Whether there are scores with a margin of 1; distances from planes have none.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering, plot
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(500, seed=0)
    >>> model = MultipleKernelClustering(random_state=0, rank=30).fit(X)
    >>> plot.has_margin(model)
    True
    """
    return model._has_margin
