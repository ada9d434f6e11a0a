"""How all pictures look, and what they call clusters and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.utils.validation import check_is_fitted

from dmkc.contingency import cluster_name
from dmkc.kernels import Kernel
from dmkc.kernels.bank import bound
from dmkc.showing import printable

# Okabe and Ito's colour-blind-safe palette without its yellow and black, which vanish on white and
# on dark pages, and six more.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#7A68C0",
    "#98A01F", "#A11D4B", "#27408B", "#35B0AB",
)  # fmt: skip
GREY, PALE, NOISE = "#8a8a8a", "#ececec", "#b0b0b0"


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
    model = model._shown
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


def as_drawn(name: str) -> str:
    """A name as Matplotlib draws it as it is, and not as a formula."""
    return printable(name).replace("$", r"\$")


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


def names_and_tones(count: int, noise: bool = False) -> tuple[list[str], list[str]]:
    """What clusters are called and the colours they have; noise stands behind them."""
    labels = [*range(count), *([-1] * noise)]
    return [cluster_name(k) for k in labels], [tone_of(k) for k in labels]


def tone_of(label: int) -> str:
    return NOISE if label == -1 else COLOURS[label % len(COLOURS)]


def axes_of(ax: Axes | None, title: str, bars: int = 0) -> Axes:
    """The given axes, or the axes of a figure of their own that no window shows."""
    if ax is None:
        size = (4.8, 1.1 + 0.36 * bars if bars else 3.2)
        ax = Figure(figsize=size, layout="constrained").add_subplot()
    ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
    ax.ticklabel_format(scilimits=(-5, 12), useOffset=False)  # numbers as they are read
    return ax


def bars(ax: Axes, values: Any, names: Any, text: Any, tones: Any, xlabel: str) -> Axes:
    places = np.arange(len(names))
    bars = ax.barh(places, values, color=tones, height=0.6)
    ax.bar_label(bars, labels=text, padding=3, fontsize=9)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    longest = 1 + 0.035 * max(map(len, text))  # room for the text behind the longest bar
    ax.set(xlabel=xlabel, xlim=(0, longest * max(float(np.max(values)), 1e-12)))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def note(ax: Axes, x: float, text: str, align: Any) -> None:
    where: Any = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    style: Any = {"ha": align, "va": "top", "fontsize": 8.5, "color": "#555555"}
    ax.annotate(text, (x, 0.985), ({"left": 4, "right": -4}.get(align, 0), 0), **where, **style)


def legend(ax: Axes, **options: Any) -> None:
    ax.legend(fontsize=8.5, title_fontsize=8.5, frameon=False, **options)
