"""What answers say of candidates, against brute force, and which pairs are asked about."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmkc.selection.questions import Opinions, best_pairs, clearness, rows_to_move, sides


@st.composite
def told(draw, n=7):
    """Answers of a person with some two clusters in mind, and labelings to judge by them."""
    truth = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    pairs = draw(st.lists(st.permutations(range(n)).map(lambda p: tuple(p[:2])), max_size=8))
    answers = [(i, j, bool(truth[i] == truth[j])) for i, j in pairs]
    labels = draw(st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=1))
    return truth, answers, np.array(labels)


@given(told())
def test_rows_to_move_is_the_distance_to_the_nearest_labeling_that_obeys(example):
    _, answers, labels = example
    every = np.array(list(itertools.product((0, 1), repeat=labels.shape[1])))
    obey = [y for y in every if all((y[i] == y[j]) == together for i, j, together in answers)]
    least = [min(int((y != z).sum()) for y in obey) for z in labels]
    assert rows_to_move(labels, answers, 2).tolist() == least


@given(told())
def test_sides_are_those_that_the_person_has_in_mind(example):
    truth, answers, _ = example
    named = sorted({row for answer in answers for row in answer[:2]})
    parts = sides(answers)
    assert sorted(np.concatenate([rows for rows, _ in parts] or [[]]).astype(int)) == named
    for rows, side in parts:
        assert len(set(truth[rows] ^ side)) == 1


def test_an_answer_that_contradicts_those_before_is_left_out():
    ((rows, side),) = sides([(0, 1, True), (1, 2, True), (0, 2, False)])
    assert sorted(rows) == [0, 1, 2] and len(set(side)) == 1
    assert rows_to_move(np.array([[0, 0, 1]]), [(0, 1, True), (0, 1, False)], 2).tolist() == [0]


def test_of_several_clusters_every_contradicted_answer_counts():
    labels = np.array([[0, 1, 2, 2], [0, 0, 1, 2]])
    answers = [(0, 1, True), (2, 3, True), (0, 3, False)]
    assert rows_to_move(labels, answers, 3).tolist() == [1, 1]


def opinions(labels, clear=None, m=2, weight=None):
    labels = np.array(labels)
    clear = np.full(labels.shape, 0.5) if clear is None else np.array(clear)
    weight = np.full(len(labels), 1 / len(labels)) if weight is None else np.array(weight)
    return Opinions(labels, clear, weight, m)


def test_two_clusters_are_asked_about_from_one_clear_row():
    two = [[0, 0, 1, 1, 1], [0, 1, 0, 1, 1]]
    clear = [[0.9, 0.5, 0.1, 0.2, 0.6]] * 2
    ((anchor, row),) = best_pairs(opinions(two, clear), [], 1, (), [0])
    assert (anchor, row) == (0, 1)  # 0 is the clearest, 1 the clearer of the two in dispute
    ((anchor, row),) = best_pairs(opinions(two, clear), [(0, 1, True)], 1, (), [0])
    assert (anchor, row) == (0, 2)
    left = best_pairs(opinions(two, clear), [(0, 1, True), (0, 2, False)], 9, (), [0])
    assert {row for _, row in left} == {3, 4}  # the second candidate has two of three wrong


def test_a_row_that_was_skipped_gives_way_to_others():
    two = [[0, 0, 1, 1, 1], [0, 1, 0, 1, 1]]
    clear = [[0.9, 0.5, 0.1, 0.2, 0.6]] * 2
    skipped = [frozenset({0, 1})]
    ((anchor, row),) = best_pairs(opinions(two, clear), [], 1, skipped, [0])
    assert anchor == 4 and frozenset({anchor, row}) not in skipped


def test_pairs_of_several_clusters_are_those_in_dispute():
    labels = [[0, 0, 1, 2, 2], [0, 1, 1, 2, 2]]
    pairs = best_pairs(opinions(labels, m=3), [], 20, (), [0])
    assert {frozenset(p) for p in pairs} == {frozenset({0, 1}), frozenset({1, 2})}
    assert len(best_pairs(opinions(labels, m=3), [(0, 1, True)], 20, (), [0])) == 1


def test_who_is_not_likely_has_no_say():
    labels = [[0, 0, 1, 1], [0, 1, 0, 1]]
    assert best_pairs(opinions(labels, weight=[1.0, 0.0]), [], 5, (), [0]) == []


def test_clearness_is_a_rank_of_distances_from_the_boundary():
    assert clearness(np.array([-3.0, 0.5, 1.0])).tolist() == [1.0, 0.0, 0.5]
    assert clearness(np.array([[1.0, 0.9, 0.0], [3.0, 0.0, 1.0]])).tolist() == [0.0, 1.0]
    assert clearness(np.array([2.0])).tolist() == [0.0]
