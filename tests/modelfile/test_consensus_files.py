"""Files of joined clusterings: the same bits, shared plans written once, a sentence if broken."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from test_modelfile import edit, put

import dmkc
from dmkc import ConsensusClustering, KernelKMeans, KMeans, MultipleKernelClustering
from dmkc import SpectralClustering as Spectral
from dmkc.modelfile import ModelFileError, read_description

OF_ALL_KINDS = [
    KMeans(3, random_state=0),
    MultipleKernelClustering(2, rank=20, random_state=0),
    MultipleKernelClustering(3, rank=20, random_state=0),
    Spectral(4, random_state=0),
    KernelKMeans(3, rank=30, random_state=0),
]
MODELS = {
    "default": ConsensusClustering(3, random_state=0, anchors=40, n_members=6),
    "noise": ConsensusClustering(3, random_state=0, n_members=6, noise=0.2),
    "one cluster": ConsensusClustering(1, random_state=0, n_members=6),
    "all kinds": ConsensusClustering(3, random_state=0, members=OF_ALL_KINDS),
}


def blobs(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3.0 * np.random.default_rng(9).normal(size=(3, d))
    return centres[rng.integers(0, 3, n)] + rng.normal(size=(n, d))


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(blobs())


@pytest.fixture
def stored(tmp_path):
    MODELS["default"].fit(blobs()).save(tmp_path / "m")
    return tmp_path / "m"


def test_a_loaded_model_answers_with_the_same_bits(model, tmp_path):
    model.save(tmp_path / "m")
    again = dmkc.load(tmp_path / "m")
    again.save(tmp_path / "again")
    again = dmkc.load(tmp_path / "again")
    for rows in (blobs(), blobs(300, seed=1), sp.csr_array(blobs(50, seed=2))):
        for method in ("predict", "predict_proba", "transform"):
            ours, theirs = getattr(model, method)(rows), getattr(again, method)(rows)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(theirs, ours, err_msg=method)
    for name in ("stability_", "eigenvalues_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert "membership_" not in vars(again) and "labels_" not in vars(again)


def test_a_plan_of_several_members_is_written_once_and_shared_again(stored):
    described = read_description(stored)["model"]
    assert len(described["plans"]) == 1 and len(described["members"]) == 6
    assert [member["plan"] for member in described["members"]] == [0] * 6
    names = read_description(stored)["shapes"]
    assert sum("anchors" in name for name in names) == len(
        {kernel["state"]["anchors"] for kernel in described["plans"][0]["kernels"]}
    )
    members = dmkc.load(stored).model_.embedding.plan.models
    assert len({id(member.embedding.plan) for member in members}) == 1


def test_members_that_were_given_are_left_out_and_noted(tmp_path):
    MODELS["all kinds"].fit(blobs()).save(tmp_path / "m")
    again = dmkc.load(tmp_path / "m")
    assert again.members is None
    assert {"members", "members_"} <= set(read_description(tmp_path / "m")["left_out"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(kind="assembly"), "unknown kind"),
        (lambda m: m.pop("members"), "list the members"),
        (lambda m: m.update(members=[]), "list the members"),
        (lambda m: m.update(members=[0]), "list the members"),
        (lambda m: m.update(members={}), "list the members"),
        (lambda m: m.pop("plans"), "list the plans"),
        (lambda m: m.update(plans=[None]), "list the plans"),
        (lambda m: m["plans"][0].update(dtype="object"), "precision"),
        (lambda m: m["plans"][0].update(kernels=[]), "list the kernels"),
        (lambda m: m["members"][1].update(kind="consensus"), "unknown kind"),
        (lambda m: m["members"][1].update(kind=["partition"]), "unknown kind"),
        (lambda m: m["members"][1].update(kind="kernel-scores"), "directly"),
        (lambda m: m["members"][1].update(kind="centroids"), "precision"),
        (lambda m: m["members"][1].update(plan=1), "plan 1"),
        (lambda m: m["members"][1].update(plan=True), "plan True"),
        (lambda m: m["members"][1].pop("plan"), "plan None"),
        (lambda m: m["members"][1].update(unit_rows=1), "true or false"),
        (lambda m: m["members"].append(m["members"][0]), "member_6_tilts.*missing"),
        (lambda m: m.update(least_agreement=2.0), "between 0 and 1"),
        (lambda m: m.update(least_agreement="0"), "between 0 and 1"),
        (lambda m: m.pop("least_agreement"), "between 0 and 1"),
    ],
)
def test_descriptions_that_are_wrong(stored, change, sentence):
    edit(stored, lambda described: change(described["model"]))
    with pytest.raises(ModelFileError, match=sentence) as caught:
        dmkc.load(stored)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("centres", np.ones(3), "no clusters"),
        ("centres", np.ones((0, 5)), "no clusters"),
        ("centres", np.ones((3, 2)), "ask for"),
        ("shares", np.ones((2, 3)), "ask for"),
        ("values", np.ones((2, 5)), "ask for"),
        ("offset", np.full(5, np.nan), "not finite"),
        ("member_2_centres", np.ones((9, 3)), "ask for"),
        ("member_2_matrix", np.ones((3, 3)), "ask for"),
        ("plan_0_shift", np.ones(3), "for 4 columns"),
        ("plan_0_anchors_0", np.ones((40, 3)), "no anchors of 4 columns"),
    ],
)
def test_arrays_that_do_not_fit(stored, name, values, sentence):
    put(stored, name, values)
    with pytest.raises(ModelFileError, match=sentence):
        dmkc.load(stored)
