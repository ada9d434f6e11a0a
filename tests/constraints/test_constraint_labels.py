"""The label step against brute force, and contradictions, over random constraint graphs."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.constraints import check_labeling
from dmkc.constraints.assign import Coloured, Penalised, assigner, colouring
from dmkc.constraints.linked import joined, read_constraints
from dmkc.constraints.minsum import CostGraph, least
from dmkc.data import Container

N = 8


@st.composite
def pair_lists(draw, n=N, most=12):
    """Must-links and cannot-links without repetition, consistent or not."""
    every = list(itertools.combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=most, unique=True))
    kinds = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    must = [p for p, same in zip(chosen, kinds, strict=True) if same]
    cannot = [p for p, same in zip(chosen, kinds, strict=True) if not same]
    return must, cannot


def feasible(m, must, cannot, n=N):
    """Every labeling of n rows that keeps all constraints."""
    return [
        y
        for y in itertools.product(range(m), repeat=n)
        if all(y[a] == y[b] for a, b in must) and all(y[a] != y[b] for a, b in cannot)
    ]


def gains(seed, rows, m):
    return np.random.default_rng(seed).normal(size=(len(rows), m))


def best_value(labelings, rows, gain):
    return max(sum(gain[k, y[row]] for k, row in enumerate(rows)) for y in labelings)


def value(gain, labels):
    return gain[np.arange(len(labels)), labels].sum()


def on_all_rows(rows, labels, n=N):
    full = np.zeros(n, int)
    full[rows] = labels
    return full


@given(pair_lists(), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_two_clusters_are_labelled_exactly_or_a_true_odd_cycle_is_named(pairs, seed):
    must, cannot = pairs
    container = Container("numpy", N)
    found = read_constraints(must, cannot, container)
    labelings = feasible(2, must, cannot)
    if not labelings:
        with pytest.raises(ValueError, match="contradict each other") as error:
            assigner(found, container, 2, None)
        assert_odd_cycle(str(error.value), must, cannot)
        return
    gain = gains(seed, found.rows, 2)
    labels = assigner(found, container, 2, None).assign(gain, None)
    assert len(check_labeling(on_all_rows(found.rows, labels), must, cannot)) == 0
    assert value(gain, labels) == pytest.approx(best_value(labelings, found.rows, gain))


def assert_odd_cycle(sentence, must, cannot):
    steps = re.findall(r"(\d+) (must|cannot) be with (\d+)", sentence)
    links = [(int(a), kind, int(b)) for a, kind, b in steps]
    assert sum(kind == "cannot" for _, kind, _ in links) % 2 == 1
    for (a, kind, b), (following, _, _) in zip(links, [*links[1:], links[0]], strict=True):
        assert b == following
        assert (min(a, b), max(a, b)) in (must if kind == "must" else cannot)
    assert len({a for a, _, _ in links}) == len(links)


@given(pair_lists(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_three_clusters_keep_all_constraints_and_small_graphs_are_exact(pairs, seed):
    must, cannot = pairs
    container = Container("numpy", N)
    found = read_constraints(must, cannot, container)
    labelings = feasible(3, must, cannot)
    if not labelings:
        with pytest.raises(ValueError, match=r"contradict each other|cannot all be kept"):
            assigner(found, container, 3, None)
        return
    gain = gains(seed, found.rows, 3)
    keep = assigner(found, container, 3, None)
    labels = keep.assign(gain, None)
    assert len(check_labeling(on_all_rows(found.rows, labels), must, cannot)) == 0
    value_found, bound = value(gain, labels), best_value(labelings, found.rows, gain)
    if not keep.graph.large.any():
        assert value_found == pytest.approx(bound)
    assert value_found <= bound + 1e-9


@given(pair_lists(n=7, most=9), st.integers(0, 10**6), st.sampled_from([2, 3]))
@settings(max_examples=60, deadline=None)
def test_penalties_are_weighed_exactly_on_small_graphs(pairs, seed, m):
    rng = np.random.default_rng(seed)
    weighted = [
        [(*p, w) for p, w in zip(x, rng.uniform(0.1, 3, len(x)), strict=True)] for x in pairs
    ]
    found = read_constraints(*weighted, Container("numpy", 7), hard=False)
    gain = gains(seed, found.rows, m)
    soft = Penalised(found, m, 0.7)
    labels = soft.assign(gain, None)

    def cost(y):
        broken = sum(w for a, b, w in weighted[0] if y[a] != y[b])
        broken += sum(w for a, b, w in weighted[1] if y[a] == y[b])
        return 0.7 * broken - sum(gain[k, y[row]] for k, row in enumerate(found.rows))

    assert not soft.graph.large.any()
    best = min(cost(y) for y in itertools.product(range(m), repeat=7))
    assert cost(on_all_rows(found.rows, labels, 7)) == pytest.approx(best)
    assert soft.penalty(labels) == pytest.approx(
        cost(on_all_rows(found.rows, labels, 7)) + value(gain, labels)
    )


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_large_graphs_with_cycles_improve_and_stay_whole(hard, seed):
    rng = np.random.default_rng(seed)
    n, m = 60, 4
    edges = np.unique(np.sort(rng.integers(0, n, size=(90, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    same = np.full(len(edges), np.inf) if hard else rng.uniform(0, 2, len(edges))
    graph = CostGraph.of(n, edges, same, np.zeros(len(edges)), m)
    assert graph.large.any()
    cost = rng.normal(size=(n, m))
    start = colouring(n, edges, m)
    found = least(graph, cost, start)
    assert graph.cost(cost, found) < graph.cost(cost, start)
    again = least(graph, cost, found)
    assert graph.cost(cost, again) <= graph.cost(cost, found)
    if hard:
        assert (found[edges[:, 0]] != found[edges[:, 1]]).all()


def test_a_clique_larger_than_the_number_of_clusters_is_reported():
    clique = list(itertools.combinations(range(4), 2))
    found = read_constraints(None, clique, Container("numpy", 10))
    with pytest.raises(ValueError, match="cannot all be kept with 3 clusters"):
        Coloured(joined(found, Container("numpy", 10)), 3)
    assert sorted(colouring(4, np.array(clique), 4)) == [0, 1, 2, 3]


def test_a_core_is_searched_with_steps_back():
    """A wheel of five needs four colours; three are refused, four are found."""
    rim = [(i, (i + 1) % 5) for i in range(5)]
    wheel = np.array([*rim, *((i, 5) for i in range(5))])
    with pytest.raises(ValueError, match="cannot all be kept"):
        colouring(6, wheel, 3)
    found = colouring(6, wheel, 4)
    assert (found[wheel[:, 0]] != found[wheel[:, 1]]).all()
