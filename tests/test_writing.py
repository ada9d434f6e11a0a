"""Files that are whole or not there, whoever is killed and whoever writes at the same time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dmkc import writing
from dmkc.writing import staged, write_text


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_when_it_is_whole(tmp_path):
    path = tmp_path / "report.html"
    write_text(path, "before")
    with pytest.raises(OSError, match="full"), staged(path, replace=True) as fresh:
        fresh.write_text("af")
        raise OSError("the disk is full")
    assert path.read_text() == "before"
    (tmp_path / "link").symlink_to(path)
    write_text(tmp_path / "link", "after")
    assert path.read_text() == "after" and (tmp_path / "link").is_symlink()
    assert left(tmp_path) == ["link", "report.html"]


def test_a_folder_is_replaced_when_it_is_whole(tmp_path):
    path = tmp_path / "labels"
    for text in ("one", "two"):
        with staged(path, replace=True) as fresh:
            fresh.mkdir()
            (fresh / "text").write_text(text)
    with pytest.raises(FileExistsError), staged(path, replace=False) as fresh:
        fresh.mkdir()
    with pytest.raises(ZeroDivisionError), staged(path, replace=True) as fresh:
        fresh.mkdir()
        raise ZeroDivisionError
    assert (path / "text").read_text() == "two" and left(tmp_path) == ["labels"]


KILLED = """
import os, signal, sys
from pathlib import Path
from dmkc import writing
if sys.argv[2] == "between":
    writing.os.rename = lambda a, b, rename=os.rename: (
        rename(a, b) if b.name == "old" else os.kill(os.getpid(), signal.SIGKILL)
        if a.parent.name.endswith(".part") and Path(a.parent, "old").exists() else rename(a, b)
    )
with writing.staged(Path(sys.argv[1]), replace=True) as fresh:
    fresh.mkdir()
    (fresh / "text").write_text("new")
    if sys.argv[2] == "early":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["early", "between"])
def test_what_a_killed_process_left_is_cleared_and_said(tmp_path, when):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "text").write_text("before")
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "labels"), when]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, timeout=60)
    assert ended.returncode == -signal.SIGKILL and len(left(tmp_path)) >= 1
    assert any(name.endswith(".part") for name in left(tmp_path))
    with pytest.warns(RuntimeWarning, match="which a process that was killed had left"):
        write_text(tmp_path / "other", "x")
    assert left(tmp_path) == ["labels", "other"]
    assert (tmp_path / "labels" / "text").read_text() == "before"


def test_what_living_processes_and_others_have_there_is_left_alone(tmp_path):
    (tmp_path / ".mine.part").mkdir()
    (tmp_path / ".thesis.abcdefgh.part").mkdir()
    (tmp_path / ".thesis.abcdefgh.part" / "chapter").write_text("years of work")
    with staged(tmp_path / "a", replace=True) as fresh:
        fresh.write_text("a")
        write_text(tmp_path / "b", "b")
    assert left(tmp_path) == [".mine.part", ".thesis.abcdefgh.part", "a", "b"]
    assert Path(tmp_path / "a").read_text() == "a"


def _replace(path, times):
    for number in range(times):
        with staged(path, replace=True) as fresh:
            fresh.mkdir()
            (fresh / "text").write_text(str(number))


def test_many_may_replace_a_folder_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_replace, args=(tmp_path / "x", 50)) for _ in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
    assert [other.exitcode for other in others] == [0, 0, 0]
    assert left(tmp_path) == ["x"] and (tmp_path / "x" / "text").read_text() == "49"


def test_a_lock_is_held_by_one(tmp_path):
    one, two = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert writing.lock(one) and writing.lock(two) is False
    os.close(one)
    assert writing.lock(two) and writing.is_at(two, tmp_path / "lock")
    os.unlink(tmp_path / "lock")
    assert not writing.is_at(two, tmp_path / "lock")
    os.close(two)
