"""Selected columns: the selector's interface, wide rows, paths, and planes of known classes."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from dmkc import NonparallelPlaneClustering, plot
from dmkc.clusterers.planes.selection import synchronisation
from dmkc.kernels import per_column
from dmkc.reference.planes import fit_planes


def planted(n=300, d=30, where=(4, 17), seed=0, shift=6.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    X = rng.normal(size=(n, d))
    X[:, where] += shift * y[:, None]
    return X, y


def make(**params):
    return NonparallelPlaneClustering(**{"random_state": 0, "c2": 0.03, **params})


def test_the_columns_that_separate_are_selected():
    X, y = planted()
    model = make().fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.selected_features_.tolist() == [4, 17]
    assert np.flatnonzero(model.get_support()).tolist() == [4, 17]
    assert model.get_support(indices=True).tolist() == [4, 17]
    assert np.flatnonzero(model.feature_importances_).tolist() == [4, 17]
    assert model.synchronisation_ == 1.0
    np.testing.assert_allclose(np.diag(model.cosines_), 1.0)


def test_transform_keeps_the_form_of_the_rows():
    X, _ = planted()
    names = [f"gene{j}" for j in range(30)]
    frame = pd.DataFrame(X, columns=names)
    model = make().fit(frame)
    assert model.selected_features_.tolist() == ["gene4", "gene17"]
    assert model.get_feature_names_out().tolist() == ["gene4", "gene17"]
    pd.testing.assert_frame_equal(model.transform(frame), frame[["gene4", "gene17"]])
    lazy = model.transform(dd.from_pandas(frame, npartitions=3))
    pd.testing.assert_frame_equal(lazy.compute(), frame[["gene4", "gene17"]])

    model = make().fit(X)
    wanted = X[:, [4, 17]]
    np.testing.assert_array_equal(model.transform(X), wanted)
    np.testing.assert_array_equal(model.transform(X.tolist()), wanted)
    chunked = model.transform(da.from_array(X, chunks=(70, 10)))
    assert isinstance(chunked, da.Array)
    np.testing.assert_array_equal(chunked.compute(), wanted)
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        thin = model.transform(form(X))
        assert sp.issparse(thin)
        np.testing.assert_array_equal(thin.toarray(), wanted)


def test_it_is_a_selector_in_a_pipeline():
    X, y = planted()
    steps = make_pipeline(make(), KMeans(2, n_init=3, random_state=0))
    assert adjusted_rand_score(y, steps.fit_predict(X)) == 1.0
    assert steps[-1].cluster_centers_.shape == (2, 2)


@pytest.mark.parametrize(
    ("solver", "d"), [("irls", 3000), pytest.param("bundle", 600, marks=pytest.mark.slow)]
)
def test_rows_much_wider_than_long(solver, d):
    X, y = planted(n=60, d=d, where=(4, 17, 300, d - 1), shift=8.0)
    params = {"solver": solver, "init": y, "scale": "standard", "loss": "laplacian"}
    model = make(c1=0.25, c2=0.3, **params).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.selected_features_.tolist() == [4, 17, 300, d - 1]
    assert model.gap_ <= 1e-3
    thin = make(c1=0.25, c2=0.3, **params).fit(sp.csr_array(X))
    np.testing.assert_array_equal(thin.selected_features_, model.selected_features_)


def test_a_c2_too_small_for_many_columns_is_refused(monkeypatch):
    from dmkc.clusterers.planes import solvers as planes_solvers

    monkeypatch.setattr(planes_solvers, "LARGEST", 40)
    X, y = planted(n=60, d=400)
    with pytest.raises(ValueError, match=r"more than 40 features .*increase c2"):
        make(c2=0.0, init=y).fit(X)


def test_columns_are_named_by_a_bank_of_one_kernel_per_column():
    """Rings: the clusters differ in spread, which no plane in the columns themselves sees."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 6))
    X[:, 2] *= np.where(y == 0, 0.3, 1.0)
    X[:, 2] += np.where(y == 0, 0.0, 4.0 * np.sign(X[:, 2]))
    model = make(kernels=per_column(6), rank=8, init=y, c2=0.1).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.selects_columns_
    assert model.selected_features_.tolist() == [2]
    assert model.transform(X).shape == (400, 1)


def test_kernels_through_landmarks_select_components():
    X, _ = planted()
    model = make(kernels="gaussian", rank=20).fit(X)
    assert not model.selects_columns_
    count = int(model.get_support().sum())
    assert model.transform(X).shape == (300, count)
    assert model.get_feature_names_out()[0].startswith("component")


def test_a_path_shows_which_columns_stay():
    X, _ = planted()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)])
    path = make(scale="standard").path(frame, n_values=6)
    assert np.all(np.diff(path.c2) > 0)
    assert path.n_selected[0] > path.n_selected[-1] >= 1
    stays = (path.importances > 0).sum(axis=0)
    assert set(np.argsort(-stays)[:2]) == {4, 17}
    assert path.names[4] == "c4"
    ax = plot.selection_path(path)
    labels = {line.get_label() for line in ax.lines}
    assert {"c4", "c17"} <= labels
    given = make().path(X, c2=[0.05, 0.01])
    assert given.c2.tolist() == [0.01, 0.05]
    with pytest.raises(ValueError, match="c2 must be one or more numbers"):
        make().path(X, c2=[-1.0])


def test_a_path_gives_what_single_fits_give():
    X, _ = planted()
    path = make(tol=1e-5).path(X, c2=[0.01, 0.05])
    for value, importances in zip(path.c2, path.importances, strict=True):
        single = make(tol=1e-5, c2=value).fit(X)
        np.testing.assert_allclose(importances, single.feature_importances_, atol=0.05)


def test_importances_are_drawn():
    X, _ = planted()
    ax = plot.feature_importances(make().fit(X))
    assert [text.get_text() for text in ax.get_yticklabels()][:2] in (
        ["column 4", "column 17"],
        ["column 17", "column 4"],
    )


def test_synchronisation_is_pearsons():
    w = np.array([[1.0, 2, 0, 0, 0], [0, 3, 1, 0, 0]])
    marks = np.abs(w) > 0
    assert synchronisation(w) == pytest.approx(np.corrcoef(marks[0], marks[1])[0, 1])
    assert synchronisation(w, 1) == 1.0
    assert synchronisation(np.ones((3, 4))) == 1.0


def test_planes_of_known_classes():
    X, y = planted(shift=3.0)
    Z = (X - X.mean(axis=0)) / np.ptp(X, axis=0)
    names = np.array(["a", "b"])[y]
    together = fit_planes(Z, names, c2=0.02)
    assert (together.predict(Z) == names).mean() > 0.95
    assert together.gap <= 1e-5
    assert synchronisation(together.weights) == 1.0
    alone = fit_planes(Z, names, c2=0.004, hinge=True, together=False)
    assert synchronisation(alone.weights) < 1.0
    with pytest.raises(ValueError, match="at least two different classes"):
        fit_planes(Z, np.zeros(300))
