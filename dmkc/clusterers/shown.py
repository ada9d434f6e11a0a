"""How an estimator is shown: its parameters, as scikit-learn shows them, and what a fit found."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from dmkc.showing import html_lines, one_line
from dmkc.tables.recipe import few

MOST_SIZES = 8
"""Clusters whose shares are shown."""


class Shown(BaseEstimator):
    """An estimator whose text and HTML end with a line or two about the fit, once there is one."""

    def _found(self) -> list[str]:
        """What a fit found, in a few short lines; none before a fit."""
        return []

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join([super().__repr__(N_CHAR_MAX), *(f"# {line}" for line in self._found())])

    def _repr_html_inner(self) -> str:
        return self._with_found(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_found(bundle["text/html"])
        return bundle

    def _with_found(self, diagram: str) -> str:
        found = self._found()
        return f"<div>{diagram}{html_lines(found)}</div>" if found else diagram


with contextlib.suppress(ImportError, AttributeError):  # else long texts are on one line
    from sklearn.utils._pprint import _EstimatorPrettyPrinter as _Printer

    _Printer._dispatch[Shown.__repr__] = _Printer._pprint_estimator


def sizes_line(n_clusters: int, n_rows: int | None, shares: np.ndarray | None) -> str:
    """How many clusters there are, and how large."""
    line = f"{n_clusters} cluster{'s' if n_clusters != 1 else ''}"
    if n_rows is not None:
        line += f" of {n_rows:,} rows"
    if shares is None or n_clusters == 1:
        return line
    shown = ", ".join(f"{100 * float(share):.3g} %" for share in shares[:MOST_SIZES])
    more = n_clusters - MOST_SIZES
    return f"{line}: {shown}{f' and {more} more' if more > 0 else ''}"


def found_lines(model: Any) -> list[str]:
    """What there is to say of a fitted clusterer; a file may hold less of it, or nonsense."""
    if model._fitted("model_") is None:
        return []
    known = model._fitted
    count, shares = model.n_clusters_, known("cluster_shares_")
    fine = isinstance(shares, np.ndarray) and shares.shape == (count,) and shares.dtype.kind == "f"
    lines = [sizes_line(count, known("n_samples_fit_"), shares if fine else None)]
    verdict, confidence, method = known("verdict_"), known("confidence_"), known("method_")
    said = [
        *([] if verdict is None else [one_line(verdict)]),
        *([f"confidence {confidence:.2f}"] if isinstance(confidence, float) else []),
        *([] if method is None else [f"by {one_line(method)}"]),
    ]
    lines += [", ".join(said)] if said else []
    recipe = model._recipe()
    left_out = {} if recipe is None else recipe.left_out()
    if left_out:
        names = few([f"{one_line(name)} ({one_line(why)})" for name, why in left_out.items()])
        lines.append(f"columns left out: {names}")
    return lines if known("converged_") is not False else [*lines, "stopped before it converged"]
