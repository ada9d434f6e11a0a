"""Waits that would be in vain are ended with a sentence."""

from types import SimpleNamespace

import pytest

from dmkc.scan.waiting import PAUSED_LOOKS, Paused, Stuck, Watch


def client(status, tasks):
    workers = {"a": {"status": status}, "b": {"status": "paused"}}
    return SimpleNamespace(
        processing=lambda: {"a": tasks, "b": []},
        scheduler_info=lambda n_workers: {"workers": workers},
    )


def futures(*done):
    return [SimpleNamespace(done=lambda each=each: each) for each in done]


def look(watch, times):
    for _ in range(times):
        watch.look()


def test_workers_that_stay_paused_are_said():
    watch = Watch(client("paused", ["task"]), futures(True, False), done=1)
    look(watch, PAUSED_LOOKS)
    with pytest.raises(Paused, match="memory is nearly full"):
        watch.look()


def test_a_worker_that_works_or_a_result_that_comes_is_waited_for():
    look(Watch(client("running", ["task"]), futures(False)), 3 * PAUSED_LOOKS)
    watch = Watch(client("paused", ["task"]), futures(False, False))
    look(watch, PAUSED_LOOKS)
    watch.futures = futures(True, False)
    look(watch, PAUSED_LOOKS)
    look(Watch(client("paused", []), futures(True)), 3 * PAUSED_LOOKS)


def test_workers_that_have_nothing_to_do_are_stuck():
    watch = Watch(client("running", []), futures(False))
    watch.look()
    with pytest.raises(Stuck):
        watch.look()
