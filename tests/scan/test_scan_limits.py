"""One BLAS thread inside tasks, whichever thread they run in."""

import subprocess
import sys
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dmkc.scan.engine import one_blas_thread


def blas_threads():
    return {x["filepath"]: x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


def in_a_thread(job):
    found = []
    thread = threading.Thread(target=lambda: found.append(job()))
    thread.start()
    thread.join()
    return found[0]


def limited():
    with one_blas_thread(), one_blas_thread():
        return blas_threads()


@pytest.fixture(autouse=True)
def several_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_every_thread_is_limited_however_many_came_before():
    before = blas_threads()
    for turn in (limited, lambda: in_a_thread(limited)) * 3:
        assert set(turn().values()) == {1}
        assert blas_threads() == before


def test_the_last_one_out_restores():
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    with one_blas_thread():
        thread.start()
        assert inside.wait(10)
    assert set(blas_threads().values()) == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_limits_of_others_inside_do_not_lift_it():
    before = blas_threads()
    with one_blas_thread():
        with threadpool_limits(1, user_api="blas"):
            pass
        in_a_thread(lambda: threadpool_limits(2, user_api="blas").restore_original_limits())
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_an_error_inside_restores():
    before = blas_threads()
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == before


def test_libraries_that_are_loaded_later_are_limited_too():
    """Otherwise sums of scikit-learn's k-means would depend on which of its threads is first."""
    script = """
from threadpoolctl import ThreadpoolController
from dmkc.scan.engine import one_blas_thread

with one_blas_thread():
    pass
few = len(ThreadpoolController().lib_controllers)
import sklearn.cluster
with one_blas_thread():
    libraries = ThreadpoolController().info()
    print(len(libraries) > few, {library["num_threads"] for library in libraries})
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout.split("\n")[0] == "True {1}", said.stderr


def test_a_limit_that_somebody_raised_is_set_again():
    with one_blas_thread(), threadpool_limits(2, user_api="blas"):
        assert set(in_a_thread(limited).values()) == {1}
