"""Compiled loops on disk: where they are kept, and what is not believed."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import dmkc.loopcache
from dmkc.kernels.loops import standardise

SOURCE = """
from dmkc.compiled import compiled, inlined

@inlined
def twice(x):
    return 2 * x

@compiled
def total(x):
    found = 0
    for i in range(len(x)):
        found += twice(x[i])
    return found
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "home"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "package").mkdir()
    path = tmp_path / "package" / "loops.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop("loops", None)


def imported(file):
    """The loop, as a new process would see it."""
    spec = importlib.util.spec_from_file_location("loops", file)
    sys.modules["loops"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.total


def hits(loop, values=(1.0, 2.0)):
    """How many forms came from the disk; the sum must be right."""
    assert loop(np.array(values)) == 2 * sum(values)
    return sum(loop.ready().stats.cache_hits.values())


def kept(folder):
    return sorted(folder.rglob("*.loop"))


def refused(monkeypatch, *folders):
    """Folders that cannot be written, whoever runs the tests."""
    write = dmkc.loopcache._write

    def guarded(path, content):
        if any(folder in path.parents for folder in folders):
            raise PermissionError(f"{path} cannot be written")
        write(path, content)

    monkeypatch.setattr(dmkc.loopcache, "_write", guarded)


def test_a_form_is_compiled_once(file, home):
    assert hits(imported(file)) == 0
    assert hits(imported(file)) == 1
    assert hits(imported(file), (1, 2)) == 0  # integers are another form
    assert [path.parent for path in kept(file.parent)] == 2 * [file.parent / "__pycache__"]
    assert not home.exists()


def test_another_source_is_compiled_again_in_the_place_of_the_old_one(file, home):
    hits(imported(file))
    file.write_text(SOURCE.replace("2 * x", "FACTOR * x") + "FACTOR = 3")
    assert imported(file)(np.array([1.0])) == 3.0
    file.write_text(SOURCE.replace("2 * x", "FACTOR * x") + "FACTOR = 4.0")
    assert imported(file)(np.array([1.0])) == 4.0
    assert len(kept(file.parent)) == 1


def test_a_folder_that_cannot_be_written_is_read(file, home, monkeypatch):
    hits(imported(file))
    refused(monkeypatch, file.parent)
    assert hits(imported(file)) == 1
    assert hits(imported(file), (1, 2)) == 0
    assert hits(imported(file), (1, 2)) == 1
    assert len(kept(home)) == 1


def test_without_a_home_loops_are_private_temporary_files(file, home, tmp_path, monkeypatch):
    refused(monkeypatch, file.parent, home)
    assert hits(imported(file)) == 0
    assert hits(imported(file)) == 1
    (path,) = kept(tmp_path)
    assert path.parents[1].stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_can_write_is_not_used(file, home, tmp_path, monkeypatch):
    refused(monkeypatch, file.parent, home)
    open_to_all = tmp_path / f"dmkc-loops-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert hits(imported(file)) == 0
    assert kept(tmp_path) == []


def test_where_nothing_can_be_written_loops_are_compiled_in_every_process(
    file, home, tmp_path, monkeypatch
):
    refused(monkeypatch, tmp_path)
    assert hits(imported(file)) == 0
    assert hits(imported(file)) == 0


def test_the_folder_that_numba_is_told_comes_first(file, home, tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "told"))
    hits(imported(file))
    assert len(kept(tmp_path / "told")) == len(kept(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"nonsense", pickle.dumps(("another", "form"))])
def test_files_that_are_not_what_they_should_be_are_made_again(file, home, damage):
    hits(imported(file))
    (path,) = kept(file.parent)
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert hits(imported(file)) == 0
    assert len(path.read_bytes()) == len(whole)


def test_a_form_is_not_taken_for_another(file, home):
    """Even where one file was put in the place of the other."""
    hits(imported(file), (1, 2))
    (of_integers,) = kept(file.parent)
    hits(imported(file))
    (of_floats,) = set(kept(file.parent)) - {of_integers}
    of_floats.write_bytes(of_integers.read_bytes())
    assert hits(imported(file), (0.5, 0.25)) == 0


def test_many_processes_at_once(file, home):
    code = (
        f"import sys; sys.path.insert(0, {str(file.parent)!r}); import loops, numpy as np\n"
        "print(loops.total(np.arange(5, dtype=sys.argv[1])))"
    )
    kinds = ["float32", "float64", "int64", "int32"]
    running = [
        subprocess.Popen([sys.executable, "-c", code, kind], stdout=subprocess.PIPE, text=True)
        for kind in kinds
    ]
    assert [float(process.communicate()[0]) for process in running] == 4 * [20.0]
    assert len(kept(file.parent)) == 4
    assert hits(imported(file)) == 1


def test_a_loop_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(standardise)) is standardise
