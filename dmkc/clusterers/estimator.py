"""What every clusterer shares as an estimator: what it says of itself, new rows, prediction, files.

The command line, reports and pictures ask for parameters, facts, pictures and metrics of a fit, and
never look for attributes themselves.  Plain answers stand here; a family of methods gives its own.
"""

from __future__ import annotations

import copy
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dmkc.clusterers import labelling
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.losses import total_loss
from dmkc.clusterers.parameters import Parameter, init_from, with_parameters
from dmkc.clusterers.reach import warn_of_far
from dmkc.clusterers.shown import Shown, found_lines
from dmkc.clusterers.spread import Layout
from dmkc.data import Rows, as_rows
from dmkc.errors import UserError
from dmkc.registry import foreign_modules
from dmkc.scan.engine import Engine, open_engine
from dmkc.tables.columns import numbers_of
from dmkc.tables.frames import is_table
from dmkc.tables.recipe import Recipe
from dmkc.typing import MaybeClient, NamedValues, PerRow, TableLike

Facts: TypeAlias = list[tuple[str, Any]]
"""Names and values, for tables."""
BY_SCORE = (
    "Left to right is the score whose sign decides; bottom to top is the largest variation that "
    "the score does not explain."
)
BY_COMPONENTS = "The two leading principal components of the learned features."
CONVEX_COURSE = (
    "Each dotted line is a relabeling, after which a new convex problem begins; it is solved when "
    "objective and bound meet."
)


@dataclass(frozen=True)
class Picture:
    """A picture of a fit that makes sense for its method."""

    name: str
    """A function of `dmkc.plot`, unless `draw` is given."""
    caption: str
    beside: bool = False
    """Whether it is small and stands beside others."""
    draw: Callable[[Any, Any, Any], Any] | None = None
    """Matplotlib axes from the fitted estimator, sampled rows and the labels of all rows."""


@dataclass(frozen=True)
class Choice:
    """What a fit has chosen without labels."""

    records: list[NamedValues]
    """One per number of clusters, or per candidate, that was tried."""
    confidence: float | None
    """None where only the number of clusters was open."""
    alternatives: list[Any]
    """Models of the other clusterings that are offered, the chosen one first."""
    score: str = ""
    """What a score of a number of clusters is, where numbers were tried and not candidates."""


ATTRIBUTES = """n_samples_fit_ : int, rows of the fit.
cluster_shares_ : ndarray, shares of the clusters in the rows (or weights) of the training.
medoids_ : ndarray of shape (n_clusters, n_features), the most typical row of every cluster, in
    the units of X: of some sampled rows the one nearest to the centre of its cluster, in the
    space where clusters were found.
medoid_indices_ : ndarray, numbers of these rows in X; -1 where none of a cluster was sampled.
"""


def with_attributes(doc: str) -> str:
    """A docstring whose section about attributes has those that all estimators have."""
    return re.sub(r"(^Attributes\n-+\n(?:.+\n)+)", rf"\1{ATTRIBUTES}", doc, flags=re.MULTILINE)


