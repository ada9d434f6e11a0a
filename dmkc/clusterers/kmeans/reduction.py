"""Kernels of any number of rows as small matrices, without loss.

All partition matrices H of kernel k-means lie in the column space of the joint features
Phi = [Phi_1 .. Phi_m].  One scan gives G = Phi^T Phi; with U = Phi T an orthonormal basis of that
space, every kernel becomes S_p = U^T K_p U and every H = U B with a small B.  What follows does not
depend on the number of rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from dmkc.clusterers.prepare import Prepared
from dmkc.kernels.unit import Embedding, RowScales, UnitFeatures
from dmkc.progress import Progress
from dmkc.scan.gram import GramScan
from dmkc.scan.grid import Node

CUT_OFF = 1e-10
"""Directions with less than this part of the largest eigenvalue of G are noise."""


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
