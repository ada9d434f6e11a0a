"""`dmkc fit --resume` and the state of runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

import dmkc
from dmkc.cli import runs
from dmkc.cli.interrupts import Terminated, tidy_end
from dmkc.scan.engine import ThreadEngine


def labels_of(run):
    return zarr.open_array(store=run / "labels.zarr", mode="r")[:]


@pytest.fixture
def big(tmp_path):
    rng = np.random.default_rng(0)
    side = rng.random(9_000) < 0.4
    np.save(tmp_path / "big.npy", rng.normal(size=(9_000, 4)) + np.where(side, 1.5, -1)[:, None])
    return "big.npy"


FAST = ("--method", "mkc", "--rank", "20", "--tol", "1e-2", "--seed", "0", "--init", "k-means")
MORE = ("--sample-rows", "300", "--dtype", "float32")


@pytest.fixture
def dies(monkeypatch):
    """Ends a command at its n-th scan as Ctrl-C would."""
    scan, state = ThreadEngine.scan, {"left": 10**9}

    def deadly(self, *args):
        state["left"] -= 1
        if state["left"] < 0:
            raise KeyboardInterrupt
        return scan(self, *args)

    monkeypatch.setattr(ThreadEngine, "scan", deadly)
    return state


def test_a_run_is_taken_up_again(call, fit, big, tmp_path, dies):
    fit(big, *MORE, "--out", "whole")
    dies["left"] = 4
    fit(big, *MORE, "--out", "run", code=130)
    assert json.loads(call("status", "run", "--json").out)["state"] == "ended early"
    assert "unfinished" in call("info", "run").out
    dies["left"] = 10**9
    said = call("fit", "--resume", "run")
    assert "going on with the run" in said.err
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), labels_of(tmp_path / "whole"))
    a, b = (dmkc.load(tmp_path / name / "model.zarr") for name in ("run", "whole"))
    np.testing.assert_array_equal(a.model_.weights, b.model_.weights)
    assert not (tmp_path / "run" / "journal.dmkc").exists()
    assert json.loads(call("status", "run", "--json").out)["state"] == "finished"
    before = labels_of(tmp_path / "run")
    assert "is finished" in call("fit", "--resume", "run").err
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), before)


def test_a_seed_that_was_drawn_is_kept(call, big, tmp_path, dies):
    dies["left"] = 4
    words = ("--method", "mkc", "--rank", "20", *MORE, "--no-report", "--quiet")
    call("fit", big, *words, "--out", "run", code=130)
    dies["left"] = 10**9
    call("fit", "--resume", "run", "--quiet")
    seed = json.loads((tmp_path / "run" / "run.json").read_text())["parameters"]["random_state"]
    call("fit", big, *words, "--seed", seed, "--out", "again")
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), labels_of(tmp_path / "again"))


def test_from_another_folder(call, fit, big, tmp_path, dies, monkeypatch):
    dies["left"] = 4
    fit(big, *MORE, "--out", "run", code=130)
    dies["left"] = 10**9
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    call("fit", "--resume", "../run", "--quiet")
    assert (tmp_path / "run" / "metrics.json").exists()


def test_nothing_to_resume(call, fit, x_file, tmp_path):
    assert "There is no run" in call("fit", "--resume", "run", code=2).err
    (tmp_path / "run").mkdir()
    assert "There is no run" in call("fit", "--resume", "run", code=2).err
    said = call("fit", x_file, "--resume", "run", "--no-report")
    assert "no run at run yet" in said.err and (tmp_path / "run" / "labels.zarr").exists()


@pytest.fixture
def x_file(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    return "x.npy"


@pytest.mark.parametrize("left", [{}, {"log.txt": "# dmkc run\n"}, {".log.txt.part": "# dm"}])
def test_a_run_that_was_killed_at_once_is_begun_anew(call, x_file, tmp_path, left):
    (tmp_path / "run").mkdir()
    for name, text in left.items():
        (tmp_path / "run" / name).write_text(text)
    assert "There is no run" in call("fit", "--resume", "run", code=2).err
    call("fit", x_file, "--resume", "run", "--no-report", "--quiet")
    assert runs.is_finished(tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*.part"))


def test_another_runs_folder_is_refused(call, fit, big, x_file, tmp_path, dies):
    dies["left"] = 4
    fit(big, *MORE, "--out", "run", code=130)
    dies["left"] = 10**9
    before = (tmp_path / "run" / "journal.dmkc").read_bytes()
    assert "--resume" in fit(big, "--out", "run", code=2).err
    assert "give none of them" in call("fit", "--resume", "run", "--C", "2", code=2).err
    assert "not of x.npy" in call("fit", "x.npy", "--resume", "run", code=2).err
    np.save(tmp_path / big, np.load(tmp_path / big)[::-1])
    assert "other rows" in call("fit", "--resume", "run", code=2).err
    assert (tmp_path / "run" / "journal.dmkc").read_bytes() == before
    (tmp_path / "run" / "run.json").write_text("{")
    assert "damaged" in call("fit", "--resume", "run", code=2).err
    (tmp_path / "run" / "run.json").write_text('{"format": "x"}')
    assert "version" in call("fit", "--resume", "run", code=2).err


def test_a_forced_run_that_fails_leaves_the_old_one_finished(fit, call, x_file, tmp_path):
    fit(x_file, "--out", "run")
    before = labels_of(tmp_path / "run")
    fit(x_file, "--out", "run", "--force", "--C", "-1", code=2)
    assert runs.is_finished(tmp_path / "run")
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), before)


def test_killed_processes_are_resumed(fit, call, big, tmp_path):
    """SIGKILL and SIGTERM of a real process; what is left is whole and ends the same."""
    fit(big, *MORE, "--out", "whole")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["fit", big, *FAST]
    command = [sys.executable, "-m", "dmkc", *words, *MORE, "--no-report", "--out", "run"]
    for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143)):
        running = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )
        journal = tmp_path / "run" / "journal.dmkc"
        while running.poll() is None:
            begun = runs.read_status(tmp_path / "run").get("process") == running.pid
            if begun and journal.exists() and journal.stat().st_size > 100:
                break
            time.sleep(0.01)
        if running.poll() is None:
            running.send_signal(signal.SIGSTOP)  # so that it does not end while it is looked at
            if json.loads(call("status", "run", "--json").out)["state"] == "running":
                assert "Another process" in call("fit", "--resume", "run", code=2).err
            running.send_signal(number)
            running.send_signal(signal.SIGCONT)
        _, err = running.communicate(timeout=60)
        assert running.returncode in (code, 0) and "Traceback" not in err
        command = [sys.executable, "-m", "dmkc", "fit", "--resume", "run"]
    call("fit", "--resume", "run", "--quiet")
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), labels_of(tmp_path / "whole"))


@pytest.fixture
def heard():
    """Ctrl-C is heard, also where a shell has put the tests behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("words", "number", "code"),
    [
        ((*FAST, *MORE), signal.SIGINT, 130),
        ((*FAST, *MORE), signal.SIGTERM, 143),
        (("--method", "kmeans", "--tol", "0", "--seed", "0"), signal.SIGINT, 130),
    ],
)
def test_an_interruption_that_is_swallowed_is_not_lost(
    call, big, tmp_path, monkeypatch, heard, words, number, code
):
    """As finalizers and callbacks of compiled code swallow what is raised in them."""
    scan, scans, before = ThreadEngine.scan, [], signal.getsignal(number)

    def swallowing(self, *args):
        scans.append(args)
        if len(scans) == 4:
            with contextlib.suppress(KeyboardInterrupt, Terminated):
                signal.raise_signal(number)
        return scan(self, *args)

    monkeypatch.setattr(ThreadEngine, "scan", swallowing)
    call("fit", big, *words, "--no-report", "--quiet", "--out", "run", code=code)
    assert signal.getsignal(number) == before
    assert 4 <= len(scans) < 10
    call("fit", "--resume", "run", "--quiet")  # nothing is left of the interruption
    call("fit", big, *words, "--no-report", "--quiet", "--out", "whole")
    np.testing.assert_array_equal(labels_of(tmp_path / "run"), labels_of(tmp_path / "whole"))


