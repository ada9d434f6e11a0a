"""Estimators as scikit-learn's checks want them.

The checks take whoever has `predict_proba` for a classifier: they look for its classes, and compare
chances after weighting rows with those after repeating them, which fits of random halves do not
promise.  Chances have tests of their own (tests/clusterers/test_certainty.py); everything else is
checked on a class that differs in this method alone.
"""

from __future__ import annotations

from typing import Any


def _hidden(self: Any) -> None:
    raise AttributeError("predict_proba")


def without_chances(estimator: Any) -> Any:
    """A copy of an estimator that has no `predict_proba`."""
    cls = type(estimator)
    name = cls.__name__
    if name not in globals():  # pickles look for the class here
        parts = {"predict_proba": property(_hidden), "__module__": __name__, "__doc__": cls.__doc__}
        globals()[name] = type(name, (cls,), parts)
    return globals()[name](**estimator.get_params(deep=False))
