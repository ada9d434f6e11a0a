"""The convex relaxation against cvxpy, and as a start."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from dmkc import MarginDistributionClustering
from dmkc.clusterers.odm.relaxation import mix, relax, rounded
from dmkc.constraints import check_labeling, random_pairs
from dmkc.scan.distribution import LossShape

C = 15.0
SHAPE = LossShape(0.2, 0.5, 1.0, 1.0)


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    phi = np.column_stack([rng.normal(size=(n, 3)) + y[:, None] * [1.5, 0, 0], np.ones(n)])
    return phi, y, np.full(n, 1.0 / n)


def relaxed_value(phi, counts, labelings):
    """Problem (7) in cvxpy, the mixture weights eliminated: 1/2 (sum_t |w_t|)^2."""
    w = [cp.Variable(phi.shape[1]) for _ in labelings]
    margin = sum(cp.multiply(y, phi @ v) for y, v in zip(labelings, w, strict=True))
    short = cp.square(cp.pos(1 - SHAPE.theta - margin))
    over = SHAPE.nu * cp.square(cp.pos(margin - 1 - SHAPE.theta))
    size = cp.square(sum(cp.norm(v) for v in w))
    problem = cp.Problem(cp.Minimize(0.5 * size + 0.5 * C * (counts @ (short + over))))
    problem.solve(solver=cp.CLARABEL)
    lengths = np.array([np.linalg.norm(v.value) for v in w])
    return problem.value, lengths / lengths.sum()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_mixtures_are_optimal(count):
    phi, y, counts = rows()
    rng = np.random.default_rng(count)
    flips = rng.uniform(size=(count, len(y))) < 0.15
    labelings = np.where(flips, -y, y)
    found = mix(phi, counts, SHAPE, C, labelings)
    value, weights = relaxed_value(phi, counts, labelings)
    assert found.value == pytest.approx(value, rel=2e-3)
    np.testing.assert_allclose(found.weights, weights, atol=0.05)
    assert found.weights.sum() == pytest.approx(1.0)


def test_every_labeling_lowers_the_bound_and_is_feasible():
    phi, _, counts = rows(40, 1)

    def label(wish):
        out = np.where(wish >= 0, 1.0, -1.0)
        out[1] = out[0] = 1.0 if wish[0] + wish[1] >= 0 else -1.0  # rows 0 and 1 go together
        return out

    found = relax(phi, counts, SHAPE, C, label, label(phi[:, 1]))
    values = [m.value for m in found]
    assert len(found) > 2 and all(b < a for a, b in itertools.pairwise(values))
    assert all(t[0] == t[1] for t in found[-1].labelings)
    own = [mix(phi, counts, SHAPE, C, t[None, :]).value for t in found[-1].labelings]
    assert values[-1] <= min(own) + 1e-9
    assert all(t[0] == t[1] for t in rounded(found[-1], label))


def test_as_a_start_it_keeps_constraints_and_reports_the_mixture():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=300) < 0.4).astype(int)
    X = rng.normal(size=(300, 4)) + 3.0 * y[:, None] * np.eye(4)[0]
    must, cannot = random_pairs(y, 60, random_state=0)
    pairs = {"must_link": must, "cannot_link": cannot}
    for params in (pairs, {"sample_rows": 120, **pairs}, {}):
        params = {"random_state": 0, "rank": 30, **params}
        model = MarginDistributionClustering(init="relaxation", **params).fit(X)
        assert model.start_.startswith("relaxation")
        assert model.mixture_weights_.sum() == pytest.approx(1.0)
        usual = MarginDistributionClustering(**params).fit(X)
        assert model.objective_ < 1.1 * usual.objective_ and not len(usual.mixture_weights_)
        if "must_link" in params:
            assert len(check_labeling(model.labels_, must, cannot)) == 0
    with pytest.raises(ValueError, match='"relaxation" is for two clusters'):
        MarginDistributionClustering(3, init="relaxation").fit(X)
