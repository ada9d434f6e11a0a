"""Multiple-kernel k-means on small matrices: partitions, kernel weights, and layers of partitions.

Kernels come as S_p = U^T K_p U in an orthonormal basis U, with the traces of the K_p; a partition
matrix is H = U B with orthonormal B (the relaxation of kernel k-means).  Nothing here depends on
the number of rows.

In hierarchical multiple-kernel k-means (Wang, Du, Zhou, 2023), between the kernels and the final
partition lie layers of partitions, each joined to some of the layer before by a 0/1 mask.  With
M = S_p for kernels and M = B B^T for partitions, the objective is

    sum over layers, nodes i of gamma_i sum_j D_ij W_ij <M_j, M_i>  +  sum_i beta_i <M_i, B B^T>

over orthonormal B and weights W_i, gamma, beta of unit length, and is maximised block by block.
The printed updates are corrected as the documentation says.  Where a node sees projectors only,
or kernels with fewer directions than it wants, eigenvalues tie and rounding would decide: a small
multiple of the average kernel settles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, eigvalsh

SMALLEST_STEP = 1e-12
FEW = 1 / 6
"""Part of all eigenvectors beyond which finding all of them at once is faster than some of them."""


@dataclass(frozen=True)
class Partition:
    """A relaxed partition and the kernel weights it goes with."""

    coefficients: np.ndarray
    """B: directions x clusters, orthonormal."""
    kernel_weights: np.ndarray
    objective: float
    values: tuple[float, ...] = ()
    """The objective after every iteration."""
    converged: bool = True
    details: dict[str, Any] = field(default_factory=dict)
    """Fitted attributes that only this method has, by name."""


def leading(matrix: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal eigenvectors of the largest eigenvalues, the largest first."""
    size = len(matrix)
    if count >= size:
        return np.eye(size)
    if count > FEW * size:
        _, every = eigh(matrix, driver="evd", check_finite=False)
        return every[:, : size - count - 1 : -1]
    _, vectors = eigh(matrix, subset_by_index=[size - count, size - 1], check_finite=False)
    return vectors[:, ::-1]


