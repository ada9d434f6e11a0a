"""What a file says of an estimator is of the kinds that the estimator declares."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.reach import Reach
from dmkc.errors import UserError
from dmkc.modelfile.values import ModelFileError
from dmkc.tables.recipe import Recipe

MOST_DEPTH = 50
FITTED_KINDS: dict[str, tuple[type, ...]] = {
    "None": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "np.ndarray": (np.ndarray,),
}
"""What a file may hold of a fitted value by the name of its type in the class."""
ABOUT: dict[str, tuple[type, ...]] = {"left_out": (dict,), "libraries": (dict,), "created": (str,)}
"""What a file says beside the model, for those who look at it."""


def check_description(described: dict[str, Any]) -> None:
    """Refuse a description that nobody could walk through, or that is not one."""
    level: list[Any] = [described]
    for _ in range(MOST_DEPTH):
        level = [child for item in level for child in _children(item)]
    if level:
        raise ModelFileError(f"its description is nested deeper than {MOST_DEPTH}.")
    for name, kinds in ABOUT.items():
        found = described.get(name)
        texts = found.values() if isinstance(found, dict) else ()
        if not isinstance(found, kinds) or not all(isinstance(text, str) for text in texts):
            raise ModelFileError(f"what it says of {name!r} is malformed.")


def check_parameters(cls: type[RowClusterer], parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the estimator would not take."""
    declared = cls.parameters()
    for name, value in parameters.items():
        if name not in declared:
            raise ModelFileError(f"its parameters do not fit the estimator ({name!r} is unknown).")
        try:
            declared[name].check(value)
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise ModelFileError(
                f"its parameters do not fit the estimator ({str(problem).rstrip('.')})."
            ) from None


def check_fitted(cls: type[RowClusterer], fitted: Mapping[str, Any]) -> None:
    """Refuse fitted values of other kinds than the estimator's."""
    count = fitted.get("n_features_in_")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ModelFileError(f"it does not say how many columns it is for, but {count!r}.")
    names = fitted.get("feature_names_in_")
    if names is not None and not _are_names(names, count):
        raise ModelFileError(f"it does not name the {count} columns that it is for.")
    views = fitted.get("views_", {})
    if not isinstance(views, dict) or not all(_is_run(run, count) for run in views.values()):
        raise ModelFileError(f"its views are not runs of its {count} columns.")
    if "table_" in fitted:
        _check_table(fitted["table_"], count)
    if fitted.get("reach_") is not None:
        _check_reach(fitted["reach_"], count)
    declared = _declared(cls)
    for name, value in fitted.items():
        kinds = declared.get(name)
        wrong = kinds is not None and (
            not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
        )
        if wrong:
            raise ModelFileError(f"its {name!r} is a {type(value).__name__}, which it cannot be.")


def _check_table(stored: Any, count: int) -> None:
    try:
        made = len(Recipe.from_json(stored).made)
    except UserError as problem:
        raise ModelFileError(str(problem)) from None
    if made != count:
        raise ModelFileError(f"it makes {made} columns of a table, but is for {count}.")


def _check_reach(stored: Any, count: int) -> None:
    try:
        Reach.read(stored, count)
    except UserError as problem:
        raise ModelFileError(str(problem)) from None


def check_whole(model: RowClusterer) -> None:
    """Refuse a model of another kind than the estimator makes, or without what it has to say."""
    cls, own = type(model), type(model.model_)
    if cls._model_class not in (None, own):
        raise ModelFileError(f"a {cls.__name__} has no {own.__name__}.")
    try:
        model._metrics()
        if model._has_kernels and len(model.kernels_) != len(model.kernel_weights_):  # type: ignore[attr-defined]
            raise ModelFileError("it does not have one weight for every kernel.")
    except (AttributeError, TypeError, KeyError, IndexError) as problem:
        raise ModelFileError(f"it lacks what a {cls.__name__} has ({problem}).") from None


def _children(item: Any) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()


def _declared(cls: type) -> dict[str, tuple[type, ...]]:
    """The kinds of the fitted values that a class and those above it write types of."""
    found: dict[str, tuple[type, ...]] = {}
    for base in reversed(cls.__mro__):
        for name, kind in inspect.get_annotations(base).items():
            parts = [part.split("[")[0].strip() for part in str(kind).split("|")]
            if name.endswith("_") and all(part in FITTED_KINDS for part in parts):
                found[name] = tuple(t for part in parts for t in FITTED_KINDS[part])
            else:
                found.pop(name, None)
    return found


def _are_names(names: Any, count: int) -> bool:
    fine = isinstance(names, np.ndarray) and names.shape == (count,)
    return fine and all(isinstance(name, str) for name in names)


def _is_run(run: Any, count: int) -> bool:
    if not isinstance(run, tuple | list) or len(run) != 2:
        return False
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in run)
    return whole and 0 <= run[0] < run[1] <= count
