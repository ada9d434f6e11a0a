"""Pictures of a choice without labels: scores of what was tried, and the clusterings offered."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes

from dmkc.clusterers.estimator import Choice
from dmkc.clusterers.sampled import leading_components
from dmkc.errors import UserError
from dmkc.plot.clusters import scattered
from dmkc.plot.rows import sample
from dmkc.plot.style import COLOURS, axes_of
from dmkc.selection.choose import Selection
from dmkc.selection.scores import in_units
from dmkc.typing import TableLike

OTHERS = "#c4c4c4"


def candidates(found: Any, ax: Axes | None = None) -> Axes:
    """Scores of all that was tried; what is offered or chosen in colour.

    `found` is what `dmkc.select` returns, or a clusterer that was fitted with open parameters.

    Examples
    --------
    >>> import dmkc
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, seed=0)
    >>> found = dmkc.select(X, dmkc.MultipleKernelClustering(kernels=["linear"], balance="auto"))
    >>> dmkc.plot.candidates(found).get_ylabel()
    'score'
    """
    records = found.records() if isinstance(found, Selection) else _chosen(found).records
    if not records:
        raise UserError("Nothing was left open in this fit, so that there are no candidates.")
    numbers = "chosen" in records[0]
    scores = [record["score"] for record in records]
    offered = [
        record["chosen"] if numbers else record["alternative"] is not None for record in records
    ]
    ax = axes_of(ax, "Scores of the numbers" if numbers else "Scores of the candidates")
    tones = [COLOURS[0] if mark else OTHERS for mark in offered]
    drawn = ax.bar(np.arange(len(scores)), scores, color=tones, width=0.8)
    ax.axhline(0, color="black", lw=0.6)
    if numbers:
        ax.set_xticks(np.arange(len(scores)), [str(record["n_clusters"]) for record in records])
    else:
        text = ["" if r["alternative"] is None else str(r["alternative"] + 1) for r in records]
        ax.bar_label(drawn, labels=text, padding=2, fontsize=9, color=COLOURS[0])
        ax.set_xticks([])
    ax.set(xlabel="clusters" if numbers else "candidates, best first", ylabel="score")
    return ax


def alternatives(
    found: Any, X: TableLike = None, max_points: int = 2000, axes: list[Axes] | None = None
) -> list[Axes]:
    """The clearly different clusterings that were offered, each on the same two components.

    `found` is what `dmkc.select` returns, or a clusterer that was fitted with open parameters and
    then needs rows `X` to draw.  The first is the one that was chosen.

    Examples
    --------
    >>> import dmkc
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, seed=0)
    >>> found = dmkc.select(X, dmkc.MultipleKernelClustering(kernels=["linear"], balance="auto"))
    >>> [ax.get_title(loc="left") for ax in dmkc.plot.alternatives(found)][0]
    'Choice 1'
    """
    if isinstance(found, Selection):
        models = [candidate.model for candidate in found.alternatives]
        X = found.gathered.sample.values if X is None else X
    else:
        models = _chosen(found).alternatives
    if X is None or not models:
        raise UserError("Give the rows X and a clusterer that was fitted with open parameters.")
    _, rows = sample(X, max_points)
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    seen = in_units(rows)
    _, directions = leading_components(seen, 2, 0)
    places = np.zeros((len(seen), 2))
    places[:, : len(directions)] = (seen - seen.mean(axis=0)) @ directions.T
    drawn = []
    for i, model in enumerate(models):
        ax = axes_of(None if axes is None else axes[i], f"Choice {i + 1}")
        scattered(ax, places, np.asarray(model.label_pipeline()(rows)))
        ax.set(xlabel="first principal component", ylabel="second principal component")
        drawn.append(ax)
    return drawn


def _chosen(model: Any) -> Choice:
    return model._choice() or Choice([], None, [])
