"""How n rows are cut into leaves and blocks, and the order in which sums are added.

A *leaf* is a fixed run of rows: its boundaries depend on the row number and the row's width
alone.  Every statistic is formed leaf by leaf and added up in one binary tree over leaf
numbers.  A *block* is an aligned run of 2**level leaves: what one task works on.  Blocks can be
made larger or smaller to suit memory and workers without changing a bit of any sum, because a
block's partial sum is always a node of the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_LEAF_ROWS = 4096
MIN_LEAF_ROWS = 64
LEAF_BYTES = 16 << 20

Node = Any
Merge = Callable[[Node, Node], Node]
Piece = tuple[int, int, Node]


def leaf_rows_for(width: int) -> int:
    """Rows in a leaf whose rows hold `width` numbers: a power of two, at most 4096."""
    rows = MAX_LEAF_ROWS
    while rows > MIN_LEAF_ROWS and rows * width * 4 > LEAF_BYTES:
        rows //= 2
    return rows


MANY_BLOCKS = 64
"""Blocks for every thread from which on larger blocks are better than more of them."""


@dataclass(frozen=True)
class Grid:
    """The leaves of `n_rows` rows, grouped into blocks of ``2**level`` leaves."""

    n_rows: int
    leaf_rows: int
    level: int

    @classmethod
    def plan(
        cls,
        n_rows: int,
        width: int,
        target_bytes: int,
        threads: int,
        leaf_rows: int | None = None,
        most_bytes: int = 0,
    ) -> Grid:
        """Blocks of at most `target_bytes` (float32), and several for every thread.

        Where that would be very many for every thread, blocks grow up to `most_bytes`: a scheduler
        pays for each of them.
        """
        leaf = leaf_rows or leaf_rows_for(width)
        n_leaves = -(-n_rows // leaf)
        leaf_bytes, threads = leaf * width * 4, max(1, threads)
        by_bytes = max(1, target_bytes // leaf_bytes)
        fewer = n_leaves // (MANY_BLOCKS * threads)
        by_bytes = max(by_bytes, min(fewer, most_bytes // leaf_bytes))
        by_threads = max(1, n_leaves // (4 * threads))
        level = min(by_bytes, by_threads).bit_length() - 1
        return cls(n_rows, leaf, level)

    @property
    def n_leaves(self) -> int:
        return -(-self.n_rows // self.leaf_rows)

    @property
    def block_rows(self) -> int:
        return self.leaf_rows << self.level

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // self.block_rows)


def fold_leaves(nodes: Iterable[Node], merge: Merge) -> Node:
    """The tree node over consecutive leaf (or equal-level) nodes that start an aligned run."""
    stack: list[tuple[int, Node]] = []
    for node in nodes:
        size = 1
        while stack and stack[-1][0] == size:
            left_size, left = stack.pop()
            node, size = merge(left, node), size + left_size
        stack.append((size, node))
    if not stack:
        raise ValueError("A sum over no rows was asked for.")
    _, node = stack.pop()
    while stack:
        node = merge(stack.pop()[1], node)
    return node


def fold_stack(stack: np.ndarray) -> np.ndarray:
    """The tree sum over the first axis, whose entries belong to consecutive leaves."""
    while len(stack) > 1:
        paired = len(stack) // 2 * 2
        tail = stack[paired:]
        stack = stack[0:paired:2] + stack[1:paired:2]
        if len(tail):
            stack = np.concatenate([stack, tail])
    return stack[0]


def fold_pieces(pieces: Iterable[Piece], n_leaves: int, merge: Merge) -> list[Piece]:
    """Merge nodes (level, number, value) with their siblings as far as they are present."""
    waiting: dict[tuple[int, int], Node] = {}
    for level, number, node in pieces:
        while (1 << level) < n_leaves:
            sibling = number ^ 1
            if sibling << level >= n_leaves:  # nothing to the right: the node stands for both
                level, number = level + 1, number >> 1
            elif (level, sibling) in waiting:
                other = waiting.pop((level, sibling))
                node = merge(node, other) if number < sibling else merge(other, node)
                level, number = level + 1, number >> 1
            else:
                break
        waiting[level, number] = node
    return [(level, number, node) for (level, number), node in sorted(waiting.items(), key=_key)]


def _key(item: tuple[tuple[int, int], Node]) -> tuple[int, int]:
    return item[0]
