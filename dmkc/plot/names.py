"""What the parts of a model are called in pictures."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from dmkc.kernels import as_bank


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
    given = as_bank(model._bank())
    names = [_kernel_name(a, b) for a, b in zip(model.kernels_, given, strict=True)]
    return [
        f"{name}, gamma {kernel.gamma:g}" if names.count(name) > 1 and _has_gamma(kernel) else name
        for name, kernel in zip(names, model.kernels_, strict=True)
    ]


def _has_gamma(kernel: Any) -> bool:
    return getattr(kernel, "gamma", None) is not None


def _kernel_name(kernel: Any, given: Any) -> str:
    name = type(kernel).__name__.rstrip("_")
    if hasattr(kernel, "degree"):
        offset = "" if kernel.coef0 == 1 else f", offset {kernel.coef0:g}"
        return f"{name}, degree {kernel.degree}{offset}"
    if getattr(kernel, "diameters", None) is not None:
        return f"{name}, {kernel.diameters:g} diameters"
    if hasattr(kernel, "width"):
        by_width = getattr(given, "gamma", None) is None
        return f"{name}, " + (f"width {kernel.width:g}" if by_width else f"gamma {kernel.gamma:g}")
    function = getattr(kernel, "function", None)
    return name if function is None else getattr(function, "__name__", "function")


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
