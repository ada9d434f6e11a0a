"""Multiple kernel maximum-margin clustering (MKC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from dmkc.clusterers.answered import (
    Answer,
    check_answers,
    checked_answers,
    fewest_clusters,
    keep_answers,
)
from dmkc.clusterers.estimator import Choice
from dmkc.clusterers.margin.base import BALANCE, THRESHOLDS, MarginClusterer
from dmkc.clusterers.model import KernelModel
from dmkc.clusterers.parameters import IntegerOrRange, Kernels, Number, OneOf, Parameter, shared
from dmkc.data import as_rows
from dmkc.errors import UserError
from dmkc.typing import MaybeClient, NamedValues, PerRow, RandomState, TableLike


class MultipleKernelClustering(MarginClusterer):
    """Clusters separated by the widest margin in a learned combination of kernels.

    Finds clusters, a weight for every kernel of a bank, and separating planes in the weighted
    feature space, such that few rows lie inside the margin [1]_.  Works on rows in memory, in Dask
    collections and in Zarr stores; training takes a few tens of passes over the rows, each of which
    returns a few kilobytes.

    Attributes
    ----------
    n_clusters_ : int, number of clusters.
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size (in
        the subset, with train_rows).
    kernel_weights_ : ndarray, one weight per kernel.
    kernels_ : the kernels with the widths that were used.
    C_ : the C that was used.
    balance_ : the bound on the mean score that was used, or None.
    objective_ : float, ``1/2 sum_k |v_k|^2 / weight_k + C mean(max(0, 1 - margin))``, where a row's
        margin is the absolute score, or the largest score less the second (then rows are weighted
        so that all clusters weigh the same).  With an adaptive threshold t it is the same with t
        for 1, less t.
    threshold_ : float, t.  Scores are divided by it, so that the margin ends at 1 for all.
    start_ : str, the start that was kept.
    selection_ : list of dict, one per number of clusters that was tried, with its "leak", the
        "score", by how much that rises after it, and whether it was "chosen"; with other parameters
        "auto", one per candidate, best first; None when nothing was open.
    confidence_ : float, how far other methods find the chosen clusters, or how clear the valleys
        between them are, or None; below 0.8 look at the alternatives.
    alternatives_ : list of KernelModel, the clearly different candidates that `dmkc.select` offers,
        the chosen one first (before it was refined on all rows), or None; `dmkc.plot.alternatives`
        draws them.
    n_iter_ : int, relabelings of all rows (of the subset, with train_rows).
    converged_ : bool, whether labels settled before max_iter.
    n_scans_ : int, passes over all rows, not counting the one that makes the columns.
    history_ : list of dict, one per scan.
    model_ : KernelModel, all that `predict` needs.

    References
    ----------
    .. [1] B. Zhao, J. T. Kwok, C. Zhang. Multiple Kernel Clustering. SDM 2009.
    .. [2] J. Wu, X.-L. Zhang. Sparse Kernel Maximum Margin Clustering. Neural Network World, 2011.

    Examples
    --------
    >>> from dmkc import MultipleKernelClustering
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = MultipleKernelClustering(random_state=0).fit(X)
    >>> model.labels_.shape
    (2000,)
    """

    summary = "widest margin in a learned combination of kernels"
    selectable = ("scale", "kernels", "C", "balance")
    declared = (
        shared.N_CLUSTERS.but(
            kind=IntegerOrRange(("auto",)),
            text="""Number of clusters.  A pair such as (2, 8) is a range to choose from, "auto" is
            (2, 10): a sample is cut into every number of clusters, and the one after which these
            leak into each other much more is taken (see `selection_`).""",
        ),
        shared.KERNELS.but(
            kind=Kernels(("auto",), none=True),
            text=f"""The bank.  None is ``[Linear(), Polynomial(2), Gaussian(0.5)]``.
            {shared.NAMES}  "auto", here and for `scale`, `C` and `balance`, leaves the choice to
            `dmkc.select`, which tries many candidates on a sample and takes a minute or less.""",
        ),
        shared.SCALE.but(kind=OneOf((*shared.SCALES, "auto"), none=True)),
        Parameter(
            "C",
            Number(("auto",), above=0, none=True),
            None,
            """Weight of the margin violations.  None calibrates it from the data: a fixed C
            collapses the clusters or freezes the start, depending on the kernels.  With an adaptive
            threshold C must exceed 1, and None is 2.""",
        ),
        BALANCE.but(
            kind=Number(("default", "auto"), least=0, none=True),
            text="""Two clusters: bound on the absolute mean score, which prevents a one-cluster
            solution (by default 0.3; None: no bound), in units of the threshold.  With an adaptive
            threshold it is 0 by default and must be below 1 - 1 / C.  Several clusters are balanced
            by weighting rows by cluster, and a bound is refused.""",
        ),
        shared.NORM,
        Parameter(
            "threshold",
            OneOf(THRESHOLDS),
            "unit",
            """Where the margin ends: at a score of 1, or at a score that is found with the model
            [2]_, so that about 1 / C of the rows lie inside whatever the kernels are.""",
        ),
        shared.RANK,
        shared.LANDMARKS,
        shared.INIT.but(
            text="""Starts: "k-means" (on the scaled columns), "kernel-k-means" (on each kernel's
            features), "joint-k-means" (on those of all kernels), "pca" (signs of each kernel's
            leading components, k-means on them for several clusters), "spectral" (neighbour graph),
            "mixture" (of normal distributions), "radius" (shells around the mean), "random", labels
            for all rows, or the `model_` of another fit.  "auto" is the first two for two clusters
            and the first for several, with the third where X has views.  All are tried on a sample;
            the one with the lowest objective is kept.""",
        ),
        shared.N_INIT,
        shared.REFINE,
        shared.WHOLE_SAMPLE,
        shared.SCALED_TRAIN_ROWS,
        shared.POLISH,
        shared.TOL.but(
            text="""Relative gap of the convex problems and relative fall of the objective at which
            to stop; for several clusters the gap is 10 tol and tol the share of relabeled rows.""",
        ),
        shared.MAX_ITER,
        shared.SOLVER,
        shared.DTYPE,
        shared.FEATURE_MODE,
        shared.STORE_PATH,
        *shared.RUNNING,
    )
    selection_: list[NamedValues] | None
    confidence_: float | None
    alternatives_: list[KernelModel] | None

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        kernels: Any = None,
        scale: str | None = "if-mixed",
        C: Any = None,
        balance: Any = "default",
        norm: float = 2.0,
        threshold: str = "unit",
        rank: int = 100,
        landmarks: str | np.ndarray = "uniform",
        init: Any = "auto",
        n_init: int = 4,
        refine: str = "best",
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "clarabel",
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.scale = scale
        self.C = C
        self.balance = balance
        self.norm = norm
        self.threshold = threshold
        self.rank = rank
        self.landmarks = landmarks
        self.init = init
        self.n_init = n_init
        self.refine = refine
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.dtype = dtype
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def _bank(self) -> Any:
        if not (isinstance(self.kernels, str) and self.kernels == "auto"):
            return self.kernels
        chosen = self._fitted("selection_")
        return chosen[0]["kernels"] if chosen else None

    def fit(
        self,
        X: TableLike,
        y: PerRow = None,
        sample_weight: PerRow = None,
        start: Any = None,
        answers: Any = (),
    ) -> MultipleKernelClustering:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.  With `start`, a fitted
        estimator or the path of a model file, the fit begins from the clusters that it sees in X.
        `answers`, a list of
        (row, row, whether they belong together), guide the choice of parameters that are "auto",
        and `labels_` keeps them.
        """
        known = checked_answers(answers)
        values = [getattr(self, name) for name in self.selectable]
        self._chosen: dict[str, Any] = {}
        if not any(isinstance(value, str) and value == "auto" for value in values):
            number = self._number_for(X, known)
            if number == self.n_clusters:
                super().fit(X, sample_weight=sample_weight, start=start)
            else:
                copy = clone(self).set_params(n_clusters=number)
                self._take_over(copy.fit(X, sample_weight=sample_weight, start=start))
            self.confidence_, self.alternatives_ = None, None
            keep_answers(self, X, known)
            return self
        if start is not None:
            raise UserError(
                "A fit that begins from a model chooses nothing: give scale, kernels, C and "
                "balance, or leave start out."
            )
        from dmkc.selection.run import select  # which makes estimators of this class

        found = select(X, self, answers=known, sample_weight=sample_weight)
        low, high = shared.cluster_range(self.n_clusters)
        if low < high:
            found.warn_of_no_clusters()
        settled = found.estimator().fit(X, sample_weight=sample_weight)
        self._take_over(settled)
        self._chosen = {name: getattr(settled, name) for name in self.selectable}
        self.selection_, self.confidence_ = found.records(), found.confidence
        self.alternatives_ = [candidate.model for candidate in found.alternatives]
        self.start_ = found.best.start
        self.history_ = [record | {"start": self.start_} for record in settled.history_]
        self.n_scans_ = 1 + settled.n_scans_
        keep_answers(self, X, known)
        return self

    def _number_for(self, X: TableLike, known: Sequence[Answer]) -> Any:
        """The number of clusters; one that is open is at least what answers ask for."""
        if not known:
            return self.n_clusters
        n_rows = as_rows(X).n_rows
        low, high = shared.cluster_range(self.n_clusters, n_rows)
        pairs, container = check_answers(known, n_rows, high)
        assert pairs is not None
        fewest = fewest_clusters(pairs, container, low, high) if low < high else low
        if fewest == low:
            return self.n_clusters
        return high if fewest == high else (fewest, high)

    def _take_over(self, fitted: MultipleKernelClustering) -> None:
        """All that a fit of other parameters has found."""
        for name, value in vars(fitted).items():
            if name not in self.get_params(deep=False):
                setattr(self, name, value)

    def _refit_parameters(self) -> dict[str, Any]:
        return super()._refit_parameters() | (self._fitted("_chosen") or {})

    def _choice(self) -> Choice | None:
        if not self.selection_:
            return None
        # A model file does not hold the other models.
        others, choice = self._fitted("alternatives_") or [], super()._choice()
        return choice and replace(choice, confidence=self.confidence_, alternatives=others)
