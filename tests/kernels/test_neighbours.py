"""The kernel of a neighbour graph: against scikit-learn's graph, and in every bank."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from graph_reference import affinities, laplacian_parts, sklearn_embedding, walk_kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import adjusted_rand_score

import dmkc
from dmkc import Gaussian, Linear, MultipleKernelClustering, Neighbours
from dmkc.datasets import make_moons
from dmkc.kernels import KernelSample, as_bank
from dmkc.kernels.anchors import AffinityScan, NearAnchors
from dmkc.kernels.neighbours import turned_within, walk_of
from dmkc.kernels.tiles import Scaling, Tiles, View
from dmkc.scan.engine import ThreadEngine

KERNEL_METHODS = [
    n for n, cls in dmkc.modelfile.ESTIMATORS.items() if "kernels" in cls.parameters()
]


def groups(n=180, d=3, k=3, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[y], y


def features(X, *kernels, **params):
    """Features of the kernels in float64, up to one factor, and the model."""
    exact = {"scale": None, "dtype": "float64", "random_state": 0}
    model = MultipleKernelClustering(kernels=list(kernels), **exact, **params).fit(X)
    return model.transform(X), model


def near(X, anchors, k, dtype=np.float64):
    d = X.shape[1]
    view = View(None, Scaling(np.zeros(d), np.ones(d)))
    ((_, tile),) = Tiles(view, np.dtype(dtype), 1024).of(X)
    return NearAnchors.of(tile, anchors, k)


def dense(found, k, p):
    Z = np.zeros((len(found.found), p))
    np.put_along_axis(Z, found.found[:, :k].astype(int), found.affinities(k), axis=1)
    return Z


def projector(columns):
    basis = np.linalg.qr(columns)[0]
    return basis @ basis.T


def eigenspaces(values, count):
    """Runs of equal values among the first ones."""
    ends = np.flatnonzero(np.diff(values[: count + 1]) > 1e-7) + 1
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.mark.parametrize("k", [3, 5, 10])
def test_affinities_are_those_of_nearest_neighbours(k):
    X, _ = groups()
    anchors = X[::4] + 0.01
    found = near(X, anchors, 12)
    np.testing.assert_allclose(dense(found, k, len(anchors)), affinities(X, anchors, k), atol=1e-12)


@pytest.mark.parametrize(("k", "apart"), [(5, 1.0), (8, 1.5), (6, 12.0)])
def test_features_without_steps_are_eigenvectors_of_the_laplacian(k, apart):
    """With groups far apart the graph has several pieces, and eigenvalue 0 comes repeatedly."""
    X, _ = groups(apart=apart)
    anchors = X[::3]
    Z = affinities(X, anchors, k)
    assert (Z.sum(axis=0) > 0.02 * Z.sum() / len(anchors)).all()  # no degree is bounded
    values, vectors = laplacian_parts(Z)
    ours, model = features(X, Neighbours(k, anchors, steps=0, dimensions=16))
    pieces = int((values < 1e-9).sum())
    assert (pieces > 1) == (apart > 10)
    # The constant has been taken off the zeros; all other eigenspaces are there as they are.
    zeros = vectors[:, :pieces] - vectors[:, :pieces].mean(axis=0)
    lead = np.linalg.svd(zeros)[0][:, : pieces - 1]
    np.testing.assert_allclose(projector(ours[:, : pieces - 1]), projector(lead), atol=1e-6)
    spaces = [part for part in eigenspaces(values, 16) if part.start >= pieces]
    assert len(spaces) > 5
    for part in spaces:
        mine = ours[:, part.start - 1 : part.stop - 1]
        np.testing.assert_allclose(projector(mine), projector(vectors[:, part]), atol=1e-6)
    sizes = np.linalg.norm(ours, axis=0)
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-6)  # all directions count the same
    assert model.kernels_[0].k == k


@pytest.mark.parametrize("k", [5, 9])
def test_features_without_steps_are_scikit_learns_spectral_embedding(k):
    X, _ = groups(apart=1.0)
    anchors = X[::3]
    theirs = sklearn_embedding(affinities(X, anchors, k), 6)
    ours, _ = features(X, Neighbours(k, anchors, steps=0, dimensions=6))
    for mine, other in zip(ours.T, theirs.T, strict=True):
        np.testing.assert_allclose(projector(mine[:, None]), projector(other[:, None]), atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_steps_are_powers_of_the_walk(steps):
    X, _ = groups(90, apart=1.0)
    anchors = X[::2]
    ours, _ = features(X, Neighbours(6, anchors, steps=steps, dimensions=45))
    walk = np.linalg.matrix_power(walk_kernel(affinities(X, anchors, 6)), steps)
    centred = walk - walk.mean(axis=0) - walk.mean(axis=1)[:, None] + walk.mean()
    gram = ours @ ours.T
    np.testing.assert_allclose(gram / np.trace(gram), centred / np.trace(centred), atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(np.float64, (9, 3), elements=st.floats(-100, 100, width=32)),
    anchors=hnp.arrays(np.float64, (6, 3), elements=st.floats(-100, 100, width=32)),
    k=st.integers(1, 6),
    order=st.permutations(range(3)),
)
def test_affinities_are_shares_whatever_the_order_of_the_columns(X, anchors, k, order):
    found = near(X, anchors, 6)
    weights = found.affinities(k)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(weights, axis=1) <= 0).all()
    turned = near(np.ascontiguousarray(X[:, order]), np.ascontiguousarray(anchors[:, order]), 6)
    np.testing.assert_allclose(turned.distances, found.distances, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_zero_distances_keep_their_digits(dtype):
    X, _ = groups(50)
    X = X.astype(np.float32).astype(np.float64)
    one = near(X.astype(dtype), X[:10].astype(dtype), 4, dtype)
    exact = np.sort(((X[:, None] - X[None, :10]) ** 2).sum(axis=2), axis=1)[:, :4]
    np.testing.assert_allclose(one.distances, exact, rtol=1e-5, atol=1e-12)


def test_of_equal_anchors_distances_the_lower_number_is_first():
    anchors = np.array([[1.0], [-1.0], [1.0], [-1.0], [3.0]])
    found = near(np.zeros((1, 1)), anchors, 3)
    assert found.found.tolist() == [[0, 1, 2]]
    at_an_anchor = near(np.ones((1, 1)), anchors, 2)
    assert at_an_anchor.affinities(2).tolist() == [[0.5, 0.5]]


def test_an_anchor_of_one_far_row_has_a_bounded_degree():
    gram = sp.csr_array(np.diag([1.0, 1.0, 1e-9]) / 2)
    assert np.abs(walk_of(gram, 3).values).max() < 100


def test_rounding_does_not_choose_the_directions_of_separate_parts():
    rng = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(rng.normal(size=(30, 5)))
    values = np.array([0.9, 0.5, 0.5 - 1e-14, 0.5 - 2e-14, 0.2])
    other = vectors.copy()
    other[:, 1:4] = vectors[:, 1:4] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one, two = turned_within(values, vectors), turned_within(values, other)
    np.testing.assert_allclose(one, two, atol=1e-12)
    np.testing.assert_allclose(one.T @ one, np.eye(5), atol=1e-12)
    projection = vectors[:, 1:4] @ vectors[:, 1:4].T
    np.testing.assert_allclose(one[:, 1:4] @ one[:, 1:4].T, projection, atol=1e-12)
    np.testing.assert_array_equal(one[:, [0, 4]], vectors[:, [0, 4]])
    assert (np.abs(one[:, 1:4]).max(axis=0) == one[:, 1:4].max(axis=0)).all()


@pytest.mark.parametrize("parts", [3, 8, 12])
def test_more_separate_parts_than_directions_are_the_same_for_weights_and_repeated_rows(parts):
    rng = np.random.default_rng(parts)
    y = np.arange(180) % parts
    X = 100.0 * rng.normal(size=(parts, 3))[y] + rng.normal(size=(180, 3))
    weights = rng.integers(1, 4, 180)
    model = dmkc.SpectralClustering(2, random_state=0)
    one = model.fit(X, sample_weight=weights).labels_
    two = model.fit(np.repeat(X, weights, axis=0)).labels_
    assert adjusted_rand_score(np.repeat(one, weights), two) == 1.0


@pytest.mark.parametrize("clusters", [2, 3])
@pytest.mark.parametrize("method", KERNEL_METHODS)
def test_every_method_takes_it(method, clusters, tmp_path):
    X, y = groups(150, k=clusters, apart=8.0)
    kernels = [Neighbours(8), Neighbours(5, anchors=40, steps=2), Linear()]
    if method == "hmkkm":  # whose layers drown in many directions that count nearly the same
        kernels = [Neighbours(20, steps=8), Neighbours(20, steps=8, dimensions=8), Linear()]
    model = dmkc.modelfile.ESTIMATORS[method](clusters, kernels=kernels, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(np.asarray(loaded.transform(X)), np.asarray(model.transform(X)))
    assert loaded.kernels_ == model.kernels_


@pytest.fixture
def counted(monkeypatch):
    """How many scans of affinities there are, and how many searches for nearest anchors."""
    counts = {"scans": 0, "searches": 0}
    scan, search = ThreadEngine.scan, NearAnchors._search.__func__

    def scans(self, asked, *args):
        counts["scans"] += isinstance(asked, AffinityScan)
        return scan(self, asked, *args)

    def searches(cls, *args):
        counts["searches"] += 1
        return search(cls, *args)

    monkeypatch.setattr(ThreadEngine, "scan", scans)
    monkeypatch.setattr(NearAnchors, "_search", classmethod(searches))
    return counts


def test_kernels_with_the_same_anchors_share_a_scan_and_a_search(counted):
    X, _ = groups(400)
    several = [Neighbours(5), Neighbours(10), Neighbours(10, steps=3), Neighbours(), Linear()]
    model = MultipleKernelClustering(kernels=several, random_state=0).fit(X)
    assert counted["scans"] == 1
    counted.update(searches=0)
    model.predict(X)
    assert counted["searches"] == 1  # the rows are one tile
    assert len({id(f.state()["anchors"]) for f in model.model_.features.plan.fitted[:4]}) == 1


def test_kernels_alone_and_together_are_the_same():
    X, _ = groups(200)
    several = [Neighbours(5), Neighbours(10), Neighbours(10, steps=3, dimensions=5)]
    together = MultipleKernelClustering(kernels=several, random_state=0).fit(X)
    for kernel, joined in zip(several, together.model_.features.plan.fitted, strict=True):
        model = MultipleKernelClustering(kernels=[kernel], random_state=0).fit(X)
        (alone,) = model.model_.features.plan.fitted
        np.testing.assert_allclose(joined.factors, alone.factors[: len(joined.factors)], rtol=1e-9)
        ours, other = joined.values, alone.values[:, : joined.stored_width]
        np.testing.assert_allclose(ours @ ours.T, other @ other.T, atol=1e-6)


def test_views_have_graphs_of_their_own():
    X, _ = groups(200, apart=8.0)
    views = {"left": X[:, :1], "right": X[:, 1:]}
    kernels = [Neighbours(8, columns="left"), Neighbours(8, columns="right"), Gaussian()]
    model = MultipleKernelClustering(3, kernels=kernels, random_state=0).fit(views)
    widths = [f.state()["anchors"].shape[1] for f in model.model_.features.plan.fitted[:2]]
    assert widths == [1, 2]
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [("neighbours", Neighbours()), ("neighbours:15", Neighbours(15))],
)
def test_names(text, kernel):
    assert as_bank(text) == (kernel,)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: as_bank("neighbours:0"), "k must be a whole number of at least 1, not 0"),
        (lambda: as_bank("neighbours:2.5"), "k must be a whole number of at least 1, not 2.5"),
        (lambda: Neighbours(True), "k must be a whole number"),
        (lambda: Neighbours(5, 0), "anchors must be a whole number of at least 1"),
        (lambda: Neighbours(5, [[1.0, np.nan], [1.0, 2.0]]), "two or more finite rows"),
        (lambda: Neighbours(5, "all"), "two or more finite rows"),
        (lambda: Neighbours(5, steps=-1), "steps must be a whole number of at least 0"),
        (lambda: Neighbours(5, dimensions=0), "dimensions must be a whole number of at least 1"),
    ],
)
def test_impossible_parameters(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_anchors_of_other_columns_are_refused():
    X, _ = groups()
    with pytest.raises(ValueError, match=r"anchors of a Neighbours kernel have 2 columns.*sees 3"):
        MultipleKernelClustering(kernels=[Neighbours(5, X[:20, :2])]).fit(X)


def test_more_neighbours_than_anchors_are_all_of_them():
    X, _ = groups(60)
    anchors = X[:10]
    ours, model = features(X, Neighbours(50, anchors, steps=1, dimensions=10))
    same, _ = features(X, Neighbours(10, anchors, steps=1, dimensions=10))
    np.testing.assert_array_equal(ours, same)
    assert model.kernels_[0].k == 10


def test_anchors_that_nobody_is_near_to_are_left_out():
    X, _ = groups(60)
    far = np.vstack([X[:20], X[:5] + 1e4])
    ours, model = features(X, Neighbours(4, far, dimensions=8))
    same, _ = features(X, Neighbours(4, X[:20], dimensions=8))
    assert model.kernels_[0].anchors == 20
    np.testing.assert_allclose(ours @ ours.T, same @ same.T, atol=1e-8)


@pytest.mark.parametrize("form", ["sparse", "dask", "float32"])
def test_forms_of_rows_have_the_same_features(form):
    X, _ = groups(300)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32).astype(np.float64)
    shaped = {
        "sparse": sp.csr_array,
        "dask": lambda X: da.from_array(X, chunks=(77, 2)),
        "float32": lambda X: X.astype(np.float32),
    }[form](X)
    kernel = Neighbours(6, X[::3])
    ours, other = (np.asarray(features(rows, kernel)[0]) for rows in (X, shaped))
    if form == "sparse":
        np.testing.assert_allclose(other @ other.T, ours @ ours.T, atol=1e-8)
    else:
        np.testing.assert_array_equal(other, ours)


def test_rows_that_are_all_neighbours_of_the_same_anchors():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    ours, _ = features(X, Neighbours(20))
    assert np.isfinite(ours).all()


def test_many_anchors_are_distinct_and_cover_the_rows():
    X, _ = make_moons(6000, noise=0.05, seed=0)
    sample = KernelSample(X, scaling=Scaling(np.zeros(2), np.ones(2)))
    fitted = Neighbours(5, anchors=100).fit(sample)
    anchors = fitted.state()["anchors"]
    assert 90 <= len(np.unique(anchors, axis=0)) == len(anchors) <= 100
    nearest = near(X[:1000], anchors, 1).distances
    assert np.sqrt(nearest).max() < 0.25


def many_rows_fitted(X, **params):
    kernels = [Neighbours(6, anchors=60), Neighbours(4, anchors=60, steps=3), Linear()]
    return MultipleKernelClustering(kernels=kernels, random_state=0, sample_rows=900, **params).fit(
        X
    )


@pytest.mark.parametrize("form", ["chunks", "zarr", "recomputed", "a cluster"])
def test_blocks_and_workers_change_no_bit(form, tmp_path, process_client):
    X, _ = groups(13_000, apart=1.0)
    expected = many_rows_fitted(X)
    if form == "recomputed":
        model = many_rows_fitted(X, feature_mode="recompute")
    elif form == "zarr":
        model = many_rows_fitted(zarr.create_array(tmp_path / "x", data=X, chunks=(999, 2)))
    else:
        client = process_client if form == "a cluster" else None
        model = many_rows_fitted(da.from_array(X, chunks=(2222, 2)), client=client)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
    np.testing.assert_array_equal(model.model_.weights, expected.model_.weights)
    for ours, theirs in zip(
        model.model_.features.plan.fitted[:2], expected.model_.features.plan.fitted[:2], strict=True
    ):
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.anchors, theirs.anchors)


def test_a_row_of_weight_three_is_three_rows():
    X, _ = groups(120)
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    sample = KernelSample(X, weights.astype(float), scaling=Scaling(np.zeros(3), np.ones(3)))
    again = KernelSample(np.repeat(X, weights, axis=0), scaling=sample.scaling)
    one, other = (Neighbours(7, dimensions=12).fit(each) for each in (sample, again))
    np.testing.assert_array_equal(one.anchors, other.anchors)
    np.testing.assert_allclose(one.values @ one.values.T, other.values @ other.values.T, atol=1e-8)


def test_titles():
    assert Neighbours(5).title == "Neighbours, 5 of 1000 anchors"
    assert Neighbours(steps=3).title == "Neighbours of 1000 anchors, 3 steps"
