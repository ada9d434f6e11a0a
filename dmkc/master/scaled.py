"""The cuts in a solver's units, and weight vectors back from them.

The cuts enter the cone program through a QR factor of every kernel's block of their slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .conic import ConicPoint
from .norms import block_norms, centred_slopes, kernel_weights, unit, weights_for
from .problem import MasterProblem


@dataclass(frozen=True)
class ScaledCuts:
    """The cuts in the solver's units."""

    slopes: np.ndarray  # g_p - h_p m, (P, D), not scaled
    bases: list[np.ndarray | None]  # Q_k with slopes_k^T = size Q_k R_k; None is the identity
    factors: list[np.ndarray]  # R_k
    size: float  # unit of the slopes
    top: float  # unit of the losses


def factorise(problem: MasterProblem, top: float) -> ScaledCuts:
    """Scale and factorise the slopes of the cuts."""
    slopes = centred_slopes(problem)
    # For q = inf all kernels count alike, so they are one block to the solver.
    offsets = (0, problem.offsets[-1]) if np.isinf(problem.norm) else problem.offsets
    size = float(np.sqrt(np.einsum("ij,ij->i", slopes, slopes).max())) or 1.0
    bases: list[np.ndarray | None] = []
    factors = []
    for start, stop in pairwise(offsets):
        block = slopes[:, start:stop].T / size
        if stop - start <= len(slopes):
            bases.append(None)
            factors.append(block)
        else:
            basis, factor = np.linalg.qr(block)
            bases.append(basis)
            factors.append(factor)
    return ScaledCuts(slopes, bases, factors, size, top)


def candidate_weights(
    problem: MasterProblem,
    scaled: ScaledCuts,
    point: ConicPoint,
    combined: np.ndarray,
    unit_weight: float,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same weights v twice, each with its kernel weights.

    They come from u = `combined`, the cuts times their multipliers, and from the solver's own dual
    variables.  The second meets the cuts to the solver's tolerance, the first only to its root.
    """
    offsets, norm = problem.offsets, problem.norm
    if point.shares is not None and combined.any():
        beta = unit(np.maximum(point.shares, 0.0), norm)
    else:
        beta = kernel_weights(block_norms(combined, offsets) ** 2, norm)
    candidates = [(np.repeat(beta, np.diff(offsets)) * combined, beta)]
    parts, at = [], 0
    for basis, factor in zip(scaled.bases, scaled.factors, strict=True):
        part = point.weights[at : at + len(factor)]
        parts.append(part if basis is None else basis @ part)
        at += len(factor)
    direct = np.concatenate(parts) * unit_weight
    if np.isfinite(direct).all():
        candidates.append((direct, weights_for(direct, offsets, norm)))
    return candidates
