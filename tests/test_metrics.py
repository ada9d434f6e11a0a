"""The metrics agree with scikit-learn, whatever the container, chunks and names of clusters."""

from __future__ import annotations

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as reference
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc import metrics

SKLEARN = {
    "rand_index": reference.rand_score,
    "adjusted_rand_index": reference.adjusted_rand_score,
    "fowlkes_mallows": reference.fowlkes_mallows_score,
    "normalized_mutual_info": reference.normalized_mutual_info_score,
}
patient = settings(deadline=None, max_examples=60)


@st.composite
def partitions(draw, max_rows=40):
    rows = draw(st.integers(1, max_rows))
    labels = st.lists(st.integers(-3, 4), min_size=rows, max_size=rows).map(np.array)
    return draw(labels), draw(labels)


def assert_same(left: dict[str, float], right: dict[str, float], tolerance=1e-12) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert left[name] == pytest.approx(right[name], abs=tolerance), name


def assert_sklearn(truth, labels) -> None:
    ours = metrics.all_metrics(truth, labels)
    assert_same(
        {name: ours[name] for name in SKLEARN}, {k: f(truth, labels) for k, f in SKLEARN.items()}
    )


@patient
@given(partitions())
def test_equal_to_sklearn(pair):
    assert_sklearn(*pair)


def test_every_pair_of_partitions_of_up_to_four_rows():
    for rows in (1, 2, 3, 4):
        # Each label is at most one above those before it, which lists every partition once.
        every = [
            np.array(labels)
            for labels in itertools.product(range(rows), repeat=rows)
            if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels))
        ]
        for truth, labels in itertools.product(every, repeat=2):
            assert_sklearn(truth, labels)


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_one_cluster_and_singletons(rows):
    one, each = np.zeros(rows, int), np.arange(rows)
    for truth, labels in itertools.product([one, each, each % 2], repeat=2):
        assert_sklearn(truth, labels)


@patient
@given(partitions())
def test_independent_of_the_names_and_order(pair):
    truth, labels = pair
    rng = np.random.default_rng(0)
    names, order = rng.permutation(8), rng.permutation(len(truth))
    expected = metrics.all_metrics(truth, labels)
    assert_same(metrics.all_metrics(truth, names[labels + 3]), expected)
    assert_same(metrics.all_metrics(names[truth + 3], labels), expected)
    assert_same(metrics.all_metrics(truth[order], labels[order]), expected)


@settings(deadline=None, max_examples=25)
@given(partitions(), st.integers(1, 41), st.integers(1, 41), st.booleans())
def test_independent_of_chunks(pair, first, second, lazy_truth):
    truth, labels = pair
    whole = metrics.contingency(truth, labels)
    left = da.from_array(truth, chunks=first) if lazy_truth else truth
    with dask.config.set(scheduler="synchronous"):
        blocks = metrics.contingency(left, da.from_array(labels, chunks=second))
    np.testing.assert_array_equal(blocks.table, whole.table)
    np.testing.assert_array_equal(blocks.classes, whole.classes)
    np.testing.assert_array_equal(blocks.clusters, whole.clusters)


