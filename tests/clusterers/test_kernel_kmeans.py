"""Kernel k-means methods beside direct n x n code, their contract and their invariances."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from direct_kernels import (
    average,
    centred,
    cosine_normalised,
    hierarchy,
    mkkm,
    simple_mkkm,
    standardised,
    top,
    unit_kernels,
)
from sklearn import cluster
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from without_chances import without_chances

from dmkc import (
    Cosine,
    Gaussian,
    HierarchicalKernelKMeans,
    KernelKMeans,
    Laplacian,
    Linear,
    MultipleKernelKMeans,
    Polynomial,
)

BANK = (Gaussian(gamma=0.5), Gaussian(gamma=0.02), Polynomial(2, gamma=0.3), Linear())
FAMILY = (KernelKMeans, MultipleKernelKMeans, HierarchicalKernelKMeans)
FEW = {HierarchicalKernelKMeans: {"n_masks": 2, "nodes": [4, 3]}}
"""Fewer draws where a test is about something else."""


@parametrize_with_checks(
    [
        without_chances(KernelKMeans()),
        without_chances(MultipleKernelKMeans(kernels=["linear", "gaussian"])),
        without_chances(
            HierarchicalKernelKMeans(kernels=["linear", "gaussian"], nodes=[3, 2], n_masks=2)
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def mixture(n=120, d=4, k=3, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=n)
    return spread * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def exact(cls, X, k=3, **params):
    """A fit whose landmarks are all rows, so that the kernels are the exact ones."""
    exactly = {"landmarks": X, "max_features": 10**6, "scale": "standard"}
    params = {"kernels": list(BANK), "n_init": 20, **exactly, **params}
    return cls(k, random_state=0, **params).fit(X)


def direct_labels(H, k):
    rows = H / np.linalg.norm(H, axis=1, keepdims=True)
    return cluster.KMeans(k, n_init=20, random_state=0).fit(rows).labels_


def same_span(model, X, H):
    """Whether unit rows of the embedding are those of H, up to a rotation."""
    ours, rows = model.transform(X), H / np.linalg.norm(H, axis=1, keepdims=True)
    np.testing.assert_allclose(ours @ ours.T, rows @ rows.T, atol=1e-6)


@pytest.mark.parametrize("kernels", [BANK, BANK[:1], (Laplacian(gamma=0.2), Cosine())])
def test_the_average_kernel_is_that_of_whole_matrices(kernels):
    X, _ = mixture()
    model = exact(KernelKMeans, X, kernels=list(kernels))
    H, loss = average(unit_kernels(kernels, standardised(X)), 3)
    assert model.objective_ == pytest.approx(loss, rel=1e-9)
    same_span(model, X, H)
    assert adjusted_rand_score(model.labels_, direct_labels(H, 3)) == 1.0


def test_unrelaxed_kernel_k_means_is_k_means_on_kernel_principal_components():
    X, _ = mixture(200, 3, 4, spread=1.5)
    model = exact(KernelKMeans, X, 4, kernels=Gaussian(gamma=0.3), relaxed=False, normalise="trace")
    K = centred(Gaussian(gamma=0.3).matrix(standardised(X), standardised(X)))
    K /= np.mean(np.diag(K))
    scores = KernelPCA(kernel="precomputed").fit_transform(K)
    theirs = cluster.KMeans(4, n_init=20, random_state=0).fit(scores)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, K, atol=1e-7)
    assert model.inertia_ == pytest.approx(theirs.inertia_, rel=1e-6)
    assert adjusted_rand_score(model.labels_, theirs.labels_) == 1.0


@pytest.mark.parametrize("penalty", [None, 1.0, 10.0])
def test_mkkm_is_that_of_whole_matrices(penalty):
    X, _ = mixture()
    params = {"weights": "mkkm" if penalty is None else "mkkm-mr", "penalty": penalty}
    model = exact(MultipleKernelKMeans, X, tol=1e-14, max_iter=100, **params)
    H, w, loss = mkkm(unit_kernels(BANK, standardised(X)), 3, penalty or 0.0)
    assert model.objective_ == pytest.approx(loss, rel=1e-7)
    np.testing.assert_allclose(model.kernel_weights_, w, atol=1e-5)
    assert adjusted_rand_score(model.labels_, direct_labels(H, 3)) == 1.0
    assert (np.diff(model.objectives_) <= 1e-9 * model.objective_).all()


def test_simple_mkkm_finds_the_minimum_that_a_general_solver_finds():
    X, _ = mixture()
    Ks = unit_kernels(BANK, standardised(X))
    w, value = simple_mkkm(Ks, 3)
    model = exact(MultipleKernelKMeans, X, weights="simple", tol=1e-10, max_iter=500)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.objective_ >= value * (1 - 1e-9)
    np.testing.assert_allclose(model.kernel_weights_, w, atol=2e-3)
    H = top(sum(a**2 * K for a, K in zip(model.kernel_weights_, Ks, strict=True)), 3)
    same_span(model, X, H)


@pytest.mark.parametrize(
    "params",
    [
        {"nodes": [5, 3], "sparsity": 0.5, "n_masks": 1},
        {"nodes": [4, 3], "sparsity": 0.0},
        {"connections": "chain"},
        {"nodes": [3], "widths": [2], "n_masks": 1},
        {"nodes": [6, 5, 4], "widths": [4, 3, 2], "n_masks": 1},
    ],
)
def test_the_hierarchy_is_that_of_whole_matrices(params):
    X, _ = mixture()
    model = exact(HierarchicalKernelKMeans, X, tol=0.0, max_iter=4, **params)
    masks = [w > 0 for w in model.connections_[0]]
    widths = [3 * w for w in params.get("widths", (4, 2))]
    Ks = unit_kernels(BANK, standardised(X))
    H, values, W = hierarchy(Ks, 3, widths, masks, 0.01, len(model.objectives_) - 1)
    np.testing.assert_allclose(model.objectives_, values, rtol=1e-9)
    for ours, theirs in zip(model.connections_[0], W, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    same_span(model, X, H)
    assert adjusted_rand_score(model.labels_, direct_labels(H, 3)) == 1.0


def test_consensus_and_agreement_of_several_draws():
    X, _ = mixture()
    model = exact(HierarchicalKernelKMeans, X, nodes=[5, 4], n_masks=6)
    assert model.agreement_.shape == (6, 6)
    np.testing.assert_allclose(np.diag(model.agreement_), 1.0)
    assert (model.agreement_ <= 1 + 1e-9).all() and model.agreement_.min() > 0
    assert len(model.connections_) == 6 and model.connections_[0][0].shape == (5, 4)
    assert model.connections_[0][1].shape == (4, 5)
    assert len({w[0].tobytes() for w in model.connections_}) == 6


def test_full_connections_are_the_average_kernel_to_all_intents():
    X, _y = mixture(300)
    full = HierarchicalKernelKMeans(3, sparsity=0.0, nodes=[4, 3], random_state=0).fit(X)
    nodes = full.connections_[0][0]
    np.testing.assert_allclose(nodes, np.tile(nodes[:1], (len(nodes), 1)), atol=1e-8)


def test_landmarks_that_are_not_all_rows_come_close():
    X, _y = mixture(1500, 6, 3)
    Z = standardised(X)
    H, _ = average(unit_kernels([Gaussian(gamma=0.05)], Z), 3)
    model = KernelKMeans(3, kernels=Gaussian(gamma=0.05), random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, direct_labels(H, 3)) > 0.97


def test_narrow_kernels_are_normalised_by_their_true_diagonal():
    """Rows that no landmark is near to have tiny Nyström features, which must stay tiny."""
    X, _ = mixture(400, 6, 3)
    kernel = Gaussian(gamma=5.0)
    model = KernelKMeans(
        3, kernels=kernel, rank=60, relaxed=False, random_state=0, max_features=10**6
    ).fit(X)
    K = cosine_normalised(centred(kernel.matrix(standardised(X), standardised(X))))
    ours = model.transform(X)
    assert (np.einsum("ij,ij->i", ours, ours) <= 1 + 1e-6).all()
    blown = ours / np.linalg.norm(ours, axis=1, keepdims=True)
    off = ~np.eye(400, dtype=bool)
    right, wrong = (np.linalg.norm((Y @ Y.T - K)[off]) for Y in (ours, blown))
    assert right < 0.2 * wrong


def test_compression_keeps_what_matters():
    X, _y = mixture(600, 5, 3, spread=3.0)
    whole = KernelKMeans(3, kernels="twelve", random_state=0, max_features=10**6).fit(X)
    small = KernelKMeans(3, kernels="twelve", random_state=0, max_features=150).fit(X)
    assert adjusted_rand_score(whole.labels_, small.labels_) > 0.95
    assert small.objective_ == pytest.approx(whole.objective_, rel=0.02)


def test_the_largest_distance_gives_the_widths():
    X, _ = mixture(300, 4)
    Z, kernel = standardised(X), Gaussian(diameters=0.5)
    largest = np.max(np.sum((Z[:, None] - Z) ** 2, axis=2))
    for form in (np.asarray, sp.csr_array):
        model = KernelKMeans(2, kernels=kernel, scale="standard", random_state=0).fit(form(X))
        assert model.kernels_[0].gamma == pytest.approx(0.5 / (0.25 * largest), rel=0.05)
        assert model.kernels_[0].gamma >= 0.5 / (0.25 * largest) * (1 - 1e-9)


@pytest.mark.parametrize("cls", FAMILY)
def test_labels_do_not_depend_on_chunks(cls, chunk=999):
    X, _ = mixture(5000, 4, 3)
    params = {"kernels": ["linear", "gaussian"], "sample_rows": 500, "random_state": 0, "rank": 40}
    whole = cls(3, **params).fit(X)
    lazy = cls(3, **params).fit(da.from_array(X, chunks=(chunk, 4)))
    np.testing.assert_array_equal(lazy.labels_.compute(), whole.labels_)
    assert lazy.objective_ == whole.objective_ and lazy.inertia_ == whole.inertia_


@pytest.mark.parametrize("mode", ["persist", "store"])
def test_labels_do_not_depend_on_the_feature_mode_or_workers(mode, process_client, tmp_path):
    X, _ = mixture(9000, 4, 3)
    params = {"kernels": ["linear", "gaussian"], "sample_rows": 500, "random_state": 0, "rank": 40}
    here = KernelKMeans(3, **params).fit(X)
    there = KernelKMeans(
        3, feature_mode=mode, store_path=str(tmp_path), client=process_client, **params
    ).fit(X)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    assert here.inertia_ == there.inertia_


@pytest.mark.parametrize("cls", FAMILY)
def test_a_weight_is_as_good_as_repetition(cls):
    X, _ = mixture(200)
    weights = np.random.default_rng(0).integers(1, 4, size=200)
    kernels = [Gaussian(gamma=0.1), Linear()]
    params = {"kernels": kernels, "landmarks": X[:60], "random_state": 0, "max_features": 10**6}
    a = cls(3, **params).fit(X, sample_weight=weights)
    b = cls(3, **params).fit(np.repeat(X, weights, axis=0))
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    np.testing.assert_array_equal(np.repeat(a.labels_, weights), b.labels_)


@pytest.mark.parametrize("cls", FAMILY)
def test_sparse_rows_equal_dense_ones(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.4)
    X[np.arange(300), rng.integers(0, 3, 300)] += 4.0
    params = {"random_state": 0, "rank": 50, **FEW.get(cls, {})}
    dense, sparse = cls(3, **params).fit(X), cls(3, **params).fit(sp.csr_array(X))
    assert adjusted_rand_score(dense.labels_, sparse.labels_) == 1.0
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.labels_)


def test_training_on_a_subset_and_polishing():
    X, _y = mixture(4000, 4, 3, spread=3.0)
    model = KernelKMeans(3, train_rows=400, polish=5, random_state=0).fit(X)
    assert adjusted_rand_score(KernelKMeans(3, random_state=0).fit(X).labels_, model.labels_) > 0.97


def test_functions_as_kernels():
    X, _y = mixture(150, spread=4.0)

    def kernel(A, B):
        return np.exp(-0.1 * np.sum((A[:, None] - B) ** 2, axis=2))

    ours = exact(KernelKMeans, X, kernels=kernel)
    same = exact(KernelKMeans, X, kernels=Gaussian(gamma=0.1))
    np.testing.assert_allclose(ours.objective_, same.objective_, rtol=1e-9)
    np.testing.assert_array_equal(ours.labels_, same.labels_)


@pytest.mark.parametrize("cls", FAMILY)
@pytest.mark.parametrize("X", [mixture()[0], np.ones((5, 2)), np.ones((1, 3))])
def test_one_cluster_is_all_zeros(cls, X):
    model = cls(1, random_state=0).fit(X)
    assert model.labels_.tolist() == [0] * len(X) == model.predict(X).tolist()
    assert model.transform(X).shape == (len(X), 1)


def test_a_constant_kernel_gets_no_weight():
    X, _y = mixture()
    for cls in FAMILY:
        with pytest.warns(UserWarning, match="constant on these rows get no weight"):
            model = cls(3, kernels=[Gaussian(gamma=1e-30), Linear()], random_state=0).fit(X)
        assert model.kernel_weights_[0] == 0 and model.kernel_weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize("cls", FAMILY)
def test_new_rows(cls):
    X, y = mixture(600, spread=4.0)
    model = cls(3, random_state=0, **FEW.get(cls, {})).fit(X[:400])
    assert adjusted_rand_score(y[400:], model.predict(X[400:])) > 0.9
    assert not hasattr(model, "decision_function")
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN|inf"):
        model.predict(bad)


@pytest.mark.parametrize(
    ("cls", "params", "sentence"),
    [
        (KernelKMeans, {"relaxed": "yes"}, "relaxed must be True or False"),
        (KernelKMeans, {"normalise": "cosin"}, "normalise must be one of.*Did you mean 'cosine'"),
        (KernelKMeans, {"rank": 0}, "rank must be an integer of at least 1"),
        (KernelKMeans, {"n_init": 0}, "n_init must be"),
        (KernelKMeans, {"max_features": 0}, "max_features must be"),
        (KernelKMeans, {"polish": 3}, "polish goes with train_rows"),
        (KernelKMeans, {"n_clusters": 7, "kernels": "linear"}, "only 4 directions.*7 clusters"),
        (MultipleKernelKMeans, {"weights": "mr"}, "weights must be one of"),
        (MultipleKernelKMeans, {"penalty": 2.0}, 'penalty goes with weights="mkkm-mr"'),
        (MultipleKernelKMeans, {"weights": "mkkm-mr", "penalty": -1}, "penalty must be a number"),
        (MultipleKernelKMeans, {"tol": -1}, "tol must be"),
        (MultipleKernelKMeans, {"max_iter": 0}, "max_iter must be"),
        (HierarchicalKernelKMeans, {"sparsity": 1.0}, "sparsity must be below 1"),
        (HierarchicalKernelKMeans, {"sparsity": 0, "n_masks": 3}, "every draw is the same"),
        (HierarchicalKernelKMeans, {"connections": "chain", "nodes": [2, 2]}, "a chain has no"),
        (HierarchicalKernelKMeans, {"nodes": [2]}, "the same number of layers"),
        (HierarchicalKernelKMeans, {"widths": [2, 4]}, "widths must not increase"),
        (HierarchicalKernelKMeans, {"widths": []}, "at least one layer"),
        (HierarchicalKernelKMeans, {"nodes": [2.5, 1]}, "nodes must be an integer"),
        (HierarchicalKernelKMeans, {"tie_break": -1}, "tie_break must be"),
    ],
)
def test_parameters_that_make_no_sense(cls, params, sentence):
    with pytest.raises(ValueError, match=sentence):
        cls(**params).fit(mixture()[0])
