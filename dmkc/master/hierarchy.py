"""Hierarchical multiple-kernel k-means on small matrices (Wang, Du, Zhou, 2023).

Between the kernels and the final partition lie layers of partitions, each joined to some of the
layer before by a 0/1 mask.  With M = S_p for kernels and M = B B^T for partitions, the objective is

    sum over layers, nodes i of gamma_i sum_j D_ij W_ij <M_j, M_i>  +  sum_i beta_i <M_i, B B^T>

over orthonormal B and weights W_i, gamma, beta of unit length, and is maximised block by block.
The printed updates are corrected as the documentation says.  Where a node sees projectors only,
or kernels with fewer directions than it wants, eigenvalues tie and rounding would decide: a small
multiple of the average kernel settles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigvalsh

from dmkc.master.partition import Partition, combined, leading


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


def fit(kernels: np.ndarray, k: int, settings: Hierarchy, extra: np.ndarray) -> State:
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


def consensus(k: int, states: Sequence[State]) -> Partition:
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
