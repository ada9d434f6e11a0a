"""Choosing among candidates without labels: criteria, confidence, alternatives, answers."""

from __future__ import annotations

import json
import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dmkc
from dmkc import AutoClustering, Gaussian, Linear, MultipleKernelClustering
from dmkc.cli import main
from dmkc.clusterers.sampled import shaped
from dmkc.datasets import make_moons, make_rings
from dmkc.errors import UserError
from dmkc.selection.choose import checked_answers
from dmkc.selection.scores import DIFFERENT, SURE, agreements


def square(n=120, seed=0):
    """Four groups on a rectangle: two ways of making two clusters, one for each column."""
    X, corner = make_blobs(n, centers=[[0, 0], [0, 9], [9, 0], [9, 9]], random_state=seed)
    return X, corner // 2, corner % 2


def small(n_clusters=2, **params):
    """Few candidates: one bank."""
    open_ = {"scale": "standard", "kernels": [Linear(), Gaussian(0.5)], "balance": "auto"}
    return MultipleKernelClustering(
        n_clusters, **{"random_state": 0, "rank": 20, **open_, **params}
    )


@pytest.fixture(scope="module")
def two_ways():
    X, across, up = square()
    return X, across, up, dmkc.select(X, small())


def test_clear_groups_are_chosen_with_confidence():
    X, y = make_blobs(150, centers=[[0, 0, 0], [9, 9, 9]], random_state=0)
    found = dmkc.select(X, small())
    assert adjusted_rand_score(y[found.positions], found.best.labels) == 1.0
    assert found.confidence >= SURE and len(found.alternatives) == 1
    model = found.estimator().fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_rows_with_two_valid_splits_get_both_as_alternatives(two_ways):
    _, across, up, found = two_ways
    assert found.confidence < SURE
    assert 2 <= len(found.alternatives) <= 3
    labelings = np.array([c.labels for c in found.alternatives])
    between = agreements(labelings)[np.triu_indices(len(labelings), 1)]
    assert between.max() < DIFFERENT
    for truth in (across, up):
        best = max(adjusted_rand_score(truth[found.positions], z) for z in labelings)
        assert best == 1.0


@pytest.mark.parametrize("which", [0, 1])
def test_answers_settle_the_choice(two_ways, which):
    _, across, up, found = two_ways
    truth = (across, up)[which]
    for _ in range(6):
        ((i, j),) = found.questions()
        found = found.answered([(i, j, truth[i] == truth[j])])
    assert adjusted_rand_score(truth[found.positions], found.best.labels) == 1.0
    assert len(found.answers) == 6
    assert len({frozenset(answer[:2]) for answer in found.answers}) == 6


def test_questions_are_about_rows_that_likely_candidates_disagree_on(two_ways):
    _, _, _, found = two_ways
    asked = found.questions(3)
    assert len(set(asked)) == 3
    first, second = (c.labels for c in found.alternatives[:2])
    i, j = np.searchsorted(found.positions, asked[0])
    assert (first[i] == first[j]) != (second[i] == second[j])


def test_the_table_lists_all_candidates_best_first(two_ways):
    _, _, _, found = two_ways
    table = found.table()
    assert len(table) == len(found.candidates)
    assert table["score"].is_monotonic_decreasing
    assert table["alternative"].tolist()[0] == 0
    assert {"scale", "kernels", "C", "start", "agreement", "neighbours", "clearness"} <= set(table)


def test_an_alternative_is_refined_on_all_rows(two_ways):
    X, across, up, found = two_ways
    labels = [found.estimator(k).fit(X).labels_ for k in range(2)]
    assert adjusted_rand_score(*labels) < DIFFERENT
    for z in labels:
        assert max(adjusted_rand_score(across, z), adjusted_rand_score(up, z)) == 1.0
    with pytest.raises(ValueError, match="numbered from 0, not 7"):
        found.estimator(7)


def test_candidates_are_compared_on_as_many_rows_as_are_asked_for(tmp_path, monkeypatch):
    X, _, _ = square(80)
    np.save(tmp_path / "x.npy", X)
    wanted = []

    def sampled(rows, engine, size, *more):
        wanted.append(size)
        raise UserError("That is enough.")

    monkeypatch.setattr("dmkc.selection.run.take_sample", sampled)
    for estimator, more in (
        (AutoClustering(2, sample_rows=60), {}),
        (AutoClustering(2, sample_rows=60), {"sample_rows": 70}),
        (small(sample_rows=60), {}),
        (None, {}),
    ):
        with pytest.raises(UserError, match="enough"):
            dmkc.select(X, estimator, **more)
    with pytest.raises(UserError, match="sample_rows"):
        dmkc.select(X, sample_rows=5)
    words = ["select", str(tmp_path / "x.npy"), "--quiet", "--sample-rows", "50"]
    for more in ([], ["--method", "mkc"]):
        assert main([*words, *more]) == 2
    assert wanted == [60, 70, 1000, 1000, 50, 1000]


