"""Pairs in every form, every sentence about a mistake, and what is built on pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from dmkc.constraints import check_labeling, closure, random_pairs
from dmkc.constraints.linked import read_constraints, two_sided, warn_of_few
from dmkc.constraints.pairs import as_pairs
from dmkc.data import Container, as_rows

TEN = Container("numpy", 10)


def rows_of(source, container=TEN):
    return as_pairs(source, "must_link", container)[0].rows.tolist()


@pytest.mark.parametrize(
    "source",
    [
        [(3, 1), (4, 8)],
        np.array([[1, 3], [8, 4]]),
        np.array([[1.0, 3.0], [8.0, 4.0]]),
        pd.DataFrame({"a": [1, 8], "b": [3, 4]}),
        ((1, 3), [np.int32(4), 8]),
    ],
)
def test_row_numbers(source):
    assert rows_of(source) == [[1, 3], [4, 8]]


@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 2))])
def test_no_pairs(nothing):
    assert rows_of(nothing) == []


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("1,3\n4,8\n", ".csv"),
        ("first,second\n1,3\n4,8\n", ".csv"),
        ("# note\n3\t1\n8\t4\n", ".tsv"),
        ("1 3\n4 8\n", ".txt"),
    ],
)
def test_text_files(tmp_path, text, suffix):
    path = tmp_path / f"pairs{suffix}"
    path.write_text(text)
    assert rows_of(path) == [[1, 3], [4, 8]]


def test_a_csv_with_labels_and_weights_under_a_header(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,weight\nx,y,2.5\ny,z,1\n")
    frame = as_rows(pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=list("xyz")))
    pairs, _ = as_pairs(path, "must_link", frame.container)
    assert pairs.rows.tolist() == [[0, 1], [1, 2]]
    assert pairs.weights.tolist() == [2.5, 1.0]


def test_a_first_line_that_names_no_rows_is_a_header_and_is_mentioned(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("one,other\nx,y\ny,z\n")
    frame = as_rows(pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=list("xyz")))
    with pytest.warns(UserWarning, match=r"first line of .*\(one, other\)"):
        assert rows_of(path, frame.container) == [[0, 1], [1, 2]]
    path.write_text("x,y\ny,other\n")
    with pytest.raises(ValueError, match="names row 'other'"):
        rows_of(path, frame.container)


def test_npy_and_zarr_files(tmp_path):
    pairs = np.array([[1, 3], [4, 8]])
    np.save(tmp_path / "pairs.npy", pairs)
    stored = zarr.create_array(tmp_path / "pairs.zarr", shape=pairs.shape, dtype=pairs.dtype)
    stored[...] = pairs
    assert rows_of(tmp_path / "pairs.npy") == rows_of(tmp_path / "pairs.zarr") == pairs.tolist()


def test_labels_of_frames_and_arrays_name_rows():
    frame = pd.DataFrame({"v": np.arange(4.0)}, index=[30, 20, 10, 0])
    assert rows_of([(20, 0)], as_rows(frame).container) == [[1, 3]]
    array = xr.DataArray(np.ones((3, 2)), dims=("id", "c"), coords={"id": ["a", "b", "c"]})
    assert rows_of([("a", "c")], as_rows(array).container) == [[0, 2]]
    assert rows_of([(0, 2)], as_rows(array).container) == [[0, 2]]
    named = pd.DataFrame({"v": np.arange(3.0)}, index=list("abc"))
    assert rows_of([(0, 2)], as_rows(named).container) == [[0, 2]]


REPEATED = as_rows(pd.DataFrame({"v": np.arange(3.0)}, index=["a", "b", "a"])).container
NAMED = as_rows(pd.DataFrame({"v": np.arange(3.0)}, index=["a", "b", "c"])).container


@pytest.mark.parametrize(
    ("source", "container", "sentence"),
    [
        ([(2, 2)], TEN, "must_link pairs row 2 with itself"),
        ([("b", "b")], NAMED, "must_link pairs row b with itself"),
        ([(1, 10)], TEN, "names row 10, but X has 10 rows"),
        ([(-1, 2)], TEN, "names row -1"),
        ([(0.5, 2)], TEN, "whole numbers.*0.5"),
        ([("a", "b")], TEN, "no row labels; it holds 'a'"),
        ([("a", "z")], NAMED, "names row 'z', which is not in the index"),
        ([("a", "b")], REPEATED, "'a' stands for several rows"),
        ([(1, 2, 3, 4)], TEN, "table with two columns"),
        ([1, 2, 3], TEN, "table with two columns"),
        ([(1, 2, -1.0)], TEN, "finite numbers greater than 0"),
        ([(1, 2, "x")], TEN, "must hold weights"),
        ("nowhere.csv", TEN, "There is no file nowhere.csv"),
    ],
)
def test_pairs_that_make_no_sense(source, container, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_pairs(source, "must_link", container)


def test_a_file_that_is_no_pairs(tmp_path):
    (tmp_path / "pairs.bin").write_bytes(b"abc")
    with pytest.raises(ValueError, match="cannot be read as pairs"):
        as_pairs(tmp_path / "pairs.bin", "must_link", TEN)


def test_repeated_pairs_count_once_and_are_mentioned():
    with pytest.warns(UserWarning, match=r"2 pair\(s\) of must_link are given more than once"):
        found = read_constraints([(1, 2), (2, 1), (1, 2)], [(3, 4)], TEN)
    assert len(found.must) == 1
    with pytest.warns(UserWarning):
        soft = read_constraints([(1, 2, 0.5), (2, 1, 4.0)], None, TEN, hard=False)
    assert soft.must_weights.tolist() == [4.0]


def test_a_pair_in_both_lists_is_refused_unless_constraints_are_soft():
    with pytest.raises(ValueError, match="rows 1 and 2 is in must_link and in cannot_link"):
        read_constraints([(1, 2)], [(2, 1)], TEN)
    assert read_constraints([(1, 2)], [(2, 1)], TEN, hard=False).n_pairs == 2


def test_weights_need_soft_constraints():
    with pytest.raises(ValueError, match="pass hard=False"):
        read_constraints([(1, 2, 3.0)], None, TEN)


def test_few_cannot_links_are_mentioned():
    with pytest.warns(UserWarning, match="Only 1 of 3 pairs are cannot-links"):
        warn_of_few(read_constraints([(0, 1), (1, 2)], [(3, 4)], TEN))


def test_a_contradiction_is_named_by_row_labels():
    frame = as_rows(pd.DataFrame({"v": np.arange(4.0)}, index=list("abcd")))
    found = read_constraints([("a", "b"), ("b", "c")], [("c", "a")], frame.container)
    with pytest.raises(ValueError, match=r"row [abc] (must|cannot) be with [abc]") as error:
        two_sided(found, frame.container)
    assert " d " not in str(error.value)


def test_a_contradiction_leaves_out_what_only_leads_to_it():
    tail = [(i, i + 1) for i in range(5)]
    found = read_constraints([*tail, (5, 6), (6, 7)], [(5, 7)], TEN)
    with pytest.raises(ValueError) as error:
        two_sided(found, TEN)
    assert str(error.value).count("be with") == 3


def test_components_of_a_million_pairs():
    """A long path and many small pieces: sizes, not just a run without an error."""
    n = 1_000_000
    path = np.stack([np.arange(0, n // 2 - 1), np.arange(1, n // 2)], axis=1)
    pairs = np.arange(n // 2, n).reshape(-1, 2)
    parts = two_sided(read_constraints(pairs, path, Container("numpy", n)), Container("numpy", n))
    assert parts.count == 1 + n // 4
    assert (parts.side[: n // 2] == np.where(np.arange(n // 2) % 2, -1, 1)).all()


def test_random_pairs_tell_the_truth_and_are_different():
    labels = np.random.default_rng(0).integers(0, 3, 50)
    for count in (20, 1000, 1225):
        must, cannot = random_pairs(labels, count, random_state=1)
        assert (labels[must[:, 0]] == labels[must[:, 1]]).all()
        assert (labels[cannot[:, 0]] != labels[cannot[:, 1]]).all()
        both = np.concatenate([must, cannot])
        assert len(np.unique(both, axis=0)) == count and (both[:, 0] < both[:, 1]).all()
    with pytest.raises(ValueError, match="between 0 and 1225"):
        random_pairs(labels, 1226)


def test_random_pairs_are_uniform():
    labels = np.zeros(6)
    seen = np.zeros((6, 6))
    for seed in range(600):
        must, _ = random_pairs(labels, 3, random_state=seed)
        seen[must[:, 0], must[:, 1]] += 1
    counts = seen[np.triu_indices(6, 1)]
    assert counts.min() > 80 and counts.max() < 165


def test_check_labeling_takes_labels_of_a_series():
    labels = pd.Series([0, 0, 1], index=["a", "b", "c"])
    found = check_labeling(labels, [("a", "b"), ("b", "c")], [("a", "c")])
    assert found.must_link.tolist() == [1] and found.cannot_link.tolist() == []
    with pytest.raises(ValueError, match="one label per row"):
        check_labeling(np.zeros((2, 2)), [(0, 1)])


def test_closures_agree_with_counting_over_all_labelings():
    import itertools

    must, cannot = [(0, 1), (3, 4)], [(1, 2), (2, 3), (5, 6)]
    for m in (2, 3):
        fine = [
            y
            for y in itertools.product(range(m), repeat=7)
            if all(y[a] == y[b] for a, b in must) and all(y[a] != y[b] for a, b in cannot)
        ]
        pairs = list(itertools.combinations(range(7), 2))
        same = sum(all(y[a] == y[b] for y in fine) for a, b in pairs)
        apart = sum(all(y[a] != y[b] for y in fine) for a, b in pairs)
        found = closure(7, must, cannot, n_clusters=m)
        assert (found.must_link, found.cannot_link) == (same, apart)
    assert closure(7) == closure(7, [], [])