def combined(kernels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.tensordot(weights, kernels, axes=1)


def shares_of(kernels: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """tr(H^T K_p H) of every kernel."""
    return np.einsum("pij,ik,jk->p", kernels, coefficients, coefficients, optimize=True)


def average(kernels: np.ndarray, traces: np.ndarray, k: int) -> Partition:
    """Kernel k-means of the average kernel: min tr(K (I - H H^T))."""
    weights = np.full(len(kernels), 1.0 / len(kernels))
    found = leading(combined(kernels, weights), k)
    value = float(weights @ (traces - shares_of(kernels, found)))
    return Partition(found, weights, value, (value,))


def mkkm(
    kernels: np.ndarray, traces: np.ndarray, k: int, tol: float, max_iter: int, penalty: float
) -> Partition:
    """min over H and w >= 0, sum w = 1 of tr(K_w (I - H H^T)) + lambda/2 w^T M w.

    K_w = sum w_p^2 K_p and M_pq = tr(K_p K_q).  Without penalty this is multiple-kernel k-means,
    with it the matrix-induced regularisation of Liu et al. (2016), whose lambda depends on the
    number of rows: here it is `penalty` times the ratio of the mean trace to the mean of M.  Both
    steps are exact, so that the objective never rises.
    """
    m = len(kernels)
    flat = kernels.reshape(m, -1)
    related = flat @ flat.T
    related *= penalty * float(traces.mean()) / float(related.mean())
    weights = np.full(m, 1.0 / m)
    values: list[float] = []
    for _ in range(max_iter):
        found = leading(combined(kernels, weights**2), k)
        losses = np.maximum(traces - shares_of(kernels, found), 0.0)
        weights = _simplex_minimum(2.0 * np.diag(losses) + related, weights)
        values.append(float(weights**2 @ losses + 0.5 * weights @ related @ weights))
        if len(values) > 1 and values[-2] - values[-1] <= tol * abs(values[-2]):
            return Partition(found, weights, values[-1], tuple(values))
    return Partition(found, weights, values[-1], tuple(values), converged=False)


def simple_mkkm(
    kernels: np.ndarray, traces: np.ndarray, k: int, tol: float, max_iter: int
) -> Partition:
    """min over w >= 0, sum w = 1 of max over H of tr(K_w H H^T), K_w = sum w_p^2 K_p.

    SimpleMKKM of Liu et al. (2020): the inner maximum is a differentiable function of w, which is
    lowered along reduced gradients as in SimpleMKL.  The function is convex, so that the minimum is
    the global one.
    """
    weights = np.full(len(kernels), 1.0 / len(kernels))
    value, gradient, found = _peak(kernels, weights, k)
    values = [value]
    for _ in range(max_iter):
        direction = _reduced(weights, gradient)
        slope = float(gradient @ direction)
        falling = direction < 0
        if slope >= -SMALLEST_STEP * abs(value) or not falling.any():
            return Partition(found, weights, value, tuple(values))
        longest = float(np.min(-weights[falling] / direction[falling]))
        step = _line_minimum(kernels, weights, direction, longest, slope, value, k)
        weights = np.maximum(weights + step * direction, 0.0)
        weights /= weights.sum()
        before = value
        value, gradient, found = _peak(kernels, weights, k)
        values.append(value)
        if before - value <= tol * abs(before):
            return Partition(found, weights, value, tuple(values))
    return Partition(found, weights, value, tuple(values), converged=False)


def _peak(kernels: np.ndarray, weights: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """max over H of tr(K_w H H^T), its gradient in w, and that H."""
    found = leading(combined(kernels, weights**2), k)
    shares = shares_of(kernels, found)
    return float(weights**2 @ shares), 2.0 * weights * shares, found


def _reduced(weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A descent direction that keeps the sum of the weights and their signs."""
    base = int(np.argmax(weights))
    direction = gradient[base] - gradient
    direction[(weights <= 0) & (direction < 0)] = 0.0
    direction[base] = 0.0
    direction[base] = -direction.sum()
    return direction


def _line_minimum(
    kernels: np.ndarray,
    weights: np.ndarray,
    direction: np.ndarray,
    longest: float,
    slope: float,
    value: float,
    k: int,
) -> float:
    """A step with sufficient decrease (Armijo), from the longest one that is allowed."""
    step = longest
    while step > SMALLEST_STEP * longest:
        trial, _, _ = _peak(kernels, np.maximum(weights + step * direction, 0.0), k)
        if trial <= value + 1e-3 * step * slope:
            return step
        step *= 0.5
    return 0.0


def _simplex_minimum(matrix: np.ndarray, start: np.ndarray) -> np.ndarray:
    """min of w^T matrix w / 2 over the simplex; in closed form where matrix is diagonal."""
    m = len(matrix)
    diagonal = np.diag(matrix)
    if np.count_nonzero(matrix - np.diag(diagonal)) == 0:
        if (diagonal <= 0).any():
            none = (diagonal <= 0).astype(np.float64)
            return none / none.sum()
        return (1.0 / diagonal) / (1.0 / diagonal).sum()
    size = float(np.abs(matrix).max())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(matrix / size)),
        np.zeros(m),
        sp.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)])),
        np.concatenate([[1.0], np.zeros(m)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)],
        settings,
    ).solve()
    weights = np.maximum(np.array(solution.x), 0.0)
    if not np.isfinite(weights).all() or weights.sum() <= 0:
        return start
    weights /= weights.sum()
    # losses of very different sizes are beyond the solver: it may end above where it began
    return weights if weights @ matrix @ weights <= start @ matrix @ start else start


@dataclass(frozen=True)
class Hierarchy:
    """Layers between kernels and clusters."""

    widths: tuple[int, ...]
    """Dimensions of the partitions of every layer, decreasing."""
    masks: tuple[np.ndarray, ...]
    """Connections of every layer's nodes to those of the layer before."""
    tol: float
    max_iter: int


@dataclass(frozen=True)
class State:
    """One run's partitions and weights."""

    nodes: tuple[np.ndarray, ...]
    """B B^T of every node, layer by layer."""
    top: np.ndarray
    """B B^T of the clusters."""
    weights: tuple[np.ndarray, ...]
    """W, masked, a row of unit length per node."""
    gammas: tuple[np.ndarray, ...]
    betas: np.ndarray
    values: tuple[float, ...] = ()
    converged: bool = False


def tie_breaker(kernels: np.ndarray, share: float) -> np.ndarray:
    """The average kernel, scaled to the given largest eigenvalue."""
    mean = combined(kernels, np.full(len(kernels), 1.0 / len(kernels)))
    largest = float(eigvalsh(mean, subset_by_index=[len(mean) - 1] * 2)[0])
    return share * mean / max(largest, 1e-300)


def fit_layers(kernels: np.ndarray, k: int, settings: Hierarchy, extra: np.ndarray) -> State:
    """Sweeps over all blocks until the objective no longer rises."""
    state = _forward(kernels, k, settings, extra)
    values = [objective(kernels, state, extra)]
    for _ in range(settings.max_iter):
        state = sweep(kernels, k, state, settings, extra)
        values.append(objective(kernels, state, extra))
        if values[-1] - values[-2] <= settings.tol * abs(values[-2]):
            return replace(state, values=tuple(values), converged=True)
    return replace(state, values=tuple(values))


def sweep(
    kernels: np.ndarray, k: int, state: State, settings: Hierarchy, extra: np.ndarray
) -> State:
    """One exact update of every block, given the others."""
    nodes = [layer.copy() for layer in state.nodes]
    last = len(nodes) - 1
    for t, layer in enumerate(nodes):
        below = kernels if t == 0 else nodes[t - 1]
        for i in range(len(layer)):
            matrix = state.gammas[t][i] * combined(below, state.weights[t][i])
            if t == last:
                matrix += state.betas[i] * state.top
            else:
                matrix += combined(nodes[t + 1], state.gammas[t + 1] * state.weights[t + 1][:, i])
            layer[i] = _projector(matrix + extra, settings.widths[t])
    top = _projector(combined(nodes[last], state.betas) + extra, k)
    return _weigh(kernels, nodes, top, settings.masks)


def objective(kernels: np.ndarray, state: State, extra: np.ndarray) -> float:
    """The objective with the tie-break's small terms, which every update maximises."""
    total = float(state.betas @ _links(state.nodes[-1], state.top[None])[:, 0])
    total += float(np.sum(extra * state.top))
    below = kernels
    for t, layer in enumerate(state.nodes):
        links = _links(layer, below)
        total += float(np.sum(state.gammas[t][:, None] * state.weights[t] * links))
        total += float(np.sum(extra * layer.sum(axis=0)))
        below = layer
    return total


def consensus_of(k: int, states: Sequence[State]) -> Partition:
    """The partition nearest to those of all masks: the leading eigenvectors of their mean."""
    tops = np.stack([state.top for state in states])
    details = {
        "agreement_": _links(tops, tops) / k,
        "connections_": [list(state.weights) for state in states],
        "layer_weights_": [list(state.gammas) for state in states],
        "consensus_weights_": [state.betas for state in states],
    }
    return Partition(
        leading(tops.mean(axis=0), k),
        np.mean([kernel_shares(state) for state in states], axis=0),
        float(np.mean([state.values[-1] for state in states])),
        states[0].values,
        all(state.converged for state in states),
        details,
    )


def kernel_shares(state: State) -> np.ndarray:
    """How much every kernel counts in the end: weights carried down to the kernels, of sum 1."""
    reach = state.betas
    for weights, gammas in zip(state.weights[::-1], state.gammas[::-1], strict=True):
        reach = (reach * gammas) @ weights
    return reach / reach.sum()


def random_masks(
    n_kernels: int, nodes: Sequence[int], sparsity: float, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Connections that each exist with probability 1 - sparsity; none is left without any."""
    masks = []
    before = n_kernels
    for count in nodes:
        mask = rng.random((count, before)) >= sparsity
        for i in np.flatnonzero(~mask.any(axis=1)):
            mask[i, rng.integers(before)] = True
        for j in np.flatnonzero(~mask.any(axis=0)):
            mask[rng.integers(count), j] = True
        masks.append(mask)
        before = count
    return tuple(masks)


def chain_masks(n_kernels: int, layers: int) -> tuple[np.ndarray, ...]:
    """Every node joined to one of the layer before: hierarchical multiple-kernel clustering."""
    return tuple(np.eye(n_kernels, dtype=bool) for _ in range(layers))


def _forward(kernels: np.ndarray, k: int, settings: Hierarchy, extra: np.ndarray) -> State:
    """The start: every connection of a node counts the same, layer after layer."""
    nodes: list[np.ndarray] = []
    below = kernels
    for t, mask in enumerate(settings.masks):
        even = mask / np.sqrt(mask.sum(axis=1, keepdims=True))
        width = settings.widths[t]
        below = np.stack([_projector(combined(below, row) + extra, width) for row in even])
        nodes.append(below)
    top = _projector(below.mean(axis=0) + extra, k)
    return _weigh(kernels, nodes, top, settings.masks)


def _weigh(
    kernels: np.ndarray,
    nodes: Sequence[np.ndarray],
    top: np.ndarray,
    masks: Sequence[np.ndarray],
) -> State:
    """The best weights of all connections, nodes and of the last layer, in closed form."""
    weights, gammas = [], []
    below = kernels
    for layer, mask in zip(nodes, masks, strict=True):
        links = mask * _links(layer, below)
        sizes = np.linalg.norm(links, axis=1)
        weights.append(links / np.maximum(sizes, 1e-300)[:, None])
        gammas.append(sizes / max(float(np.linalg.norm(sizes)), 1e-300))
        below = layer
    fits = _links(nodes[-1], top[None])[:, 0]
    betas = fits / max(float(np.linalg.norm(fits)), 1e-300)
    return State(tuple(nodes), top, tuple(weights), tuple(gammas), betas)


def _links(layer: np.ndarray, below: np.ndarray) -> np.ndarray:
    """<M_i, M_j> of all pairs."""
    return layer.reshape(len(layer), -1) @ below.reshape(len(below), -1).T


def _projector(matrix: np.ndarray, width: int) -> np.ndarray:
    """B B^T of the leading eigenvectors."""
    found = leading(matrix, width)
    return found @ found.T
