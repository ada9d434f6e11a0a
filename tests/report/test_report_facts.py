"""Facts, pictures and metrics come from the fit, for every method."""

import re

import numpy as np
import pytest

from dmkc import MultipleKernelClustering, SparseKernelMMC, SpectralClustering, load, plot
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_blobs, make_rings
from dmkc.report import write_report
from dmkc.report.facts import run_facts
from dmkc.report.write import ELSEWHERE, OF_COLUMNS

QUICK = {"hmkkm": {"kernels": ["linear", "gaussian"], "n_masks": 2}, "mkkm": {"kernels": "linear"}}


@pytest.fixture(scope="module")
def rows():
    return make_blobs(200, 3, 2, seed=1)[0].astype(np.float64)


def facts_of(model, X):
    return dict(run_facts(model, *X.shape, None))


def test_the_balance_is_the_one_that_the_fit_used(rows):
    for model, balance in (
        (SparseKernelMMC(random_state=0), 0.0),
        (SparseKernelMMC(random_state=0, threshold="unit"), 0.3),
        (SparseKernelMMC(random_state=0, balance=0.1), 0.1),
        (MultipleKernelClustering(random_state=0, rank=20), 0.3),
        (MultipleKernelClustering(random_state=0, rank=20, balance=None), None),
    ):
        found = facts_of(model.fit(rows), rows)
        assert model.balance_ == balance
        assert found["balance"] == ("none" if balance is None else f"{balance:g}")
    several = MultipleKernelClustering(3, random_state=0, rank=20).fit(rows)
    assert several.balance_ is None
    assert facts_of(several, rows)["balance"] == "rows weighted by cluster"


def test_the_balance_that_was_chosen_is_shown():
    X = make_rings(300, noise=0.05, seed=0)[0]
    model = MultipleKernelClustering(kernels=["linear"], balance="auto", random_state=0, rank=20)
    model.fit(X)
    chosen = model.selection_[0]["balance"]
    assert model.balance_ == chosen
    assert facts_of(model, X)["balance"] == ("none" if chosen is None else f"{chosen:g}")


def test_a_price_is_from_the_data_only_where_it_was_calibrated(rows):
    assert facts_of(SparseKernelMMC(random_state=0).fit(rows), rows)["C"] == "2"
    found = facts_of(MultipleKernelClustering(random_state=0, rank=20).fit(rows), rows)
    assert found["C"].endswith(" (from the data)")


@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_method_has_a_report_in_memory_and_from_a_file(method, rows, tmp_path, quick_reports):
    model = ESTIMATORS[method](2, random_state=0, **QUICK.get(method, {})).fit(rows)
    for name, value in model._metrics().items():
        assert value is not None, name
    model.save(tmp_path / "m.zarr")
    pages = []
    for each in (model, load(tmp_path / "m.zarr")):
        text = write_report(each, rows, tmp_path / "r.html", title="t").read_text()
        # chances are by fits of rows of the fit, or, of a model from a file, of sampled rows
        assert "Labels are" in text and "What next?" in text
        charts, details = text.split("<summary>Details of the fit")
        pages.append(re.sub(r'(href|id|clip-path|xlink:href)="[^"]*"', "", details))
        names = [picture.name for picture in each._pictures()]
        drawn = [name for name in names if name not in ELSEWHERE]
        for name in drawn:
            assert f'id="{name}-' in text
        assert details.count("<svg") == len([name for name in drawn if name not in OF_COLUMNS])
        assert 'class="map"' in charts and 'class="lanes"' in charts and 'class="spark"' in charts
    assert pages[0] == pages[1]


@pytest.mark.parametrize("method", ESTIMATORS)
def test_one_cluster_has_a_report(method, rows, tmp_path, quick_reports):
    model = ESTIMATORS[method](1, random_state=0, **QUICK.get(method, {})).fit(rows)
    assert "in 1 cluster," in write_report(model, rows, tmp_path / "r.html", title="t").read_text()


def test_only_scores_of_margins_have_a_margin(rows):
    for method, cls in ESTIMATORS.items():
        assert plot.has_margin(cls()) == (method in ("mkc", "skmmc", "odm"))


def test_a_neighbour_graph_says_how_many_neighbours_were_used(rows, tmp_path):
    model = SpectralClustering("auto", random_state=0).fit(rows)
    found = facts_of(model, rows)
    assert (found["neighbours"], found["anchors"]) == ("20", "200")
    text = write_report(model, rows, tmp_path / "r.html", title="t").read_text()
    assert "eigenvalues of the graph rise" in text and "Mean of the criteria" not in text
    assert [p.name for p in model._pictures()][-3:] == ["anchor_graph", "eigenvalues", "sizes"]
