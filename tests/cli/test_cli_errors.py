"""Which exceptions are mistakes of a user: those that dmkc's own checks raise, and no others."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import dmkc
from dmkc.cli.common import is_users
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
