"""Benchmarks of views and of two versions: what they make, compare and write."""

from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    for folder in (PROJECT / "pipelines", PROJECT / "pipelines" / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))


def test_outcome_of_a_fit_in_two_versions():
    from compare_versions import outcome

    fit = {"labels": [0, 0, 1], "objective": 2.0}
    assert outcome(fit, fit) == {"what": "equal", "rows": 0, "objective": 0.0}
    other = {"labels": [0, 1, 1], "objective": -1.0}
    assert outcome(fit, other) == {"what": "different", "rows": 1, "objective": 1.5}
    refused = {"refused": "no such parameter"}
    assert outcome(refused, refused)["what"] == "refused"
    assert outcome(fit, refused)["what"] == outcome(refused, fit)["what"] == "refused by one"


def test_every_method_is_compared_in_every_form():
    from compare_versions import FORMED, cases
    from compare_versions_jobs import ESTIMATORS, FORMS

    made = list(cases(["blobs", FORMED]))
    assert len(set(made)) == len(made) == len(ESTIMATORS) * 2 * (1 + len(FORMS))


def test_a_version_answers_and_a_wrong_folder_is_refused(tmp_path):
    from compare_versions import Version

    version = Version(PROJECT)
    found = version.ask("labels", ("kmeans", "blobs", 2, "plain"))
    assert sorted(set(found["labels"])) == [0, 1] and found["objective"] > 0
    part = version.ask("labels", ("kmeans", "blobs", 2, "part of the rows"))
    assert "train_rows" in part["refused"]
    version.end()
    with pytest.raises(SystemExit, match="name a checkout"):
        Version(tmp_path)


def test_useless_views_are_repeatable_and_differ():
    from views import useless

    first, own = useless(0.5, 50, 0, 0)
    np.testing.assert_array_equal(first, useless(0.5, 50, 0, 0)[0])
    assert first.shape == (50, 100) and len(own) == 50
    assert not np.array_equal(own, useless(0.5, 50, 1, 0)[1])
    assert np.abs(useless(0.0, 5000, 0, 0)[0].mean(axis=0)).max() < 0.1


def test_page_of_views_counts_weights_of_useless_views_only():
    from views_page import CHECK, EVEN, Page

    def run(accuracy, **weights):
        found = {"accuracy": accuracy, "ARI": 0.5, "seconds": 1.0}
        return {EVEN: found, "mkc": found | {"weights": weights}}

    data = {"digits/0": run(90.0, a=0.7, b=0.3), "digits/1": run(92.0, a=0.5, b=0.5)}
    data["own clusters/1/0"] = run(80.0, a=0.5, b=0.25, useless=0.25)
    data["own clusters/1/0"][CHECK] = {"ARI": 0.99}
    text = "\n".join(Page(data, ["own clusters"], [], [1], ["mkc"], ["a", "b"]).parts())
    assert "| mkc | 91.0 (90.0 to 92.0) | 0.500 | 1.0 | 60 | 40 |" in text
    assert "| mkc | 91.0 (90.0 to 92.0) | 80.0 (80.0 to 80.0) |" in text
    assert "| mkc | 25.0 (25.0 to 25.0) |" in text
