"""What all kernel clusterers share: reading rows, parameter checks, predict and its kin."""

from __future__ import annotations

import difflib
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dmkc.clusterers import labelling
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.prepare import FeatureSettings
from dmkc.clusterers.spread import MODES
from dmkc.data import Rows, as_rows
from dmkc.kernels import as_bank
from dmkc.kernels.landmarks import CHOICES as LANDMARK_CHOICES


class KernelClusterer(TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of clusterers whose model is a `KernelModel`."""

    model_: KernelModel

    def predict(self, X: Any) -> Any:
        """The cluster of every row of `X`, in the form of `X` (lazy for Dask and Zarr)."""
        rows = self._new_rows(X)
        return labelling.apply(rows, self.model_.label_pipeline(), np.dtype(np.int32), None)

    def decision_function(self, X: Any) -> Any:
        """Scores of every row: one whose sign decides between two clusters, else one a cluster."""
        rows = self._new_rows(X)
        n_out = None if len(self.model_.biases) <= 1 else len(self.model_.biases)
        pipeline = self.model_.score_pipeline()
        if not len(self.model_.biases):
            pipeline = labelling.Pipeline(pipeline.columns, labelling.Single(self.model_._scorer()))
        return labelling.apply(rows, pipeline, self._dtype, n_out, name="score")

    def transform(self, X: Any) -> Any:
        """Features whose inner products are the learned kernel, weighted by `kernel_weights_`."""
        rows = self._new_rows(X)
        pipeline = self.model_.feature_pipeline()
        return labelling.apply(rows, pipeline, self._dtype, self.model_.n_features, name="feature")

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_  # type: ignore[attr-defined]

    def save(self, path: Any, overwrite: bool = False) -> None:
        """Write the fitted model to a local path, for `dmkc.load`."""
        from dmkc import modelfile

        modelfile.save(self, path, overwrite)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`."""
        check_is_fitted(self)
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self.model_.n_features)], dtype=object)

    @property
    def _dtype(self) -> np.dtype:
        return self.model_.features.columns.dtype

    def _new_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = as_rows(X)
        _check_feature_names(self, _name_carrier(rows), reset=False)
        if rows.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def _remember_columns(self, rows: Rows) -> None:
        """Called once a fit has succeeded, so that a failed one leaves an older model whole."""
        _check_feature_names(self, _name_carrier(rows), reset=True)
        self.n_features_in_ = rows.n_columns

    def _feature_settings(self, seed: int) -> FeatureSettings:
        p = self.get_params(deep=False)
        if isinstance(p["landmarks"], str):
            one_of("landmarks", p["landmarks"], LANDMARK_CHOICES)
        return FeatureSettings(
            kernels=as_bank(p["kernels"]),
            scale=one_of("scale", p["scale"], ("standard", "minmax", None)),
            rank=integer("rank", p["rank"], 1),
            landmarks=p["landmarks"],
            dtype=one_of("dtype", p["dtype"], ("auto", "float32", "float64")),
            mode=one_of("feature_mode", p["feature_mode"], MODES),
            store_path=p["store_path"],
            sample_rows=integer("sample_rows", p["sample_rows"], 2),
            seed=seed,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _name_carrier(rows: Rows) -> Any:
    """Something with the rows' column names in the form scikit-learn looks for."""
    if rows.column_names is None:
        return np.empty((0, rows.n_columns))
    return pd.DataFrame(columns=list(rows.column_names))


def seed_of(random_state: Any) -> int:
    """A seed from None, an integer or a NumPy RandomState, as scikit-learn takes them."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, but is {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise ValueError(f"random_state must be None, an integer or a generator, not {random_state!r}.")


def one_of(name: str, value: Any, choices: tuple) -> Any:
    """`value` if it is one of the choices, else a sentence with the nearest one."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        strings = [c for c in choices if isinstance(c, str)]
        close = difflib.get_close_matches(str(value), strings, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {known}, not {value!r}.{hint}")
    return value


def integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}.")
    return int(value)


def number(name: str, value: Any, least: float, strict: bool, finite: bool = True) -> float:
    """A number above (or not below) `least`."""
    fine = isinstance(value, Real) and not isinstance(value, bool) and not np.isnan(float(value))
    fine = fine and (np.isfinite(float(value)) or not finite)
    if not fine or value < least or (strict and value == least):
        bound = f"greater than {least:g}" if strict else f"at least {least:g}"
        raise ValueError(f"{name} must be a number {bound}, not {value!r}.")
    return float(value)
