"""The scaled dual as a conic program for Clarabel.

    min  -a.y + l |h.y| + kappa/2 r^2,   y >= 0,  sum y <= budget,  r >= |(|R_k y|)_k|_{2q*}

which is the dual of eq. 2.14 because the q*-norm of the squares is the squared 2q*-norm. Every
cone is homogeneous in (R_k y, r), so no constant has to match the size of the solution. With an
adaptive threshold the linear part leaves the objective and becomes the row a.y - l |h.y| >= 1.
The cuts enter through a QR factor R_k of every kernel's block of their slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import clarabel
import numpy as np
from scipy.sparse import csc_matrix

from dmkc.master.problem import (
    MasterProblem,
    block_norms,
    centred_slopes,
    conjugate,
    kernel_weights,
    unit,
    weights_for,
)


@dataclass(frozen=True)
class ScaledDual:
    """The dual in units in which its numbers are moderate."""

    loss: np.ndarray  # a, (P,)
    sign: np.ndarray | None  # h, (P,); None: the mean score is fixed to zero
    penalty: float | None  # l; None: the constraint h.y = 0
    factors: list[np.ndarray]  # R_k, one for each kernel, (rows, P)
    norm: float  # q
    budget: float  # upper bound of sum y
    curvature: float  # kappa
    adaptive: bool = False  # whether the linear part is a row and not in the objective


@dataclass(frozen=True)
class ConicPoint:
    """What the conic solver found, in the scaled units."""

    multipliers: np.ndarray  # y, (P,)
    weights: np.ndarray  # v in the coordinates of the factors, one block after the other
    mean_score: float  # s0
    shares: np.ndarray | None  # kernel weights up to a factor, for q = 1 only
    threshold: float  # price of the row of the linear part; 1 where it is in the objective
    status: str  # Clarabel's status


@dataclass(frozen=True)
class _Form:
    """The part of the program that says r >= |(|R_k y|)_k|_{2q*}."""

    width: int  # number of columns, those of y and t included
    equal: np.ndarray  # rows of the zero cone
    rows: np.ndarray  # rows of the other cones
    cones: list  # these cones, in order
    squared: slice  # columns whose squares are in the objective
    starts: list[int]  # first row of every R_k within its own kind of rows
    factor: float  # dual value of such a row times this is the entry of v


@lru_cache(maxsize=1)
def _settings() -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    return settings


def _plain(factor: np.ndarray, first: int) -> _Form:
    """One kernel, or q = inf: e = R y and |e|^2 in the objective."""
    count, size = factor.shape
    equal = np.zeros((count, first + count))
    equal[:, :size] = factor
    equal[:, first:] = -np.eye(count)
    width = first + count
    return _Form(width, equal, np.zeros((0, width)), [], slice(first, width), [0], 1.0)


def _largest(factors: list[np.ndarray], first: int) -> _Form:
    """q = 1: |R_k y| <= r for every kernel."""
    size, heights = factors[0].shape[1], [len(factor) + 1 for factor in factors]
    rows = np.zeros((sum(heights), first + 1))
    starts, at = [], 0
    for factor, height in zip(factors, heights, strict=True):
        rows[at, first] = -1
        rows[at + 1 : at + height, :size] = -factor
        starts.append(at + 1)
        at += height
    cones = [clarabel.SecondOrderConeT(height) for height in heights]
    return _Form(
        first + 1, np.zeros((0, first + 1)), rows, cones, slice(first, first + 1), starts, -1.0
    )


def _euclidean(factors: list[np.ndarray], first: int) -> _Form:
    """q = 2: |R_k y|^2 <= w_k r and |w|_2 <= r, with columns w, r."""
    size, count = factors[0].shape[1], len(factors)
    heights = [len(factor) + 2 for factor in factors] + [count + 1]
    last = first + count
    rows = np.zeros((sum(heights), last + 1))
    starts, at = [], 0
    for k, factor in enumerate(factors):
        rows[at : at + 2, first + k] = -1
        rows[at : at + 2, last] = -1, 1
        rows[at + 2 : at + heights[k], :size] = -2 * factor
        starts.append(at + 2)
        at += heights[k]
    rows[at, last] = -1
    rows[at + 1 :, first:last] = -np.eye(count)
    cones = [clarabel.SecondOrderConeT(height) for height in heights]
    return _Form(
        last + 1, np.zeros((0, last + 1)), rows, cones, slice(last, last + 1), starts, -2.0
    )


def _powers(factors: list[np.ndarray], first: int, norm: float) -> _Form:
    """Other q: |R_k y| <= d_k <= x_k^alpha r^(1-alpha), sum x = r, with columns d, x, r."""
    size, count = factors[0].shape[1], len(factors)
    heights = [len(factor) + 1 for factor in factors]
    last = first + 2 * count
    equal = np.zeros((1, last + 1))
    equal[0, first + count : last] = 1
    equal[0, last] = -1
    rows = np.zeros((sum(heights) + 3 * count, last + 1))
    starts, at = [], 0
    for k, factor in enumerate(factors):
        rows[at, first + k] = -1
        rows[at + 1 : at + heights[k], :size] = -factor
        starts.append(at + 1)
        at += heights[k]
    for k in range(count):
        rows[at, first + count + k] = rows[at + 1, last] = rows[at + 2, first + k] = -1
        at += 3
    cones: list = [clarabel.SecondOrderConeT(height) for height in heights]
    cones += [clarabel.PowerConeT(1 / (2 * conjugate(norm)))] * count
    return _Form(last + 1, equal, rows, cones, slice(last, last + 1), starts, -1.0)


def _form(dual: ScaledDual, first: int) -> _Form:
    if len(dual.factors) == 1:
        return _plain(dual.factors[0], first)
    if dual.norm == 1:
        return _largest(dual.factors, first)
    if dual.norm == 2:
        return _euclidean(dual.factors, first)
    return _powers(dual.factors, first, dual.norm)


def _sparse(dense: np.ndarray) -> csc_matrix:
    transposed = np.ascontiguousarray(dense.T)
    columns, rows = np.nonzero(transposed)
    starts = np.zeros(dense.shape[1] + 1, dtype=np.int64)
    np.cumsum(np.bincount(columns, minlength=dense.shape[1]), out=starts[1:])
    return csc_matrix((transposed[columns, rows], rows, starts), shape=dense.shape)


def solve_conic(dual: ScaledDual) -> ConicPoint:
    """Solve the scaled dual."""
    size = dual.loss.size
    penalised = dual.sign is not None and dual.penalty is not None
    tied = dual.sign is not None and dual.penalty is None
    form = _form(dual, size + penalised)
    gained = size + 1 + 2 * penalised  # the row of the linear part, if there is one
    below, equal = gained + dual.adaptive, int(tied) + len(form.equal)
    matrix = np.zeros((equal + below + len(form.rows), form.width))
    if tied:
        matrix[0, :size] = dual.sign
    matrix[int(tied) : equal] = form.equal
    matrix[equal : equal + size, :size] = -np.eye(size)
    matrix[equal + size, :size] = 1 / max(1.0, dual.budget)
    if penalised:
        matrix[equal + size + 1, :size] = dual.sign
        matrix[equal + size + 2, :size] = -dual.sign  # type: ignore[operator]
        matrix[equal + size + 1 : equal + gained, size] = -1
    matrix[equal + below :] = form.rows
    bounds = np.zeros(len(matrix))
    bounds[equal + size] = dual.budget / max(1.0, dual.budget)
    linear = np.zeros(form.width)
    linear[:size] = -dual.loss
    if penalised:
        linear[size] = dual.penalty
    costs = linear
    if dual.adaptive:
        matrix[equal + gained], bounds[equal + gained] = linear, -1
        costs = np.zeros(form.width)
    squares = np.arange(form.squared.start, form.squared.stop)
    starts = np.zeros(form.width + 1, dtype=np.int64)
    starts[squares + 1] = 1
    curvature = csc_matrix(
        (np.full(squares.size, dual.curvature), squares, np.cumsum(starts)),
        shape=(form.width, form.width),
    )
    cones = [clarabel.ZeroConeT(equal)] if equal else []
    cones += [clarabel.NonnegativeConeT(below), *form.cones]
    found = clarabel.DefaultSolver(
        curvature, costs, _sparse(matrix), bounds, cones, _settings()
    ).solve()
    primal, price = np.array(found.x), np.array(found.z)
    score = 0.0
    if tied:
        score = price[0]
    elif penalised:
        score = price[equal + size + 1] - price[equal + size + 2]
    origin = int(tied) if form.factor > 0 else equal + below
    weights = form.factor * np.concatenate(
        [
            price[origin + start : origin + start + len(factor)]
            for start, factor in zip(form.starts, dual.factors, strict=True)
        ]
    )
    ties = dual.norm == 1 and len(dual.factors) > 1
    shares = price[[origin + start - 1 for start in form.starts]] if ties else None
    threshold = float(price[equal + gained]) if dual.adaptive else 1.0
    return ConicPoint(primal[:size], weights, float(score), shares, threshold, str(found.status))


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
