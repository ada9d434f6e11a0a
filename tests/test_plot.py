"""Pictures of fitted models: what is drawn, from which kinds of rows."""

from types import SimpleNamespace

import dask.array as da
import dask.dataframe as dd
import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dmkc import (
    Gaussian,
    Laplacian,
    MultipleKernelClustering,
    MultipleKernelKMeans,
    Polynomial,
    SpectralClustering,
    plot,
)
from dmkc.datasets import make_blobs, make_moons, make_ringnorm


@pytest.fixture(scope="module")
def rows():
    return make_ringnorm(900, 6, seed=1, dtype=np.float64)[0]


@pytest.fixture(scope="module")
def model(rows):
    return MultipleKernelClustering(random_state=0, rank=30).fit(rows)


@pytest.fixture(scope="module")
def three():
    rows, _ = make_blobs(600, 3, 3, seed=2)
    return MultipleKernelClustering(3, random_state=0, rank=30).fit(rows), rows


def test_no_window_and_no_global_state(model, rows):
    before = dict(matplotlib.rcParams)
    axes = [
        plot.convergence(model),
        plot.kernel_weights(model),
        plot.embedding(model, rows),
        plot.margins(model, rows),
        plot.sizes(model),
    ]
    assert all(isinstance(ax, Axes) and type(ax.figure) is Figure for ax in axes)
    assert all(ax.get_title(loc="left") for ax in axes)
    assert dict(matplotlib.rcParams) == before


def test_given_axes_are_used(model):
    ax = Figure().add_subplot()
    assert plot.sizes(model, ax=ax) is ax


def test_convergence_shows_the_kept_start_strongly(model):
    ax = plot.convergence(model)
    kept = [r for r in model.history_ if r["start"] == model.start_]
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(
        lines["objective"].get_ydata(), [r["objective"] for r in kept if r["on"] == "sample"]
    )
    assert lines["objective"].get_color() == plot.COLOURS[0]
    starts = {r["start"] for r in model.history_}
    drawn = [line for line in ax.lines if line.get_label() == "other starts"]
    assert len(drawn) == len(starts) - 1
    assert "sample" not in " ".join(t.get_text() for t in ax.texts)


def test_convergence_tells_sample_from_all_rows(rows):
    model = MultipleKernelClustering(random_state=0, rank=30, sample_rows=200).fit(rows)
    assert {r["on"] for r in model.history_} == {"sample", "all"}
    ax = plot.convergence(model)
    assert [t.get_text().strip() for t in ax.texts] == ["sample", "all rows"]
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(names) == len(set(names)) and names[:2] == ["objective", "lower bound"]


def test_one_cluster_has_nothing_to_converge(rows):
    model = MultipleKernelClustering(1, random_state=0, rank=10).fit(rows)
    assert "nothing" in plot.convergence(model).texts[0].get_text()
    assert len(plot.sizes(model).patches) == 1
    assert plot.embedding(model, rows).collections
    assert plot.margins(model, rows).patches


def test_kernel_names_are_readable(rows):
    def own_kernel(A, B):
        return A @ B.T

    bank = ["linear", "polynomial:3", Gaussian(0.5), Laplacian(gamma=0.25), "cosine", own_kernel]
    model = MultipleKernelClustering(kernels=bank, random_state=0, rank=20).fit(rows[:300])
    wanted = [
        "Linear",
        "Polynomial, degree 3",
        "Gaussian, width 0.5",
        "Laplacian, gamma 0.25",
        "Cosine",
        "own_kernel",
    ]
    assert plot.kernel_names(model) == wanted
    ax = plot.kernel_weights(model)
    assert [t.get_text() for t in ax.get_yticklabels()] == wanted
    np.testing.assert_allclose([p.get_width() for p in ax.patches], model.kernel_weights_)


def test_embedding_of_two_clusters_has_the_score_on_its_first_axis(model, rows):
    ax = plot.embedding(model, rows)
    clouds = [np.asarray(c.get_offsets()) for c in ax.collections]
    assert [len(c) for c in clouds] == np.bincount(model.labels_).tolist()
    scores = model.decision_function(rows)
    np.testing.assert_allclose(clouds[1][:, 0], scores[model.labels_ == 1])
    share = 100 * np.mean(model.labels_ == 0)
    assert ax.get_legend().get_texts()[0].get_text() == f"0: {share:.0f} %"


def test_embedding_by_other_labels(model, rows):
    names = np.where(np.arange(len(rows)) % 3 == 0, "a", "b")
    ax = plot.embedding(model, rows, labels=da.from_array(names, chunks=100), max_points=300)
    assert [t.get_text()[0] for t in ax.get_legend().get_texts()] == ["a", "b"]
    assert sum(len(c.get_offsets()) for c in ax.collections) == 300


def test_margins_are_split_at_zero(model, rows):
    ax = plot.margins(model, rows)
    outline = {p.get_label(): p.get_xy() for p in ax.patches if "cluster" in p.get_label()}
    low, high = outline["cluster 0"], outline["cluster 1"]
    assert low[low[:, 1] > 0, 0].max() < 1e-9
    assert high[high[:, 1] > 0, 0].max() > 1
    inside = 100 * np.mean(np.abs(model.decision_function(rows)) < 1)
    assert ax.texts[0].get_text().startswith(f"{inside:.0f} %")


