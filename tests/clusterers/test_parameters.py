"""Declared parameters: they agree with signatures, and serve checks and docstrings."""

import inspect

import numpy as np
import pytest

from dmkc import AutoClustering, KMeans, MultipleKernelClustering, SparseKernelMMC
from dmkc.clusterers.estimator import Described
from dmkc.clusterers.parameters import (
    Flag,
    Integer,
    IntegerOrRange,
    Integers,
    Number,
    OneOf,
    OneOfOrRows,
    Parameter,
    RowsOrShare,
    check_signature,
    shared,
)
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.errors import UserError

ALL = [(m, p) for m, cls in ESTIMATORS.items() for p in cls.declared]
IDS = [f"{method}-{parameter.name}" for method, parameter in ALL]


@pytest.mark.parametrize("method", ESTIMATORS)
def test_signatures_and_declarations_agree(method):
    cls = ESTIMATORS[method]
    check_signature(cls, cls.declared)
    assert list(inspect.signature(cls).parameters) == [p.name for p in cls.declared]
    assert cls.summary and len(cls.summary) <= 62


@pytest.mark.parametrize(("method", "parameter"), ALL, ids=IDS)
def test_defaults_are_fine_and_can_be_written_in_a_shell(method, parameter):
    parameter.check(parameter.default)
    assert parameter.text.endswith(".") and parameter.kind.phrase
    if isinstance(parameter.default, str | int | float) and parameter.name != "client":
        text = str(parameter.default).lower()
        found = parameter.parse(text)
        same = found if not isinstance(found, list) or len(found) > 1 else found[0]
        assert parameter.check(same) == parameter.check(parameter.default)
    if parameter.default is None:
        assert parameter.parse("none") is None


@pytest.mark.parametrize("method", ESTIMATORS)
def test_docstrings_have_the_parameters_in_numpy_style(method):
    cls = ESTIMATORS[method]
    doc = inspect.getdoc(cls)
    assert doc.index("\nParameters\n----------\n") < doc.index("\nAttributes\n----------\n")
    assert doc.count("Parameters\n----------") == 1
    assert max(map(len, doc.splitlines())) <= 96
    for parameter in cls.declared:
        assert f"\n{parameter.entry}\n" in doc


def test_a_subclass_keeps_what_it_does_not_declare_anew():
    class Mine(KMeans):
        """Mine."""

    assert Mine.__doc__ == "Mine." and Mine.declared is KMeans.declared
    check_signature(Mine, Mine.declared)

    class Other(KMeans):
        """Other."""

        declared = KMeans.declared[:-1]

    assert "Parameters\n----------\nn_clusters : int" in Other.__doc__
    with pytest.raises(UserError, match="'client' of Other is not declared"):
        check_signature(Other, Other.declared)
    wrong = (KMeans.declared[0].but(default=3), *KMeans.declared[1:])
    with pytest.raises(UserError, match="'n_clusters' of KMeans is 2 in __init__ and 3"):
        check_signature(KMeans, wrong)


def test_a_class_without_an_init_takes_what_it_declares():
    class Short(Described):
        declared = (shared.N_CLUSTERS, shared.TOL)

    class Longer(Short):
        declared = (*Short.declared, shared.MAX_ITER.but(default=7))

    check_signature(Short, Short.declared)
    check_signature(Longer, Longer.declared)
    assert vars(Short(3)) == {"n_clusters": 3, "tol": 1e-3}
    assert vars(Longer(tol=0.5)) == {"n_clusters": 2, "tol": 0.5, "max_iter": 7}
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_iter'"):
        Short(max_iter=3)
    with pytest.raises(TypeError, match="too many positional"):
        Longer(3, 0.5)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Integer(), "1e6", 1_000_000),
        (Integer(none=True), "None", None),
        (IntegerOrRange(("auto",)), "2-8", [2, 8]),
        (IntegerOrRange(("auto",)), "auto", "auto"),
        (Integers(), "4, 2", [4, 2]),
        (Number(("default",)), "default", "default"),
        (Number(), "1e-3", 1e-3),
        (RowsOrShare(), "0.25", 0.25),
        (RowsOrShare(), "1e4", 10_000),
        (Flag(), "false", False),
        (OneOf(("a", "b"), none=True), "null", None),
        (OneOfOrRows(("a",)), "rows.npy", "rows.npy"),
    ],
)
def test_text_stands_for_plain_values(kind, text, value):
    assert kind.parse("p", text) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (Integer(), "two", "p is given as 'two', which is not a whole number"),
        (Integer(), "none", "not a whole number"),
        (Number(), "x", "p must be a number, not 'x'"),
        (RowsOrShare(), "1.5", "not a whole number"),
        (Flag(), "yes", "p must be one of 'true', 'false', not 'yes'"),
        (OneOf(("abc", "b")), "abd", "Did you mean 'abc'"),
    ],
)
def test_text_that_stands_for_nothing(kind, text, sentence):
    with pytest.raises(UserError, match=sentence):
        kind.parse("p", text)


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (Integer(least=2), 1, "p must be an integer of at least 2, not 1"),
        (Integer(), True, "must be an integer"),
        (Number(above=0), 0, "p must be a number greater than 0, not 0"),
        (Number(least=0, most=1), 2, "p must be a number between 0 and 1, not 2"),
        (Number(("default",)), "other", "p must be one of 'default', not 'other'"),
        (Number(("auto",), above=0), "1", "p must be a number greater than 0, not '1'"),
        (Number(), np.inf, "at least 0, not inf"),
        (Integers(), [], "at least one layer"),
        (Integers(), None, "p must be an integer"),
        (RowsOrShare(), 1.5, "a number of rows or a share between 0 and 1"),
        (IntegerOrRange(("auto",)), (3, 3), "a range such as"),
        (Flag(), 1, "p must be True or False, not 1"),
    ],
)
def test_sentences_of_checks(kind, value, sentence):
    with pytest.raises(UserError, match=sentence):
        kind.check("p", value)


def test_checks_give_plain_python():
    assert type(Integer().check("p", np.int64(3))) is int
    assert type(Number().check("p", np.float32(0.5))) is float
    assert Flag().check("p", np.True_) is True
    assert Integer(least=0, flags=True).check("verbose", True) == 1
    assert Integers().check("p", np.array([3, 2])) == (3, 2)


def test_every_parameter_is_checked_before_rows_are_looked_at():
    for cls in ESTIMATORS.values():
        for name in ("n_init", "sample_rows", "verbose", "random_state", "scale"):
            if name not in cls.parameters() and cls is AutoClustering:
                continue
            with pytest.raises(UserError, match=name):
                cls(**{name: "nonsense"}).fit(object())
    assert isinstance(SparseKernelMMC.parameters()["basis"], Parameter)
    with pytest.raises(UserError, match="C must be one of 'auto', not 'many'"):
        MultipleKernelClustering(C="many").fit(object())