@patient
@given(partitions(), st.data(), st.sampled_from([int, float]))
def test_a_whole_weight_is_that_many_rows(pair, data, dtype):
    truth, labels = pair
    size = len(truth)
    weight = np.array(data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    weight[0] = max(weight[0], 1)
    repeated = metrics.all_metrics(np.repeat(truth, weight), np.repeat(labels, weight))
    assert_same(metrics.all_metrics(truth, labels, weight.astype(dtype)), repeated)


def test_fractional_weights():
    truth, labels = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    weight = np.array([1.5, 2.5, 1.0, 3.0])
    assert metrics.accuracy(truth, labels, weight) == pytest.approx(7 / 8)
    assert metrics.majority_accuracy(truth, labels, weight) == pytest.approx(7 / 8)
    assert metrics.balanced_error(truth, labels, weight) == pytest.approx(1 / 8)
    blocks = da.from_array(truth, chunks=3)
    assert_same(
        metrics.all_metrics(blocks, labels, weight), metrics.all_metrics(truth, labels, weight)
    )


def test_containers_agree():
    truth = np.array(["a", "b", "a", "c", "b"])
    labels = np.array([2, 1, 2, 2, 1])
    expected = metrics.contingency(truth, labels)
    frame = pd.DataFrame({"truth": truth, "labels": labels}, index=[9, 8, 7, 6, 5])
    lazy = dd.from_pandas(frame, npartitions=2, sort=False)
    for left, right in [
        (truth.tolist(), labels.tolist()),
        (frame.truth, frame.labels),
        (frame.truth.astype("category"), frame.labels),
        (xr.DataArray(truth, dims="row"), xr.DataArray(labels, dims="row")),
        (xr.DataArray(truth, dims="row").chunk(row=2), labels),
        (lazy.truth, lazy.labels),
        (lazy.truth, labels),
    ]:
        found = metrics.contingency(left, right)
        np.testing.assert_array_equal(found.table, expected.table)
        assert found.classes.tolist() == ["a", "b", "c"]


def test_labels_share_their_ancestors_with_truth():
    calls: list[int] = []

    def source(block):
        calls.append(len(block))
        return block

    base = da.from_array(np.arange(12), chunks=4).map_blocks(source, meta=np.array([], int))
    with dask.config.set(scheduler="synchronous"):
        metrics.contingency(base % 3, base % 2)
    assert len(calls) == 3


def test_known_values():
    counted = metrics.Contingency(np.array([[4, 1, 0], [2, 2, 1]]), np.arange(2), np.arange(3))
    assert metrics.accuracy(counted) == pytest.approx(6 / 10)
    assert metrics.majority_accuracy(counted) == pytest.approx(7 / 10)
    assert metrics.balanced_error(counted) == pytest.approx((1 / 5 + 3 / 5) / 2)
    # Two classes in one cluster: the class without a cluster is all error.
    assert metrics.balanced_error([0, 0, 0, 1], [5, 5, 5, 5]) == pytest.approx(0.5)


def test_a_tie_of_matchings_takes_the_least_balanced_error():
    # Three rows are matched at best: 2 of 3 and 1 of 2 with the first and last cluster.
    table = np.array([[2, 1, 0], [1, 0, 1]])
    for order in itertools.permutations(range(3)):
        counted = metrics.Contingency(table[:, order], np.arange(2), np.arange(3))
        assert metrics.balanced_error(counted) == pytest.approx(1 - (2 / 3 + 1 / 2) / 2)


def test_counts_beyond_64_bits_of_pairs():
    big = metrics.Contingency(np.array([[10**12, 1], [1, 10**12]]), np.arange(2), np.arange(2))
    assert metrics.adjusted_rand_index(big) == pytest.approx(1.0, abs=1e-9)
    assert metrics.rand_index(big) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0]), "truth has 2 rows but labels has 1"),
        (([0, 1], [0, 1], [1.0]), "sample_weight has 1"),
        (([], []), "no rows"),
        (([0.0, np.nan], [0, 1]), r"truth holds missing values \(NaN\)"),
        (([0, 1], [None, "a"]), "labels holds missing values"),
        ((np.array([1, "a"], object), [0, 1]), "cannot be sorted"),
        (([[0, 1]], [0, 1]), "one-dimensional"),
        (([0, 1], [0, 1], [1, -1]), "finite numbers >= 0"),
        (([0, 1], [0, 1], [0, 0]), "zero"),
        (([0, 1],), "No labels"),
        ((np.arange(10_000), np.arange(10_000)), "too many"),
    ],
)
def test_errors_are_sentences(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.all_metrics(*arguments)


def test_errors_in_blocks_and_tables():
    lazy = da.from_array(np.array([0.0, 1.0, np.nan]), chunks=1)
    with pytest.raises(ValueError, match="missing"):
        metrics.accuracy(lazy, lazy)
    with pytest.raises(ValueError, match="does not fit"):
        metrics.Contingency(np.ones((2, 2)), np.arange(3), np.arange(2))
    counted = metrics.contingency([0, 1], [0, 1])
    with pytest.raises(ValueError, match="pass it alone"):
        metrics.accuracy(counted, [0, 1])
    with pytest.raises(ValueError, match="too small"):
        metrics.rand_index([0, 1], [0, 1], [0.1, 0.2])