def test_several_clusters(three):
    model, rows = three
    assert len(plot.embedding(model, rows).collections) == 3
    ax = plot.margins(model, rows)
    assert "runner-up" in ax.get_xlabel() and ax.get_xlim()[0] > -1
    assert [p.get_width() for p in plot.sizes(model).patches] == np.bincount(model.labels_).tolist()


@pytest.mark.parametrize("kind", ["numpy", "dask", "pandas", "dask frame", "sparse", "list"])
def test_sampled_rows_are_the_same_for_every_kind_of_input(kind, rows):
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    given = {
        "numpy": rows,
        "dask": da.from_array(rows, chunks=(133, -1)),
        "pandas": frame,
        "dask frame": dd.from_pandas(frame, npartitions=4),
        "sparse": sp.csr_array(rows),
        "list": rows.tolist(),
    }[kind]
    positions, drawn = plot.sample(given, 50, seed=3)
    assert len(positions) == 50 and (np.diff(positions) > 0).all()
    values = drawn.toarray() if sp.issparse(drawn) else np.asarray(drawn)
    np.testing.assert_array_equal(values, rows[positions])
    assert isinstance(drawn, pd.DataFrame) == ("frame" in kind or kind == "pandas")


def test_lazy_rows_and_labels(rows):
    X = da.from_array(rows, chunks=(300, -1))
    model = MultipleKernelClustering(random_state=0, rank=20).fit(X)
    sizes = [p.get_width() for p in plot.sizes(model).patches]
    assert sizes == np.bincount(model.labels_.compute()).tolist()
    assert plot.embedding(model, X, max_points=100).collections
    assert plot.margins(model, X, max_points=100).patches


def test_kernels_of_the_twelve_bank_have_different_names(rows):
    names = plot.kernel_names(MultipleKernelKMeans(2, random_state=0, rank=20).fit(rows))
    assert len(set(names)) == len(names) == 12
    assert "Polynomial, degree 2" in names and "Polynomial, degree 2, offset 0" in names


def test_kernels_that_differ_in_gamma_alone_say_it(rows):
    bank = [Polynomial(2, gamma=0.5), Polynomial(2, gamma=0.25), "linear"]
    names = plot.kernel_names(MultipleKernelKMeans(2, kernels=bank, random_state=0).fit(rows))
    assert names == [
        "Polynomial, degree 2, gamma 0.5",
        "Polynomial, degree 2, gamma 0.25",
        "Linear",
    ]


def test_a_single_step_has_one_whole_tick(rows):
    fitted = MultipleKernelKMeans(2, kernels="linear", random_state=0).fit(rows)
    fitted.history_ = fitted.history_[:1]
    ax = plot.convergence(fitted)
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == [1.0]
    assert not ax.texts  # nothing was done on a sample


@pytest.mark.parametrize("ends", [(0.001, 0.014), (1e-4, 1.0), (0.0101, 0.018), (0.01, 0.01)])
def test_selection_path_has_few_ticks(ends):
    c2 = np.unique(np.geomspace(*ends, 8))
    names = ["a", "b"]
    path = SimpleNamespace(c2=c2, importances=np.ones((len(c2), 2)), names=names)
    ax = plot.selection_path(path)
    assert 1 <= len(ax.get_xticks()) <= 5
    assert not len(ax.get_xticks(minor=True))
    assert set(ax.get_xticks()) <= set(c2)


@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
def test_eigenvalues_are_shown_with_the_number_of_clusters(n_clusters):
    X = make_blobs(300, 3, 2, seed=1)[0]
    model = SpectralClustering(n_clusters, random_state=0).fit(X)
    ax = plot.eigenvalues(model)
    _, dots = ax.collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets())[:, 1], model.eigenvalues_)
    assert ax.texts[0].get_text().startswith(f"{model.n_clusters_} cluster")
    tones = [tuple(tone) for tone in dots.get_facecolors()]
    assert tones.count(tones[0]) == model.n_clusters_


@pytest.mark.parametrize("given", ["rows", "frame", "sparse", "nothing"])
def test_anchors_of_one_part_are_joined(given):
    X, _ = make_moons(600, noise=0.04, seed=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    form = {"rows": X, "frame": frame, "sparse": sp.csr_array(X), "nothing": None}[given]
    model = SpectralClustering(2, random_state=0, anchors=100).fit(frame if form is frame else X)
    ax = plot.anchor_graph(model, form)
    lines, *clouds = ax.collections
    assert sum(len(c.get_offsets()) for c in clouds) == len(model.anchors_)
    assert len(lines.get_segments()) > len(model.anchors_)
    ends = np.concatenate(lines.get_segments())
    places = np.concatenate([c.get_offsets() for c in clouds])
    assert {tuple(end) for end in ends} <= {tuple(place) for place in places}


def test_models_without_a_graph_say_so(model):
    for draw in (plot.eigenvalues, plot.anchor_graph):
        with pytest.raises(ValueError, match="has no neighbour graph; pass a fitted Spectral"):
            draw(model)
