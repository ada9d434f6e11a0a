"""How sure labels are, and how far rows lie from those of the fit: the same for every clusterer."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from dmkc.clusterers import labelling
from dmkc.clusterers.estimator import RowClusterer
from dmkc.clusterers.members import (
    Agreement,
    MemberClusters,
    Refits,
    as_given,
    outlier_pipeline,
)
from dmkc.errors import UserError
from dmkc.kernels import KernelPlan
from dmkc.typing import PerRow, TableLike

ABOUT_ROWS = ("train_rows", "polish", "must_link", "cannot_link", "verbose", "client")
EXACTNESS = ("tol", "max_iter")
"""Parameters that refits of some rows do without: they are about all rows, or about digits."""


class CertainClusterer(RowClusterer):
    """Base of clusterers that count chances of labels over fits of other rows."""

    _refits: Refits

    def predict_proba(self, X: TableLike) -> PerRow:
        """For every row and cluster, the chance that a fit of other rows would put it there.

        It is counted over a few fits of halves of a sample of the rows, which are made when first
        asked for; the largest of the chances nearly always is that of `predict`.
        """
        rows = self._new_rows(X)
        members, agreement = self._refitted()
        pipeline = labelling.Pipeline(members, agreement)
        double = np.dtype(np.float64)
        return labelling.apply(rows, pipeline, double, self.n_clusters_, name="chance")

    def outlier_scores(self, X: TableLike) -> PerRow:
        """How much thinner it is around every row than around the anchors or landmarks near it.

        About 1 where rows of the fit were, and the larger the farther a row is from them.
        """
        rows, plan = self._new_rows(X), self._kernel_plan()
        pipeline = None if plan is None else outlier_pipeline(plan)
        if pipeline is None:
            raise UserError(
                f"This {type(self).__name__} has neither anchors nor landmarks, by which rows are "
                "scored: use SpectralClustering, or a kernel that has them."
            )
        return labelling.apply(rows, pipeline, np.dtype(np.float64), None, name="outlier")

    def _kernel_plan(self) -> KernelPlan | None:
        """The plan of the kernels, where there are any."""
        return None

    def _refitted(self) -> tuple[MemberClusters, Agreement]:
        """Fits of halves of the rows that were kept, and their clusters as those of this fit."""
        kept = self._fitted("_refits")
        if kept is None:
            raise UserError(
                "Chances are counted over fits of other rows, and a model file holds no rows: fit "
                "the estimator again."
            )
        copy = clone(self).set_params(**self._refit_parameters())
        names = self._fitted("feature_names_in_")
        form = partial(as_given, views=self._views(), names=names)
        return kept.make(copy, self.model_, form)

    def _chances(self, X: TableLike) -> PerRow | None:
        if self.n_clusters_ == 1 or self._fitted("_refits") is None:
            return None
        return self.predict_proba(X)

    def _refit_parameters(self) -> dict[str, Any]:
        """What a fit of some of the rows must be told otherwise."""
        found: dict[str, Any] = {"n_clusters": self.n_clusters_}
        for name, parameter in self.parameters().items():
            value = getattr(self, name)
            about_rows = name in (*ABOUT_ROWS, *EXACTNESS) or (
                name == "init" and not isinstance(value, str)
            )
            open_ = name in self.selectable and isinstance(value, str) and value == "auto"
            if about_rows or open_:
                found.setdefault(name, parameter.default)
        return found
