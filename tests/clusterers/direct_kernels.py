"""Kernel k-means methods on whole n x n matrices, written for the tests alone."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def centred(K, weights=None):
    w = np.ones(len(K)) if weights is None else weights
    J = np.eye(len(K)) - np.outer(np.ones(len(K)), w / w.sum())
    return J @ K @ J.T


def cosine_normalised(K):
    d = np.sqrt(np.diag(K))
    return K / np.outer(d, d)


def unit_kernels(kernels, Z):
    return [cosine_normalised(centred(kernel.matrix(Z, Z))) for kernel in kernels]


def top(K, k):
    n = len(K)
    return eigh(K, subset_by_index=[n - min(k, n), n - 1])[1][:, ::-1]


def average(Ks, k):
    K = sum(Ks) / len(Ks)
    H = top(K, k)
    return H, np.trace(K) - np.trace(H.T @ K @ H)


def mkkm(Ks, k, penalty=0.0, steps=30):
    """Alternates exact steps; the quadratic program of the weights is left to cvxpy."""
    m = len(Ks)
    M = np.array([[np.trace(A @ B) for B in Ks] for A in Ks])
    M = penalty * M * np.mean([np.trace(K) for K in Ks]) / M.mean()
    w = np.full(m, 1.0 / m)
    for _ in range(steps):
        H = top(sum(a**2 * K for a, K in zip(w, Ks, strict=True)), k)
        z = np.array([np.trace(K) - np.trace(H.T @ K @ H) for K in Ks])
        v = cp.Variable(m)
        quadratic = cp.psd_wrap(np.diag(z) + M / 2)
        cp.Problem(cp.Minimize(cp.quad_form(v, quadratic)), [v >= 0, cp.sum(v) == 1]).solve(
            solver=cp.CLARABEL
        )
        w = v.value
    return H, w, w**2 @ z + 0.5 * w @ M @ w


def simple_mkkm(Ks, k):
    """The convex function of the weights, minimised by a general solver from several starts."""

    def value(w):
        K = sum(a**2 * K for a, K in zip(w, Ks, strict=True))
        return np.linalg.eigvalsh(K)[-k:].sum()

    rng = np.random.default_rng(0)
    found = [
        minimize(
            value,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(Ks),
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        for start in [np.full(len(Ks), 1 / len(Ks)), *rng.dirichlet(np.ones(len(Ks)), 3)]
    ]
    best = min(found, key=lambda r: r.fun)
    return best.x, best.fun


def hierarchy(Ks, k, widths, masks, tie, sweeps):
    """The layered model on n x n matrices, node by node as it is written down."""
    average_kernel = sum(Ks) / len(Ks)
    extra = tie * average_kernel / np.linalg.norm(average_kernel, 2)
    layers = []
    below = list(Ks)
    for t, D in enumerate(masks):
        nodes = []
        for i in range(len(D)):
            A = sum(D[i, j] * below[j] for j in range(len(below))) / np.sqrt(D[i].sum())
            H = top(A + extra, widths[t])
            nodes.append(H @ H.T)
        layers.append(nodes)
        below = nodes
    H = top(sum(below) / len(below) + extra, k)

    def weigh():
        weights, gammas = [], []
        for t, D in enumerate(masks):
            before = Ks if t == 0 else layers[t - 1]
            V = np.array(
                [
                    [D[i, j] * np.sum(before[j] * layers[t][i]) for j in range(len(before))]
                    for i in range(len(D))
                ]
            )
            size = np.sqrt((V**2).sum(axis=1))
            weights.append(V / size[:, None])
            gammas.append(size / np.sqrt((size**2).sum()))
        v = np.array([np.sum(M * (H @ H.T)) for M in layers[-1]])
        return weights, gammas, v / np.sqrt((v**2).sum())

    def objective():
        total = sum(b * np.sum(M * (H @ H.T)) for b, M in zip(beta, layers[-1], strict=True))
        total += np.sum(extra * (H @ H.T))
        for t in range(len(masks)):
            before = Ks if t == 0 else layers[t - 1]
            for i, M in enumerate(layers[t]):
                total += gamma[t][i] * sum(
                    W[t][i, j] * np.sum(before[j] * M) for j in range(len(before))
                )
                total += np.sum(extra * M)
        return total

    W, gamma, beta = weigh()
    values = [objective()]
    for _ in range(sweeps):
        for t in range(len(masks)):
            before = Ks if t == 0 else layers[t - 1]
            for i in range(len(layers[t])):
                A = gamma[t][i] * sum(W[t][i, j] * before[j] for j in range(len(before)))
                if t + 1 < len(masks):
                    A = A + sum(
                        gamma[t + 1][u] * W[t + 1][u, i] * layers[t + 1][u]
                        for u in range(len(layers[t + 1]))
                    )
                else:
                    A = A + beta[i] * H @ H.T
                B = top(A + extra, widths[t])
                layers[t][i] = B @ B.T
        H = top(sum(b * M for b, M in zip(beta, layers[-1], strict=True)) + extra, k)
        W, gamma, beta = weigh()
        values.append(objective())
    return H, values, W
