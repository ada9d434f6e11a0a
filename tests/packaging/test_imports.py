"""What is imported when: a library that is not needed yet is not loaded."""

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dmkc

HEAVY = {"cvxpy", "matplotlib", "distributed", "bokeh"}
FRAMES = {"pandas", "xarray", "zarr"}
ARRAYS = {"dask.array", "xarray", "zarr"}
NUMBERS = {"numpy", "scipy", "numba", "sklearn", "dask"}
LIST = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded(code):
    """The modules of a fresh process after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LIST}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr))


def loaded_by_command(*words):
    return loaded(f"from dmkc.cli import main; assert main({list(words)}) == 0")


def test_the_package_loads_nothing_but_itself():
    found = loaded("import dmkc; dir(dmkc), dmkc.__version__")
    assert not found & (HEAVY | FRAMES | NUMBERS)
    assert {name for name in found if name.startswith("dmkc.")} == {
        "dmkc.importing",
        "dmkc.version",
    }


def test_estimators_load_no_library_that_only_some_uses_need():
    found = loaded("import dmkc; [getattr(dmkc, name) for name in dmkc.clusterers.__all__]")
    assert not found & (HEAVY | ARRAYS | {"numba"})


def test_fits_of_rows_in_memory_on_threads_load_neither_clusters_nor_files():
    """Of every method, with labels, predictions and weights."""
    methods = set(dmkc.clusterers.__all__) - {"AutoClustering", "cluster"}
    code = (
        "import warnings, dmkc, numpy as np; warnings.simplefilter('ignore')\n"
        "X = np.random.default_rng(0).normal(size=(60, 3))\n"
        f"for name in {sorted(methods)}:\n"
        "    found = getattr(dmkc, name)(2, random_state=0).fit(X, sample_weight=None)\n"
        "    assert len(found.labels_) == len(found.predict(X)) == 60"
    )
    assert not loaded(code) & (HEAVY | ARRAYS)


def test_an_estimator_brings_its_own_family_only():
    found = loaded("import dmkc; dmkc.MultipleKernelClustering")
    assert "dmkc.clusterers.margin" in found
    assert not {f"dmkc.clusterers.{name}" for name in ("kmeans", "odm", "planes")} & found


def test_workers_load_no_library_that_only_the_coordinator_needs():
    modules = ("scan.tasks", "scan.cuts", "scan.planes", "clusterers.model", "clusterers.rowset")
    found = loaded("import " + ", ".join(f"dmkc.{name}" for name in modules))
    assert "dmkc.kernels.neighbours" in found
    assert not found & (HEAVY | FRAMES | {"sklearn", "dask.array", "numba"})


@pytest.mark.parametrize("words", [("--version",), ("--help",)])
def test_the_command_says_what_it_is_without_a_library(words):
    assert not loaded_by_command(*words) & (HEAVY | FRAMES | NUMBERS)


@pytest.mark.parametrize("words", [("fit", "--help"), ("fit", "--method", "kmeans", "--help")])
def test_the_help_of_a_fit_loads_no_library_that_only_some_fits_need(words):
    assert not loaded_by_command(*words) & HEAVY


@pytest.mark.parametrize("package", [dmkc, dmkc.clusterers])
def test_public_names_are_those_that_type_checkers_see(package):
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    shown = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname or alias.name: node.module for node in shown for alias in node.names}
    homes = {name: homes[name] for name in package.__all__}
    assert set(homes) <= set(dir(package))
    for name, home in homes.items():
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


def test_all_names_can_be_imported_at_once():
    names = {}
    exec("from dmkc import *", names)
    assert {name: names[name] for name in dmkc.__all__} == {
        name: getattr(dmkc, name) for name in dmkc.__all__
    }


def test_modules_are_found_by_attribute():
    for name in (found.name for found in pkgutil.iter_modules(dmkc.__path__)):
        assert name in dir(dmkc)
    code = "import dmkc; dmkc.errors.UserError, dmkc.kernels.Linear, dmkc.metrics.accuracy"
    assert {"dmkc.errors", "dmkc.kernels", "dmkc.metrics"} <= loaded(code)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'dmkc' has no attribute 'KMean'"):
        dmkc.KMean  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'KMean'"):
        exec("from dmkc import KMean")


def test_models_are_read_where_nothing_was_imported_before(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    dmkc.KMeans(n_clusters=2, random_state=0).fit(X).save(tmp_path / "model.zarr")
    loaded(f"import dmkc; dmkc.load({str(tmp_path / 'model.zarr')!r})")


def test_a_journal_is_whole_where_nothing_was_imported_before(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with dmkc.checkpoint(tmp_path) as journal:
        dmkc.MultipleKernelClustering(rank=5, random_state=0).fit(X)
    code = f"import dmkc\nwith dmkc.checkpoint({str(tmp_path)!r}) as journal:"
    loaded(f"{code}\n    assert len(journal) == {len(journal)}, len(journal)")


def test_members_by_name_in_a_fresh_process():
    """The registry of methods need not have been imported by anyone before."""
    code = (
        "import numpy as np, dmkc; X = np.random.default_rng(0).normal(size=(60, 2));"
        "print(dmkc.ConsensusClustering(2, members=['kmeans', 'planes']).fit(X).n_clusters_)"
    )
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert said.stdout == "2\n", said.stderr
