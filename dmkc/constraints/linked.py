"""The rows that constraints name, as a graph: what hangs together, and what contradicts itself.

For two clusters a set of constraints is consistent exactly when no cycle has an odd number of
cannot-links.  Both that and the components with their two possible labelings come from one
search in the double cover: every row is there twice, once per cluster; a must-link joins equal
sides and a cannot-link opposite ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from dmkc.constraints.pairs import as_pairs
from dmkc.data import Container
from dmkc.errors import UserError

FEW_CANNOT_LINKS = 12
"""Random pairs with fewer cannot-links than this hardly said where clusters part."""
LOOKED_AT = 32
"""Rows from which a short contradiction is looked for."""


@dataclass(frozen=True)
class Constraints:
    """Must-links and cannot-links between rows."""

    n_rows: int
    rows: np.ndarray
    """Global numbers of the rows that some pair names, ascending."""
    must: np.ndarray
    """(pairs, 2) places in `rows`."""
    cannot: np.ndarray
    must_weights: np.ndarray
    """One weight per pair; 1 where none was given."""
    cannot_weights: np.ndarray

    @property
    def n_pairs(self) -> int:
        return len(self.must) + len(self.cannot)

    def violated(self, labels: np.ndarray) -> int:
        """How many pairs the labels of the constrained rows violate."""
        apart, together = labels[self.must], labels[self.cannot]
        broken = np.sum(apart[:, 0] != apart[:, 1]) + np.sum(together[:, 0] == together[:, 1])
        return int(broken)


@dataclass(frozen=True)
class Components:
    """What hangs together, as far as two clusters go."""

    number: np.ndarray
    """The component of every constrained row."""
    side: np.ndarray
    """+1 or -1: rows of a component with equal sides are in one cluster."""

    @property
    def count(self) -> int:
        return int(self.number.max(initial=-1)) + 1


def read_constraints(
    must_link: Any, cannot_link: Any, container: Container, hard: bool = True
) -> Constraints | None:
    """The constraints on the rows of an input, checked; None where there are none."""
    must, again_must = as_pairs(must_link, "must_link", container)
    cannot, again_cannot = as_pairs(cannot_link, "cannot_link", container)
    for repeated, name in ((again_must, "must_link"), (again_cannot, "cannot_link")):
        if repeated:
            warnings.warn(
                f"{repeated} pair(s) of {name} are given more than once; each counts once.",
                stacklevel=2,
            )
    if len(must) + len(cannot) == 0:
        return None
    if hard:
        if must.weights is not None or cannot.weights is not None:
            raise UserError(
                "Pairs have weights only where they may be violated: pass `hard=False`, or drop "
                "the third column of the pairs."
            )
        _refuse_both(must.rows, cannot.rows, container)
    rows, places = np.unique(np.concatenate([must.rows, cannot.rows]), return_inverse=True)
    places = places.reshape(-1, 2)
    return Constraints(
        container.n_rows,
        rows,
        places[: len(must)],
        places[len(must) :],
        np.ones(len(must)) if must.weights is None else must.weights,
        np.ones(len(cannot)) if cannot.weights is None else cannot.weights,
    )


def warn_of_few(constraints: Constraints) -> None:
    """Say so where pairs carry little information."""
    few = len(constraints.cannot)
    if few < FEW_CANNOT_LINKS:
        warnings.warn(
            f"Only {few} of {constraints.n_pairs} pairs are cannot-links, and must-links alone say "
            "little about where clusters part: the clusters may follow the constraints poorly.",
            stacklevel=2,
        )


def two_sided(constraints: Constraints, container: Container) -> Components:
    """Components with the sides of their rows; a ValueError names a contradiction."""
    n = len(constraints.rows)
    base = _graph(n, np.concatenate([constraints.must, constraints.cannot]))
    _, number = csgraph.connected_components(base, directed=False)
    _, cover = csgraph.connected_components(_double_cover(constraints), directed=False)
    wrong = np.flatnonzero(cover[:n] == cover[n:])
    if len(wrong):
        raise UserError(_contradiction(constraints, wrong, container))
    first = np.zeros(number.max() + 1, np.int64)
    first[number[::-1]] = np.arange(n)[::-1]
    side = np.where(cover[:n] == cover[first[number]], 1, -1).astype(np.int8)
    return Components(number, side)


@dataclass(frozen=True)
class Groups:
    """What must-links join, and which of the groups cannot be together."""

    number: np.ndarray
    """The group of every constrained row."""
    apart: np.ndarray
    """(edges, 2) different groups that cannot be in one cluster, each pair once."""

    @property
    def count(self) -> int:
        return int(self.number.max(initial=-1)) + 1


def joined(constraints: Constraints, container: Container) -> Groups:
    """Groups of must-linked rows; a ValueError names a cannot-link inside of one."""
    n = len(constraints.rows)
    _, number = csgraph.connected_components(_graph(n, constraints.must), directed=False)
    ends = number[constraints.cannot]
    wrong = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(wrong):
        a, b = constraints.cannot[wrong[0]]
        _, before = csgraph.breadth_first_order(
            _graph(n, constraints.must), a, directed=False, return_predecessors=True
        )
        path = [int(b)]
        while path[-1] != a:
            path.append(int(before[path[-1]]))
        links = [(path[i], path[i + 1], True) for i in range(len(path) - 1)]
        raise UserError(_sentence([*links, (int(a), int(b), False)], constraints, container))
    apart = np.unique(np.sort(ends, axis=1), axis=0)
    return Groups(number, apart.reshape(-1, 2))


def _refuse_both(must: np.ndarray, cannot: np.ndarray, container: Container) -> None:
    scale = np.int64(container.n_rows)
    both = np.intersect1d(must[:, 0] * scale + must[:, 1], cannot[:, 0] * scale + cannot[:, 1])
    if len(both):
        a, b = container.row_labels(np.array([both[0] // scale, both[0] % scale]))
        raise UserError(
            f"The pair of rows {a} and {b} is in `must_link` and in `cannot_link`; drop it "
            "from one."
        )


def _graph(n: int, edges: np.ndarray) -> Any:
    return sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()


def _double_cover(c: Constraints) -> Any:
    n = len(c.rows)
    crossed = np.array([0, n])
    parts = [c.must, c.must + n, c.cannot + crossed, c.cannot + crossed[::-1]]
    return _graph(2 * n, np.concatenate(parts))


def _contradiction(c: Constraints, wrong: np.ndarray, container: Container) -> str:
    """The shortest of the odd cycles that a few of the rows lead to."""
    n, cover = len(c.rows), _double_cover(c)
    cover = cover + cover.T
    best: list[int] | None = None
    for start in wrong[np.linspace(0, len(wrong) - 1, min(LOOKED_AT, len(wrong))).astype(int)]:
        _, before = csgraph.breadth_first_order(cover, start, return_predecessors=True)
        walk = [int(start) + n]
        while walk[-1] != start:
            walk.append(int(before[walk[-1]]))
        cycle = _simple([node % n for node in walk])
        if best is None or len(cycle) < len(best):
            best = cycle
    assert best is not None
    must = {(int(a), int(b)) for a, b in c.must}
    links = []
    for a, b in zip(best, [*best[1:], best[0]], strict=True):
        links.append((a, b, (min(a, b), max(a, b)) in must))
    return _sentence(links, c, container)


def _simple(walk: Sequence[int]) -> list[int]:
    """The innermost part of a closed walk that returns to a row: an odd cycle without a tail."""
    last: dict[int, int] = {}
    best = (0, len(walk) - 1)
    for at, row in enumerate(walk):
        if row in last and at - last[row] < best[1] - best[0]:
            best = (last[row], at)
        last[row] = at
    return list(walk[best[0] : best[1]])


def _sentence(links: Sequence[tuple[int, int, bool]], c: Constraints, container: Container) -> str:
    names = dict(
        zip(
            (a for a, _, _ in links),
            container.row_labels(c.rows[[a for a, _, _ in links]]),
            strict=True,
        )
    )
    steps = [
        f"{names[a]} {'must be with' if same else 'cannot be with'} {names[b]}"
        for a, b, same in links
    ]
    return f"The constraints contradict each other: row {', '.join(steps)}; drop one of these."
