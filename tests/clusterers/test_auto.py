"""One estimator that chooses among all methods, and says when there is nothing to find."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import dmkc
from dmkc import AutoClustering
from dmkc.datasets import make_blobs, make_moons, make_rings
from dmkc.report import write_report
from dmkc.selection import auto, families
from dmkc.selection.families import Candidate, Fitted, recipes
from dmkc.selection.judge import judge
from tests.without_chances import without_chances


def make(n_clusters="auto", **parameters):
    return AutoClustering(n_clusters, random_state=0, **parameters)


def balls(sizes, d=5, apart=10.0):
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(n, d)) + apart * np.eye(d)[i] for i, n in enumerate(sizes)]
    )
    return X, np.repeat(np.arange(len(sizes)), sizes)


@parametrize_with_checks([without_chances(make(2, sample_rows=60, max_seconds=1e-3))])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("rows", "k"),
    [
        (make_rings(600, noise=0.05, seed=0), 2),
        (make_moons(600, noise=0.06, seed=0), 2),
        (balls([200, 200, 200]), 3),
        (balls([120] * 5), 5),
    ],
)
def test_clear_clusters_are_found_and_counted(rows, k):
    X, y = rows
    model = make().fit(X)
    assert model.n_clusters_ == k and model.verdict_ == "clear clusters"
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert model.confidence_ >= 0.8 and model.alternatives_ == []


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_noise_is_one_cluster(kind, d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(500, d)) if kind == "normal" else rng.uniform(size=(500, d))
    model = make().fit(X)
    assert model.n_clusters_ == 1 and model.verdict_ == "no evidence of clusters"
    assert model.evidence_ < 3 and not np.asarray(model.labels_).any()


def test_asked_for_clusters_of_noise_come_with_the_verdict(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(UserWarning, match="no evidence of clusters"):
        model = make(3).fit(X)
    assert model.n_clusters_ == 3 and model.verdict_ == "no evidence of clusters"
    path = write_report(model, X, tmp_path / "report.html", title="Noise")
    assert path.read_text().index("no evidence of clusters") < path.read_text().index("What are")


@pytest.mark.parametrize("sizes", [(570, 30), (1900, 100)])
def test_unequal_clusters(sizes):
    X, y = balls(sizes)
    model = make().fit(X)
    assert model.n_clusters_ == 2 and model.verdict_ != "no evidence of clusters"
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_a_mixed_table_behind_a_scaler():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    words = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, 600)]
    X = np.column_stack([rng.normal(size=(600, 3)) + 6.0 * np.eye(3)[y], words.astype(object)])
    columns = make_column_transformer(
        (StandardScaler(), [0, 1, 2]), (OneHotEncoder(sparse_output=False), [3])
    )
    labels = make_pipeline(columns, make(3)).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95


def test_a_table_of_columns_that_have_nothing_in_common(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 800)
    columns = {
        "age": 30 + 12 * y + rng.normal(0, 3, 800),
        "visits": 20 - 7 * y + rng.normal(0, 2, 800),
        "day": rng.integers(16_000, 19_000, 800).astype(float),  # of no use, in the largest unit
        "member": rng.integers(0, 2, 800).astype(float),
    }
    X = pd.DataFrame(columns)
    model = make().fit(X)
    assert model.n_clusters_ == 3 and adjusted_rand_score(y, model.labels_) > 0.95
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(dmkc.load(tmp_path / "m").predict(X), model.labels_)


def test_a_range_and_few_rows():
    X, _ = balls([100, 100, 100])
    assert make((2, 4)).fit(X).n_clusters_ == 3
    assert make().fit(X[:3]).n_clusters_ == 1
    assert make(2).fit(X[98:103]).n_clusters_ == 2
    assert make(1).fit(X).n_clusters_ == 1


def test_labels_do_not_depend_on_chunks():
    X, _ = make_blobs(3000, 4, 3, seed=1)
    whole = make(3, sample_rows=400).fit(X)
    cut = make(3, sample_rows=400).fit(da.from_array(X, chunks=(700, 3)))
    assert (cut.method_, cut.parameters_) == (whole.method_, whole.parameters_)
    np.testing.assert_array_equal(np.asarray(cut.labels_), np.asarray(whole.labels_))


FAMILIES = {recipe.family: recipe for recipe in recipes(3)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_whatever_was_chosen(family, tmp_path, monkeypatch):
    recipe = FAMILIES[family]

    def only_this(values, k, seed, form, max_seconds):
        labels = np.asarray(recipe.estimator(random_state=seed).fit(values).labels_)
        return Fitted([Candidate(family, recipe, labels)])

    monkeypatch.setattr(auto, "fitted", only_this)
    X, y = make_blobs(200, 4, 3, seed=0)
    model = make(3).fit(X)
    assert model.method_ == recipe.method
    plain = recipe.estimator(random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert hasattr(model, "decision_function") == hasattr(plain, "decision_function")
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    model.save(tmp_path / "m")
    loaded = dmkc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(loaded.transform(X), plain.transform(X))
    assert loaded.verdict_ == model.verdict_ and loaded.candidates_ == model.candidates_
    for each in (model, loaded):
        write_report(each, X, tmp_path / "report.html", title="Blobs", truth=y)
    assert model.predict_proba(X).shape == (200, 3)


def test_alternatives_are_offered_where_several_clusterings_fit(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2)) + 3.2 * rng.integers(0, 2, (400, 2))  # four, asked for two
    model = make(2).fit(X)
    if model.verdict_ != "clear clusters":
        assert len(model.alternatives_) >= 1
        other = model.alternative(0).fit(X)
        assert adjusted_rand_score(other.labels_, model.labels_) < 0.6
    with pytest.raises(ValueError, match="numbered from 0"):
        model.alternative(7)
    write_report(model, X, tmp_path / "report.html", title="Four")


def test_a_limit_of_time_cuts_candidates_and_says_which():
    X, _ = balls([60, 60])
    model = make(2, max_seconds=1e-9).fit(X)
    assert {record["family"] for record in model.candidates_} == {"k-means"}
    assert len(model.cut_) == len(recipes(2)) - 2 and "spectral" in model.cut_[0]
    with pytest.raises(ValueError, match="max_seconds must be a number greater than 0"):
        make(2, max_seconds=0).fit(X)


def test_too_much_work_is_cut_before_the_start_the_least_promising_first(monkeypatch):
    all_of_them = recipes(3)
    assert families.affordable(all_of_them, 1000, 20) == (all_of_them, [])
    tried, cut = families.affordable(all_of_them, 1000, 6000)
    assert sum(recipe.seconds(1000, 6000) for recipe in tried) <= families.MOST_WORK
    assert [r.family for r in tried[:3]] == ["k-means", "k-means", "graph"] and len(cut) > 5
    assert families.affordable(all_of_them, 10**9, 50)[0] == all_of_them[:2]
    monkeypatch.setattr(families, "MOST_WORK", 0.01)
    X, _ = balls([60, 60])
    model = make(2).fit(X)
    assert any("consensus" in name for name in model.cut_)
    np.testing.assert_array_equal(make(2).fit(X).labels_, model.labels_)


def test_a_run_that_is_taken_up_again_remembers_the_choice(tmp_path, monkeypatch):
    X, _ = balls([60, 60])
    with dmkc.checkpoint(tmp_path):
        first = make(2).fit(X)
    monkeypatch.setattr(auto, "chosen_on", lambda *_: pytest.fail("it has been chosen already"))
    with dmkc.checkpoint(tmp_path):
        again = make(2).fit(X)
    assert again.candidates_ == first.candidates_ and again.parameters_ == first.parameters_
    np.testing.assert_array_equal(again.labels_, first.labels_)


def test_a_fit_that_fails_leaves_the_older_model_whole():
    X, _ = balls([60, 60])
    model = make(2).fit(X)
    before = model.labels_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((50, 2), np.nan))
    np.testing.assert_array_equal(model.labels_, before)
    assert model.n_features_in_ == 5


def test_what_speaks_for_a_candidate_by_hand():
    X = np.concatenate([np.zeros((20, 1)), np.ones((20, 1))]) + 1e-3 * np.arange(40)[:, None]
    right, wrong = np.arange(40) // 20, np.arange(40) % 2
    recipe = FAMILIES["k-means"]
    pool = [Candidate("k-means", recipe, right), Candidate("margin", recipe, wrong)]
    pool.append(Candidate("mixture", None, right))
    found = judge(pool, X, 2)
    assert found.order == [0, 1] and found.neighbours[0] == 1.0 and found.clearness[0] == 1.0
    assert found.clearness[1] < 0.5 and found.agreement[0] > found.agreement[1]
    assert found.confidence == pytest.approx(1.0)
    assert families.WITNESS not in {record["family"] for record in found.records(True)}


def test_settings_of_one_method_must_find_what_the_best_other_method_finds():
    rng = np.random.default_rng(0)
    X, k = rng.normal(size=(80, 2)), FAMILIES["k-means"]
    left, up = (X[:, 0] > 0).astype(int), (X[:, 1] > 0).astype(int)
    chance = rng.integers(2, size=80)
    pool = [Candidate("margin", k, up), Candidate("margin", k, left)]
    assert not judge(pool, X, 2).likeness.any()
    others = [Candidate(f, None, z) for f, z in (("a", left), ("b", chance), ("mixture", up))]
    found = judge(pool + others, X, 2)
    assert found.likeness[1] == 1.0 and found.likeness[0] < 0.2 and found.order == [1, 0]
    assert "likeness" in found.records(True)[0]
    # where answers speak against the best other method, another one is the best
    answered = found.knowing([(i, j, bool(chance[i] == chance[j])) for i, j in PAIRS], 2)
    assert answered.likeness[1] < 0.2


PAIRS = [(i, i + 1) for i in range(0, 78, 2)]
