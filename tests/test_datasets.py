"""Generated rows do not depend on the chunks, follow their distributions, and files are checked."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier

from dmkc import datasets
from dmkc.datasets.generators import RECIPES, SEGMENT
from dmkc.metrics import majority_accuracy

MAKERS = {
    "ringnorm": (datasets.make_ringnorm, {"d": 3}),
    "waveform": (datasets.make_waveform, {"noise": 2, "classes": (1, 2)}),
    "blobs": (datasets.make_blobs, {"d": 3, "centers": 4}),
    "rings": (datasets.make_rings, {"d": 5}),
    "moons": (datasets.make_moons, {"d": 4, "noise": 0.2}),
}
SHAPES = {
    "two_bananas": (datasets.make_two_bananas, {}),
    "smiling_face": (datasets.make_smiling_face, {}),
    "concentric_circles": (datasets.make_concentric_circles, {}),
    "circles_and_gaussians": (datasets.make_circles_and_gaussians, {"noise": 0.5}),
    "flower": (datasets.make_flower, {"noise": 2}),
}
BALANCED = tuple(MAKERS)
MAKERS |= SHAPES
names = pytest.mark.parametrize("name", MAKERS)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(list(MAKERS)), st.integers(1, 3 * SEGMENT), st.data())
def test_same_values_whatever_the_chunks(name, n, data):
    make, parameters = MAKERS[name]
    cuts = data.draw(st.lists(st.integers(1, n), max_size=4, unique=True).map(sorted))
    edges = sorted({0, *cuts, n})
    x, y = make(n, seed=7, **parameters)
    lazy_x, lazy_y = make(n, seed=7, chunks=(tuple(np.diff(edges).tolist())), **parameters)
    assert isinstance(lazy_x, da.Array) and lazy_x.chunks[0] == lazy_y.chunks[0]
    with dask.config.set(scheduler="synchronous"):
        got_x, got_y = dask.compute(lazy_x, lazy_y)
    np.testing.assert_array_equal(got_x, x)
    np.testing.assert_array_equal(got_y, y)
    assert got_x.dtype == x.dtype == np.float32 and got_y.dtype == y.dtype


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(list(MAKERS)), st.integers(0, 9000), st.integers(0, 9000))
def test_rows_are_slices_of_the_whole(name, one, other):
    make, parameters = MAKERS[name]
    start, stop = sorted((one, other))
    x, y = make(9000, **parameters)
    part_x, part_y = datasets.rows(name, start, stop, **parameters)
    np.testing.assert_array_equal(part_x, x[start:stop])
    np.testing.assert_array_equal(part_y, y[start:stop])


@names
def test_seeds_and_segments_differ_and_dtypes_agree(name):
    make, parameters = MAKERS[name]
    x, _ = make(2 * SEGMENT, dtype=np.float64, **parameters)
    assert not np.isin(x[:SEGMENT, 0], x[SEGMENT:, 0]).any()
    assert not np.isin(x[:, 0], make(100, seed=1, dtype=np.float64, **parameters)[0][:, 0]).any()
    np.testing.assert_array_equal(make(50, **parameters)[0], x[:50].astype(np.float32))


@pytest.mark.parametrize("name", BALANCED)
def test_classes_are_balanced(name):
    make, parameters = MAKERS[name]
    _, y = make(40_000, **parameters)
    _, counts = np.unique(y, return_counts=True)
    share = 1 / len(counts)
    assert np.abs(counts / 40_000 - share).max() < 5 * np.sqrt(share * (1 - share) / 40_000)


def test_moments_of_ringnorm():
    x, y = datasets.make_ringnorm(60_000, dtype=np.float64)
    assert x.shape == (60_000, 20)
    for value, mean, variance in [(0, 0.0, 4.0), (1, 2 / np.sqrt(20), 1.0)]:
        part = x[y == value]
        np.testing.assert_allclose(part.mean(axis=0), mean, atol=0.08)
        np.testing.assert_allclose(
            np.cov(part.T), variance * np.eye(20), atol=0.05 * (variance + 1)
        )


def test_waveforms_are_breimans():
    x, y = datasets.make_waveform(60_000, noise=19)
    assert x.shape == (60_000, 40) and set(y) == {0, 1, 2}
    points = np.arange(1, 22)
    triangles = [np.maximum(6 - np.abs(points - peak), 0) for peak in (11, 15, 7)]
    for value, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        mean = x[y == value].mean(axis=0)
        expected = (triangles[pair[0]] + triangles[pair[1]]) / 2
        np.testing.assert_allclose(mean[:21], expected, atol=0.08)
        np.testing.assert_allclose(mean[21:], 0, atol=0.05)


def test_shapes_of_rings_moons_and_blobs():
    x, y = datasets.make_rings(2000, 6, noise=0, factor=0.3, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), np.where(y == 1, 0.3, 1.0))
    assert np.linalg.matrix_rank(x) == 2
    x, y = datasets.make_moons(2000, 6, noise=0, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(x[y == 0], axis=1), 1)
    assert np.linalg.matrix_rank(x) == 2
    centers = np.array([[0.0, 0.0], [5.0, 1.0]])
    x, y = datasets.make_blobs(20_000, 2, centers, spread=0.5)
    np.testing.assert_allclose([x[y == k].mean(axis=0) for k in (0, 1)], centers, atol=0.05)


@pytest.mark.parametrize(
    ("name", "clusters", "published"),
    [
        ("two_bananas", 2, 78.9),
        ("smiling_face", 4, 74.3),
        ("concentric_circles", 3, 53.0),
        ("circles_and_gaussians", 11, 63.1),
        ("flower", 13, 60.9),
    ],
)
def test_shapes_are_easy_for_neighbours_and_hard_for_k_means(name, clusters, published):
    x, y = datasets.rows(name, 0, 10_000)
    pieces = RECIPES[name].pieces
    shares = np.array([piece.share for piece in pieces]) / sum(piece.share for piece in pieces)
    assert x.shape == (10_000, 2) and len(pieces) == clusters
    assert np.abs(np.bincount(y) / 10_000 - shares).max() < 0.02
    near = KNeighborsClassifier(5).fit(x[::2], y[::2])
    assert near.score(x[1::2], y[1::2]) > 0.995
    found = KMeans(clusters, n_init=10, random_state=0).fit(x).labels_
    assert 100 * majority_accuracy(y, found) == pytest.approx(published, abs=4)


def test_pieces_of_shapes():
    x, y = datasets.make_smiling_face(3000, noise=0, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(x[y == 0], axis=1), 1)
    np.testing.assert_allclose(x[y == 1], [[-0.35, 0.3]] * (y == 1).sum())
    mouth = x[y == 3]
    np.testing.assert_allclose(np.linalg.norm(mouth, axis=1), 0.6)
    assert mouth[:, 1].max() < 0
    x, y = datasets.make_flower(30_000, noise=0, dtype=np.float64)
    petal = x[y == 4] @ [[0.5, -np.sqrt(0.75)], [np.sqrt(0.75), 0.5]] - [2, 0]  # turned back
    inside = np.sqrt((petal**2 / [0.6**2, 0.25**2]).sum(axis=1))
    assert inside.max() <= 1 and np.mean(inside < 0.5) == pytest.approx(0.25, abs=0.03)


def test_another_seed_keeps_the_layout():
    first = datasets.make_rings(5, 4, noise=0, seed=1, dtype=np.float64)[0]
    second = datasets.make_rings(5, 4, noise=0, seed=2, dtype=np.float64)[0]
    assert np.linalg.matrix_rank(np.vstack([first, second])) == 2


def test_large_sets_are_lazy():
    x, y = datasets.make_ringnorm(10**9, 50)
    assert isinstance(x, da.Array) and x.shape == (10**9, 50) and y.shape == (10**9,)
    last, _ = datasets.rows("ringnorm", 10**9 - 3, 10**9, d=50)
    np.testing.assert_array_equal(x[-3:].compute(scheduler="synchronous"), last)


@pytest.mark.slow
def test_five_million_rows_by_blocks():
    x, y = datasets.make_ringnorm(5_000_000, 10)
    share, mean = dask.compute(y.mean(), x[:, 0].mean(dtype=np.float64))
    assert share == pytest.approx(0.5, abs=0.002)
    assert mean == pytest.approx(1 / np.sqrt(10), abs=0.005)


def test_bundled_sets():
    digits = datasets.load_digits()
    assert digits.X.shape == (361, 64) and set(digits.y) == {1, 7} and digits.classes == ("1", "7")
    assert datasets.load_digits(None).X.shape == (1797, 64)
    cancer = datasets.load_wdbc()
    assert cancer.X.shape == (569, 30) and len(cancer.columns) == 30


def test_folder(tmp_path, monkeypatch):
    x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    np.savez(tmp_path / "pair.npz", X=x, y=y, classes=["no", "yes"], split=[0, 0, 1])
    monkeypatch.setenv("DMKC_DATA_DIR", str(tmp_path))
    for found in (datasets.load("pair"), datasets.load("pair", tmp_path)):
        np.testing.assert_array_equal(found.X, x)
        assert found.columns == ("x0", "x1") and found.classes == ("no", "yes")
        assert found.split is not None and found.split.tolist() == [0, 0, 1]
    listed = datasets.available()
    assert listed["folder"] == ("pair",) and "ringnorm" in listed["generators"]
    assert datasets.load("wdbc").X.shape == (569, 30)


def test_errors_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DMKC_DATA_DIR", raising=False)
    assert datasets.available()["folder"] == ()
    with pytest.raises(FileNotFoundError, match="set the environment variable DMKC_DATA_DIR"):
        datasets.load("absent")
    with pytest.raises(FileNotFoundError, match="call make_rings"):
        datasets.load("rings")
    with pytest.raises(ValueError, match="without a path"):
        datasets.load("../absent", tmp_path)
    np.savez(tmp_path / "bare.npz", y=np.zeros(3))
    np.savez(tmp_path / "objects.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    np.savez(tmp_path / "short.npz", X=np.zeros((3, 1)), y=np.zeros(2))
    np.savez(tmp_path / "flat.npz", X=np.zeros(3), y=np.zeros(3))
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(FileNotFoundError, match=r"found: bare, flat"):
        datasets.load("wdbc", tmp_path)
    for name, sentence in [
        ("bare", "no array X"),
        ("objects", "object arrays"),
        ("short", "one class per row"),
        ("flat", "rows and columns"),
        ("text", "cannot be read"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            datasets.load(name, tmp_path)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: datasets.make_ringnorm(0), "at least one"),
        (lambda: datasets.make_ringnorm(5, seed=-1), "seed"),
        (lambda: datasets.make_ringnorm(5, dtype=int), "floating-point"),
        (lambda: datasets.make_waveform(5, classes=(3,)), "classes 0, 1 and 2"),
        (lambda: datasets.make_blobs(5, 3, np.zeros((2, 2))), "centers has shape"),
        (lambda: datasets.make_rings(5, 1), "d is 1"),
        (lambda: datasets.make_rings(5, factor=2), "factor"),
        (lambda: datasets.rows("nothing", 0, 1), "no generator"),
        (lambda: datasets.rows("moons", 0, 1, radius=2), "no parameter radius"),
        (lambda: datasets.rows("moons", 3, 1), "do not exist"),
        (lambda: datasets.make_flower(5, noise=-1), "noise is -1"),
        (lambda: datasets.load_digits((11,)), "digits from 0 to 9"),
    ],
)
def test_errors_are_sentences(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
