"""Leaves, blocks and the one binary tree in which every sum is added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmkc.scan.grid import (
    LEAF_BYTES,
    MANY_BLOCKS,
    MAX_LEAF_ROWS,
    MIN_LEAF_ROWS,
    Grid,
    fold_leaves,
    fold_pieces,
    leaf_rows_for,
)


def pair(left, right):
    return (left, right)


def add(left, right):
    return left + right


def tree(nodes, merge):
    """The plain recursive tree: the left half is the largest power of two below the length."""
    if len(nodes) == 1:
        return nodes[0]
    half = 1
    while 2 * half < len(nodes):
        half *= 2
    return merge(tree(nodes[:half], merge), tree(nodes[half:], merge))


def blocks_of(nodes, level, merge):
    """The pieces (level, number, node) of blocks of 2**level leaves."""
    size = 1 << level
    return [
        (level, number, tree(nodes[first : first + size], merge))
        for number, first in enumerate(range(0, len(nodes), size))
    ]


def badly_scaled(n, seed):
    rng = np.random.default_rng(seed)
    return list(rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, size=n))


@given(n=st.integers(1, 200))
def test_leaves_are_folded_in_the_recursive_tree(n):
    assert fold_leaves(iter(range(n)), pair) == tree(list(range(n)), pair)


@given(n=st.integers(1, 120), level=st.integers(0, 8), data=st.data())
def test_pieces_fold_to_the_same_tree_in_any_order_and_block_size(n, level, data):
    nodes = list(range(n))
    pieces = data.draw(st.permutations(blocks_of(nodes, level, pair)))
    done = fold_pieces(pieces, n, pair)
    assert len(done) == 1
    assert done[0][2] == tree(nodes, pair)


@given(n=st.integers(1, 120), level=st.integers(0, 5), data=st.data())
def test_folding_groups_of_pieces_first_changes_nothing(n, level, data):
    nodes = list(range(n))
    pieces = blocks_of(nodes, level, pair)
    groups = data.draw(
        st.lists(st.integers(0, 4), min_size=len(pieces), max_size=len(pieces)), label="groups"
    )
    partly = []
    for g in range(5):
        partly += fold_pieces(
            [p for p, own in zip(pieces, groups, strict=True) if own == g], n, pair
        )
    partly = data.draw(st.permutations(partly))
    ((_, _, node),) = fold_pieces(partly, n, pair)
    assert node == tree(nodes, pair)


@given(n=st.integers(1, 300), seed=st.integers(0, 2**20), data=st.data())
def test_float_sums_have_the_same_bits_for_every_block_size(n, seed, data):
    values = badly_scaled(n, seed)
    expected = tree(values, add)
    assert fold_leaves(values, add) == expected
    for level in range(10):
        pieces = blocks_of(values, level, add)
        order = data.draw(st.randoms(use_true_random=False))
        order.shuffle(pieces)
        ((_, _, total),) = fold_pieces(pieces, n, add)
        assert total == expected


def test_the_order_of_the_tree_matters_for_these_sums():
    """Otherwise equal bits would prove nothing."""
    values = badly_scaled(200, 0)
    assert tree(values, add) != sum(values[1:], values[0])


def test_missing_pieces_are_not_passed_over():
    pieces = blocks_of(list(range(8)), 0, pair)
    assert len(fold_pieces(pieces[:3] + pieces[4:], 8, pair)) > 1


def test_a_sum_over_nothing_is_refused():
    with pytest.raises(ValueError, match="no rows"):
        fold_leaves([], add)


@pytest.mark.parametrize("width", [1, 16, 300, 1024, 5000, 10**6])
def test_leaves_are_powers_of_two_that_fit(width):
    rows = leaf_rows_for(width)
    assert MIN_LEAF_ROWS <= rows <= MAX_LEAF_ROWS
    assert rows & (rows - 1) == 0
    assert rows == MIN_LEAF_ROWS or rows * width * 4 <= LEAF_BYTES


@given(
    n=st.integers(1, 10**7),
    width=st.integers(1, 5000),
    target=st.integers(1, 2**28),
    threads=st.integers(1, 500),
)
def test_a_plan_covers_all_rows_with_aligned_blocks(n, width, target, threads):
    grid = Grid.plan(n, width, target, threads)
    assert grid.leaf_rows == leaf_rows_for(width)
    assert grid.block_rows == grid.leaf_rows * 2**grid.level
    assert (grid.n_blocks - 1) * grid.block_rows < n <= grid.n_blocks * grid.block_rows
    assert grid.level == 0 or grid.block_rows * width * 4 <= target
    assert grid.n_blocks >= min(grid.n_leaves, threads)


@given(
    n=st.integers(1, 10**11),
    width=st.integers(1, 5000),
    target=st.integers(1, 2**26),
    most=st.integers(0, 2**30),
    threads=st.integers(1, 500),
)
def test_blocks_grow_only_where_they_would_be_very_many(n, width, target, most, threads):
    small = Grid.plan(n, width, target, threads)
    grown = Grid.plan(n, width, target, threads, most_bytes=most)
    assert grown.leaf_rows == small.leaf_rows
    if small.n_blocks <= MANY_BLOCKS * threads:
        assert grown == small
    if grown != small:
        assert grown.block_rows * width * 4 <= most
        assert MANY_BLOCKS * threads <= grown.n_blocks < small.n_blocks
