"""The label step: labels of the constrained rows of largest total gain that keep the constraints.

A gain says how much a row would like to be in a cluster.  With two clusters every component of the
constraint graph has two labelings and the better one is taken: exact.  With several clusters groups
of must-linked rows are labelled together and cannot-links are the edges of a graph (`minsum`).
Soft constraints are edges that cost something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from dmkc.constraints.colouring import colouring
from dmkc.constraints.linked import Components, Constraints, Groups, joined, two_sided
from dmkc.constraints.minsum import CostGraph, least
from dmkc.data import Container


class Assigner(ABC):
    """Turns gains of the constrained rows into labels."""

    @abstractmethod
    def assign(self, gain: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
        """Labels from gains (rows, clusters), never worse than `labels` of an earlier call."""

    def penalty(self, labels: np.ndarray) -> float:
        """What violated pairs cost; nothing where none may be violated."""
        return 0.0


class TwoSides(Assigner):
    """Two clusters, every constraint kept, exactly the best labeling."""

    def __init__(self, components: Components) -> None:
        self.components = components

    def assign(self, gain: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
        c = self.components
        total = np.bincount(c.number, c.side * (gain[:, 1] - gain[:, 0]), minlength=c.count)
        return (np.where(total >= 0, 1, -1)[c.number] * c.side > 0).astype(np.int64)


class Coloured(Assigner):
    """Several clusters, every constraint kept."""

    def __init__(self, groups: Groups, n_clusters: int) -> None:
        n, edges = groups.count, groups.apart
        self.groups = groups
        self.first = colouring(n, edges, n_clusters)
        never, free = np.full(len(edges), np.inf), np.zeros(len(edges))
        self.graph = CostGraph.of(n, edges, never, free, n_clusters)

    def assign(self, gain: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
        number, n = self.groups.number, self.groups.count
        cost = -np.stack([np.bincount(number, g, minlength=n) for g in gain.T], axis=1)
        start = self.first
        if labels is not None:
            start = np.empty(n, np.int64)
            start[number] = labels
        return least(self.graph, cost, start)[number]


class Penalised(Assigner):
    """Any number of clusters; a violated pair costs its weight."""

    def __init__(self, constraints: Constraints, n_clusters: int, price: float) -> None:
        c = constraints
        edges, which = np.unique(np.concatenate([c.must, c.cannot]), axis=0, return_inverse=True)
        which, n_must = which.ravel(), len(c.must)
        differ = np.bincount(which[:n_must], price * c.must_weights, minlength=len(edges))
        same = np.bincount(which[n_must:], price * c.cannot_weights, minlength=len(edges))
        self.graph = CostGraph.of(len(c.rows), edges, same, differ, n_clusters)

    def assign(self, gain: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
        start = gain.argmax(axis=1) if labels is None else labels
        return least(self.graph, -gain, start)

    def penalty(self, labels: np.ndarray) -> float:
        return float(self.graph.edge_costs(labels).sum())


def assigner(
    constraints: Constraints, container: Container, n_clusters: int, price: float | None
) -> Assigner:
    """How the constraints are kept; with a `price` they may be violated at that cost."""
    if price is not None:
        return Penalised(constraints, n_clusters, price)
    if n_clusters == 2:
        return TwoSides(two_sided(constraints, container))
    return Coloured(joined(constraints, container), n_clusters)
