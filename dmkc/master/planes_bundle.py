"""The master of a bundle for nonparallel planes: quadratic, group norms and cuts of the losses.

    min over W:  1/2 sum_k w_k.G_k w_k + ridge/2 |W|^2 + c2 sum_G |w_G|_inf + c1 sum_g t_g
    s.t.  t_g >= height_gp + slope_gp.W          (every cut p of every group g of rows)

Solved as one quadratic program with bounding variables for the norms, as problem (17) of Fang and
Liu (2020) is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Bundle:
    """All numbers of a master problem; the last feature of every plane is its bias."""

    grams: np.ndarray
    """(planes, p + 1, p + 1)"""
    heights: np.ndarray
    """(cuts, groups)"""
    slopes: np.ndarray
    """(cuts, groups, planes, p + 1)"""
    edges: np.ndarray
    """Groups of features."""
    together: bool
    """Whether a group of features spans all planes."""
    c1: float
    c2: float
    ridge: float


@dataclass(frozen=True)
class BundleSolution:
    """The master's minimiser."""

    planes: np.ndarray
    """(planes, p + 1)"""
    bound: float
    """A lower bound of the true minimum."""
    shares: np.ndarray
    """(groups, cuts): multipliers of the cuts, which sum to 1 in every group."""


def solve_bundle(bundle: Bundle) -> BundleSolution:
    """Minimise over all planes at once."""
    k, size = bundle.grams.shape[:2]
    n_cuts, n_groups = bundle.heights.shape
    n = k * size
    spans = _spans(bundle)
    n_sizes = int(spans.max()) + 1
    ridge = np.append(np.full(size - 1, bundle.ridge), 0.0)
    H = sp.block_diag([sp.csc_matrix(gram + np.diag(ridge)) for gram in bundle.grams])
    nothing = sp.csc_matrix((n_sizes + n_groups, n_sizes + n_groups))
    P = sp.triu(sp.block_diag([H, nothing]), format="csc")
    q = np.concatenate([np.zeros(n), np.full(n_sizes, bundle.c2), np.full(n_groups, bundle.c1)])

    weights = (np.arange(n).reshape(k, size)[:, :-1]).ravel()
    pick = sp.csr_matrix(
        (np.ones(len(weights)), (np.arange(len(weights)), weights)), (len(weights), n)
    )
    bound = sp.csr_matrix(
        (np.ones(len(weights)), (np.arange(len(weights)), spans)), (len(weights), n_sizes)
    )
    none = sp.csr_matrix((len(weights), n_groups))
    which = np.tile(np.arange(n_groups), n_cuts)
    epigraph = sp.csr_matrix(
        (np.ones(len(which)), (np.arange(len(which)), which)), (len(which), n_groups)
    )
    A = sp.bmat(
        [
            [pick, -bound, none],
            [-pick, -bound, none],
            [sp.csr_matrix(bundle.slopes.reshape(n_cuts * n_groups, n)), None, -epigraph],
        ],
        format="csc",
    )
    b = np.concatenate([np.zeros(2 * len(weights)), -bundle.heights.ravel()])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    cone = [clarabel.NonnegativeConeT(len(b))]
    found = clarabel.DefaultSolver(P, q, A, b, cone, settings).solve()
    planes = np.array(found.x[:n]).reshape(k, size)
    shares = np.maximum(np.array(found.z[-n_cuts * n_groups :]).reshape(n_cuts, n_groups).T, 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return BundleSolution(planes, float(found.obj_val_dual), shares)


def _spans(bundle: Bundle) -> np.ndarray:
    """Which bounding variable every weight (without biases) belongs to."""
    k, group = len(bundle.grams), np.repeat(np.arange(len(bundle.edges) - 1), np.diff(bundle.edges))
    step = 0 if bundle.together else len(bundle.edges) - 1
    return np.concatenate([group + step * r for r in range(k)])
