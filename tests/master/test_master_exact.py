"""All masks as cuts: the master equals the problem with one slack for each row (eq. 2.6)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

from dmkc.master import Cuts, MasterProblem, regulariser, solve


def rows_of(seed: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)
    return rng.normal(size=(rows, width)) + 0.5 * signs[:, None], signs


def all_cuts(features: np.ndarray, signs: np.ndarray) -> Cuts:
    rows = len(signs)
    masks = (np.arange(2**rows)[:, None] >> np.arange(rows) & 1).astype(float)
    return Cuts(masks.mean(1), masks @ signs / rows, (masks * signs) @ features / rows)


def n_slack_value(features, signs, offsets, C, balance, norm) -> float:
    rows = len(signs)
    v, b = cp.Variable(features.shape[1]), cp.Variable()
    beta = cp.Variable(len(offsets) - 1, nonneg=True)
    slacks = cp.Variable(rows, nonneg=True)
    penalty = sum(
        cp.quad_over_lin(v[offsets[k] : offsets[k + 1]], beta[k]) for k in range(len(offsets) - 1)
    )
    constraints = [cp.multiply(signs, features @ v + b) >= 1 - slacks, cp.norm(beta, norm) <= 1]
    if balance is not None:
        constraints.append(cp.abs(features.mean(0) @ v + b) <= balance)
    program = cp.Problem(cp.Minimize(penalty / 2 + C / rows * cp.sum(slacks)), constraints)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, "inf"])
@pytest.mark.parametrize("balance", [None, 0.0, 0.1])
@pytest.mark.parametrize("C", [0.5, 50.0])
def test_all_masks_give_the_n_slack_problem(norm, balance, C):
    offsets = (0, 2, 3, 6)
    features, signs = rows_of(3, 7, offsets[-1])
    cuts = all_cuts(features, signs)
    problem = MasterProblem(cuts, offsets, features.mean(0), C, balance, float(norm))
    expected = n_slack_value(features, signs, offsets, C, balance, norm)
    assert solve(problem).value == pytest.approx(expected, rel=1e-5)


def test_all_masks_of_ten_rows():
    offsets = (0, 2, 5)
    features, signs = rows_of(5, 10, offsets[-1])
    problem = MasterProblem(all_cuts(features, signs), offsets, features.mean(0), 10.0, 0.2)
    expected = n_slack_value(features, signs, offsets, 10.0, 0.2, 2)
    assert solve(problem).value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_one_kernel_with_all_masks_is_a_support_vector_machine(C):
    features, signs = rows_of(11, 9, 3)
    problem = MasterProblem(all_cuts(features, signs), (0, 3), features.mean(0), C)
    found = solve(problem)
    machine = SVC(kernel="linear", C=C / len(signs), tol=1e-9).fit(features, signs)
    margins = signs * machine.decision_function(features)
    expected = 0.5 * (machine.coef_**2).sum() + C * np.maximum(0, 1 - margins).mean()
    assert found.value == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(found.weights, machine.coef_[0], atol=1e-4)
    assert regulariser(found.weights, (0, 3), 2) <= expected
