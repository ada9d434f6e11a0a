"""What was run and found, in words and numbers, and how it compares.

Settings, versions, a snippet that repeats the run, and warnings; the labels beside the truth and
beside k-means, and the clusters beside each other.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import dmkc
from dmkc.clusterers.estimator import Facts, RowClusterer
from dmkc.kernels import Kernel, as_bank
from dmkc.metrics import Contingency, all_metrics, contingency
from dmkc.plot import kernel_names, sample, take
from dmkc.report.columns import without_exponents
from dmkc.report.subject import Subject, plain
from dmkc.selection.scores import SURE
from dmkc.typing import PerRow, TableLike

SMALL_SHARE = 0.05
LIBRARIES = ("numpy", "scipy", "scikit-learn", "dask", "numba", "cvxpy", "clarabel", "zarr")
K_MEANS_ROWS = 100_000
"""k-means runs in this process, so larger data are sampled down to this many rows for it."""


def run_facts(model: RowClusterer, n_rows: int, n_columns: int, seconds: float | None) -> list:
    """Names and values for the table of what was run."""
    columns = model.model_.label_pipeline().plan
    found: Facts = [
        ("rows", f"{n_rows:,}"),
        ("columns", f"{n_columns:,}"),
        ("clusters", model.n_clusters_),
        *model._facts(),
        ("features", f"{model.model_.n_features:,} ({np.dtype(columns.dtype)})"),
        ("kept start", start_name(model)),
        ("starts tried", len({r["start"] for r in model.history_}) or 1),
        ("objective", f"{model.objective_:,.6g}"),
        (model._rounds, model.n_iter_),
        ("scans of all rows", model.n_scans_),
    ]
    if seconds is not None:
        found.append(("time of the fit", f"{seconds:,.1f} seconds"))
    found.append(("random_state", model.random_state))
    return [(name, without_exponents(str(value))) for name, value in found]


def kernel_rows(model: Any) -> list[tuple[str, ...]]:
    """Name, resolved gamma and weight of every kernel."""
    if not model._has_kernels:
        return []
    return [
        (name, _gamma(kernel), f"{weight:.3f}")
        for name, kernel, weight in zip(
            kernel_names(model), model.kernels_, model.kernel_weights_, strict=True
        )
    ]


def versions() -> str:
    """The libraries that results depend on."""
    parts = [f"dmkc {dmkc.__version__}", f"Python {platform.python_version()}"]
    parts += [f"{name} {version(name)}" for name in LIBRARIES]
    return ", ".join(parts) + f"; {platform.system()} on {platform.machine()}"


def start_name(model: Any) -> str:
    """The kept start with readable kernel names."""
    name = str(model.start_)
    if not model._has_kernels:
        return name
    for kernel, readable in zip(model.kernels_, kernel_names(model), strict=True):
        name = name.replace(f", {kernel}", f" in the features of {readable}")
    return name


def snippet(model: Any, n_rows: int, n_columns: int) -> str:
    """Python that repeats the fit, with the parameters that are not the defaults."""
    name = type(model).__name__
    declared = model.parameters()
    changed: list[str] = []
    used: list[Any] = [type(model)]
    for key, value in model.get_params(deep=False).items():
        if key in ("client", "verbose") or declared[key].is_default(value):
            continue
        if key == "kernels" and not (isinstance(value, str) and value == "auto"):
            bank = as_bank(value)
            changed.append(f"kernels=[{', '.join(map(_kernel_code, bank))}]")
            used += [type(kernel) for kernel in bank if kernel.code is type(kernel)]
        elif isinstance(value, np.ndarray) or not _is_plain(value):
            changed.append(f"{key}={key},  # the {key} that were given")
        else:
            changed.append(f"{key}={value!r}")
    inside = ", ".join(changed)
    if len(inside) > 60 or "#" in inside:
        lines = [item if "#" in item else f"{item}," for item in changed]
        inside = "\n    " + "\n    ".join(lines) + "\n"
    return (
        f"{_imports(used)}\n\n"
        f"X = {_rows_code(model)}  # the same {n_rows:,} rows of {n_columns:,} columns\n"
        f"model = {name}({inside}).fit(X)\n"
        "labels = model.labels_"
    )


def cautions(model: Any, sizes: np.ndarray) -> list[str]:
    """What a reader should know before trusting the result."""
    found = []
    if not model.converged_:
        found.append(
            f"The fit ended after {model.n_iter_} iterations before it converged, so labels may "
            "still move: increase max_iter, or tol."
        )
    choice = model._choice()
    confidence = None if choice is None else choice.confidence
    if confidence is not None and confidence < SURE and model._verdict() is None:
        found.append(
            "Other methods find these clusters in part at most, and no clear valleys set them "
            f"apart (confidence {confidence:.2f}): look at the other choices below."
        )
    shares = sizes / max(int(sizes.sum()), 1)
    # Of many clusters most are small.
    small = np.flatnonzero(shares < min(SMALL_SHARE, 0.5 / model.n_clusters_))
    if len(small) == 1:
        found.append(
            f"Cluster {small[0]} holds {100 * shares[small[0]]:.1f} % of the rows: it may be "
            "outliers rather than a group of its own."
        )
    elif len(small):
        found.append(
            f"Clusters {', '.join(map(str, small[:9]))}{' and more' if len(small) > 9 else ''} "
            f"hold at most {100 * shares[small].max():.1f} % of the rows each: they may be "
            "outliers rather than groups of their own."
        )
    if model.random_state is None:
        found.append("random_state was not set, so another run may find other clusters.")
    return found


def _gamma(kernel: Kernel) -> str:
    return "" if kernel.found_width is None else without_exponents(f"{kernel.found_width:.4g}")


def _kernel_code(kernel: Kernel) -> str:
    if kernel.code is not type(kernel):
        return kernel.title
    return repr(kernel).replace(", gamma=None", "").replace(", diameters=None", "")


def _rows_code(model: Any) -> str:
    """What stands for the rows: one table, or one for each view."""
    views = ", ".join(f"{name!r}: ..." for name in model._views())
    return f"{{{views}}}" if views else "..."


def _imports(things: Iterable[Any]) -> str:
    """Lines that import classes and functions from where users find them."""
    places: dict[str, set[str]] = {}
    for thing in things:
        name = thing.__name__
        place = "dmkc" if getattr(dmkc, name, None) is thing else thing.__module__
        places.setdefault(place, set()).add(name)
    return "\n".join(f"from {p} import {', '.join(sorted(n))}" for p, n in sorted(places.items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, np.number))


@dataclass(frozen=True)
class Comparison:
    """How well labels and k-means agree with the truth."""

    ours: dict[str, float]
    k_means: dict[str, float]
    table: Contingency
    """Rows of every class in every cluster."""
    k_means_rows: int
    """Rows that k-means was fitted to and measured on."""


def with_truth(X: TableLike, truth: PerRow, subject: Subject) -> Comparison:
    """Metrics of the labels of all rows, and of k-means on standardised columns.

    Of a Pipeline k-means sees the sampled rows, as its steps have made them.
    """
    if subject.is_pipeline:
        positions, rows = subject.positions, plain(X)
    else:
        positions, rows = sample(X, K_MEANS_ROWS)
    table = contingency(truth, subject.labels)
    theirs = k_means_labels(rows, subject.n_clusters)
    return Comparison(
        all_metrics(table), all_metrics(take(truth, positions), theirs), table, len(positions)
    )


def k_means_labels(rows: Any, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Ten k-means runs on standardised columns, the best kept."""
    values = plain(rows)
    # Centring would make sparse rows dense, and k-means does not need it.
    scaled = StandardScaler(with_mean=not sp.issparse(values)).fit_transform(values)
    # One thread gives the same labels whatever the number of processors.
    with threadpool_limits(1):
        return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(scaled)
