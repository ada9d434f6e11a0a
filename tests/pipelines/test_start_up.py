"""The benchmark of starts: what is measured, and what is shown."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def start_up(monkeypatch):
    for folder in (PROJECT / "pipelines", PROJECT / "pipelines" / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))
    import start_up

    return start_up


def test_a_start_is_timed_and_its_modules_are_counted(start_up):
    bare, more = (start_up.start(code, PROJECT) for code in ("pass", "import argparse, json"))
    assert bare.seconds >= 0 and 10 < bare.modules < more.modules
    with pytest.raises(SystemExit, match="no_such_module"):
        start_up.start("import no_such_module", PROJECT)


def test_versions_stand_side_by_side(start_up, monkeypatch):
    monkeypatch.setattr(start_up, "STARTS", {start_up.PEERS: "pass"})
    found = start_up.measured({"old": PROJECT, "new": PROJECT}, 1)
    text = start_up.page(found).splitlines()
    assert text[0] == "| start | user s, old | user s, new | modules, old | modules, new |"
    assert text[2].startswith(f"| `{start_up.PEERS}` | 0.") and len(text) == 3