class Described:
    """An estimator that describes itself.

    A fitted one has `labels_`, `objective_`, `start_`, `converged_`, `n_iter_`, `n_scans_` and
    `history_`, whatever the method.
    """

    declared: ClassVar[tuple[Parameter, ...]] = ()
    """The parameters, in the order of `__init__`, which is made from them where there is none; the
    docstring gets its section from them."""
    summary: ClassVar[str] = ""
    """The method in half a line, for lists of methods."""
    selectable: ClassVar[tuple[str, ...]] = ()
    """Parameters that `dmkc.select` chooses where they are "auto"."""
    _writes_init: ClassVar[bool] = False
    """Whether the class, or one that it derives from, has an `__init__` that somebody wrote."""
    _per_row: ClassVar[tuple[str, ...]] = ("labels_",)
    """Fitted values of the rows of the fit, which are no part of the model."""
    _has_scores: ClassVar[bool] = False
    """Whether the model decides by scores, so that there is a decision function."""
    _has_margin: ClassVar[bool] = False
    """Whether scores have a margin of 1."""
    _has_kernels: ClassVar[bool] = False
    """Whether there are `kernels_` with `kernel_weights_`, and landmarks."""
    _model_class: ClassVar[type | None] = None
    """What `model_` is, which a file must hold; None: of any kind."""
    _scored: ClassVar[str | None] = None
    """Whether `score` is less the "sum" or the "mean" of `_losses`; None: there is no score."""
    _rounds: ClassVar[str] = "iterations"
    """What `n_iter_` counts."""
    _minimised: ClassVar[str] = "objective"
    """What the records of `history_` call their objective, in words."""
    n_clusters_: Any
    objective_: float
    start_: str
    n_iter_: int
    n_scans_: int
    history_: list[NamedValues]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._writes_init = cls._writes_init or "__init__" in vars(cls)
        if "declared" in vars(cls):
            if cls.__doc__:
                cls.__doc__ = with_attributes(with_parameters(cls.__doc__, cls.declared))
            if not cls._writes_init:
                cls.__init__ = init_from(cls.declared)  # type: ignore[method-assign]

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The declared parameters by name."""
        return {parameter.name: parameter for parameter in cls.declared}

    def _checked(self) -> dict[str, Any]:
        """Every parameter as plain Python; one sentence about the first that is wrong."""
        return {p.name: p.check(getattr(self, p.name)) for p in self.declared}

    def _facts(self) -> Facts:
        """Names and values that only this method has, for the table of what was run."""
        return []

    def _pictures(self) -> list[Picture]:
        """The pictures of a report, in order."""
        two = self._has_scores and self.n_clusters_ == 2
        found = [Picture("embedding", BY_SCORE if two else BY_COMPONENTS)]
        if self._has_margin:
            inside = "of a score between -1 and 1" if two else "less than 1 ahead"
            words = (
                f"The margin, {inside}, is shaded: rows in it cost the fit something, which does "
                "not make them unsure."
            )
            found.append(Picture("margins", words))
        bounded = any("bound" in record for record in self.history_)
        course = CONVEX_COURSE if bounded else f"The {self._minimised} after every step."
        found.append(Picture("convergence", course))
        if self._has_kernels:
            found.append(self._weights_picture())
        return [*found, Picture("sizes", "Counted over all rows.", beside=True)]

    def _weights_picture(self) -> Picture:
        """What the model weighs."""
        words = "How much each kernel counts in the learned combination."
        return Picture("kernel_weights", words, beside=True)

    def _metrics(self) -> dict[str, Any]:
        """What metrics.json and `dmkc info` say of the fit."""
        return {
            "objective": self.objective_,
            "start": self.start_,
            "relabelings": self.n_iter_,
            "scans": self.n_scans_,
        }

    @property
    def _shown(self) -> Any:
        """The estimator that pictures are drawn of."""
        return self

    def _verdict(self) -> str | None:
        """Whether there are clusters, in a sentence, where the method has looked for that."""
        return None

    def _chances(self, X: TableLike) -> PerRow | None:
        """`predict_proba`, where there is one that can be asked."""
        return None

    def _choice(self) -> Choice | None:
        """What was chosen, where something had been left open."""
        return None

    def _fitted(self, name: str) -> Any:
        """A fitted value, or None where a model file does not hold it."""
        return vars(self).get(name)


def landmarks_fact(clusterer: Any) -> tuple[str, str]:
    """How many landmarks there are and what they are, for facts of a method with kernels."""
    count = clusterer.model_.label_pipeline().plan.n_landmarks
    how = clusterer.landmarks if isinstance(clusterer.landmarks, str) else "given"
    return "landmarks", f"{count}, {how}"


class RowClusterer(Described, TransformerMixin, ClusterMixin, Shown, ABC):
    """Base of all clusterers: a fitted one has a `model_` that makes label pipelines."""

    model_: Any
    n_samples_fit_: int
    cluster_shares_: np.ndarray
    medoid_indices_: np.ndarray
    medoids_: np.ndarray
    client: MaybeClient
    reach_: dict | None
    """Where the rows of the fit were (`dmkc.clusterers.reach.Reach`), where they were many."""
    table_: dict
    """What is made of the columns of tables (`dmkc.tables.Recipe`), where that was kept."""

    @abstractmethod
    def fit(
        self, X: TableLike, y: PerRow = None, sample_weight: PerRow = None, start: Any = None
    ) -> Self:
        """Cluster the rows of `X`, from an earlier model if one is given; `y` is ignored."""

    @abstractmethod
    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        """How a fit of these rows cuts and holds what it trains on."""

    def fit_predict(self, X: TableLike, y: PerRow = None, sample_weight: PerRow = None) -> PerRow:
        """Fit and return `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: TableLike) -> PerRow:
        """The cluster of every row of `X`, in the form of `X` (lazy for Dask and Zarr).

        A warning says where many rows that are in memory lie far from all rows of the fit.
        """
        rows = self._new_rows(X)
        found = labelling.apply(rows, self.model_.label_pipeline(), np.dtype(np.int32), None)
        if not rows.container.lazy:
            warn_of_far(self._fitted("reach_"), rows)
        return found

    def transform(self, X: TableLike) -> PerRow:
        """What the model makes of every row of `X`, in the form of `X`."""
        rows = self._new_rows(X)
        pipeline, names = self.model_.feature_pipeline(), list(self.get_feature_names_out())
        return labelling.apply(rows, pipeline, self._dtype, len(names), "feature", columns=names)

    @available_if(lambda self: self._scored is not None)
    def score(self, X: TableLike, y: PerRow = None, sample_weight: PerRow = None) -> float:
        """How well the model fits the rows of `X`, larger being better; `y` is ignored.

        Where clusters have centres it is less the sum of squared distances to the nearest one, in
        the space where they were found: of the rows of the fit, less `inertia_`.  Where they have
        margins, it is less the mean loss of the rows: of multiple kernel and sparse kernel
        clustering, how far their margins fall short of 1, and of margin-distribution clustering its
        own loss.  Where they have planes, it is less the mean squared distance to the nearest one.
        """
        rows = self._new_rows(X)
        engine = open_engine(self.client, self)
        losses, weights = total_loss(rows, engine, self._losses(), sample_weight)
        return -losses if self._scored == "sum" else -losses / weights

    def _losses(self) -> Pipeline:
        """The loss of every row, where there is a score."""
        raise NotImplementedError

    def _found(self) -> list[str]:
        return found_lines(self)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
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

    def _new_rows(self, X: TableLike) -> Rows:
        check_is_fitted(self)
        rows = as_rows(self._in_numbers(X), order=self._views())
        try:
            _check_feature_names(self, _name_carrier(rows), reset=False)
        except ValueError as problem:
            raise UserError(str(problem)) from None
        if rows.n_columns != self.n_features_in_:
            raise UserError(
                f"`X` has {rows.n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def _in_numbers(self, X: TableLike) -> TableLike:
        """The columns that a fit of a table has made of it, where X is such a table."""
        recipe = self._recipe()
        if recipe is None or not is_table(X) or not recipe.wants(list(X.columns)):
            return X
        return numbers_of(X, recipe)

    def _views(self) -> dict[str, tuple[int, int]]:
        """The views of the fit; none where X was one table, or the model file is an old one."""
        return vars(self).get("views_", {})

    def _recipe(self) -> Recipe | None:
        """What is made of the columns of a table, where that was kept with the model."""
        stored = self._fitted("table_")
        return None if stored is None else Recipe.from_json(stored)

    def modules_of_others(self) -> set[str]:
        """Modules outside this package that whoever works for this estimator must import."""
        return foreign_modules([type(self)])

    def _remember_columns(self, rows: Rows) -> None:
        """Called once a fit has succeeded, so that a failed one leaves an older model whole."""
        _check_feature_names(self, _name_carrier(rows), reset=True)
        self.n_features_in_, self.n_samples_fit_ = rows.n_columns, rows.n_rows
        self.views_ = dict(rows.views)
        self.__dict__.pop("table_", None)  # of an earlier fit

    def __sklearn_clone__(self) -> Self:
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


def opened(start: Any) -> RowClusterer:
    """A fitted estimator, which may be given by the path of its file."""
    if isinstance(start, str | os.PathLike):
        from dmkc import modelfile

        return modelfile.load(start)
    if not isinstance(start, RowClusterer):
        raise UserError(
            "start must be a fitted estimator of dmkc or the path of a model file, not a "
            f"{type(start).__name__}."
        )
    check_is_fitted(start)
    return start


def _name_carrier(rows: Rows) -> Any:
    """Something with the rows' column names in the form scikit-learn looks for."""
    if rows.column_names is None:
        return np.empty((0, rows.n_columns))
    return pd.DataFrame(columns=list(rows.column_names))
