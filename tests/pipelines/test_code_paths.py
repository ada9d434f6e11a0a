"""The measures of code: what is counted, and that compiled functions are seen."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SOURCE = '''"""Two lines of a docstring,
one probe."""
from typing import Any

def f(x: Any, y: list[Any]) -> Any:
    # hasattr(x, "a") in a comment
    return getattr(x, "a", y) if hasattr(x, "b") else "Any"
'''


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    for folder in (PROJECT / "pipelines", PROJECT / "pipelines" / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))


def compiled_functions():
    """File and name of the functions that are compiled where compilation is not switched off."""
    decorated = re.compile(r"^@compiled\w*\ndef (\w+)", re.M)
    package = PROJECT / "dmkc"
    return {
        (path.relative_to(package).as_posix(), name)
        for path in package.rglob("*.py")
        for name in decorated.findall(path.read_text("utf-8"))
    }


def test_sizes_of_folders(tmp_path):
    import code_paths

    for name in ("a.py", "inner/b.py", "inner/deeper/c.py"):
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE)
    one = code_paths.Size(files=1, lines=7, anys=3, probes=2)
    assert code_paths.sizes(tmp_path / "pack") == {"pack/*.py": one, "pack/inner": one + one}


def test_a_run_is_watched_in_all_threads_and_without_imports(tmp_path):
    import code_paths

    found = code_paths._entered("NonparallelPlaneClustering.fit", PROJECT, str(tmp_path))
    files = {file for file, _ in found}
    assert "clusterers/planes/planes.py" in files
    assert all((PROJECT / "dmkc" / file).is_file() for file in files)
    assert compiled_functions() & set(found)
    assert not any(file.startswith(("cli/", "report/")) for file in files)
    assert not any("<lambda>" in name or "<module>" in name for _, name in found)


def test_two_versions_stand_side_by_side():
    import code_paths

    size = code_paths.Size(1, 20, 3, 4)
    entered = {run: [("x.py", "f")] for run in code_paths.RUNS}
    old = code_paths.Version("a", entered, {"d": size})
    text = "\n".join(code_paths.page([old, old]))
    assert "| `dmkc fit x.npy` | 1 → 1 | 1 → 1 |" in text
    assert "| all | 1 → 1 | 20 → 20 | 3 → 3 | 4 → 4 |" in text
    assert "→" not in "\n".join(code_paths.page([old]))
