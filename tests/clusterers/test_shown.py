"""What estimators show of themselves, their scores and typical rows, for every method."""

from __future__ import annotations

import copy
import pickle
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.cluster
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import dmkc
from dmkc.datasets import make_blobs
from dmkc.errors import UserError
from dmkc.modelfile import ESTIMATORS

X, TRUTH = make_blobs(240, 5, 3, spread=1.0, seed=3)
X = X.astype(np.float64)
NAMES = ["age", "visits", "<b>spend</b>", "days", "e"]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"row{i}" for i in range(len(X))])
QUICK = {
    "hmkkm": {"n_masks": 1, "kernels": ["linear", "gaussian"], "n_init": 2},
    "mkkm": {"kernels": ["linear", "gaussian"], "n_init": 2},
    "consensus": {"n_members": 6, "n_init": 2},
    "auto": {"sample_rows": 60},
}
CENTRES = ("kmeans", "kernel-kmeans", "mkkm", "hmkkm", "spectral", "consensus")


def fitted(method, rows=X, clusters=3, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = QUICK.get(method, {}) | parameters
        return ESTIMATORS[method](clusters, random_state=0, **more).fit(rows)


@pytest.fixture(scope="module")
def models():
    """A fitted model of every method."""
    return {method: fitted(method) for method in ESTIMATORS}


@pytest.fixture(params=list(ESTIMATORS))
def model(request, models):
    return models[request.param]


def test_text_before_a_fit_is_scikit_learns(model):
    plain = clone(model)
    assert "\n#" not in repr(plain) and repr(plain).startswith(type(model).__name__)
    assert "<b>" not in plain._repr_html_()[-40:]


def test_text_and_html_after_a_fit_and_after_loading(model, tmp_path):
    model.save(tmp_path / "m")
    for one in (model, dmkc.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        text, line, *more = repr(one).split("\n#")
        line = f"#{line}"
        assert text.startswith(f"{type(model).__name__}(") and len(more) <= 2
        assert line.startswith("# 3 clusters of 240 rows: ") and line.count("%") == 3
        bundle = one._repr_mimebundle_()
        assert bundle["text/plain"] == repr(one)
        assert "<b>3 clusters of 240 rows: " in bundle["text/html"]
        assert "<b>3 clusters of 240 rows: " in one._repr_html_()
        assert len(bundle["text/html"]) < len(estimator_html_repr(one)) + 1000
        assert len(repr(one.model_)) < 100 and "3 clusters" in repr(one.model_)


def test_shares_are_those_of_the_labels(model):
    sizes = np.bincount(np.asarray(model.labels_))
    np.testing.assert_allclose(model.cluster_shares_, sizes / len(X), atol=0.01)
    assert model.n_samples_fit_ == len(X)


def test_parameters_and_copies_know_nothing_of_the_fit(model):
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert repr(copy.deepcopy(model)) == repr(model)
    assert "#" not in repr(clone(model))


def test_in_a_pipeline_the_text_is_scikit_learns(model):
    whole = make_pipeline(StandardScaler(), model)
    assert "clusters of" not in repr(whole) and type(model).__name__ in repr(whole)
    assert type(model).__name__ in whole._repr_html_()


def test_long_parameters_are_cut():
    links = np.arange(20_000).reshape(-1, 2)
    model = dmkc.MarginDistributionClustering(must_link=links, init=list(range(100_000)))
    assert len(repr(model)) < 1000
    plain = dmkc.MultipleKernelClustering(3, C=1.5, balance=0.25, norm=1.5, rank=20, tol=1e-4)
    assert max(map(len, repr(plain).splitlines())) < 90  # scikit-learn's lines


def test_text_of_others_is_escaped():
    frame = FRAME.assign(**{"<script>": "<i>same</i>", "k": np.where(TRUTH == 1, "a", "b")})
    model = dmkc.cluster(frame, 3, sample_rows=60, random_state=0)
    assert "# columns left out: <script> (constant)" in repr(model)
    assert "&lt;script&gt; (constant)" in model._repr_html_()
    assert "<script> (constant)" not in model._repr_html_()


def test_a_choice_says_its_verdict(models):
    assert ", confidence " in repr(models["auto"]) and ", by " in repr(models["auto"])
    open_one = fitted("mkc", clusters=2, C="auto", kernels="linear")
    assert "confidence" in repr(open_one)
    assert "confidence" not in repr(models["mkc"])


def test_nonsense_of_a_file_is_not_shown():
    model = fitted("kmeans")
    model.cluster_shares_, model.confidence_ = np.array(["a", "b", "c"], dtype=object), "high"
    assert repr(model).splitlines()[1:] == ["# 3 clusters of 240 rows"]
    del model.n_samples_fit_, model.cluster_shares_
    assert repr(model).splitlines()[1:] == ["# 3 clusters"]


def test_one_cluster_and_a_fit_that_stopped():
    assert repr(fitted("kmeans", clusters=1)).splitlines()[1] == "# 1 cluster of 240 rows"
    assert "stopped before it converged" in repr(fitted("mkc", max_iter=1, tol=1e-12))
    assert " and 4 more" in repr(fitted("kmeans", clusters=12))


def test_typical_rows_are_rows_of_their_clusters(model):
    numbers = model.medoid_indices_
    np.testing.assert_array_equal(model.medoids_, X[numbers])
    np.testing.assert_array_equal(np.asarray(model.labels_)[numbers], np.arange(3))


@pytest.mark.parametrize("method", ["kmeans", "mkc", "spectral", "consensus"])
def test_typical_rows_do_not_depend_on_chunks_or_form(method):
    whole = fitted(method)
    for rows in (da.from_array(X, chunks=(37, 2)), FRAME, sp.csr_array(X)):
        other = fitted(method, rows)
        np.testing.assert_array_equal(other.medoid_indices_, whole.medoid_indices_)
        np.testing.assert_allclose(other.medoids_, whole.medoids_)


def test_typical_rows_of_k_means_are_nearest_to_the_centroids():
    model = fitted("kmeans")
    apart = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.medoid_indices_, apart.argmin(axis=0))


@pytest.mark.parametrize("method", ["mkc", "skmmc", "odm", "planes"])
def test_typical_rows_are_nearest_to_the_mean_of_features(method):
    model = fitted(method)
    features = np.asarray(model.model_.feature_pipeline()(X), dtype=np.float64)
    for cluster in range(3):
        inside = np.flatnonzero(model.labels_ == cluster)
        apart = ((features[inside] - features[inside].mean(axis=0)) ** 2).sum(axis=1)
        assert model.medoid_indices_[cluster] == inside[apart.argmin()]


def test_typical_rows_of_a_subset_have_the_numbers_of_all_rows():
    model = fitted("mkc", train_rows=100)
    np.testing.assert_array_equal(model.medoids_, X[model.medoid_indices_])


def test_a_single_cluster_has_a_typical_row():
    for method in ESTIMATORS:
        model = fitted(method, clusters=1)
        assert model.score(X) <= 0.0
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        if method != "kmeans":
            assert model.medoid_indices_[0] == (Z**2).sum(axis=1).argmin(), method


def test_a_row_of_weight_three_is_three_rows():
    weights = 1.0 + np.arange(len(X)) % 3
    many = np.repeat(X, weights.astype(int), axis=0)
    one = ESTIMATORS["mkc"](3, random_state=0, landmarks=X[:50]).fit(X, sample_weight=weights)
    other = ESTIMATORS["mkc"](3, random_state=0, landmarks=X[:50]).fit(many)
    np.testing.assert_allclose(one.medoids_, other.medoids_)
    assert one.score(X, sample_weight=weights) == pytest.approx(one.score(many))


def test_the_score_is_less_the_inertia_where_there_are_centres(models):
    for method in CENTRES:
        assert models[method].score(X) == pytest.approx(-models[method].inertia_, abs=1e-9), method


def test_the_score_of_k_means_is_scikit_learns(models):
    model = models["kmeans"]
    peer = sklearn.cluster.KMeans(3, init=model.cluster_centers_, n_init=1, max_iter=1).fit(X)
    peer.cluster_centers_ = model.cluster_centers_
    assert model.score(X[:50] + 1) == pytest.approx(peer.score(X[:50] + 1))


def margins_of(scores):
    if scores.ndim == 1:
        return np.abs(scores)
    top = np.sort(scores, axis=1)
    return top[:, -1] - top[:, -2]


@pytest.mark.parametrize("clusters", [2, 3])
def test_the_score_is_less_the_mean_shortfall_where_there_are_margins(clusters):
    for method in ("mkc", "skmmc"):
        model = fitted(method, clusters=clusters)
        short = np.maximum(0, 1 - margins_of(model.decision_function(X)))
        assert model.score(X) == pytest.approx(-short.mean(), abs=1e-6)


def test_the_score_is_what_the_objective_adds_to_the_size():
    model = fitted("mkc", clusters=2, kernels="linear", tol=1e-6)
    v = model.model_.weights[0]
    size = v @ v / model.kernel_weights_[0] / 2
    assert model.objective_ == pytest.approx(size - model.C_ * model.score(X), rel=1e-4)


@pytest.mark.parametrize("clusters", [2, 3])
def test_the_score_of_margin_distributions_is_less_their_loss(clusters):
    model = fitted("odm", clusters=clusters)
    f = model.decision_function(X)
    f = np.abs(f)[:, None] if f.ndim == 1 else np.where(f == f.max(1, keepdims=True), f, -f)
    loss = np.maximum(0.7 - f, 0) ** 2 + 0.5 * np.maximum(f - 1.3, 0) ** 2
    assert model.score(X) == pytest.approx(-loss.sum(axis=1).mean(), rel=1e-5)


def test_the_score_of_planes_is_less_the_mean_square_of_distances():
    model = fitted("planes")
    distance = -model.decision_function(X)
    assert model.score(X) == pytest.approx(-(distance.min(axis=1) ** 2).mean(), rel=1e-5)


def test_the_score_does_not_depend_on_chunks(models, model):
    lazy = da.from_array(X, chunks=(37, 5))
    if model._scored is not None:
        assert model.score(lazy) == model.score(X) == model.score(X, TRUTH)


def test_a_method_without_losses_has_no_score(monkeypatch):
    monkeypatch.setattr(dmkc.KMeans, "_scored", None)
    assert not hasattr(dmkc.KMeans(), "score")


FORMS = {
    "array": X,
    "frame": FRAME,
    "numbered frame": pd.DataFrame(X),
    "views": {"left": FRAME.iloc[:, :2], "right": FRAME.iloc[:, 2:]},
    "dask frame": dd.from_pandas(FRAME.reset_index(drop=True), npartitions=3),
    "dask": da.from_array(X, chunks=(37, 5)),
}


@pytest.mark.parametrize("form", FORMS)
def test_names_of_features_agree(form, model):
    rows = FORMS[form]
    if isinstance(model, dmkc.AutoClustering) and form != "frame":
        pytest.skip("which is a fit of one of the other methods")
    one = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.fit(rows)
    found, names = one.transform(rows), list(one.get_feature_names_out())
    assert found.shape[1] == len(names)
    if hasattr(found, "columns"):
        assert list(found.columns) == names
    if form in ("array", "frame", "views"):
        table = one.set_output(transform="pandas").transform(rows)
        assert list(table.columns) == names
        np.testing.assert_allclose(table.to_numpy(), np.asarray(found))


def test_names_of_features_agree_in_a_pipeline(model):
    whole = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = whole.fit(FRAME).transform(FRAME)
    assert list(found.columns) == list(whole.get_feature_names_out())
    assert list(found.index) == list(FRAME.index)


def test_tables_are_clustered_in_one_call():
    rng = np.random.default_rng(0)
    frame = FRAME.assign(plan=np.array(["free", "team", "home"])[TRUTH], id=np.arange(len(X)))
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 240), "D")
    frame.iloc[3, 0] = np.nan
    with pytest.raises(UserError, match=r'missing values \(age 1; .* with missing="drop"'):
        dmkc.cluster(frame)
    model = dmkc.cluster(frame, missing="drop", sample_rows=60, random_state=0)
    assert len(model.labels_) == 239 and "id" in repr(model)
    assert model.labels_.equals(model.predict(frame))
    options = {"sample_rows": 60, "random_state": 0}
    kept = dmkc.cluster(frame, 3, missing="impute", exclude=["plan"], **options)
    assert "plan=free" not in kept.feature_names_in_ and len(kept.labels_) == 240
    with pytest.raises(UserError, match="leave them out"):
        dmkc.cluster(X, missing="drop")


def test_planes_select_columns_of_tables():
    frame = FRAME.assign(plan=np.array(["free", "team", "home"])[TRUTH])
    columns = dmkc.TableColumns()
    model = columns.keep_in(fitted("planes", columns.fit_transform(frame)))
    assert list(model.transform(frame).columns) == list(model.get_feature_names_out())
