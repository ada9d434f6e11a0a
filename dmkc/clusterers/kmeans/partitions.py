"""What all kernel k-means methods share: reduction, partition, embedding, k-means.

A method says how it finds a relaxed partition of the reduced kernels (`_partition`); the rest is
the same for all: a scan for the means, one for the inner products of all features, small matrices
on the coordinator, a pass that embeds the rows, k-means on them.

The reduction loses nothing.  All partition matrices H of kernel k-means lie in the column space of
the joint features Phi = [Phi_1 .. Phi_m].  One scan gives G = Phi^T Phi; with U = Phi T an
orthonormal basis of that space, every kernel becomes S_p = U^T K_p U and every H = U B with a small
B.  What follows does not depend on the number of rows.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from dmkc.clusterers.base import Job, KernelClusterer
from dmkc.clusterers.estimator import Facts, landmarks_fact
from dmkc.clusterers.fits import MAX_ITER_REACHED, FitEnd, Learned, Named
from dmkc.clusterers.kmeans.embedded import (
    PartitionModel,
    cluster_embedded,
    embedded_points,
    from_runs,
)
from dmkc.clusterers.kmeans.lloyd import Run, reporter
from dmkc.clusterers.labelling import Pipeline
from dmkc.clusterers.model import size_order
from dmkc.clusterers.prepare import FeatureSettings, Prepared
from dmkc.clusterers.rowset import RowSet
from dmkc.data import Rows
from dmkc.errors import UserError
from dmkc.kernels import FeatureMap, Kernel, as_bank
from dmkc.kernels.unit import Embedding, RowScales, UnitFeatures
from dmkc.master.partition import Partition
from dmkc.progress import Progress
from dmkc.scan.assign import GramScan
from dmkc.scan.grid import Node
from dmkc.typing import PerRow, TableLike

CUT_OFF = 1e-10
"""Directions with less than this part of the largest eigenvalue of G are noise."""
RANKS = 100, 300
"""Landmarks when the number is left open: eight per cluster, within these bounds."""
LEAST_BASIS = 200
"""Directions of the reduction that are kept at least, if there are as many."""


@dataclass(frozen=True)
class Reduction:
    """Kernel matrices in one orthonormal basis of their joint features."""

    unit: UnitFeatures
    basis: np.ndarray
    """T: features x directions."""
    kernels: np.ndarray
    """S_p of the kernels that are not constant: kernels x directions x directions."""
    traces: np.ndarray
    """Traces of these kernels, from their own k(x, x)."""
    alive: np.ndarray
    """Numbers of these kernels in the bank."""
    total: float
    """Weight of all rows."""
    captured: float
    """Share of the summed squared features that lies in the basis."""

    @property
    def size(self) -> int:
        return self.kernels.shape[1]

    def embedding(self, coefficients: np.ndarray, unit_rows: bool) -> Embedding:
        """Rows of H = U B as functions of raw columns."""
        return self.unit.embedding(self.basis @ coefficients, unit_rows)

    def weights(self, alive_weights: np.ndarray) -> np.ndarray:
        """Weights of all kernels of the bank; a constant one has none."""
        out = np.zeros(len(self.unit.features.kernels))
        out[self.alive] = alive_weights
        return out


def reduce(
    prepared: Prepared, cosine: bool, max_features: int, max_basis: int, progress: Progress
) -> Reduction:
    """One scan of all rows, one eigenproblem."""
    sample = prepared.sample
    scales = RowScales.of(prepared.features, sample.record, sample.weights, cosine)
    unit = UnitFeatures(prepared.features, scales)
    unit = unit.compressed(sample.record, sample.weights, max_features)
    size = unit.offsets[-1]
    progress.say(
        f"{size} joint features of {len(scales.squares)} kernels; the coordinator holds "
        f"{8e-6 * size * (3 * size + len(scales.squares) * min(size, max_basis)):.0f} MB at most"
    )
    rows = prepared.all_rows
    sums = rows.run(GramScan(unit))
    began = time.perf_counter()
    reduction = reduction_of(unit, sums, max_basis)
    progress.say(
        f"{reduction.size} directions hold {100 * reduction.captured:.4g} % of the kernels "
        f"({time.perf_counter() - began:.1f} s on the coordinator)"
    )
    return reduction


def reduction_of(unit: UnitFeatures, sums: Node, max_basis: int) -> Reduction:
    """The basis of the leading directions of G, and the kernels in it."""
    gram, traces, total = sums
    size = len(gram)
    lead = [max(0, size - max_basis), size - 1]
    values, vectors = eigh((gram + gram.T) / 2, subset_by_index=lead)
    keep = np.flatnonzero(values > CUT_OFF * values[-1])[::-1]
    basis = vectors[:, keep] / np.sqrt(values[keep])
    alive = np.flatnonzero(traces > 0)
    kernels = []
    for p in alive:
        block = slice(unit.offsets[p], unit.offsets[p + 1])
        part = basis.T @ gram[:, block]
        kernels.append(part @ part.T)
    captured = float(values[keep].sum() / np.trace(gram))
    return Reduction(unit, basis, np.stack(kernels), traces[alive], alive, total[0], captured)


@dataclass(frozen=True)
class Settings:
    """Parameters that all kernel k-means methods have, checked."""

    n_clusters: int
    cosine: bool
    n_init: int
    max_features: int
    tol: float
    max_iter: int


@dataclass(frozen=True)
class PartitionFit(FitEnd):
    """A relaxed partition, the space that it spans, and the clusters of the rows there."""

    embedding: Embedding
    partition: Partition
    kernel_weights: np.ndarray
    mean_square: float
    """Mean of the squared embedded rows."""
    captured: float
    run: Run


@dataclass(frozen=True)
class Relaxed:
    """Clusters without labels yet: the space in which k-means finds them."""

    embedding: Embedding
    n_clusters: int
    mean_square: float
    """Of embedded rows, about."""
    partition: Partition
    kernel_weights: np.ndarray
    captured: float
    """Share of the kernels that the embedding was found in."""


PartitionLearned = Learned[PartitionFit, Settings]


class EmbeddedClusterer(KernelClusterer):
    """Base of methods that end with k-means on rows of an embedding, a `PartitionModel`."""

    model_: Any
    _model_class = PartitionModel
    n_init: int
    sample_rows: int
    feature_mode: str
    store_path: str | None
    _has_scores = False
    _scored = "sum"
    _rounds = "iterations"
    _minimised = "inertia"

    @abstractmethod
    def _relax(self, prepared: Prepared, own: Any, job: Job) -> Relaxed:
        """The space in which k-means is to find the clusters."""

    def _learn(self, prepared: Prepared, job: Job) -> PartitionLearned | None:
        if job.own.n_clusters == 1:
            return None
        relaxed = self._relax(prepared, job.own, job)
        sample = prepared.sample
        embedding = relaxed.embedding.turned(sample.record, sample.weights)
        found, mean_square = cluster_embedded(
            embedding,
            sample,
            prepared.all_rows,
            relaxed.mean_square,
            relaxed.n_clusters,
            job.own.n_init,
            job.seed,
            job.progress,
            None if job.start is None else job.start.label_pipeline()(prepared.survey.sample),
        )
        partition = relaxed.partition
        fit = PartitionFit(
            embedding,
            partition,
            relaxed.kernel_weights,
            mean_square,
            relaxed.captured,
            found.value,
            shares=found.value.shares,
            n_iter=max(len(partition.values), 1),
            converged=partition.converged,
            reason=MAX_ITER_REACHED,
        )
        return Learned(fit, found.name, job.own, details=partition.details)

    def _continue_on_all_rows(
        self, learned: PartitionLearned, features: FeatureMap, rows: RowSet, job: Job
    ) -> PartitionLearned:
        fit = learned.fit
        points, mean_square = embedded_points(rows, fit.embedding, fit.mean_square)
        stage = from_runs(points, mean_square, self.polish, reporter(job.progress, "all"))
        (found,) = stage.run([Named(learned.start, fit.run)])
        rows.n_scans += points.n_scans
        return replace(learned, fit=replace(fit, run=found.value, shares=found.value.shares))

    def _store_fit(self, learned: PartitionLearned, prepared: Prepared, rows: Rows) -> None:
        fit = learned.fit
        model = PartitionModel(fit.embedding, fit.run.centres)
        order = size_order(fit.shares, model.label_pipeline(), rows)
        self.model_ = model.in_order(order)
        self.kernel_weights_ = fit.kernel_weights
        self.objective_ = fit.partition.objective
        self.objectives_ = np.array(fit.partition.values)
        self.inertia_ = fit.run.inertia
        self.captured_ = fit.captured

    def _store_one_cluster(self, prepared: Prepared, rows: Rows) -> None:
        columns: Any = prepared.features.plan
        n_kernels = len(self.kernels_)
        nothing = np.zeros(n_kernels)
        scales = RowScales(columns, np.zeros(columns.offsets[-1]), nothing, nothing, False)
        flat = np.zeros((columns.offsets[-1], 1))
        embedding = Embedding(scales, flat, np.zeros((n_kernels, 1)), True)
        self.model_ = PartitionModel(embedding, np.zeros((1, 1)))
        self.kernel_weights_ = np.full(n_kernels, 1.0 / n_kernels)
        self.objective_ = self.inertia_ = 0.0
        self.objectives_, self.captured_ = np.zeros(0), 1.0

    def _losses(self) -> Pipeline:
        return self.model_.distance_pipeline()

    def transform(self, X: TableLike) -> PerRow:
        """Every row's coordinates in the space in which k-means found the clusters."""
        return super().transform(X)

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(np.float64)


