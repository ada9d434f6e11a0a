"""Spectral clustering on anchors: the neighbour graph of any number of rows, and new rows too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.estimator import Choice, Facts, Picture
from dmkc.clusterers.kmeans.partitions import EmbeddedClusterer, Relaxed, Settings
from dmkc.clusterers.parameters import Integer, IntegerOrRange, IntegerOrRows, Parameter, shared
from dmkc.clusterers.prepare import FeatureSettings, Prepared
from dmkc.kernels import FeatureMap, Kernel, Neighbours
from dmkc.kernels.neighbours import dimensions_for, slow_first
from dmkc.kernels.unit import Embedding, RowScales
from dmkc.master.partition import Partition


@dataclass(frozen=True)
class SpectralSettings(Settings):
    """Parameters of spectral clustering, checked."""

    most_clusters: int
    """`n_clusters` are the fewest that may be chosen."""


class SpectralClustering(EmbeddedClusterer):
    """Clusters of any shape, cut out of the graph of every row's nearest neighbours.

    Rows are tied to the nearest of about a thousand anchors, points that cover the rows, and not
    to each other: one pass over the rows gives a graph of the anchors [1]_ [2]_, whose leading
    eigenvectors place every row, a new one too, in a space of half as many dimensions again as
    there are clusters, where k-means finds them.  Clusters are where rows are dense, and their
    borders where rows are thin; k-means, which looks for round ones, is better where rows have no
    such valleys.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    n_clusters_ : int, the number of clusters.
    eigenvalues_ : ndarray, the smallest eigenvalues of the normalised Laplacian of the graph of
        rows and anchors, the first of which is 0.
    anchors_ : ndarray of shape (n_anchors, n_features), in scaled columns.
    objective_ : float, the relaxed normalised cut: the sum of the eigenvalues that are used.
    inertia_ : float, of the rows in the space in which k-means found the clusters.
    selection_ : list of dict or None, the gap after every number of clusters that was tried.
    kernels_ : the kernel of the graph.
    start_ : str, the start of k-means that was kept.
    n_iter_ : int, 1.
    converged_ : bool, True.
    n_scans_ : int, passes over all rows.
    history_ : list of dict, one per step of k-means on all rows.
    model_ : PartitionModel, all that `predict` and `transform` need.

    References
    ----------
    .. [1] D. Cai, X. Chen (2015). Large scale spectral clustering via landmark-based sparse
       representation. IEEE Transactions on Cybernetics 45, 1669-1680.
    .. [2] D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh (2020). Ultra-scalable spectral
       clustering and ensemble clustering. IEEE Transactions on Knowledge and Data Engineering 32,
       1212-1226.

    Examples
    --------
    >>> from dmkc import SpectralClustering
    >>> from dmkc.datasets import make_moons
    >>> X, y = make_moons(1000, noise=0.05, seed=0)
    >>> model = SpectralClustering(2, random_state=0).fit(X)
    >>> float(round(max((model.labels_ == y).mean(), (model.labels_ != y).mean()), 2))
    1.0
    >>> model.transform(X[:3]).shape
    (3, 4)
    """

    summary = "spectral clustering of the neighbour graph, on anchors"
    declared = (
        shared.N_CLUSTERS.but(
            kind=IntegerOrRange(("auto",)),
            text="""Number of clusters.  "auto", or a range (fewest, most), takes the number after
            which the eigenvalues of the graph have their widest gap; "auto" tries 2 to 10.""",
        ),
        Parameter(
            "neighbours",
            Integer(least=1, none=True),
            None,
            """Anchors that every row is tied to.  Few follow thin shapes, many bridge gaps that
            are only chance.  None is 20 where the rows are the anchors, and 6 where an anchor
            stands for many rows.""",
        ),
        Parameter(
            "anchors",
            IntegerOrRows(least=2),
            1000,
            """How many anchors there are, about; with fewer than twice as many rows, the rows are
            the anchors.  Or the anchors themselves, one a row.""",
        ),
        shared.SCALE,
        shared.K_MEANS_STARTS,
        shared.SAMPLE_ROWS.but(
            text="Size of the uniform sample on which anchors and starts are found."
        ),
        shared.TRAIN_ROWS,
        shared.POLISH_STEPS,
        shared.DTYPE,
        shared.RECOMPUTED,
        shared.STORE_PATH,
        *shared.RUNNING,
    )

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        neighbours: int | None = None,
        anchors: Any = 1000,
        scale: str | None = "if-mixed",
        n_init: int = 10,
        sample_rows: int = 8192,
        train_rows: Any = None,
        polish: int = 0,
        dtype: str = "auto",
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.neighbours = neighbours
        self.anchors = anchors
        self.scale = scale
        self.n_init = n_init
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.dtype = dtype
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    tol = 0.0
    max_iter = 1

    def _kernels(self) -> tuple[Kernel, ...]:
        own = self._checked()
        _, most = shared.cluster_range(own["n_clusters"])
        dimensions = dimensions_for(most)
        return (Neighbours(own["neighbours"], own["anchors"], steps=0, dimensions=dimensions),)

    def _least_clusters(self) -> int:
        return shared.cluster_range(self.n_clusters)[0]

    def _own_settings(self, n_rows: int | None) -> SpectralSettings:
        own = self._checked()
        fewest, most = shared.cluster_range(own["n_clusters"], n_rows)
        return SpectralSettings(fewest, False, own["n_init"], 0, self.tol, self.max_iter, most)

    def _begin(self, job: Job) -> Job:
        if job.start is None:
            return job
        k = job.start.n_clusters
        return replace(job, own=replace(job.own, n_clusters=k, most_clusters=k))

    def _feature_settings(self, seed: int) -> FeatureSettings:
        own = self._checked()
        mode = own["feature_mode"]
        return FeatureSettings(
            kernels=self._kernels(),
            scale=own["scale"],
            rank=1,  # there are no landmarks
            landmarks="uniform",
            dtype=own["dtype"],
            mode="recompute" if mode == "auto" else mode,  # what is scanned often is held anyway
            store_path=own["store_path"],
            sample_rows=own["sample_rows"],
            seed=seed,
        )

    def _relax(self, prepared: Prepared, own: SpectralSettings, job: Job) -> Relaxed:
        features = prepared.features
        kept = 1.0 / features.plan.fitted[0].state()["factors"]  # of no steps
        eigenvalues = np.concatenate([[0.0], np.maximum(1.0 - kept, 0.0)])
        k, selection = widest_gap(eigenvalues, own.n_clusters, own.most_clusters)
        objective = float(eigenvalues[:k].sum())
        details = {"eigenvalues_": eigenvalues, "selection_": selection}
        partition = Partition(np.eye(k), np.ones(1), objective, (objective,), details=details)
        return Relaxed(coordinates(features, 0, k), k, 1.0, partition, np.ones(1), 1.0)

    def _store_features(self, prepared: Prepared, rows: Any) -> None:
        super()._store_features(prepared, rows)
        self.anchors_ = prepared.features.plan.fitted[0].state()["anchors"]

    def _store_one_cluster(self, prepared: Prepared, rows: Any) -> None:
        super()._store_one_cluster(prepared, rows)
        self.eigenvalues_, self.selection_ = np.zeros(1), None

    def transform(self, X: Any) -> Any:
        """The embedding: every row's place along the leading eigenvectors, scaled to length 1."""
        return super().transform(X)

    def _facts(self) -> Facts:
        graph: Any = self.kernels_[0]
        return [("anchors", len(self.anchors_)), ("neighbours", graph.k)]

    def _pictures(self) -> list[Picture]:
        *others, sizes = super()._pictures()
        others = [
            picture for picture in others if picture.name != "kernel_weights"
        ]  # of one kernel
        graph = Picture(
            "anchor_graph",
            "Lines join anchors that share rows; black ones lead from cluster to cluster.",
        )
        words = (
            "Of the graph of rows and anchors: as many are near zero as there are parts that hang "
            "together loosely."
        )
        return [*others, graph, Picture("eigenvalues", words, beside=True), sizes]

    def _choice(self) -> Choice | None:
        words = "How far the eigenvalues of the graph rise after every number of clusters."
        return Choice(self.selection_, None, [], words) if self.selection_ else None