@pytest.mark.parametrize("estimator", [AutoClustering(random_state=0), small("auto")])
def test_an_open_number_is_as_many_clusters_as_answers_ask_for(estimator):
    X, _ = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=0)
    apart = [(0, 1, False), (1, 2, False), (0, 2, False)]
    found = dmkc.select(X, estimator, answers=apart)
    assert found.gathered.n_clusters >= 3 and len(found.answers) == 3
    with pytest.raises(UserError, match="rows 0 and 1"):
        dmkc.select(X, estimator, answers=[(0, 1, True), (0, 1, False)])


def test_answers_about_rows_outside_the_sample_are_taken_in():
    X, across, _ = square(400)
    outside = [(0, 399, bool(across[0] == across[399]))]
    found = dmkc.select(X, small(), sample_rows=60, answers=outside)
    assert {0, 399} <= set(found.positions)
    assert len(found.positions) <= 62
    other = next(i for i in range(400) if i not in found.positions)
    with pytest.raises(ValueError, match=f"Row {other} is not among the rows"):
        found.answered([(0, other, True)])


@pytest.mark.parametrize(
    "answer", [(1, 2), (1, 1, True), (1.5, 2, True), (-1, 2, True), (1, 2, "perhaps")]
)
def test_answers_that_are_none_get_a_sentence(answer):
    with pytest.raises(ValueError, match="belong together"):
        checked_answers([answer])


def test_open_parameters_of_the_estimator_are_filled():
    X, y = make_blobs(150, centers=[[0, 0, 0], [9, 9, 9]], random_state=0)
    model = small(C="auto").fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.C == "auto" and isinstance(model.C_, float)
    assert model.confidence_ >= SURE
    assert model.selection_[0]["alternative"] == 0
    assert model.start_ == model.selection_[0]["start"]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert small(balance="default").fit(X).confidence_ is None


def test_the_choice_does_not_depend_on_chunks():
    X, _, _ = square()
    plain, chunked = (
        dmkc.select(rows, small(), sample_rows=80) for rows in (X, da.from_array(X, chunks=(31, 1)))
    )
    np.testing.assert_array_equal(plain.positions, chunked.positions)
    np.testing.assert_array_equal(plain.score, chunked.score)


def test_several_clusters_and_an_open_number():
    X, y = make_blobs(150, centers=8.0 * np.eye(3), random_state=0)
    found = dmkc.select(X, small((2, 4), C="auto", balance="default"))
    assert found.template.n_clusters == 3
    assert adjusted_rand_score(y[found.positions], found.best.labels) == 1.0


def test_a_chosen_model_is_saved_with_its_scores(tmp_path):
    X, _, _ = square()
    model = small().fit(X)
    model.save(tmp_path / "model.zarr")
    again = dmkc.load(tmp_path / "model.zarr")
    assert again.confidence_ == model.confidence_
    assert again.selection_ == model.selection_
    np.testing.assert_array_equal(again.predict(X), model.labels_)


def test_a_choice_is_part_of_the_record_of_a_run(tmp_path):
    X, _, _ = square()
    labels, records = [], []
    for _ in range(2):
        with dmkc.checkpoint(tmp_path / "run") as journal:
            labels.append(small(C="auto").fit(X).labels_)
            records.append(len(journal))
    np.testing.assert_array_equal(*labels)
    assert records[0] == records[1] > 4


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"init": "pca"}, "leave init out"),
        ({"threshold": "adaptive"}, "leave threshold out"),
        ({"n_clusters": 1}, "nothing to choose with a single cluster"),
    ],
)
def test_mistakes_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        small(**params).fit(square()[0])


def test_values_that_are_not_finite_are_refused():
    X = square()[0]
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        dmkc.select(X, small())


@pytest.mark.slow
def test_the_command_line_chooses(tmp_path):
    X, _, _ = square()
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / "run"
    command = ["fit", str(tmp_path / "x.npy"), "--auto", "--seed", "0", "--rank", "20"]
    assert main([*command, "--out", str(out)]) == 0
    found = json.loads((out / "metrics.json").read_text())
    assert found["confidence"] < SURE and found["candidates"] > 1
    assert "confidence of the choice" in (out / "report.html").read_text()
    assert "C: auto" in (out / "params.yaml").read_text()
    assert main([*command, "--method", "planes", "--out", str(tmp_path / "other")]) == 2


@pytest.mark.parametrize(("kind", "make"), [("radius", make_rings), ("spectral", make_moons)])
def test_starts_that_see_shapes(kind, make):
    X, y = make(400, noise=0.05)
    labels = shaped(kind, np.asarray(X, float), np.ones(400), 2, 0)
    assert adjusted_rand_score(y, labels) > 0.9


def test_a_mixture_sees_unequal_spread():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)), 6 + 0.2 * rng.normal(size=(100, 2))])
    y = np.repeat([0, 1], [200, 100])
    assert adjusted_rand_score(y, shaped("mixture", X, np.ones(300), 2, 0)) == 1.0


