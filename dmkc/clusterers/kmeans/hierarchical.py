"""Hierarchical multiple-kernel k-means with sparse connections, at any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmkc.clusterers.base import Job
from dmkc.clusterers.estimator import Picture
from dmkc.clusterers.kmeans.partitions import (
    LEAST_BASIS,
    PartitionClusterer,
    Reduction,
    Settings,
)
from dmkc.clusterers.parameters import Integer, Integers, Number, OneOf, Parameter, shared
from dmkc.errors import UserError
from dmkc.master.partition import (
    Hierarchy,
    Partition,
    chain_masks,
    consensus_of,
    fit_layers,
    random_masks,
    tie_breaker,
)
from dmkc.scan.engine import ThreadEngine
from dmkc.typing import MaybeClient, RandomState

NODES = (12, 8)
SPARSITY = 0.6
MASKS, LEAST_MASKS = 15, 5
"""Draws of the connections, and of many clusters at least."""


@dataclass(frozen=True)
class LayerSettings(Settings):
    """Parameters of the hierarchy, checked."""

    nodes: tuple[int, ...] | None
    """None: one per kernel in every layer, each joined to one."""
    widths: tuple[int, ...]
    sparsity: float
    n_masks: int
    tie_break: float


def draws_for(directions: int) -> int:
    """Draws where the kernels keep so many directions: the more they are, the longer each takes."""
    return max(LEAST_MASKS, min(MASKS, round(MASKS * (LEAST_BASIS / directions) ** 2)))


class HierarchicalKernelKMeans(PartitionClusterer):
    """Kernel k-means through layers of ever smaller partitions, joined by sparse connections.

    Kernels are distilled into a layer of partitions with more dimensions than clusters, these into
    a smaller layer, and so on to the clusters; weights of all connections are learned [1]_.  Which
    connections exist is drawn at random, and the result depends on it: by default the consensus of
    several draws is taken.  After one pass over the rows everything is on small matrices.

    Attributes
    ----------
    labels_ : labels of the rows, in the form of X; clusters are numbered by decreasing size.
    kernel_weights_ : ndarray, how much every kernel counts in the end, of sum 1.
    kernels_ : the kernels with the widths that were used.
    connections_ : list over draws of lists over layers of ndarray, weights of the connections (a
        row per node, 0 where there is none).
    layer_weights_ : list over draws of lists over layers of ndarray, weights of the nodes.
    consensus_weights_ : list over draws of ndarray, weights of the last layer's nodes.
    agreement_ : ndarray of shape (draws, draws), how alike the partitions of two draws are: 1 when
        they are the same.
    objective_ : float, what was maximised, averaged over the draws.
    objectives_ : ndarray, the objective of the first draw after every sweep; it never falls.
    inertia_ : float, of the embedded rows, in which k-means found the clusters.
    captured_ : float, share of the kernels that the reduction holds.
    n_iter_ : int, sweeps of the first draw.
    converged_ : bool, whether the objectives of all draws settled before max_iter.
    n_scans_ : int, passes over all rows.
    history_ : list of dict, one per step of k-means on all rows.
    model_ : PartitionModel, all that `predict` needs.

    References
    ----------
    .. [1] L. Wang, L. Du, P. Zhou. Hierarchical Multiple Kernel K-Means Algorithm Based on Sparse
       Connectivity. Computer Science 50(2), 2023.

    Examples
    --------
    >>> from dmkc import HierarchicalKernelKMeans
    >>> from dmkc.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, seed=0)
    >>> model = HierarchicalKernelKMeans(2, kernels=["linear", "gaussian"], random_state=0).fit(X)
    >>> model.agreement_.shape
    (15, 15)
    """

    summary = "kernel k-means through layers of ever smaller partitions"
    declared = (
        shared.N_CLUSTERS,
        shared.TWELVE,
        Parameter(
            "nodes",
            Integers(none=True),
            None,
            """Nodes of every layer.  None is 12 and 8; with ``connections="chain"`` there is one
            per kernel.""",
        ),
        Parameter(
            "widths",
            Integers(),
            (4, 2),
            """Dimensions of the partitions of every layer, in multiples of n_clusters,
            decreasing.""",
        ),
        Parameter(
            "sparsity",
            Number(least=0, none=True),
            None,
            """Share of the connections that do not exist.  None is 0.6; 0 joins all nodes of
            neighbouring layers, which makes the nodes of a layer all the same.""",
        ),
        Parameter(
            "connections",
            OneOf(("random", "chain")),
            "random",
            """"chain" joins every node to one node of the layer before (hierarchical
            multiple-kernel clustering).""",
        ),
        Parameter(
            "n_masks",
            Integer(least=1, most=shared.MOST_TRIES, none=True),
            None,
            """Draws of the connections whose consensus is taken.  None is 15, fewer (at least 5)
            for more than 25 clusters, since a draw takes the time of their cube, or 1 where nothing
            is drawn.""",
        ),
        Parameter(
            "tie_break",
            Number(least=0),
            0.01,
            """Share of the average kernel that settles ties between eigenvectors, which rounding
            would decide otherwise.""",
        ),
        shared.NORMALISE,
        shared.SCALE,
        shared.OPEN_RANK,
        shared.LANDMARKS,
        shared.MAX_FEATURES,
        shared.K_MEANS_STARTS,
        shared.TOL_OR_ZERO,
        shared.MAX_ITER.but(text="Largest number of sweeps over all layers."),
        shared.SAMPLE_ROWS,
        shared.TRAIN_ROWS,
        shared.POLISH_STEPS,
        shared.RECOMPUTED,
        shared.STORE_PATH,
        *shared.RUNNING,
    )

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernels: Any = None,
        nodes: Any = None,
        widths: Any = (4, 2),
        sparsity: float | None = None,
        connections: str = "random",
        n_masks: int | None = None,
        tie_break: float = 0.01,
        normalise: str = "cosine",
        scale: str | None = "if-mixed",
        rank: int | None = None,
        landmarks: str | np.ndarray = "uniform",
        max_features: int = 2048,
        n_init: int = 10,
        tol: float = 1e-5,
        max_iter: int = 50,
        sample_rows: int = 8192,
        train_rows: float | None = None,
        polish: int = 0,
        feature_mode: str = "auto",
        store_path: str | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        client: MaybeClient = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.nodes = nodes
        self.widths = widths
        self.sparsity = sparsity
        self.connections = connections
        self.n_masks = n_masks
        self.tie_break = tie_break
        self.normalise = normalise
        self.scale = scale
        self.rank = rank
        self.landmarks = landmarks
        self.max_features = max_features
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.sample_rows = sample_rows
        self.train_rows = train_rows
        self.polish = polish
        self.feature_mode = feature_mode
        self.store_path = store_path
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def _own_settings(self, n_rows: int | None) -> LayerSettings:
        common, own = super()._own_settings(n_rows), self._checked()
        chain = own["connections"] == "chain"
        for name in ("nodes", "sparsity"):
            if chain and own[name] is not None:
                raise UserError(
                    f'`{name}` goes with `connections="random"`; a chain has no choice.'
                )
        sparsity = SPARSITY if own["sparsity"] is None else own["sparsity"]
        if sparsity >= 1:
            raise UserError(f"`sparsity` must be below 1, not {self.sparsity!r}.")
        drawn = not chain and sparsity > 0
        if not drawn and own["n_masks"] not in (None, 1):
            raise UserError("`n_masks` goes with random connections: here every draw is the same.")
        widths, n_masks = own["widths"], own["n_masks"]
        if n_masks is None:
            n_masks = draws_for(self._directions(widths)) if drawn else 1
        nodes = NODES if own["nodes"] is None else own["nodes"]
        if list(widths) != sorted(widths, reverse=True):
            raise UserError(f"`widths` must not increase from layer to layer, but are {widths}.")
        if not chain and len(nodes) != len(widths):
            raise UserError(
                f"`nodes` and `widths` must name the same number of layers, not {len(nodes)} and "
                f"{len(widths)}."
            )
        return LayerSettings(
            **vars(common),
            nodes=None if chain else nodes,
            widths=tuple(w * common.n_clusters for w in widths),
            sparsity=sparsity,
            n_masks=n_masks,
            tie_break=own["tie_break"],
        )

    def _most_directions(self) -> int:
        return self._directions(self._checked()["widths"])

    def _directions(self, widths: Sequence[int]) -> int:
        return max(super()._most_directions(), 2 * self.n_clusters * max(widths))

    def _partition(self, reduction: Reduction, own: LayerSettings, job: Job) -> Partition:
        kernels, m = reduction.kernels, len(reduction.kernels)
        widths = tuple(min(w, reduction.size) for w in own.widths)
        rng = np.random.default_rng([job.seed, 6])
        draws = []
        for _ in range(own.n_masks):
            if own.nodes is None:
                masks = chain_masks(m, len(widths))
            else:
                masks = random_masks(m, own.nodes, own.sparsity, rng)
            draws.append(Hierarchy(widths, masks, own.tol, own.max_iter))
        extra = tie_breaker(kernels, own.tie_break)
        with ThreadPoolExecutor(ThreadEngine().threads) as pool:  # LAPACK releases the GIL
            states = list(
                pool.map(lambda one: fit_layers(kernels, own.n_clusters, one, extra), draws)
            )
        for draw, state in enumerate(states, start=1):
            job.progress.say(
                f"connections {draw} of {own.n_masks}: objective {state.values[-1]:.6g} after "
                f"{len(state.values) - 1} sweeps"
            )
        found = consensus_of(own.n_clusters, states)
        for layers_of_draw in found.details["connections_"]:
            wide = np.zeros((len(layers_of_draw[0]), len(reduction.unit.features.kernels)))
            wide[:, reduction.alive] = layers_of_draw[0]
            layers_of_draw[0] = wide
        return found

    def _pictures(self) -> list[Picture]:
        words = "Lines are connections, the thicker the heavier; of several draws the first."
        if self._fitted("connections_") is None:  # of a single cluster there are no layers
            return super()._pictures()
        first, *others = super()._pictures()
        return [first, Picture("layers", words), *others]
