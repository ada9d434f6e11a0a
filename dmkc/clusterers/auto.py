"""One estimator that chooses among all methods, and says when there is nothing to find."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dmkc.clusterers.answered import fewest_clusters, keep_pairs
from dmkc.clusterers.base import seed_of
from dmkc.clusterers.earlier import start_model
from dmkc.clusterers.estimator import Choice, Facts, Picture, RowClusterer, opened
from dmkc.clusterers.kmeans.kmeans import KMeans
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.members import as_given, unheard
from dmkc.clusterers.parameters import IntegerOrRange, Number, Parameter, shared
from dmkc.clusterers.spread import Layout
from dmkc.constraints.linked import Constraints, read_constraints
from dmkc.data import Rows, as_rows
from dmkc.errors import UserError
from dmkc.progress import Progress
from dmkc.scan.engine import Engine, one_blas_thread, open_engine
from dmkc.tables.columns import TableColumns
from dmkc.tables.frames import is_table
from dmkc.typing import NamedValues, PerRow, TableLike


class AutoClustering(RowClusterer):
    """The method, its settings and the number of clusters are chosen without labels.

    Candidates of all families of methods, with columns as they are and standardised, are fitted to
    a sample of the rows.  The one that other families agree with most, and whose clusters have
    valleys between them, is fitted to all rows.  The sample is compared with clouds that have no
    clusters as well, and the verdict says whether there is evidence of any.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X, which keep `must_link` and `cannot_link`;
        `predict` gives the model's own opinion.
    verdict_ : str, "clear clusters", "some structure" or "no evidence of clusters".
    evidence_ : float, by how many standard deviations the rows can be cut better than the clouds
        without clusters that they are most like; below 3 there is no evidence.
    confidence_ : float, how far other families of methods find the same clusters, or how clear
        the valleys between clusters are beside those of other clusterings, whichever is more; 0
        to 1.
    method_ : str, the chosen method, and
    parameters_ : dict, what it was given.
    estimator_ : the chosen estimator, fitted.
    candidates_ : list of dict, one per candidate, best first.
    numbers_ : list of dict, one per number of clusters that was tried.
    alternatives_ : list of dict, `method` and `parameters` of other clusterings that differ
        clearly from the chosen one; see `alternative`.
    cut_ : list of str, candidates that were left out: too much work for a sample of this size (by
        an estimate, so that the same rows give the same labels), or cut by `max_seconds`.
    constrained_rows_ : ndarray, numbers of the rows that pairs name, and
    constrained_labels_ : ndarray, their labels.
    objective_, start_, n_iter_, converged_, history_, model_ : of the chosen estimator.
    n_scans_ : int, passes over all rows.

    Examples
    --------
    >>> from dmkc import AutoClustering
    >>> from dmkc.datasets import make_rings
    >>> X, y = make_rings(600, noise=0.05, seed=0)
    >>> model = AutoClustering(random_state=0).fit(X)
    >>> model.n_clusters_, model.verdict_
    (2, 'clear clusters')
    """

    summary = "the best of all methods, and whether there are clusters at all"
    declared = (
        shared.N_CLUSTERS.but(
            kind=IntegerOrRange(("auto",)),
            default="auto",
            text="""Number of clusters.  A pair such as (2, 8) is a range to choose from; "auto"
            tries up to 10, and is 1 where there is no evidence of clusters.""",
        ),
        shared.SAMPLE_ROWS.but(
            default=1000, text="Rows that candidates are fitted to and compared on."
        ),
        Parameter(
            "max_seconds",
            Number(above=0.0, none=True),
            None,
            """After so many seconds no more candidates are begun; `cut_` names those that were
            not.  With None the same seed gives the same labels.""",
        ),
        shared.MUST_LINK.but(
            text=f"""{shared.MUST_LINK.text}  Candidates that would not keep a pair pay for it, and
            `labels_` keeps all of them.""",
        ),
        shared.CANNOT_LINK,
        *shared.RUNNING,
    )
    labels_: PerRow
    verdict_: str
    evidence_: float
    confidence_: float
    method_: str
    parameters_: dict[str, Any]
    candidates_: list[NamedValues]
    numbers_: list[NamedValues]
    alternatives_: list[dict[str, Any]]
    cut_: list[str]
    constrained_rows_: np.ndarray
    constrained_labels_: np.ndarray

    def fit(
        self, X: TableLike, y: PerRow = None, sample_weight: PerRow = None, start: Any = None
    ) -> Self:
        """Choose on a sample of the rows of `X`, and cluster all of them; `y` is ignored.

        With `start`, a fitted AutoClustering or the path of its file, nothing is chosen anew: its
        method and parameters are taken, and the fit begins from the clusters that it sees in X.
        """
        from dmkc.selection.structure import ADVICE, NONE

        own, seed = self._checked(), seed_of(self.random_state)
        rows, engine = as_rows(X), open_engine(self.client, self)
        pairs = read_constraints(self.must_link, self.cannot_link, rows.container)
        progress = Progress(self.verbose, 0.0)
        with progress.shown():
            if start is None:
                how = own, seed, sample_weight, pairs, progress
                method, parameters, known = self._chosen(rows, engine, *how)
            else:
                start = self._earlier(start, rows)
                method, parameters = start.method_, start.parameters_
                known = {name: vars(start)[name] for name in OF_THE_CHOICE}
            chosen = self._unfitted(method, parameters).set_params(random_state=seed)
            chosen.fit(X, sample_weight=sample_weight, start=start)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in vars(chosen).items():
            if name.endswith("_") or name == "_refits":
                setattr(self, name, value)
        self.method_, self.parameters_ = method, dict(parameters)
        for name, value in known.items():
            setattr(self, name, value)
        self.n_scans_ = (start is None) + chosen.n_scans_
        self._keep(pairs, rows, engine, seed)
        if own["n_clusters"] != "auto" and self.n_clusters_ > 1 and self.verdict_ == NONE:
            warnings.warn(ADVICE[self.verdict_], stacklevel=2)
        return self

    def _chosen(
        self,
        rows: Rows,
        engine: Engine,
        own: dict[str, Any],
        seed: int,
        sample_weight: PerRow,
        pairs: Constraints | None,
        progress: Progress,
    ) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The method for these rows, its parameters, and what is known of the choice."""
        from dmkc.selection.auto import Wanted, choose  # which makes estimators of all classes

        began, asked = time.perf_counter(), own["n_clusters"]
        fewest, most = shared.cluster_range(asked, rows.n_rows)
        if pairs is not None:
            fewest = fewest_clusters(pairs, rows.container, fewest, most)
        may_be_one = asked == "auto" and (pairs is None or len(pairs.cannot) == 0)
        wanted = Wanted(fewest, most, may_be_one, own["sample_rows"], own["max_seconds"], seed)
        progress.begin(f"taking a sample of {rows.n_rows} rows")
        with one_blas_thread():
            found = choose(rows, engine, wanted, sample_weight, pairs)
        progress.say(f"{found.summary()} ({time.perf_counter() - began:.1f} s)")
        known = {
            "verdict_": found.verdict,
            "evidence_": found.evidence,
            "confidence_": found.confidence,
            "candidates_": found.records,
            "numbers_": found.numbers,
            "cut_": found.cut,
            "alternatives_": [
                {"method": other.method, "parameters": other.parameters}
                for other in found.alternatives
            ],
        }
        return found.recipe.method, found.recipe.parameters, known

    def _earlier(self, start: Any, rows: Rows) -> AutoClustering:
        """A fitted estimator of this class that was made of the same columns."""
        earlier = opened(start)
        if not isinstance(earlier, AutoClustering):
            raise UserError(
                f"AutoClustering goes on from a model of its own, not from {type(earlier).__name__}"
                f": fit {type(earlier).__name__} with that start."
            )
        start_model(earlier, rows, self.n_clusters)
        return earlier

    def _keep(self, pairs: Constraints | None, rows: Rows, engine: Engine, seed: int) -> None:
        """Bring the labels in line with the pairs, and say which of them needed it."""
        self.constrained_rows_ = np.empty(0, np.int64) if pairs is None else pairs.rows
        self.constrained_labels_ = np.zeros(len(self.constrained_rows_), np.int32)
        if pairs is None or self.n_clusters_ == 1:
            return
        with one_blas_thread():
            kept = keep_pairs(self.model_, rows, engine, pairs, self.n_clusters_, seed)
        self.labels_ = kept.labels(rows, self.labels_, self.model_)
        self.constrained_labels_ = kept.known.labels
        self.n_scans_ += 1
        kept.warn(rows.container, pairs)

    @property
    def estimator_(self) -> Any:
        """The chosen estimator, fitted."""
        check_is_fitted(self)
        made = self._unfitted(self.method_, self.parameters_)
        for name, value in vars(self).items():
            if (name.endswith("_") and name not in OWN) or name == "_refits":
                setattr(made, name, value)
        return made

    def alternative(self, which: int = 0) -> Any:
        """An unfitted estimator of another clustering, by its place in `alternatives_`."""
        check_is_fitted(self)
        if not 0 <= which < len(self.alternatives_):
            raise UserError(
                f"There are {len(self.alternatives_)} alternatives, numbered from 0, not {which}."
            )
        other = self.alternatives_[which]
        return self._unfitted(other["method"], other["parameters"])

    def _unfitted(self, method: str, parameters: dict[str, Any]) -> Any:
        from dmkc.clusterers.registry import ESTIMATORS

        return ESTIMATORS[method](
            **parameters, random_state=self.random_state, verbose=self.verbose, client=self.client
        )

    def predict_proba(self, X: TableLike) -> PerRow:
        """For every row and cluster, the chance that a fit of other rows would put it there."""
        return self.estimator_.predict_proba(X)

    def outlier_scores(self, X: TableLike) -> PerRow:
        """How much thinner it is around every row than around the rows of the fit near it."""
        return self.estimator_.outlier_scores(X)

    @available_if(lambda self: self._has_scores)
    def decision_function(self, X: TableLike) -> PerRow:
        """Scores of every row, where the chosen method has them."""
        return self.estimator_.decision_function(X)

    def transform(self, X: TableLike) -> PerRow:
        """What the chosen model makes of every row of `X`."""
        return self.estimator_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`, which are those of the chosen estimator."""
        return self.estimator_.get_feature_names_out(input_features)

    def _losses(self) -> Pipeline:
        return self.estimator_._losses()

    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        return KMeans()._layout(rows, engine)

    def _facts(self) -> Facts:
        return [
            ("verdict", self.verdict_),
            ("evidence", f"{self.evidence_:.1f} standard deviations"),
            ("chosen method", self.method_),
            *self.estimator_._facts(),
        ]

    @property
    def _shown(self) -> Any:
        return self.estimator_

    def _verdict(self) -> str:
        from dmkc.selection.structure import ADVICE, EVIDENCE

        than = f"{abs(self.evidence_):.1f} standard deviations"
        seen = f"{than} {'better' if self.evidence_ > 0 else 'worse'}"
        return (
            f"{ADVICE[self.verdict_]} They can be cut {seen} than rows without clusters that are "
            f"most like them (at least {EVIDENCE:g} is evidence); confidence in this clustering is "
            f"{self.confidence_:.2f}."
        )

    def _pictures(self) -> list[Picture]:
        return self.estimator_._pictures()

    def _metrics(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict_,
            "evidence": round(self.evidence_, 2),
            "method": self.method_,
            **self.estimator_._metrics(),
        }

    def _chances(self, X: TableLike) -> PerRow | None:
        return self.estimator_._chances(X)

    def _choice(self) -> Choice | None:
        if not self.candidates_:
            return None
        others = [
            FittedWhenAsked(self.alternative(i), self._views(), self._fitted("feature_names_in_"))
            for i in range(len(self.alternatives_))
        ]
        return Choice(self.candidates_, self.confidence_, [self.model_, *others])

    @property
    def _dtype(self) -> np.dtype:
        return self.estimator_._dtype


def cluster(
    X: TableLike,
    n_clusters: Any = "auto",
    *,
    missing: str = "refuse",
    kinds: Mapping[Any, str] | None = None,
    include: Sequence[Any] = (),
    exclude: Sequence[Any] = (),
    **parameters: Any,
) -> AutoClustering:
    """Cluster the rows of `X` by whatever suits them: an `AutoClustering`, fitted.

    Parameters
    ----------
    X : rows, in any form that `fit` takes, or a table.
        The columns of a pandas, polars or Dask frame may hold text, dates and truth values:
        `TableColumns` makes numbers of them, and leaves out those that are constant or name rows.
        What it does is kept in the model, whose `predict` takes such tables.
    n_clusters : int, (int, int) or "auto", default="auto"
        Number of clusters, or a range to choose from.
    missing, kinds, include, exclude : of `TableColumns`, for tables.
    **parameters : of `AutoClustering`.

    Returns
    -------
    AutoClustering
        With `labels_`, `verdict_`, `confidence_` and `predict`.

    Examples
    --------
    >>> import dmkc
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.05, seed=0)
    >>> found = dmkc.cluster(X, random_state=0)
    >>> found.verdict_, found.n_clusters_
    ('clear clusters', 2)
    """
    model = AutoClustering(n_clusters, **parameters)
    if is_table(X):
        columns = TableColumns(missing, kinds=kinds, include=include, exclude=exclude)
        return columns.keep_in(model.fit(columns.fit_transform(X)))
    if missing != "refuse" or kinds or include or exclude:
        raise UserError(
            "missing, kinds, include and exclude are about the columns of a table, such as a "
            f"pandas DataFrame, but X is a {type(X).__name__}: leave them out."
        )
    return model.fit(X)


@dataclass(frozen=True)
class FittedWhenAsked:
    """Another clustering, which is fitted to the rows that it is to label."""

    estimator: Any
    views: dict[str, tuple[int, int]]
    names: Any
    """Of the columns of the fit, where they had some."""

    def label_pipeline(self) -> Callable[[np.ndarray], np.ndarray]:
        def label(rows: np.ndarray) -> np.ndarray:
            with unheard():
                made = self.estimator.set_params(verbose=0).fit(
                    as_given(rows, self.views, self.names)
                )
            return np.asarray(made.labels_)

        return label


OF_THE_CHOICE = (
    "verdict_", "evidence_", "confidence_", "candidates_", "numbers_", "cut_", "alternatives_",
)  # fmt: skip
"""What is known of a choice, beside the method and its parameters."""
OWN = ("method_", "parameters_", *OF_THE_CHOICE)
"""Fitted values that are not of the chosen estimator."""


def _of_the_chosen(name: str) -> Any:
    def look(self: AutoClustering) -> Any:
        from dmkc.clusterers.registry import ESTIMATORS

        chosen = vars(self).get("method_")
        return getattr(RowClusterer if chosen is None else ESTIMATORS[chosen], name)

    return property(look)


for _name in (
    "_has_scores", "_has_margin", "_has_kernels", "_per_row", "_rounds", "_minimised", "_scored",
):  # fmt: skip
    setattr(AutoClustering, _name, _of_the_chosen(_name))
