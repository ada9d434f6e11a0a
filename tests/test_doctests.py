"""The examples in docstrings: every public name has one, and all of them do what they say."""

import doctest
import importlib
import inspect

import pytest

import dmkc
import dmkc.clusters
from dmkc import constraints, datasets, metrics, plot, report

MODULES = (dmkc, metrics, datasets, constraints, plot, report)


def public(module):
    """Names and values that a module offers: all of `__all__`, else the functions it defines."""
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", own):
        value = getattr(module, name)
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isroutine(value)):
            yield f"{module.__name__}.{name}", value


SOME = ((dmkc, "select"), (metrics, "accuracy"), (datasets, "make_rings"), (plot, "margins"))
SHOWN = [item for module in MODULES for item in public(module)]
SHOWN += [("dmkc.clusters.open", dmkc.clusters.open), ("dmkc.clusters.read", dmkc.clusters.read)]


def examples(name, value):
    """The examples of the docstring of one object, not of its methods."""
    module = importlib.import_module(value.__module__)
    finder = doctest.DocTestFinder(recurse=False)
    found = finder.find(inspect.unwrap(value), name, module=module, globs={})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name, value", SHOWN, ids=[name for name, _ in SHOWN])
def test_examples_run(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tests = examples(name, value)
    assert tests, f"{name} has no example"
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_names_of_all_modules_are_looked_at():
    looked_at = {name for name, _ in SHOWN}
    assert {f"{module.__name__}.{name}" for module, name in SOME} <= looked_at
