"""Options of methods: the help shows those of one method, and the others are refused."""

import json
import re

import numpy as np
import pytest
import yaml
import zarr

from dmkc.cli.app import build_parser
from dmkc.cli.options import flags, help_of, methods_with, parameters
from dmkc.clusterers.registry import ESTIMATORS

COMMANDS = ("fit", "select", "plan", "submit")
QUICK = {"mkc": ("--rank", 20), "planes": (), "kmeans": (), "spectral": ()}


@pytest.fixture
def x(tmp_path, data):
    np.save(tmp_path / "x.npy", data[0])
    return "x.npy"


@pytest.fixture
def help_text(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: call(*words, "--help").out


def without_space(text):
    return "".join(text.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_is_one_screen(help_text, command):
    lines = help_text(command).splitlines()
    assert len(lines) <= 45 and max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "INPUT" in text and "--clusters N " in text and "--method" in text
    for name, cls in ESTIMATORS.items():
        assert f"  {name:<15} {cls.summary}" in text
    assert f"dmkc {command} --method {next(iter(ESTIMATORS))} --help" in text


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("where", ["before", "after"])
def test_the_help_of_a_method_shows_its_own_options_choices_and_defaults(help_text, method, where):
    words = [f"--method={method}"] if where == "before" else ["x.npy", "--method", method]
    text = help_text("fit", *words)
    known = parameters(ESTIMATORS[method])
    for name, parameter in known.items():
        option = f"{flags(name)[-1]} {parameter.kind.metavar} {help_of(parameter)}"
        assert without_space(option) in without_space(text)
    others = {name for cls in ESTIMATORS.values() for name in parameters(cls)} - set(known)
    for name in others:
        assert not re.search(rf"^  {flags(name)[0]}\b", text, re.MULTILINE), name


def test_only_methods_that_choose_a_number_offer_it(help_text, call, x):
    for method in ESTIMATORS:
        offered = "--clusters auto|N|N-N" in help_text("fit", "--method", method)
        assert offered == (method in ("auto", "mkc", "skmmc", "spectral", "consensus"))
        assert ("--auto " in help_text("fit", "--method", method)) == (method == "mkc")
    said = call("fit", x, "--method", "planes", "--clusters", "auto", "--out", "run", code=2)
    assert "--clusters is given as 'auto', which is not a whole number" in said.err


@pytest.mark.parametrize("solver", ["irls", "bundle"])
def test_values_are_those_of_the_method(call, x, tmp_path, solver):
    words = ("fit", x, "--method", "planes", "--solver", solver, "--seed", 0, "--quiet")
    call(*words, "--no-report", "--out", "run")
    assert yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())["solver"] == solver
    said = call("fit", x, "--method", "planes", "--solver", "cvxpy", "--out", "other", code=2)
    assert "--solver must be one of 'auto', 'irls', 'bundle', not 'cvxpy'" in said.err


@pytest.mark.parametrize("command", ["fit", "plan", "select"])
def test_an_option_that_a_method_lacks_names_the_methods_that_have_it(call, x, command):
    out = ("--out", "run") if command == "fit" else ()
    said = call(command, x, "--method", "kmeans", "--basis", "sparse", *out, code=2)
    assert "The method 'kmeans' has no --basis; skmmc alone has it." in said.err
    said = call(command, x, "--method", "kmeans", "--rank", 3, *out, code=2)
    assert ", ".join(methods_with("rank")[:-1]) in said.err


def test_params_files_are_checked_by_the_declarations_of_their_method(call, x, tmp_path):
    (tmp_path / "p.yaml").write_text("method: planes\nsolver: irls\nloss: laplacian\n")
    call("fit", x, "--params", "p.yaml", "--seed", 0, "--no-report", "--quiet", "--out", "run")
    for text, sentence in (
        ("method: planes\nsolver: clarabel", "solver must be one of"),
        ("method: kmeans\nrank: 3", "but the method 'kmeans' has no such parameter; mkc, "),
        ("method: odm\nhard: perhaps", "hard must be one of 'true', 'false'"),
        ("method: odm\ntheta: 2", "theta must be a number between 0 and 1"),
        ("method: hmkkm\nwidths: [2, 0.5]", "widths must be an integer"),
    ):
        (tmp_path / "p.yaml").write_text(text)
        assert sentence in call("plan", x, "--params", "p.yaml", code=2).err


def test_a_share_of_the_rows_can_be_asked_for(call, x, tmp_path):
    words = (
        "--method",
        "mkc",
        "--train-rows",
        "0.5",
        "--rank",
        20,
        "--seed",
        0,
        "--no-report",
        "--quiet",
    )
    call("fit", x, *words, "--out", "run")
    assert yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())["train_rows"] == 0.5