class PartitionClusterer(EmbeddedClusterer):
    """Base of kernel k-means methods."""

    kernels: Any
    rank: Any
    landmarks: Any
    scale: str | None
    normalise: str
    max_features: int
    max_iter: int

    @abstractmethod
    def _partition(self, reduction: Reduction, own: Any, job: Job) -> Partition:
        """A relaxed partition of the reduced kernels."""

    def _bank(self) -> Any:
        return self._default_kernels() if self.kernels is None else self.kernels

    def _default_kernels(self) -> tuple[Kernel, ...]:
        return as_bank("twelve")

    def _coordinates(
        self, reduction: Reduction, partition: Partition
    ) -> tuple[np.ndarray, bool, float]:
        """B, whether embedded rows get length 1, and their mean square."""
        return partition.coefficients, True, 1.0

    def _most_directions(self) -> int:
        """Directions that the reduction keeps at most."""
        return max(LEAST_BASIS, 8 * self.n_clusters)

    def _own_settings(self, n_rows: int | None) -> Settings:
        own = self._checked()
        return Settings(
            n_clusters=own["n_clusters"],
            cosine=own["normalise"] == "cosine",
            n_init=own["n_init"],
            max_features=own["max_features"],
            tol=float(self.tol),  # which one kernel has no use for, and does not declare
            max_iter=int(self.max_iter),
        )

    def _feature_settings(self, seed: int) -> FeatureSettings:
        own = self._checked()
        mode, (few, many) = own["feature_mode"], RANKS
        open_rank = min(max(few, 8 * own["n_clusters"]), many)
        return FeatureSettings(
            kernels=self._kernels(),
            scale=own["scale"],
            rank=open_rank if own["rank"] is None else own["rank"],
            landmarks=self.landmarks,
            dtype="float64",  # inner products of whitened float32 columns are noise
            mode="recompute" if mode == "auto" else mode,  # three passes: holding does not pay
            store_path=self.store_path,
            sample_rows=own["sample_rows"],
            seed=seed,
            diagonals=True,
        )

    def _relax(self, prepared: Prepared, own: Any, job: Job) -> Relaxed:
        """The relaxed partition of all rows, from one scan for the inner products of features."""
        k = own.n_clusters
        reduction = reduce(
            prepared, own.cosine, own.max_features, self._most_directions(), job.progress
        )
        if reduction.size < k:
            raise UserError(
                f"The kernels have only {reduction.size} directions on these rows, too few for "
                f"{k} clusters: choose other kernels, or increase `rank`."
            )
        partition = self._partition(reduction, own, job)
        coefficients, unit_rows, mean_square = self._coordinates(reduction, partition)
        embedding = reduction.embedding(coefficients, unit_rows)
        weights = reduction.weights(partition.kernel_weights)
        return Relaxed(embedding, k, mean_square, partition, weights, reduction.captured)

    def _facts(self) -> Facts:
        return [landmarks_fact(self)]