@pytest.mark.parametrize("huge", [1e6, 1e12, 1e60])
def test_a_mixture_bears_one_huge_value(huge):
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(60, 3))
        X[7, seed % 3] = huge
        # Around zero, as fits have them: the ordinary rows all lie far from it in one column.
        labels = shaped("mixture", X - X.mean(axis=0), np.ones(60), 3, seed)
        assert labels.shape == (60,) and labels.max() < 3


def test_a_fit_can_begin_from_another_model():
    X, across, up = square(400)
    for truth in (across, up):
        first = small(init=truth, balance="default").fit(X)
        for more in ({}, {"sample_rows": 100}, {"train_rows": 100}):
            again = small(init=first.model_, balance="default", **more).fit(X)
            assert again.start_ == "given model"
            assert adjusted_rand_score(truth, again.labels_) == 1.0
    with pytest.raises(ValueError, match="must have 3 clusters, not 2"):
        small(3, init=first.model_, balance="default").fit(X)


def test_agreements_are_adjusted_rand_indices():
    rng = np.random.default_rng(0)
    labelings = np.stack([rng.integers(m, size=60) for m in (2, 3, 2, 5)])
    found = agreements(labelings)
    for i, first in enumerate(labelings):
        for j, second in enumerate(labelings):
            assert found[i, j] == pytest.approx(adjusted_rand_score(first, second), abs=1e-12)


def test_rings_are_chosen_without_labels():
    X, y = make_rings(600, noise=0.05)
    found = dmkc.select(X)
    assert adjusted_rand_score(y, found.estimator().fit(X).labels_) > 0.95
    assert found.confidence >= SURE and found.verdict == "clear clusters"
    assert found.best.family not in ("k-means", "margin") and len(found.candidates) > 15
    assert {candidate.family for candidate in found.candidates} > {"k-means", "graph", "margin"}


def test_a_selection_and_a_candidate_are_shown_in_a_few_lines():
    found = dmkc.select(square()[0], MultipleKernelClustering(kernels="linear", C="auto"))
    assert len(repr(found).splitlines()) <= 4 and len(repr(found)) < 600
    assert "confidence" in repr(found) and "array" not in repr(found)
    assert len(repr(found.best)) < 300 and "array" not in repr(found.best)
    assert "Linear()" in found._repr_html_() and "<b>" in found._repr_html_()
    asked = repr(found.asking())
    assert asked.startswith("0 answers. Do rows ") and "column 1" in asked and "\n" in asked


def test_all_methods_or_settings_of_one_are_chosen_by_the_same_rule():
    X, y = make_blobs(150, centers=8.0 * np.eye(3), random_state=0)
    every, one = dmkc.select(X), dmkc.select(X, small("auto", C="auto", balance="default"))
    for found in (every, one):
        assert found.template.n_clusters == 3 and found.verdict == "clear clusters"
        assert found.confidence >= SURE and found.evidence > 3
        model = found.estimator().fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1.0
    assert isinstance(one.estimator(), MultipleKernelClustering)
    assert {"candidate", "family", "agreement", "score"} <= set(every.table())
    assert {candidate.family for candidate in one.candidates} == {"margin"}
    auto = dmkc.AutoClustering(3, random_state=0).fit(X)
    assert [r["candidate"] for r in auto.candidates_] == every.table()["candidate"].tolist()
    assert auto.confidence_ == pytest.approx(every.confidence)


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_noise_is_chosen_for_with_the_verdict(n_clusters):
    X = np.random.default_rng(0).normal(size=(300, 3))
    for estimator in (small(n_clusters, balance="default", C="auto"), None):
        if estimator is None:
            estimator = dmkc.AutoClustering(n_clusters, random_state=0)
        found = dmkc.select(X, estimator)
        assert found.verdict == "no evidence of clusters" and found.evidence < 3
        assert "no evidence of clusters" in repr(found)
        assert len(np.unique(found.estimator().fit(X).labels_)) == n_clusters


def test_limits_of_the_estimator_hold_for_the_selection():
    X = square()[0]
    found = dmkc.select(X, dmkc.AutoClustering(2, random_state=0, max_seconds=1e-9))
    assert {candidate.family for candidate in found.candidates} == {"k-means"}
    with pytest.raises(ValueError, match="Pairs of rows are given as answers"):
        dmkc.select(X, dmkc.AutoClustering(2, must_link=[(0, 1)]))
    with pytest.raises(TypeError, match="not for a KMeans"):
        dmkc.select(X, dmkc.KMeans(2))


def test_an_open_number_is_checked_and_warned_of_beside_other_open_parameters():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(UserError, match="up to 40 clusters at least 120 rows"):
        small((2, 40)).fit(X)
    with pytest.warns(UserWarning, match="no evidence of clusters"):
        small("auto").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(2).fit(X)
