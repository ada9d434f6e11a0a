"""Pictures of a fitted clusterer as Matplotlib axes, drawn from at most a few thousand rows."""

from dmkc.plot.choice import alternatives, candidates
from dmkc.plot.clusters import embedding, margins, membership, sizes
from dmkc.plot.graphs import anchor_graph, eigenvalues
from dmkc.plot.models import (
    convergence,
    feature_importances,
    kernel_weights,
    layers,
    selection_path,
)
from dmkc.plot.rows import cluster_sizes, sample, take
from dmkc.plot.style import COLOURS, has_margin, kernel_names

__all__ = [
    "COLOURS",
    "alternatives",
    "anchor_graph",
    "candidates",
    "cluster_sizes",
    "convergence",
    "eigenvalues",
    "embedding",
    "feature_importances",
    "has_margin",
    "kernel_names",
    "kernel_weights",
    "layers",
    "margins",
    "membership",
    "sample",
    "selection_path",
    "sizes",
    "take",
]
