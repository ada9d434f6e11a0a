"""Labels of a graph's nodes of least total cost: a cost per node and label, and per edge.

An edge costs `same` when its ends have equal labels and `differ` when they have not; an infinite
cost is a hard constraint.  On trees the answer is exact (two passes of messages), and so it is on
small parts with cycles (every labeling is tried).  On large parts with cycles the cost falls from
a given labeling by passes of messages along a spanning tree, by moves of single nodes and, where
edges are hard, by exchanging two labels along a chain, which keeps every hard edge whole.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from dmkc.compiled import compiled

TRIED = 4096
"""Parts with at most this many labelings are searched completely."""
PASSES = 10
LONGEST_CHAIN = 10_000


@dataclass(frozen=True)
class CostGraph:
    """A graph with costs on its edges, laid out for passes of messages."""

    n: int
    edges: np.ndarray
    """(edges, 2), no edge twice."""
    same: np.ndarray
    differ: np.ndarray
    start: np.ndarray
    """Where each node's half-edges begin."""
    other: np.ndarray
    """The far end of every half-edge."""
    edge_of: np.ndarray
    """The edge of every half-edge."""
    order: np.ndarray
    """Nodes from the roots of a spanning forest outwards."""
    parent: np.ndarray
    parent_edge: np.ndarray
    part: np.ndarray
    """The connected part of every node."""
    loops: np.ndarray
    """Edges outside of the forest."""
    small: tuple[np.ndarray, ...]
    """Nodes of the parts with cycles that may be searched completely, part by part."""
    large: np.ndarray
    """Whether a node is in one of the other parts with cycles."""

    @classmethod
    def of(
        cls, n: int, edges: np.ndarray, same: np.ndarray, differ: np.ndarray, n_labels: int
    ) -> CostGraph:
        half = np.concatenate([edges, edges[:, ::-1]])
        by_node = np.argsort(half[:, 0], kind="stable")
        start = np.searchsorted(half[by_node, 0], np.arange(n + 1))
        other = np.ascontiguousarray(half[by_node, 1])
        edge_of = by_node % max(len(edges), 1)
        order, parent, parent_edge, part = _forest(start, other, edge_of)
        in_forest = np.zeros(len(edges), bool)
        in_forest[parent_edge[parent_edge >= 0]] = True
        loops = np.flatnonzero(~in_forest)
        cyclic = np.unique(part[edges[loops, 0]])
        sizes = np.bincount(part, minlength=len(order) and part.max() + 1)
        few = sizes[cyclic] * np.log(n_labels) <= np.log(TRIED) + 1e-9
        by_part = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[by_part], [cyclic[few], cyclic[few] + 1])
        small = tuple(by_part[a:b] for a, b in ends.T)
        large = np.isin(part, cyclic[~few])
        return cls(
            n, edges, same, differ, start, other, edge_of, order, parent, parent_edge, part,
            loops, small, large,
        )  # fmt: skip

    def edge_costs(self, labels: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        some = slice(None) if which is None else which
        ends = labels[self.edges[some]]
        return np.where(ends[:, 0] == ends[:, 1], self.same[some], self.differ[some])

    def cost(self, cost: np.ndarray, labels: np.ndarray) -> float:
        """The total cost of a labeling."""
        return float(cost[np.arange(self.n), labels].sum() + self.edge_costs(labels).sum())


def least(graph: CostGraph, cost: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels of least cost; never worse than `labels`, which breaks no hard edge."""
    found = _along_forest(graph, cost)
    for nodes in graph.small:
        found[nodes] = _best_of_all(graph, cost, nodes)
    if not graph.large.any():
        return found
    found = np.where(graph.large, labels, found)
    hard = np.isinf(graph.same)
    for _ in range(PASSES):
        before = found.copy()
        conditioned = cost + _loop_costs(graph, found, cost.shape[1])
        proposed = np.where(graph.large, _along_forest(graph, conditioned), found)
        found = _better_parts(graph, cost, found, proposed)
        if hard.any():
            _exchange(cost, graph.start, graph.other, graph.edge_of, hard, graph.large, found)
        else:
            _move_single(
                cost, graph.start, graph.other, graph.edge_of, graph.same, graph.differ,
                graph.large, found,
            )  # fmt: skip
        if np.array_equal(before, found):
            break
    return found


def _along_forest(graph: CostGraph, cost: np.ndarray) -> np.ndarray:
    """The labels of least cost when the edges outside of the spanning forest are left out."""
    edge = np.maximum(graph.parent_edge, 0)
    labels = np.zeros(graph.n, np.int64)
    if len(graph.edges) == 0:
        return cost.argmin(axis=1)
    _messages(
        cost.astype(np.float64), graph.order, graph.parent, graph.same[edge], graph.differ[edge],
        labels,
    )  # fmt: skip
    return labels


def _loop_costs(graph: CostGraph, labels: np.ndarray, m: int) -> np.ndarray:
    """What every label of a node costs on edges outside of the forest, the other end fixed."""
    out = np.zeros((graph.n, m))
    for near, far in ((0, 1), (1, 0)):
        node, fixed = graph.edges[graph.loops, near], labels[graph.edges[graph.loops, far]]
        for label in range(m):
            paid = np.where(fixed == label, graph.same[graph.loops], graph.differ[graph.loops])
            np.add.at(out[:, label], node, paid)
    return out


def _better_parts(
    graph: CostGraph, cost: np.ndarray, labels: np.ndarray, proposed: np.ndarray
) -> np.ndarray:
    """Of two labelings the better one, part by part."""
    count = graph.part.max() + 1
    each = np.arange(graph.n)

    def paid(y: np.ndarray) -> np.ndarray:
        nodes = np.bincount(graph.part, cost[each, y], minlength=count)
        return nodes + np.bincount(
            graph.part[graph.edges[:, 0]], graph.edge_costs(y), minlength=count
        )

    now, then = paid(labels), paid(proposed)
    return np.where((then < now - 1e-12 * np.abs(now))[graph.part], proposed, labels)


def _best_of_all(graph: CostGraph, cost: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The best labeling of one small part."""
    every = _all_labelings(len(nodes), cost.shape[1])
    total = cost[nodes[None, :], every].sum(axis=1)
    place = {int(node): k for k, node in enumerate(nodes)}
    inside = {
        int(graph.edge_of[h])
        for node in nodes
        for h in range(graph.start[node], graph.start[node + 1])
    }
    for e in sorted(inside):
        a, b = (place[int(node)] for node in graph.edges[e])
        total = total + np.where(every[:, a] == every[:, b], graph.same[e], graph.differ[e])
    return every[int(total.argmin())]


@cache
def _all_labelings(n: int, m: int) -> np.ndarray:
    return np.array(list(itertools.product(range(m), repeat=n)), np.int64)


@compiled
def _forest(start, other, edge_of):  # pragma: no cover - compiled
    """A spanning forest, breadth first from the lowest node of every part."""
    n = len(start) - 1
    order = np.empty(n, np.int64)
    parent = np.full(n, -1, np.int64)
    parent_edge = np.full(n, -1, np.int64)
    part = np.full(n, -1, np.int64)
    filled, parts = 0, 0
    for root in range(n):
        if part[root] >= 0:
            continue
        part[root] = parts
        order[filled] = root
        at = filled
        filled += 1
        while at < filled:
            node = order[at]
            at += 1
            for h in range(start[node], start[node + 1]):
                far = other[h]
                if part[far] < 0:
                    part[far] = parts
                    parent[far] = node
                    parent_edge[far] = edge_of[h]
                    order[filled] = far
                    filled += 1
        parts += 1
    return order, parent, parent_edge, part


@compiled
def _messages(cost, order, parent, same, differ, labels):  # pragma: no cover - compiled
    """Messages from the leaves to the roots into `cost`, then labels from the roots to the leaves.

    `same` and `differ` are the costs of the edge from each node to its parent.
    """
    n, m = cost.shape
    for k in range(n - 1, -1, -1):
        node = order[k]
        up = parent[node]
        if up < 0:
            continue
        for label in range(m):
            low = cost[node, label] + same[node]
            for mine in range(m):
                if mine != label:
                    low = min(low, cost[node, mine] + differ[node])
            cost[up, label] += low
    for k in range(n):
        node = order[k]
        up = parent[node]
        best, low = 0, np.inf
        for label in range(m):
            paid = cost[node, label]
            if up >= 0:
                paid += same[node] if labels[up] == label else differ[node]
            if paid < low:
                best, low = label, paid
        labels[node] = best


@compiled
def _move_single(
    cost, start, other, edge_of, same, differ, allowed, labels
):  # pragma: no cover - compiled
    """One sweep in which every node takes the best label for its neighbours' labels."""
    n, m = cost.shape
    for node in range(n):
        if not allowed[node]:
            continue
        mine = labels[node]
        best, low, now = mine, np.inf, np.inf
        for label in range(m):
            paid = cost[node, label]
            for h in range(start[node], start[node + 1]):
                e = edge_of[h]
                paid += same[e] if labels[other[h]] == label else differ[e]
            if label == mine:
                now = paid
            if paid < low:
                best, low = label, paid
        if low < now:
            labels[node] = best


@compiled
def _exchange(cost, start, other, edge_of, hard, allowed, labels):  # pragma: no cover - compiled
    """One sweep of exchanges of two labels along the chains that hard edges make of them."""
    n, m = cost.shape
    seen = np.full(n, -1, np.int64)
    chain = np.empty(n, np.int64)
    stamp = 0
    for node in range(n):
        if not allowed[node]:
            continue
        for label in range(m):
            mine = labels[node]
            if label == mine:
                continue
            stamp += 1
            chain[0] = node
            seen[node] = stamp
            size, at, gain = 1, 0, 0.0
            while at < size and size < LONGEST_CHAIN:
                here = chain[at]
                at += 1
                gain += cost[here, labels[here]] - cost[here, mine + label - labels[here]]
                for h in range(start[here], start[here + 1]):
                    far = other[h]
                    there = labels[far]
                    concerned = there in (mine, label)
                    if concerned and hard[edge_of[h]] and seen[far] != stamp:
                        seen[far] = stamp
                        chain[size] = far
                        size += 1
            if at == size and gain > 1e-12 * (abs(cost[node, mine]) + abs(cost[node, label])):
                for k in range(size):
                    labels[chain[k]] = mine + label - labels[chain[k]]
