"""A fit that begins from an earlier model of the same columns: on grown data, say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dmkc.clusterers.estimator import RowClusterer, opened
from dmkc.clusterers.parameters.shared import cluster_range
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.showing import printable

SHOWN = 3
"""Names of columns that a sentence lists."""


def start_model(start: Any, rows: Rows, n_clusters: Any) -> Any:
    """The model of a fitted estimator, or of its file, to begin a fit of these rows from.

    It puts every row in a cluster, also where the estimator says that some are noise.
    """
    earlier = opened(start)
    check_same_columns(earlier, rows)
    fewest, most = cluster_range(n_clusters)
    if not fewest <= earlier.n_clusters_ <= most:
        raise UserError(
            f"The model to start from has {earlier.n_clusters_} clusters, but n_clusters is "
            f"{n_clusters!r}: give that number, or leave start out."
        )
    model = earlier.model_
    return model.without_noise() if hasattr(model, "without_noise") else model


def check_same_columns(earlier: RowClusterer, rows: Rows) -> None:
    """Refuse a model of other columns, in a sentence that says what differs."""
    n = earlier.n_features_in_
    if rows.n_columns != n:
        raise UserError(f"The model to start from has {n} columns, but X has {rows.n_columns}.")
    names, own = earlier._fitted("feature_names_in_"), rows.column_names
    if names is not None and own is not None and set(names) != set(own):
        theirs, ours = _besides(names, own), _besides(own, names)
        raise UserError(f"The model to start from has the columns {theirs}, and X has {ours}.")
    if names is not None and own is not None and list(names) != list(own):
        raise UserError("The columns of X have another order than in the model to start from.")
    if dict(rows.views) != earlier._views():
        raise UserError("The views of X are not those of the model to start from.")


def _besides(names: Iterable[str], others: Iterable[str]) -> str:
    """The names that others lack, as many as one can read."""
    left = [printable(str(name)) for name in names if name not in set(others)]
    return ", ".join(left[:SHOWN]) + (", ..." if len(left) > SHOWN else "")
