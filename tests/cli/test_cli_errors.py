"""Which exceptions are mistakes of a user: those that dmkc's own checks raise, and no others."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import dmkc
from dmkc.cli.common import is_users
from dmkc.cli.speaking import spoken
from dmkc.clusterers.margin.mkc import MultipleKernelClustering
from dmkc.errors import UserError, UserTypeError


@pytest.fixture
def x(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    return "x.npy"


@pytest.mark.parametrize("broken", [lambda: int("x"), lambda: np.zeros((2, 3)) @ np.zeros(2)])
def test_a_value_error_from_inside_is_a_failure(fit, x, monkeypatch, broken):
    monkeypatch.setattr(MultipleKernelClustering, "_learn", lambda *_: broken())
    said = fit(x, "--out", "run", code=1)
    assert "failed: ValueError" in said.err


def test_a_bug_that_raises_in_dmkc_itself_is_a_failure(fit, x, monkeypatch):
    from dmkc.scan import grid

    monkeypatch.setattr(
        MultipleKernelClustering, "_learn", lambda *_: grid.fold_leaves([], lambda a, b: a)
    )
    assert "failed" in fit(x, "--out", "run", code=1).err


def test_checks_raise_what_python_and_scikit_learn_expect(data):
    for problem in (UserError("a"), UserTypeError("b"), dmkc.modelfile.ModelFileError("c")):
        assert isinstance(problem, ValueError) and is_users(problem)
        again = pickle.loads(pickle.dumps(problem))  # as it comes from a worker
        assert type(again) is type(problem) and str(again) == str(problem)
    assert isinstance(UserTypeError("b"), TypeError)
    assert not is_users(ValueError("from below")) and not is_users(TypeError("from below"))
    with pytest.raises(UserError, match="NaN"):
        MultipleKernelClustering().fit(np.full((20, 2), np.nan))
    with pytest.raises(UserTypeError, match="not supported"):
        MultipleKernelClustering().fit(object())


STRAY = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor, thread
from dmkc.cli import interrupts
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
thread._threads_queues.clear()  # as if a signal had come before the thread was noted
try:
    with interrupts.tidy_end():
        interrupts._interrupt()
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interruption_while_threads_are_started_does_not_keep_the_process():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", STRAY], env=environment, timeout=60)
    assert done.returncode == 130


def test_sentences_of_the_library_name_options():
    assert spoken("`n_clusters` must be 2.") == "--clusters must be 2."
    assert (
        spoken('leave `init="links"` out, or `hard=False`.')
        == "Leave --init links out, or --hard false."
    )
    assert spoken("Input `X` contains NaN.") == "The input contains NaN."
    assert (
        spoken("`sample_weight` has 3, but `X` has 5.")
        == "--row-weights has 3, but the input has 5."
    )
    assert spoken("a column None of `elsewhere`.") == "A column none of elsewhere."
    untouched = "There is no column 'None' (2, 8) n_clusters."
    assert spoken(untouched) == untouched  # nothing is marked


def test_python_sees_no_marks():
    error = UserError('`init="auto"` stands alone: a `b` c ``')
    assert str(error) == 'init="auto" stands alone: a b c ``'
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(UserError, match=r"^n_clusters must be"):
        MultipleKernelClustering(0).fit(np.eye(5))


def test_warnings_name_options_too(call, x):
    words = ("fit", x, "--method", "mkc", "--max-iter", 1, "--tol", 1e-9, "--seed", 0)
    said = call(*words, "--no-report", "--out", "run")
    assert "(--max-iter was reached); increase --max-iter or --tol." in said.err
    with pytest.warns(UserWarning, match=r"\(max_iter was reached\); increase max_iter or tol"):
        MultipleKernelClustering(max_iter=1, tol=1e-9, random_state=0).fit(np.load(x))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("predcit",), "'predcit' is no command. Did you mean predict?"),
        (("fit", "x.csv", "--out", "r", "--methd", "mkc"), "Did you mean --method?"),
        (("fit", "x.csv", "--out", "r", "--method", "kmaens"), "Did you mean 'kmeans'?"),
        (("fit", "x.csv", "--out", "r", "--out-format", "parqet"), "Did you mean parquet?"),
        (("fit", "x.csv", "--out", "r", "--exclude", "Age"), "Did you mean 'age'?"),
        (("datasets", "make", "rigns"), "Did you mean rings?"),
        (("fit", "x.csv", "--out", "r"), "--exclude visits."),
        (("fit", "x.csv", "--out", "r", "--drop-missing", "--clusters", 50), "--clusters 50"),
    ],
)
def test_what_may_have_been_meant(call, tmp_path, words, sentence):
    (tmp_path / "x.csv").write_text("age,visits\n1,2\n3,\n5,6\n2,2\n7,8\n")
    assert sentence in call(*words, code=2).err
