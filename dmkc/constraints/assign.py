"""The label step: labels of the constrained rows of largest total gain that keep the constraints.

A gain says how much a row would like to be in a cluster.  With two clusters every component of the
constraint graph has two labelings and the better one is taken: exact.  With several clusters groups
of must-linked rows are labelled together and cannot-links are the edges of a graph (`minsum`).
Soft constraints are edges that cost something.

With several clusters a first labeling that keeps every cannot-link is a graph colouring.  A group
with fewer rivals than there are clusters can always be labelled last, so such groups are set aside
until only a core is left, which for random pairs is nearly always empty.  The core is searched by
the most constrained group first, with steps back; giving up is said, never hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

import numpy as np

from dmkc.constraints.linked import Components, Constraints, Groups, joined, two_sided
from dmkc.constraints.minsum import CostGraph, least
from dmkc.data import Container
from dmkc.errors import UserError

MAX_STEPS = 200_000
"""Steps after which the search of a core is given up."""


def colouring(n: int, edges: np.ndarray, n_clusters: int) -> np.ndarray:
    """A cluster for every group such that the ends of every edge differ, or a ValueError."""
    rivals: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges.tolist():
        rivals[a].append(b)
        rivals[b].append(a)
    last, core = _peeled(rivals, n_clusters)
    found = np.full(n, -1, np.int64)
    if core:
        _search(rivals, core, n_clusters, found)
    for node in reversed(last):
        taken = {int(found[r]) for r in rivals[node]}
        found[node] = next(c for c in range(n_clusters) if c not in taken)
    return found


def _peeled(rivals: list[list[int]], m: int) -> tuple[list[int], list[int]]:
    """Groups in the order in which they are set aside, and the core that is left."""
    degree = [len(r) for r in rivals]
    waiting = deque(k for k, d in enumerate(degree) if d < m)
    gone = [d < m for d in degree]
    last = []
    while waiting:
        node = waiting.popleft()
        last.append(node)
        for r in rivals[node]:
            degree[r] -= 1
            if degree[r] < m and not gone[r]:
                gone[r] = True
                waiting.append(r)
    return last, [k for k, out in enumerate(gone) if not out]


def _search(rivals: list[list[int]], core: list[int], m: int, found: np.ndarray) -> None:
    """Label the core, most constrained group first, stepping back from dead ends."""
    inside = set(core)
    near = {k: [r for r in rivals[k] if r in inside] for k in core}
    taken = {k: [0] * m for k in core}
    trail: list[tuple[int, int]] = []
    """Labelled groups with the number of labels in use when each was labelled."""
    used, steps, after = 0, 0, -1
    node = max(core, key=lambda k: len(near[k]))
    while True:
        steps += 1
        if steps > MAX_STEPS:
            raise UserError(
                f"No labeling with {m} clusters that keeps all cannot-links was found in "
                f"{MAX_STEPS} steps, and it is not known whether there is one: pass `hard=False`, "
                "use more clusters, or drop cannot-links."
            )
        # A label that no group has yet is as good as any other such label.
        choice = next((c for c in range(after + 1, min(used + 1, m)) if not taken[node][c]), None)
        if choice is None:
            if not trail:
                raise UserError(
                    f"The cannot-links cannot all be kept with {m} clusters (they ask for more, "
                    f"among {len(core)} groups of rows): pass `hard=False`, use more clusters, or "
                    "drop cannot-links."
                )
            node, used = trail.pop()
            after = int(found[node])
            found[node] = -1
            for r in near[node]:
                taken[r][after] -= 1
            continue
        trail.append((node, used))
        found[node] = choice
        used = max(used, choice + 1)
        for r in near[node]:
            taken[r][choice] += 1
        if len(trail) == len(core):
            return
        node = max(
            (k for k in core if found[k] < 0),
            key=lambda k: (sum(t > 0 for t in taken[k]), len(near[k])),
        )
        after = -1


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
