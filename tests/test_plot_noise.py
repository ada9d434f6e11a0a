"""Rows that are in no cluster, in pictures: grey, by name, and in nobody's size."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from dmkc import ConsensusClustering, plot
from dmkc.datasets import make_blobs


@pytest.fixture(scope="module")
def fitted():
    X, _ = make_blobs(500, 4, 3, spread=2.0, seed=3)
    return ConsensusClustering(3, random_state=0, n_members=8, noise=0.1).fit(X), X


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_sizes_leave_noise_out():
    labels = np.array([0, -1, 0, 1, -1, -1])
    assert plot.cluster_sizes(labels, 3).tolist() == [2, 1, 0]
    assert plot.cluster_sizes(da.from_array(labels, chunks=2), 3).tolist() == [2, 1, 0]
    assert plot.cluster_sizes([-1, -1], 2).tolist() == [0, 0]


def test_noise_is_a_bar_of_its_own(fitted):
    model, _ = fitted
    ax = plot.sizes(model)
    assert [tick.get_text() for tick in ax.get_yticklabels()][-1] == "noise"
    widths = [bar.get_width() for bar in ax.patches]
    assert widths[-1] == (model.labels_ == -1).sum() and sum(widths) == 500
    sure = ConsensusClustering(3, random_state=0, n_members=8).fit(fitted[1])
    assert len(plot.sizes(sure).patches) == 3


def test_noise_is_named_and_grey(fitted):
    model, X = fitted
    ax = plot.embedding(model, X)
    assert legend_of(ax)[0].startswith("noise: ")
    tones = [tuple(cloud.get_facecolor()[0][:3]) for cloud in ax.collections]
    assert len(set(tones)) == 4 and len(set(tones[0])) == 1
    given = plot.embedding(model, X, labels=np.where(np.arange(500) % 2, 1, -1))
    assert legend_of(given)[0].startswith("-1: ")


def test_membership_counts_every_sampled_row(fitted):
    model, X = fitted
    ax = plot.membership(model, X, max_points=300)
    assert legend_of(ax) == ["cluster 0", "cluster 1", "cluster 2", "noise"]
    assert ax.get_xlim() == (0, 1) and ax.dataLim.y1 <= 300
    one = ConsensusClustering(1, random_state=0, n_members=4).fit(X)
    assert legend_of(plot.membership(one, X)) == ["cluster 0"]
    assert "membership" not in [picture.name for picture in one._pictures()]
