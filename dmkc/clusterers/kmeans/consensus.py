"""One clustering out of many: what most of them agree on, and how far they do for every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Self

import numpy as np

from dmkc.clusterers import labelling
from dmkc.clusterers.base import Clusterer, Job, seed_of
from dmkc.clusterers.estimator import Choice, Facts, Picture, RowClusterer
from dmkc.clusterers.fits import FitEnd, Learned
from dmkc.clusterers.kmeans.clusterings import (
    MemberRows,
    Members,
    graph_kernels,
    made_members,
    spectral_members,
)
from dmkc.clusterers.kmeans.embedded import cluster_embedded
from dmkc.clusterers.kmeans.ensemble import (
    EDGES,
    AgreementScan,
    ClusterEmbedding,
    ConsensusModel,
    JointShareScan,
    MemberClusters,
    OwnAgreement,
    SharedRowsScan,
)
from dmkc.clusterers.kmeans.nearest import NearestEmbedded
from dmkc.clusterers.kmeans.spectral import (
    widest_gap,
)
from dmkc.clusterers.members import Refits
from dmkc.clusterers.model import size_order
from dmkc.clusterers.parameters import Integer, IntegerOrRange, Number, Parameter, shared
from dmkc.clusterers.prepare import FeatureSettings, layout_of, prepare
from dmkc.clusterers.rowset import RowSet
from dmkc.clusterers.spread import Layout
from dmkc.clusterers.together import fit_together
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import Columns, KernelPlan
from dmkc.kernels.neighbours import dimensions_for, slow_first
from dmkc.scan.engine import Engine
from dmkc.typing import PerRow, TableLike

LEAST_EIGENVALUE = 0.03
"""Eigenvalues far below this are zero when a number of clusters is chosen: members have several
times as many clusters, and eigenvalues rise by leaps between those of their splits, too."""
OF_SPECTRAL_MEMBERS = ("n_members", "anchors", "scale")
"""Parameters that say nothing of members that are given."""


@dataclass(frozen=True)
class ConsensusSettings:
    """Parameters, checked."""

    n_clusters: int
    most_clusters: int
    n_init: int


@dataclass(frozen=True)
class ConsensusFit(FitEnd):
    """Joint clusters, and how far the clusterings agree about them."""

    model: ConsensusModel
    objective: float
    inertia: float
    stability: np.ndarray


class ConsensusClustering(Clusterer[MemberRows]):
    """The clusters that many different clusterings agree on, with how far they do for every row.

    Clusterings are joined through the graph of rows and clusters: rows that are often together
    are near each other [1]_ [2]_.  By default the members are spectral clusterings with different
    numbers of anchors, neighbours and clusters; or give a list of this library's estimators.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size, the
        noise near them included, and noise is -1.
    membership_ : for every row, how far the members agree that it belongs to its cluster, 0 to 1.
    stability_ : ndarray, the mean membership of every cluster's rows.
    eigenvalues_ : ndarray, the smallest eigenvalues of the normalised Laplacian of the graph of
        rows and clusters, the first of which is 0.
    objective_ : float, the relaxed normalised cut: the sum of the eigenvalues that are used.
    inertia_ : float, of the rows in the space in which k-means found the joint clusters.
    selection_ : list of dict or None, the rise after every number of clusters that was tried.
    start_ : str, the start of k-means that was kept.
    n_iter_ : int, 1.
    converged_ : bool, True.
    n_scans_ : int, passes over all rows, those in which given members were fitted included; one
        that several of them share counts once.
    history_ : list of dict, one per step of k-means on all rows.
    members_ : list or None, the fitted members, where members were given.
    model_ : ConsensusModel, all that `predict` needs.

    References
    ----------
    .. [1] X. Z. Fern, C. E. Brodley (2004). Solving cluster ensemble problems by bipartite graph
       partitioning. Proceedings of ICML.
    .. [2] D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh (2020). Ultra-scalable spectral
       clustering and ensemble clustering. IEEE Transactions on Knowledge and Data Engineering 32,
       1212-1226.

    Examples
    --------
    >>> from dmkc import ConsensusClustering
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, seed=0)
    >>> model = ConsensusClustering(2, random_state=0).fit(X)
    >>> bool(model.membership_.min() > 0.5)
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> noisy = ConsensusClustering(2, members=["kmeans", "spectral"], least_agreement=0.8)
    >>> noisy = noisy.set_params(random_state=0).fit(X)
    >>> bool((noisy.labels_ == -1).any())
    True
    """

    summary = "what many different clusterings agree on"
    _per_row = ("labels_", "membership_")
    _minimised = "inertia"
    _scored = "sum"
    declared = (
        shared.N_CLUSTERS.but(
            kind=IntegerOrRange(("auto",)),
            text="""Number of clusters.  "auto", or a range (fewest, most), takes the number after
            which the eigenvalues of the graph rise most in proportion; "auto" tries 2 to 10.""",
        ),
        Parameter(
            "members",
            Members(none=True),
            None,
            """The clusterings to join, of any of this library's methods; they are fitted to X
            together and share passes over its rows.  A short name, such as "kmeans", stands for
            that method with its defaults and with `n_clusters` and `random_state`.  None are
            `n_members` spectral clusterings.""",
        ),
        Parameter(
            "n_members",
            Integer(least=2, most=shared.MOST_TRIES),
            20,
            "How many spectral clusterings are joined, where no members are given.",
        ),
        Parameter(
            "anchors",
            Integer(least=2),
            1000,
            "Anchors of the largest of their neighbour graphs, about.",
        ),
        Parameter(
            "noise",
            Number(above=0, most=1, none=True),
            None,
            """Share of the rows, those about which the members agree least, that are labelled -1;
            None: no row is.""",
        ),
        Parameter(
            "least_agreement",
            Number(above=0, most=1, none=True),
            None,
            "Rows with less agreement than this are labelled -1.",
        ),
        shared.SCALE,
        shared.K_MEANS_STARTS,
        shared.SAMPLE_ROWS.but(
            text="Size of the uniform sample on which anchors, members and starts are found."
        ),
        *shared.RUNNING,
    )

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        members: Any = None,
        n_members: int = 20,
        anchors: int = 1000,
        noise: float | None = None,
        least_agreement: float | None = None,
        scale: str | None = "if-mixed",
        n_init: int = 10,
        sample_rows: int = 8192,
        random_state: Any = None,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.members = members
        self.n_members = n_members
        self.anchors = anchors
        self.noise = noise
        self.least_agreement = least_agreement
        self.scale = scale
        self.n_init = n_init
        self.sample_rows = sample_rows
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    tol = 0.0
    model_: Any
    _member_scans: int
    _model_class = ConsensusModel

    def _check_parameters(self) -> None:
        self._own_settings(None)
        if self.noise is not None and self.least_agreement is not None:
            raise UserError(
                "`noise` and `least_agreement` both say which rows are noise: give one."
            )
        if self.members is None:
            return
        declared, given = self.parameters(), self.get_params(deep=False)
        for name in OF_SPECTRAL_MEMBERS:
            if not declared[name].is_default(given[name]):
                raise UserError(f"`{name}` is for spectral members: leave it out, or `members`.")
        if any(isinstance(member, ConsensusClustering) for member in self._made_members()):
            raise UserError("`members` cannot be consensus clusterings themselves: give theirs.")

    def _own_settings(self, n_rows: int | None) -> ConsensusSettings:
        own = self._checked()
        fewest, most = shared.cluster_range(own["n_clusters"], n_rows)
        return ConsensusSettings(fewest, most, own["n_init"])

    def modules_of_others(self) -> set[str]:
        theirs = (member.modules_of_others() for member in self._made_members())
        return super().modules_of_others().union(*theirs)

    def fit(
        self, X: TableLike, y: Any = None, sample_weight: PerRow = None, start: Any = None
    ) -> Self:
        """Cluster the rows of `X`; `y` is ignored.

        With `sample_weight` a row of weight 3 counts as three equal rows.  With `start`, a fitted
        estimator or the path of a model file, the fit begins from the clusters that it sees in X.
        """
        self._check_parameters()
        self.members_, self._member_scans = None, 0
        if self.members is not None:
            made = self._made_members()
            self._member_scans = fit_together(made, X, sample_weight)
            self.members_ = made
        return super().fit(X, y, sample_weight, start)

    def _begin(self, job: Job) -> Job:
        if job.start is None:
            return job
        k = job.start.n_clusters
        return replace(job, own=replace(job.own, n_clusters=k, most_clusters=k))

    def _made_members(self) -> list[RowClusterer]:
        """Members that run where this fit runs; none where they are not given."""
        seed, given = self.random_state, self.members or ()
        # by name: the registry imports this module, and need not have been imported yet
        known = import_module("dmkc.clusterers.registry").ESTIMATORS if given else {}
        made = made_members(given, known, self.n_clusters, seed)
        for member in made:
            if self.client is not None and member.client is None:
                member.client = self.client
        return made

    def _prepare(self, job: Job) -> MemberRows:
        settings = self._feature_settings(job.rows.n_rows, job.own, job.seed)
        prepared = prepare(job.rows, job.engine, settings, job.own.n_clusters, job.sample_weight)
        if self.members_ is None:
            own = job.own
            models: list[Any] = spectral_members(
                prepared, self.n_members, own.n_clusters, own.most_clusters, job.seed
            )
        else:
            models = [member.model_ for member in self.members_]
        members = MemberClusters(tuple(models))
        job.progress.say(
            f"{job.rows.n_rows} rows x {job.rows.n_columns} columns, {members.width} clusterings "
            f"of {members.n_clusters} clusters in all, on {job.engine.description}"
        )
        ready = MemberRows.of(members, prepared, job)
        ready.all_rows.n_scans += self._member_scans
        return ready

    def _learn(
        self, prepared: MemberRows, job: Job
    ) -> Learned[ConsensusFit, ConsensusSettings] | None:
        own, rows, members = job.own, prepared.all_rows, prepared.members
        if own.most_clusters == 1:
            return None
        node = rows.run(SharedRowsScan(members.n_clusters))
        most = dimensions_for(own.most_clusters)
        whole, eigenvalues = ClusterEmbedding.of(members, node, most)
        rise = np.log(eigenvalues + LEAST_EIGENVALUE)
        k, selection = widest_gap(rise, own.n_clusters, own.most_clusters)
        embedding = whole.weighted(slow_first(eigenvalues[1:], k))
        found, _ = cluster_embedded(
            embedding, prepared.sample, rows, 1.0, k, own.n_init, job.seed, job.progress,
            None if job.start is None else job.start.label_pipeline()(prepared.survey.sample),
        )  # fmt: skip
        nearest = NearestEmbedded(embedding, found.value.centres)
        (weights,) = rows.run(JointShareScan(nearest, members.n_clusters))
        totals = weights.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), 1.0 / k)
        model = ConsensusModel(embedding, found.value.centres, shares, 0.0)
        agreement = AgreementScan(OwnAgreement(nearest, model.agreement))
        sizes, agreed, spread = rows.run(agreement)
        fit = ConsensusFit(
            model=replace(model, least_agreement=self._least(spread)),
            objective=float(eigenvalues[:k].sum()),
            inertia=found.value.inertia,
            stability=agreed / np.where(sizes > 0, sizes, 1.0),
            shares=sizes,
            n_iter=1,
            converged=True,
            reason="",
        )
        details = {"eigenvalues_": eigenvalues, "selection_": selection}
        return Learned(fit, found.name, own, details=details)

    def _least(self, spread: np.ndarray) -> float:
        """The agreement below which rows are noise."""
        if self.noise is None:
            return float(self.least_agreement or 0.0)
        reach = np.cumsum(spread)
        return float(EDGES[np.searchsorted(reach, self.noise * reach[-1], side="right")])

    def _store_fit(
        self, learned: Learned[ConsensusFit, Any], prepared: MemberRows, rows: Rows
    ) -> None:
        fit = learned.fit
        pipeline = labelling.Pipeline(prepared.members, fit.model.nearest)
        order = size_order(fit.shares, pipeline, rows)
        self.model_ = fit.model.in_order(order)
        self.stability_ = fit.stability[order]
        self.objective_, self.inertia_ = fit.objective, fit.inertia

    def _store_one_cluster(self, prepared: MemberRows, rows: Rows) -> None:
        count = prepared.members.n_clusters
        nowhere = ClusterEmbedding(prepared.members, np.zeros((count, 1)), np.zeros(1))
        self.model_ = ConsensusModel(nowhere, np.zeros((1, 1)), np.ones((count, 1)), 0.0)
        self.stability_, self.eigenvalues_, self.selection_ = np.ones(1), np.zeros(1), None
        self.objective_ = self.inertia_ = 0.0

    def _labels(self, rows: Rows, all_rows: RowSet | None) -> Any:
        pipeline = self.model_.agreement_pipeline()
        if rows.container.lazy or all_rows is None:
            kind = np.dtype(np.float64)
            self.membership_ = labelling.apply(rows, pipeline, kind, None, name="membership")
        else:
            found = all_rows.collect(pipeline.answer, "membership")
            self.membership_ = rows.container.wrap(found, name="membership")
        return super()._labels(rows, all_rows)

    def _rows_for_refits(self, prepared: MemberRows) -> Refits:
        return prepared.kept

    def _losses(self) -> labelling.Pipeline:
        return self.model_.distance_pipeline()

    def predict_proba(self, X: TableLike) -> PerRow:
        """For every row and cluster, the share of the members that speak for it; they sum to 1."""
        rows = self._new_rows(X)
        pipeline, k = self.model_.share_pipeline(), self.n_clusters_
        return labelling.apply(rows, pipeline, np.dtype(np.float64), k, name="share")

    def transform(self, X: TableLike) -> PerRow:
        """Every row's coordinates in the space in which k-means found the joint clusters."""
        return super().transform(X)

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def _chances(self, X: TableLike) -> PerRow:
        return self.predict_proba(X)

    def _kernel_plan(self) -> KernelPlan | None:
        plan = self.model_.embedding.plan.models[0].label_pipeline().plan
        return plan if isinstance(plan, KernelPlan) else None

    def _feature_settings(
        self, n_rows: int, settings: ConsensusSettings, seed: int
    ) -> FeatureSettings:
        own = self._checked()
        graphs = graph_kernels(n_rows, own["anchors"], settings.most_clusters)
        return FeatureSettings(
            kernels=graphs if self.members is None else (Columns(),),
            scale=own["scale"],
            rank=1,  # there are no landmarks
            landmarks="uniform",
            dtype="auto",
            mode="recompute",
            store_path=None,
            sample_rows=own["sample_rows"],
            seed=seed,
        )

    def _layout(self, rows: Rows, engine: Engine) -> Layout:
        own, seed = self._own_settings(rows.n_rows), seed_of(self.random_state)
        return layout_of(rows, engine, self._feature_settings(rows.n_rows, own, seed))

    def _facts(self) -> Facts:
        members = self.model_.embedding.plan
        found = [("clusterings", members.width), ("clusters of all of them", members.n_clusters)]
        found.append(("mean agreement", f"{float(np.mean(self.stability_)):.3f}"))
        least = self.model_.least_agreement
        return [*found, ("noise is below an agreement of", f"{least:.3f}")] if least else found

    def _pictures(self) -> list[Picture]:
        words = (
            "Of the graph of rows and clusters: as many are near zero as there are groups of rows "
            "that clusterings keep together."
        )
        agreed = "How far the members agree about a row; rows on the left are between clusters."
        embedding, *others, sizes = super()._pictures()
        sure = [Picture("membership", agreed)] if self.n_clusters_ > 1 else []
        spectrum = Picture("eigenvalues", words, beside=True)
        return [embedding, *sure, *others, spectrum, sizes]

    def _metrics(self) -> dict[str, Any]:
        least = self.model_.least_agreement
        return super()._metrics() | {"stability": self.stability_, "least_agreement": least}

    def _choice(self) -> Choice | None:
        words = (
            "How far the logarithm of the graph's eigenvalues rises after every number of clusters."
        )
        return Choice(self.selection_, None, [], words) if self.selection_ else None
