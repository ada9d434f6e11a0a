"""The problem that is solved, written down independently of how it is solved."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def features_of(model, X):
    """The features of some rows and where each kernel's begin."""
    features = model.model_.features
    return features.features(features.plan(X).rows), features.offsets


def regulariser(v, offsets, kernel_weights):
    """1/2 sum_k |v_k|^2 / weight_k; a kernel without weight must not be used."""
    total = 0.0
    for k, weight in enumerate(kernel_weights):
        square = float(np.sum(v[offsets[k] : offsets[k + 1]] ** 2))
        if square > 1e-14:
            total += 0.5 * square / weight
    return total


def fixed_value(model, X, z, C):
    """The objective of a fitted model under the labeling z or its mirror image."""
    phi, offsets = features_of(model, X)
    v, b = model.model_.weights[0], model.model_.biases[0]
    scores = phi @ v + b
    hinge = min(np.maximum(1 - z * s, 0).mean() for s in (scores, -scores))
    return regulariser(v, offsets, model.kernel_weights_) + C * hinge


def own_value(model, X, C):
    """The objective of a fitted model under its own labeling."""
    phi, offsets = features_of(model, X)
    v, b = model.model_.weights[0], model.model_.biases[0]
    hinge = np.maximum(1 - np.abs(phi @ v + b), 0).mean()
    return regulariser(v, offsets, model.kernel_weights_) + C * hinge


class LabelledProblem:
    """min 1/2 sum_k |v_k|^2 / beta_k + C mean(slack), one slack a row, for any labeling."""

    def __init__(self, phi, offsets, C, balance, norm):
        n, width = phi.shape
        self.z = cp.Parameter(n)
        self.v, self.b = cp.Variable(width), cp.Variable()
        self.beta = cp.Variable(len(offsets) - 1, nonneg=True)
        slack = cp.Variable(n, nonneg=True)
        scores = phi @ self.v + self.b
        penalty = sum(
            cp.quad_over_lin(self.v[offsets[k] : offsets[k + 1]], self.beta[k])
            for k in range(len(offsets) - 1)
        )
        rules = [cp.multiply(self.z, scores) >= 1 - slack]
        rules.append(cp.norm(self.beta, "inf" if np.isinf(norm) else norm) <= 1)
        if balance is not None:
            rules.append(cp.abs(cp.sum(scores) / n) <= balance)
        self.problem = cp.Problem(cp.Minimize(penalty / 2 + C / n * cp.sum(slack)), rules)

    def solve(self, z):
        self.z.value = z
        self.problem.solve(solver=cp.CLARABEL)
        return float(self.problem.value)
