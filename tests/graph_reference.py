"""The graph of rows and anchors, built anew with scikit-learn and dense matrices."""

from __future__ import annotations

import numpy as np
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import NearestNeighbors


def affinities(X, anchors, k):
    """Rows x anchors: weights of the k nearest, which sum to 1."""
    distances, found = NearestNeighbors(n_neighbors=k).fit(anchors).kneighbors(X)
    width = distances[:, -1:] / 2
    weights = np.exp(-(distances**2) / (2 * width**2))
    Z = np.zeros((len(X), len(anchors)))
    np.put_along_axis(Z, found, weights / weights.sum(axis=1, keepdims=True), axis=1)
    return Z


def bipartite(Z):
    """The symmetric affinities of the graph whose nodes are all rows and all anchors."""
    n, p = Z.shape
    return np.block([[np.zeros((n, n)), Z], [Z.T, np.zeros((p, p))]])


def laplacian_parts(Z):
    """Eigenvalues of the normalised Laplacian of the graph, ascending, and their vectors' rows."""
    W = bipartite(Z)
    roots = np.sqrt(W.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(len(W)) - W / np.outer(roots, roots))
    return values, vectors[: len(Z)]


def sklearn_embedding(Z, count):
    """The row part of scikit-learn's spectral embedding, without the constant direction."""
    W = bipartite(Z)
    found = spectral_embedding(W, n_components=count + 1, drop_first=False, random_state=0)
    return found[: len(Z), 1:]


def walk_kernel(Z):
    """How likely a walk row -> anchor -> row leads from one row to another."""
    return Z / Z.sum(axis=0) @ Z.T
