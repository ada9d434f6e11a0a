"""What every clusterer shares as a scikit-learn estimator: new rows, names, prediction, files."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dmkc.clusterers import labelling
from dmkc.clusterers.described import Described
from dmkc.clusterers.spread import Layout
from dmkc.data import Rows, as_rows
from dmkc.errors import UserError
from dmkc.registry import foreign_modules
from dmkc.scan.engine import Engine


class RowClusterer(Described, TransformerMixin, ClusterMixin, BaseEstimator, ABC):
    """Base of all clusterers: a fitted one has a `model_` that makes label pipelines."""

    model_: Any
    client: Any

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of `X`; `y` is ignored."""

    @abstractmethod
    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        """How a fit of these rows cuts and holds what it trains on."""

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Any:
        """The cluster of every row of `X`, in the form of `X` (lazy for Dask and Zarr)."""
        rows = self._new_rows(X)
        return labelling.apply(rows, self.model_.label_pipeline(), np.dtype(np.int32), None)

    def transform(self, X: Any) -> Any:
        """What the model makes of every row of `X`, in the form of `X`."""
        rows = self._new_rows(X)
        pipeline = self.model_.feature_pipeline()
        return labelling.apply(rows, pipeline, self._dtype, self.model_.n_features, name="feature")

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
    def n_clusters_(self) -> int:
        """The number of clusters of the model."""
        return self.model_.n_clusters

    @property
    def _dtype(self) -> np.dtype:
        """Precision of what `transform` returns."""
        return self.model_.features.plan.dtype

    def _new_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = as_rows(X, order=self._views())
        try:
            _check_feature_names(self, _name_carrier(rows), reset=False)
        except ValueError as problem:
            raise UserError(str(problem)) from None
        if rows.n_columns != self.n_features_in_:
            raise UserError(
                f"X has {rows.n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def _views(self) -> dict[str, tuple[int, int]]:
        """The views of the fit; none where X was one table, or the model file is an old one."""
        return vars(self).get("views_", {})

    def modules_of_others(self) -> set[str]:
        """Modules outside this package that whoever works for this estimator must import."""
        return foreign_modules([type(self)])

    def _remember_columns(self, rows: Rows) -> None:
        """Called once a fit has succeeded, so that a failed one leaves an older model whole."""
        _check_feature_names(self, _name_carrier(rows), reset=True)
        self.n_features_in_ = rows.n_columns
        self.views_ = dict(rows.views)

    def __sklearn_clone__(self) -> Any:
        """A copy without what was learned; the client of a cluster is shared, not copied."""
        bare = copy.copy(self)
        bare.client = None
        new = super(RowClusterer, bare).__sklearn_clone__()
        new.client = self.client
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _name_carrier(rows: Rows) -> Any:
    """Something with the rows' column names in the form scikit-learn looks for."""
    if rows.column_names is None:
        return np.empty((0, rows.n_columns))
    return pd.DataFrame(columns=list(rows.column_names))
