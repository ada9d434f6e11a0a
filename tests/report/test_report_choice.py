"""What the report and the pictures say of a choice without labels."""

from __future__ import annotations

import matplotlib.axes
import numpy as np
import pytest
from matplotlib.figure import Figure

import dmkc
from dmkc import (
    ConsensusClustering,
    Gaussian,
    Linear,
    MultipleKernelClustering,
    SpectralClustering,
    plot,
)
from dmkc.datasets import make_blobs
from dmkc.report import write_report


@pytest.fixture(scope="module")
def square():
    """Four groups, which two clusters can cut in two ways."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 2)) + 9.0 * rng.integers(0, 2, size=(300, 2))


@pytest.fixture(scope="module")
def found(square):
    open_ = {"kernels": [Linear(), Gaussian(0.15)], "scale": "auto", "balance": "auto"}
    return dmkc.select(square, MultipleKernelClustering(random_state=0, rank=30, **open_))


@pytest.fixture(scope="module")
def model(square):
    open_ = {"kernels": [Linear(), Gaussian(0.15)], "scale": "auto", "balance": "auto"}
    return MultipleKernelClustering(random_state=0, rank=30, **open_).fit(square)


def test_the_model_keeps_what_was_offered(model, found, square):
    assert len(model.alternatives_) == len(found.alternatives)
    for kept, candidate in zip(model.alternatives_, found.alternatives, strict=True):
        labels = kept.label_pipeline()(np.asarray(square))
        np.testing.assert_array_equal(labels[found.positions], candidate.labels)
    assert {record["start"] for record in model.history_} == {model.start_}


def test_scores_of_all_candidates_are_drawn(model, found):
    for what in (model, found):
        ax = plot.candidates(what)
        heights = [patch.get_height() for patch in ax.patches]
        assert len(heights) == len(found.candidates)
        np.testing.assert_allclose(heights, sorted(found.score, reverse=True))
        marks = sorted(t.get_text() for t in ax.texts if t.get_text())
        assert marks == [str(i + 1) for i in range(len(found.alternatives))]


def test_every_choice_is_drawn_on_the_same_components(model, found, square):
    axes = plot.alternatives(found)
    assert len(axes) == len(found.alternatives) == len(plot.alternatives(model, square))
    clouds = [np.vstack([c.get_offsets() for c in ax.collections]) for ax in axes]
    for cloud in clouds:
        assert len(cloud) == len(found.positions)
        np.testing.assert_allclose(np.sort(cloud, axis=0), np.sort(clouds[0], axis=0))
    given = [Figure().add_subplot() for _ in axes]
    assert plot.alternatives(found, axes=given) == given
    assert all(isinstance(ax, matplotlib.axes.Axes) for ax in given)


def test_the_report_shows_candidates_and_choices(model, square, tmp_path):
    assert len(model.alternatives_) > 1
    text = write_report(model, square, tmp_path / "r.html", title="square").read_text()
    assert "What else was tried" in text and "Scores of the candidates" in text
    for i in range(len(model.alternatives_)):
        assert f"Choice {i + 1}" in text
    for name in ("agreement", "neighbours", "clearness", "likeness"):
        assert f">{name}<" in text
    assert "nothing was optimised" not in text and "other choices below" in text
    assert f"valleys set them apart (confidence {model.confidence_:.2f})" in text


def test_the_report_shows_the_numbers_of_clusters_that_were_tried(tmp_path):
    X, _ = make_blobs(200, 2, 3, seed=2)
    model = MultipleKernelClustering((2, 4), random_state=0, rank=20).fit(X)
    text = write_report(model, X, tmp_path / "r.html", title="blobs").read_text()
    assert "Scores of the numbers" in text and "3 clusters (chosen)" in text
    assert ">leak<" in text


def test_every_method_says_what_the_score_of_a_number_is():
    X, _ = make_blobs(100, 2, 3, seed=2)
    for cls, word in (
        (MultipleKernelClustering, "leak"),
        (SpectralClustering, "eigenvalues"),
        (ConsensusClustering, "logarithm"),
    ):
        choice = cls((2, 4), random_state=0).fit(X)._choice()
        assert word in choice.score and "criteria" not in choice.score


def test_where_nothing_was_open_there_is_nothing_to_show(square, tmp_path):
    model = MultipleKernelClustering(random_state=0, rank=20).fit(square)
    assert model.alternatives_ is None
    text = write_report(model, square, tmp_path / "r.html", title="square").read_text()
    assert "What else was tried" not in text
    with pytest.raises(ValueError, match="Nothing was left open"):
        plot.candidates(model)
    with pytest.raises(ValueError, match="Give the rows X"):
        plot.alternatives(model, square)