def coordinates(features: FeatureMap, kernel: int, n_clusters: int) -> Embedding:
    """The leading directions of a graph kernel of no steps, weighted, with rows of length 1."""
    plan, start = features.plan, features.plan.offsets[kernel]
    factors = plan.fitted[kernel].state()["factors"]
    weights = slow_first(1.0 - 1.0 / factors, n_clusters)
    count = len(weights)
    matrix = np.zeros((plan.offsets[-1], count))
    matrix[start : start + count] = np.diag(factors[:count] * weights)
    offsets = np.zeros((len(plan.fitted), count))
    offsets[kernel] = features.mean[kernel][:count] * weights
    nothing = np.zeros(len(plan.fitted))
    scales = RowScales(plan, np.zeros(plan.offsets[-1]), nothing, np.ones_like(nothing), False)
    return Embedding(scales, matrix, offsets, True)


def widest_gap(
    eigenvalues: np.ndarray, fewest: int, most: int
) -> tuple[int, list[dict[str, Any]] | None]:
    """The number of clusters after which eigenvalues rise most, and the gaps of all numbers."""
    if fewest == most:
        return fewest, None
    numbers = range(fewest, min(most, len(eigenvalues) - 1) + 1)
    if not numbers:
        return fewest, None
    gaps = [float(eigenvalues[m] - eigenvalues[m - 1]) for m in numbers]
    best = int(np.argmax(gaps))
    records = [
        {"n_clusters": m, "eigengap": gap, "score": gap, "chosen": i == best}
        for i, (m, gap) in enumerate(zip(numbers, gaps, strict=True))
    ]
    return numbers[best], records
