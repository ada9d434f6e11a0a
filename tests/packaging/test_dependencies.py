"""pyproject.toml declares what the package imports and what its messages say to install."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
OTHER_NAMES = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Distributions that are imported by another name."""
BEHIND_OTHERS = {"bokeh": "distributed draws its dashboard with it"}
"""Dependencies that are never imported by this package itself."""
RUNTIME_EXTRAS = ("hpc", "ssh", "kubernetes")
LAZY_EXTRAS = (*RUNTIME_EXTRAS, "notebook")
"""Extras whose packages may be imported inside functions."""


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def declared(extra=None):
    """Distributions of the project itself, or of one of its extras."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    listed = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {plain(re.match(r"[\w.-]+", requirement)[0]) for requirement in listed}


@cache
def imported():
    """Distributions imported when a module is, and those that only a function imports."""
    always, lazily = set(), set()
    for path in (PROJECT / "dmkc").rglob("*.py"):
        tree = ast.parse(path.read_text())
        functions = [
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = {id(n) for function in functions for n in ast.walk(function)}
        for node in ast.walk(tree):
            for module in modules(node):
                root = module.partition(".")[0]
                if root not in sys.stdlib_module_names and root != "dmkc":
                    name = plain(OTHER_NAMES.get(root, root))
                    (lazily if id(node) in inside else always).add(name)
    return always, lazily - always


def modules(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


def test_everything_imported_is_declared():
    always, lazily = imported()
    assert always - declared() == set()
    assert lazily - declared().union(*map(declared, LAZY_EXTRAS)) == set()


@pytest.mark.parametrize("extra", [None, *RUNTIME_EXTRAS])
def test_everything_declared_is_imported(extra):
    assert declared(extra) - set.union(*imported()) - set(BEHIND_OTHERS) == set()


def test_the_exceptions_are_needed():
    assert set(BEHIND_OTHERS) <= declared() - set.union(*imported())


def test_hints_name_extras_as_the_readme_installs_them():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    known = set(extras["optional-dependencies"])
    assert 'pip install -e ".[hpc]"' in (PROJECT / "README.md").read_text()
    hints = []
    for path in (PROJECT / "dmkc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and "pip install" in str(node.value):
                hints.append(re.search(r"in a clone: pip install '\.\[(\w+)\]'", node.value)[1])
    assert len(hints) >= 5 and set(hints) <= known


def test_the_dashboard_of_a_cluster_has_pages():
    from distributed.dashboard.scheduler import applications

    assert {"/status", "/tasks"} <= set(applications)