def test_a_second_interruption_ends_the_process_at_once(heard):
    code = """
import contextlib, signal
from dmkc.cli.interrupts import tidy_end
with tidy_end():
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    print("still here", flush=True)
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        print("not here", flush=True)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (said.returncode, said.stdout) == (-signal.SIGINT, "still here\n")


def test_interruptions_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with tidy_end():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_logs_and_status(call, fit, x_file, tmp_path):
    fit(x_file, "--out", "run")
    assert "scan {" in call("logs", "run").out
    assert call("logs", "run", "--follow").out == call("logs", "run").out
    shown = call("status", "run").out
    assert "finished" in shown and "objective" in shown and "cluster sizes  106, 94" in shown
    found = json.loads(call("status", "run", "--json").out)
    assert found["labels"] == "run/labels.zarr" and found["seconds"] > 0
    assert found["started"] <= found["ended"] and "report" not in found
    for command in ("status", "logs", "cancel"):
        assert "There is no run" in call(command, "nowhere", code=2).err
    assert "not in the queue" in call("cancel", "run", code=2).err


def test_submit_needs_a_queue(call, x_file, tmp_path):
    words = ("submit", x_file, "--out", "run")
    assert "--cluster" in call(*words, code=2).err
    (tmp_path / "local.yaml").write_text("kind: local\n")
    assert "has no queue" in call(*words, "--cluster", "local.yaml", code=2).err
    assert not (tmp_path / "run").exists()
    assert "required" in call("submit", code=2).err


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_that_is_worked_on_is_not_replaced(fit, big, x_file, tmp_path, dies, begun):
    """The lock holds with --force too, and nothing in the folder is touched."""
    dies["left"] = 4 if begun else 10**9
    fit(big, *MORE, "--out", "run", code=130 if begun else 0)
    dies["left"] = 10**9
    with dmkc.checkpoint(tmp_path / "run"):
        before = contents(tmp_path / "run")
        assert "Another process" in fit(x_file, "--out", "run", "--force", code=2).err
        assert contents(tmp_path / "run") == before
    fit(x_file, "--out", "run", "--force")
    assert len(labels_of(tmp_path / "run")) == 200 and runs.is_finished(tmp_path / "run")


def test_two_processes_never_share_a_run(fit, big, x_file, tmp_path):
    """A real process that stands still in the middle of its run."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dmkc", "fit", big, *FAST, *MORE, "--no-report"]
    first = subprocess.Popen(
        [*command, "--quiet", "--out", "run"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    journal = tmp_path / "run" / "journal.dmkc"
    while first.poll() is None and not (journal.exists() and journal.stat().st_size > 100):
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)
    try:
        if journal.exists():  # the process has not been quicker than this one
            assert "Another process" in fit(x_file, "--out", "run", "--force", code=2).err
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 0
    assert len(labels_of(tmp_path / "run")) == 9_000
    assert runs.read_order(tmp_path / "run").words[1] == big


def test_a_run_that_came_meanwhile_is_left_alone(fit, x_file, tmp_path, monkeypatch):
    target = runs.run_target

    def slow(text, force):
        found = target(text, force)
        monkeypatch.setattr(runs, "run_target", target)
        fit(x_file, "--out", "run", "--seed", "7")
        return found

    monkeypatch.setattr(runs, "run_target", slow)
    assert "another process began" in fit(x_file, "--out", "run", code=2).err
    assert runs.is_finished(tmp_path / "run")
    assert runs.read_order(tmp_path / "run").parameters["random_state"] == 7


def test_what_an_attempt_left_half_written_is_removed_and_said(call, fit, big, tmp_path, dies):
    dies["left"] = 4
    fit(big, *MORE, "--out", "run", code=130)
    dies["left"] = 10**9
    (tmp_path / "run" / ".labels.zarr.abcdefgh.part" / "new").mkdir(parents=True)
    said = call("fit", "--resume", "run").err
    assert "removed what was left half written: .labels.zarr.abcdefgh.part" in said
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.parametrize("name", ["run.json", "status.json", "log.txt"])
def test_a_run_that_was_killed_while_its_first_files_were_written_is_begun_anew(
    fit, x_file, tmp_path, name
):
    (tmp_path / "run" / f".{name}.abcdefgh.part").mkdir(parents=True)
    (tmp_path / "run" / runs.JOURNAL).touch()
    fit(x_file, "--resume", "run")
    assert runs.is_finished(tmp_path / "run") and not list((tmp_path / "run").glob(".*"))


SMALL_DISK = """
import resource, sys
from dmkc.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("room", [3_000, 30_000])
def test_a_full_disk_is_one_sentence(call, big, tmp_path, room):
    """Files that cannot grow beyond a size: the log and all results, or the report alone."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SMALL_DISK, str(room), "fit", "--quiet"]
    for words in ([big, *FAST, *MORE, "--out", "run"], ["--resume", "run"]):
        ended = subprocess.run(
            [*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 1, ended.stderr
        (line,) = ended.stderr.splitlines()
        assert "no space left" in line and "make room" in line
    run = tmp_path / "run"
    assert not (run / "report.html").exists() and not list(run.glob(".*"))
    call("fit", "--resume", "run", "--quiet")
    assert (run / "report.html").read_text().rstrip().endswith("</html>")