def test_what_can_be_completed_stands_in_the_choices_of_the_options():
    commands = next(a for a in build_parser()._actions if a.dest == "command")
    found = {a.dest: a for a in commands.choices["fit"]._actions}
    assert tuple(found["method"].choices) == tuple(ESTIMATORS)
    solvers = found["parameter_solver"].choices
    assert {"clarabel", "cvxpy", "irls", "bundle"} <= set(tuple(solvers)) and "new" in solvers
    assert all(a.help for a in commands.choices["fit"]._actions)


@pytest.mark.parametrize("method", QUICK)
def test_metrics_and_info_say_what_the_model_says(call, x, tmp_path, method):
    call("fit", x, "--method", method, *QUICK[method], "--seed", 0, "--quiet", "--out", "run")
    found = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {"objective", "start", "relabelings", "scans"} <= set(found)
    assert ("C" in found) == (method == "mkc") and ("c2" in found) == (method == "planes")
    assert ("kernel_weights" in found) == (method != "kmeans")
    shown = json.loads(call("info", "run/model.zarr", "--json").out)["fitted"]
    assert shown == {name: found[name] for name in shown}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--method", "spectral", "--neighbours", 15), {"neighbours": 15}),
        (("--method", "spectral", "--clusters", "auto"), {"n_clusters": "auto"}),
        (("--method", "spectral", "--clusters", "2-4", "--anchors", 50), {"n_clusters": [2, 4]}),
        (
            ("--method", "mkc", "--kernels", "neighbours,linear"),
            {"kernels": ["neighbours", "linear"]},
        ),
        (("--method", "mkc", "--kernels", "neighbours:15"), {"kernels": ["neighbours:15"]}),
    ],
)
def test_neighbour_graphs(call, x, tmp_path, words, wanted):
    call("fit", x, *words, "--seed", 0, "--quiet", "--out", "run")
    written = yaml.safe_load((tmp_path / "run" / "params.yaml").read_text())
    assert {name: written[name] for name in wanted} == wanted
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["clusters"] == 2
    said = call("info", "run/model.zarr").out
    assert "anchors, which are centroids of training rows, or the rows where" in said
    assert "a medoid for every cluster" in said
    call("predict", "run", x, "--out", "again.zarr")
    fitted = np.asarray(zarr.open_array(tmp_path / "run" / "labels.zarr"))
    np.testing.assert_array_equal(np.asarray(zarr.open_array(tmp_path / "again.zarr")), fitted)


def test_mistakes_with_neighbour_graphs(call, x):
    for words, sentence in (
        (("--method", "spectral", "--neighbours", 0), "neighbours must be an integer of at least"),
        (
            ("--method", "mkc", "--kernels", "neighbours:0"),
            "k must be a whole number of at least 1",
        ),
        (("--neighbours", 5), "spectral alone has it"),
    ):
        assert sentence in call("fit", x, *words, "--out", "run", code=2).err


def test_a_submitted_fit_is_checked_before_it_is_queued(call, x, tmp_path):
    said = call("submit", x, "--method", "mkc", "--rank", 0, "--out", "run", code=2)
    assert "rank must be an integer of at least 1" in said.err
    assert not (tmp_path / "run").exists()
